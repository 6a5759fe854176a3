//! A paused class takes nothing from another: neither what of it is under way, nor what would follow.
use std::rc::Rc;

use ferroce_proto::abi::regs;
use ferroce_proto::wire::Mtu;
use ferroce_sim::ethernet::pause::Pause;
use ferroce_sim::memory::HostMemory;
use ferroce_sim::nic::Nic;
use ferroce_sim::rtl::{Options, build};
use ferroce_sim::testhost::{
    EXPERIMENTAL, ExceptionQueue, Mr, Pair, QpOptions, Rights, Side, Work, experimental, pattern,
};
use ferroce_sim::verilator;

const LENGTH: usize = 1 << 16;
/// Messages of the class that goes on, each way.
const MESSAGES: usize = 12;
/// Its DSCP is 24, its class 1.
const OTHER: u8 = 0x60;
/// Queue pairs of the paused class whose WRITEs the first card acknowledges.
const WRITERS: usize = 4;

/// What of the paused class is due.
#[derive(Clone, Copy, Debug)]
struct Flood {
    /// WRITEs of the first card.
    writes: usize,
    /// READs that it answers.
    reads: usize,
    /// WRITEs of 8 bytes of each of the [`WRITERS`] that it acknowledges.
    acks: usize,
    /// Frames of its host.
    frames: usize,
}

const FLOODS: [Flood; 6] = [
    flood(8, 0, 0, 0),
    flood(0, 16, 0, 0),
    flood(8, 16, 0, 0),
    flood(0, 0, 120, 0),
    flood(0, 0, 0, 250),
    flood(8, 16, 0, 250),
];

const fn flood(writes: usize, reads: usize, acks: usize, frames: usize) -> Flood {
    Flood {
        writes,
        reads,
        acks,
        frames,
    }
}

/// Log2 of the slots of the ring of the host's frames.
const SLOTS: u8 = 8;
/// Bytes of the payload of each of these, and where they have their type.
const PAYLOAD: usize = 1500;
const TYPE: std::ops::Range<usize> = 12..14;

struct Bench {
    pair: Pair,
    /// Of the first card.
    frames: ExceptionQueue,
    source: Mr,
    sinks: [Mr; 2],
    paused: (u32, u32),
    other: (u32, u32),
    writers: Vec<(u32, u32)>,
}

fn bench(engine: &verilator::Model) -> Bench {
    let mut pair = Pair::new(|memory: Rc<dyn HostMemory>| -> Box<dyn Nic> {
        Box::new(build::engine(engine, memory, &Options::default()).expect("there is memory"))
    });
    let options = QpOptions {
        mtu: Mtu::Mtu4096,
        sq_log: 7,
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
    let writers = (0..WRITERS)
        .map(|_| pair.connect(options, options))
        .collect();
    pair.a.write32(regs::PFC_CONFIG, 0xff);
    let frames = ExceptionQueue::open(&mut pair.a, SLOTS, false);
    let source = pair.a.create_mr(&pattern(LENGTH, 1), Rights::ALL);
    let sinks = [(); 2].map(|()| pair.b.create_mr(&vec![0; LENGTH], Rights::ALL));
    Bench {
        pair,
        frames,
        source,
        sinks,
        paused,
        other,
        writers,
    }
}

impl Bench {
    /// Begins what has payload.
    fn flood(&mut self, flood: Flood) {
        let (pair, source, sink) = (&mut self.pair, &self.source, &self.sinks[0]);
        for _ in 0..flood.writes {
            pair.a
                .post_send(self.paused.0, &Work::write(&[source.all()], sink, 0));
        }
        for _ in 0..flood.reads {
            pair.b
                .post_send(self.paused.1, &Work::read(&[sink.all()], source, 0));
        }
    }

    /// Begins what is acknowledged, and gives the first card frames of its host, which are numbered.
    fn write(&mut self, flood: Flood) {
        let to = self.pair.b.mac;
        let host = &mut self.pair.a;
        for i in 0..flood.frames {
            let mut payload = [0; PAYLOAD];
            payload[0] = i as u8;
            let frame = experimental(host.mac, to, &payload);
            self.frames.put(host, &frame, frame.len() as u16);
        }
        self.frames.ring(host);
        let work = Work::write(&[self.sinks[1].sge(0, 8)], &self.source, 0);
        for _ in 0..flood.acks {
            for writer in &self.writers {
                self.pair.b.post_send(writer.1, &work);
            }
        }
    }

    fn pause(&mut self, quanta: u16) {
        let frame = Pause::of(0, quanta).emit(self.pair.b.mac);
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
        // the last are the most of each kind
        let floods = if width == 512 {
            &FLOODS[..]
        } else {
            &FLOODS[3..]
        };
        for &flood in floods {
            let mut bench = bench(&engine);
            bench.flood(flood);
            // in the midst of it
            bench.pair.run(1500);
            bench.pause(u16::MAX);
            bench.write(flood);
            // what is under way comes to its queue
            bench.pair.run(1_300_000 / width as u64);
            let sent = bench.pair.sent.len();
            let beside = bench.measure();
            println!("{width} bits, {flood:?}: {beside} cycles, {alone} alone");
            assert!(
                beside * 95 <= alone * 100,
                "{width} bits, {flood:?}: {beside} cycles, {alone} alone"
            );
            let paused = bench.pair.sent[sent..]
                .iter()
                .filter(|(side, frame)| *side == Side::A && frame[15] & 0xfc == 0);
            assert_eq!(paused.count(), 0, "frames of the paused class");
            bench.pause(0);
            complete(&mut bench, Side::A, flood.writes);
            complete(&mut bench, Side::B, flood.reads + WRITERS * flood.acks);
            if flood.writes + flood.reads > 0 {
                assert_eq!(bench.pair.b.contents(&bench.sinks[0]), pattern(LENGTH, 1));
            }
            bench.pair.settle();
            let frames = bench
                .pair
                .sent
                .iter()
                .filter(|(side, frame)| *side == Side::A && frame[TYPE] == EXPERIMENTAL);
            let numbers: Vec<_> = frames
                .map(|(_, frame)| usize::from(frame[TYPE.end]))
                .collect();
            assert_eq!(numbers, Vec::from_iter(0..flood.frames));
        }
    }
}
