//! What the host writes is taken whatever host memory does: behind a PCIe bridge the data of reads wait for it.
use std::rc::Rc;

use ferroce_proto::abi::wqe::RecvWqe;
use ferroce_sim::axi;
use ferroce_sim::memory::HostMemory;
use ferroce_sim::nic::Nic;
use ferroce_sim::random::Delay;
use ferroce_sim::rtl::{Options, build};
use ferroce_sim::testhost::{Pair, QpOptions, Rights, Side, Work};
use ferroce_sim::verilator;

/// Receives posted.
const RECEIVES: u16 = 100;

/// Two hosts; memory of the second answers late, 32 reads at a time, as bridges do.
fn pair(width: usize) -> Pair {
    let engine = build::model(width, &verilator::Options::default()).expect("the engine builds");
    let mut late = Delay::fixed(0);
    Pair::new(move |memory: Rc<dyn HostMemory>| -> Box<dyn Nic> {
        let config = axi::Config {
            read_latency: late,
            max_reads: 32,
            ..axi::Config::default()
        };
        late = Delay::fixed(6000);
        let options = Options {
            memory: config,
            ..Options::default()
        };
        Box::new(build::engine(&engine, memory, &options).expect("there is memory"))
    })
}

#[test]
fn receive_doorbells_wait_for_no_read() {
    for width in [64, 512] {
        let mut pair = pair(width);
        let options = QpOptions {
            sq_log: 7,
            rq_log: 7,
            ot_log: 7,
            timeout: 10,
            ..QpOptions::default()
        };
        let (qa, qb) = pair.connect(options, options);
        let buffer = pair.b.create_mr(&[0; 64], Rights::ALL);
        let list = [buffer.all()];
        for _ in 0..RECEIVES {
            let head = RecvWqe {
                num_sge: 1,
                length: 64,
                ..RecvWqe::default()
            };
            pair.b.write_recv_wqe(qb, head, &list);
        }
        pair.b.ring_recv(qb);
        let slots = Work::send(&[]).inline(&[7; 8]).unsignaled().slots();
        for _ in 0..RECEIVES {
            pair.a.write_slots(qa, &slots);
        }
        pair.a.post_slots(qa, &[]);

        // receive WQEs are being read, as many as there may be, and placements wait behind them
        pair.run(4000);
        (0..8).for_each(|_| pair.b.ring_recv(qb));
        let begun = pair.b.nic.now();
        pair.b.read32(0);
        let cycles = pair.b.nic.now() - begun;
        assert!(
            cycles < 60,
            "a register behind 8 doorbells after {cycles} cycles"
        );
        for _ in 0..RECEIVES {
            assert_eq!(pair.wait(Side::B, 0).status, 0);
        }
        pair.assert_no_faults();
    }
}
