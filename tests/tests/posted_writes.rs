//! Behind a PCIe bridge: what the host writes is taken whatever host memory does, as the data of reads wait for it, and what
//! a register says of host memory is true.
use std::rc::Rc;

use ferroce_proto::abi::cmd::{CmdHead, opcode};
use ferroce_proto::abi::regs;
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
    let mut late = (Delay::fixed(0), Delay::fixed(0));
    Pair::new(move |memory: Rc<dyn HostMemory>| -> Box<dyn Nic> {
        let config = axi::Config {
            read_latency: late.0,
            write_latency: late.1,
            max_reads: 32,
            ..axi::Config::default()
        };
        late = (Delay::fixed(6000), Delay::fixed(3000));
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

#[test]
fn a_command_counts_when_its_completion_is_in_memory() {
    let mut pair = pair(64);
    // the commands that brought it up count first
    pair.run(10_000);
    let host = &mut pair.b;
    let before = host.read32(regs::CMD_CI);
    let head = CmdHead {
        opcode: opcode::NOP,
        ..CmdHead::default()
    };
    let command = host.start(head, &[]);
    while host.read32(regs::CMD_CI) == before {}
    assert!(host.answer(&command).is_some(), "CMD_CI tells of it");
}
