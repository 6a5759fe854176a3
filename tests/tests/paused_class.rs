//! A paused class takes nothing from another: neither what of it is under way, nor what would follow.
use std::rc::Rc;

use ferroce_proto::abi::regs;
use ferroce_proto::wire::Mtu;
use ferroce_sim::ethernet::pause::Pause;
use ferroce_sim::memory::HostMemory;
use ferroce_sim::nic::Nic;
use ferroce_sim::rtl::{Options, build};
use ferroce_sim::testhost::{Mr, Pair, QpOptions, Rights, Side, Work, pattern};
use ferroce_sim::verilator;

const LENGTH: usize = 1 << 16;
/// Messages of the class that goes on, each way.
const MESSAGES: usize = 12;
/// Its DSCP is 24, its class 1.
const OTHER: u8 = 0x60;
/// WRITEs and READs of the paused class.
const FLOODS: [(usize, usize); 2] = [(8, 0), (0, 2)];

struct Bench {
    pair: Pair,
    source: Mr,
    sinks: [Mr; 2],
    paused: (u32, u32),
    other: (u32, u32),
}

fn bench(engine: &verilator::Model) -> Bench {
    let mut pair = Pair::new(|memory: Rc<dyn HostMemory>| -> Box<dyn Nic> {
        Box::new(build::engine(engine, memory, &Options::default()).expect("there is memory"))
    });
    let options = QpOptions {
        mtu: Mtu::Mtu4096,
        timeout: 20,
        max_rd_atomic: 16,
        ..QpOptions::default()
    };
    let of_other = QpOptions {
        tclass: OTHER,
        send_cq: pair.a.create_cq(6),
        ..options
    };
    pair.b.create_cq(6);
    let paused = pair.connect(options, options);
    let other = pair.connect(of_other, of_other);
    pair.a.write32(regs::PFC_CONFIG, 0xff);
    let source = pair.a.create_mr(&pattern(LENGTH, 1), Rights::ALL);
    let sinks = [(); 2].map(|()| pair.b.create_mr(&vec![0; LENGTH], Rights::ALL));
    Bench {
        pair,
        source,
        sinks,
        paused,
        other,
    }
}

impl Bench {
    /// The first card sends so many messages of the class that is to be paused, and answers so many READs of the other card.
    fn flood(&mut self, writes: usize, reads: usize) {
        let (pair, source, sink) = (&mut self.pair, &self.source, &self.sinks[0]);
        for _ in 0..writes {
            pair.a
                .post_send(self.paused.0, &Work::write(&[source.all()], sink, 0));
        }
        for _ in 0..reads {
            pair.b
                .post_send(self.paused.1, &Work::read(&[sink.all()], source, 0));
        }
    }

    fn pause(&mut self, quanta: u16) {
        let mut pause = Pause::default();
        pause.quanta[0] = Some(quanta);
        let frame = pause.emit(self.pair.b.mac);
        self.pair.a.nic.receive(&frame);
    }

    /// Cycles that the messages of the other class take.
    fn measure(&mut self) -> u64 {
        let start = self.pair.a.nic.now();
        let work = Work::write(&[self.source.all()], &self.sinks[1], 0);
        for _ in 0..MESSAGES {
            self.pair.a.post_send(self.other.0, &work);
        }
        for _ in 0..MESSAGES {
            assert_eq!(self.pair.wait(Side::A, 1).status, 0);
        }
        self.pair.a.nic.now() - start
    }
}

/// Waits for so many completions of a host's first queue.
fn complete(bench: &mut Bench, side: Side, count: usize) {
    for _ in 0..count {
        assert_eq!(bench.pair.wait(side, 0).status, 0);
    }
}

#[test]
fn another_class_keeps_its_rate() {
    for width in [512, 64] {
        let engine =
            build::model(width, &verilator::Options::default()).expect("the engine builds");
        let alone = bench(&engine).measure();
        for (writes, reads) in FLOODS {
            let mut bench = bench(&engine);
            bench.flood(writes, reads);
            // in the midst of it
            bench.pair.run(1500);
            bench.pause(u16::MAX);
            // what is under way comes to its queue
            bench.pair.run(1_300_000 / width as u64);
            let sent = bench.pair.sent.len();
            let beside = bench.measure();
            println!(
                "{width} bits, {writes} WRITEs, {reads} READs: {beside} cycles, alone {alone}"
            );
            assert!(
                beside * 95 <= alone * 100,
                "{width} bits, {writes} WRITEs, {reads} READs: {beside} cycles, {alone} alone"
            );
            let paused = bench.pair.sent[sent..].iter().filter(|(side, frame)| {
                *side == Side::A && frame[15] & 0xfc == 0 && frame.len() > 100
            });
            assert_eq!(paused.count(), 0, "frames of the paused class");
            bench.pause(0);
            complete(&mut bench, Side::A, writes);
            complete(&mut bench, Side::B, reads);
            assert_eq!(bench.pair.b.contents(&bench.sinks[0]), pattern(LENGTH, 1));
        }
    }
}
