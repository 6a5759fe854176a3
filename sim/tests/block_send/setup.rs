//! The bench: slots in, Start events answered as the plan of each WQE says, packets and pieces compared.

mod answers;

use std::collections::VecDeque;

use fastrand::Rng;
use ferroce_hdl::transport::requester::event::SqEventKind;
use ferroce_hdl::transport::requester::grant::SendAction;
use ferroce_hdl::transport::requester::send::SendPath;
use ferroce_proto::abi::qpc::SqCtx;
use ferroce_sim::bench::{Agent, Bench, Item, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;

use super::agents::{Grant, Grants, Regions};
use super::executes::Executes;
use super::expect::incarnation;
use super::work::{Q, Work, ctx, path};

const START: u64 = SqEventKind::Start as u64;
const REFETCH: u64 = SqEventKind::Refetch as u64;

/// What the table of send queues answers to the Start event of a WQE.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    Drop,
    Flush,
    /// Packets `from..to`, of which the first `again` were sent before. Of a READ `to` counts nothing.
    Send {
        from: u32,
        to: u32,
        again: u32,
    },
    /// Sent whole, for the first time, in the round before: only a READ or atomic leaves.
    Stale,
    /// Executed in the card.
    Execute,
}

/// The bench.
pub(crate) struct Setup {
    bench: Bench,
    s: StreamSource,
    start: StreamSink,
    pub(super) issue: StreamSink,
    pub(super) desc: StreamSink,
    pub(super) gather: StreamSink,
    pub(super) flushed: StreamSink,
    pub(super) executes: Executes,
    /// Packets due; whether they are atomics.
    pub(super) packets: VecDeque<(bool, Item)>,
    /// Pieces due.
    pub(super) pieces: VecDeque<Item>,
    /// Round of each queue pair.
    rounds: [u64; 1 << Q],
    grants: Grants,
    regions: Regions,
    index: [u16; 1 << Q],
    /// WQEs on their way, and their plans; no plan for those that are incomplete.
    waiting: VecDeque<(Work, u16, usize, Option<Plan>)>,
    /// Cycles from event to grant.
    pub(crate) delay: u64,
    /// Issues wait.
    hold_issues: bool,
    /// Packets so far, READs issued, retransmissions.
    pub(crate) sent: usize,
    pub(crate) issued: usize,
    pub(crate) resent: usize,
    expected_resent: usize,
    /// Grants with packets, and those cut to their end.
    granted: usize,
    cut: usize,
    /// Pieces announced that have not left yet.
    pieces_cut: usize,
    /// Cycle of the latest packet.
    pub(crate) latest: u64,
}

impl Setup {
    pub(crate) fn new(pauses: Pauses) -> Self {
        let bench = Bench::of(SendPath::<Q>::default).unwrap();
        let dut = bench.dut();
        let sink = |name| StreamSink::new(dut, name, pauses).unwrap();
        let mut setup = Self {
            s: StreamSource::new(dut, "s", pauses).unwrap(),
            start: sink("start"),
            issue: sink("issue"),
            desc: sink("desc"),
            gather: sink("gather"),
            flushed: sink("flushed"),
            executes: Executes::new(dut, pauses),
            packets: VecDeque::new(),
            pieces: VecDeque::new(),
            rounds: [3; 1 << Q],
            grants: Grants::default(),
            regions: Regions::default(),
            index: [0; 1 << Q],
            waiting: VecDeque::new(),
            delay: 8,
            hold_issues: false,
            sent: 0,
            issued: 0,
            resent: 0,
            expected_resent: 0,
            granted: 0,
            cut: 0,
            pieces_cut: 0,
            latest: 0,
            bench,
        };
        setup.act(|bench, agents| bench.reset(agents));
        // the sweep of the address handles
        (0..1 << Q).for_each(|_| setup.step());
        for qpn in 0..1 << Q {
            setup.write_image(["sq_image", "sq_we"], qpn, &ctx(qpn).emit());
            setup.write_image(["av_image", "av_we"], qpn, &path(qpn, false).emit());
            setup.write_image(["av_image", "ah_we"], qpn, &path(qpn, true).emit());
        }
        let dut = setup.bench.dut_mut();
        for signal in ["closed", "crowded"] {
            dut.set(dut.input(signal).unwrap(), 0);
        }
        (0..1 << Q).for_each(|qpn| setup.recall(qpn));
        setup
    }

    /// Gives queue pair `qpn` another image.
    pub(crate) fn rewrite(&mut self, qpn: u16, ctx: SqCtx) {
        self.write_image(["sq_image", "sq_we"], qpn, &ctx.emit());
    }

    fn write_image(&mut self, [port, we]: [&str; 2], number: u16, bytes: &[u8]) {
        let dut = self.bench.dut_mut();
        for signal in ["sq_we", "av_we", "ah_we"] {
            dut.set(dut.input(signal).unwrap(), u64::from(signal == we));
        }
        let image = dut.input(port).unwrap();
        dut.write(image, &words(bytes, image.width()));
        dut.set(dut.input("image_qpn").unwrap(), number.into());
        self.step();
        let dut = self.bench.dut_mut();
        dut.set(dut.input(we).unwrap(), 0);
    }

    /// The send queue goes back: what it granted before is not to be sent any more.
    pub(crate) fn recall(&mut self, qpn: u16) {
        let round = (self.rounds[usize::from(qpn)] + 1) % 4;
        self.rounds[usize::from(qpn)] = round;
        let mut set = |port, value| {
            let dut = self.bench.dut_mut();
            dut.set(dut.input(port).unwrap(), value);
        };
        set("recall_valid", 1);
        set("recall.qpn", qpn.into());
        set("recall.round", round);
        self.step();
        let dut = self.bench.dut_mut();
        dut.set(dut.input("recall_valid").unwrap(), 0);
    }

    fn act<R>(&mut self, act: impl FnOnce(&mut Bench, &mut [&mut dyn Agent]) -> R) -> R {
        let Self {
            s,
            start,
            issue,
            desc,
            gather,
            flushed,
            executes,
            grants,
            regions,
            ..
        } = self;
        let Executes { key, done, .. } = executes;
        if self.hold_issues {
            act(
                &mut self.bench,
                &mut [s, start, desc, gather, flushed, key, done, grants, regions],
            )
        } else {
            act(
                &mut self.bench,
                &mut [
                    s, start, issue, desc, gather, flushed, key, done, grants, regions,
                ],
            )
        }
    }

    pub(crate) fn rng(&mut self) -> &mut Rng {
        self.bench.rng()
    }

    pub(crate) fn cycle(&self) -> u64 {
        self.bench.cycle()
    }

    /// Producer index of the next WQE of a queue pair.
    pub(crate) fn set_index(&mut self, qpn: u16, index: u16) {
        self.index[usize::from(qpn)] = index;
    }

    /// Offers a WQE in a grant of its own.
    pub(crate) fn post(&mut self, work: Work, plan: Plan) {
        self.present(&[(work, Some(plan))], usize::MAX);
    }

    /// Offers WQEs of one queue pair in one grant of at most `slots` slots.
    pub(crate) fn present(&mut self, works: &[(Work, Option<Plan>)], slots: usize) {
        let all: usize = works.iter().map(|(work, _)| work.slots()).sum();
        let count = all.min(slots);
        let mut number = 0;
        for (work, plan) in works {
            let first = self.index[usize::from(work.qpn)];
            let bytes = work.bytes();
            let posted = work.slots().min(count - number);
            for slot in 0..posted {
                let mut item = self
                    .s
                    .item()
                    .with("qpn", work.qpn.into())
                    .with("epoch", (work.qpn % 16).into())
                    .with("index", first.wrapping_add(slot as u16).into())
                    .with("first", (number == 0).into())
                    .with("last", (number + 1 == count).into())
                    .with("error", (work.unreadable == Some(slot)).into());
                item.set_words("slot", &words(&bytes[64 * slot..][..64], 512));
                self.s.push(item);
                number += 1;
            }
            self.waiting.push_back((work.clone(), first, posted, *plan));
            self.index[usize::from(work.qpn)] = first.wrapping_add(work.slots() as u16);
        }
    }

    pub(crate) fn step(&mut self) {
        self.act(|bench, agents| bench.step(agents))
            .unwrap_or_else(|failure| panic!("{failure}"));
        let dut = self.bench.dut();
        let pulse = |name| usize::from(dut.is_set(dut.output(name).unwrap()));
        self.resent += pulse("retransmission");
        self.cut += pulse("part_cut");
        self.pieces_cut += pulse("piece_cut");
        while let Some((_, event)) = self.start.pop() {
            if !self.executes.ends(&event) {
                self.answer(&event);
            }
        }
        self.executes.step(self.bench.rng());
        while let Some((cycle, item)) = self.desc.pop() {
            let (atomic, wanted) = self.packets.pop_front().expect("a packet is due");
            let mut seen = item.clone();
            if !atomic {
                // of no meaning
                seen = seen.with("swap_add", 0).with("compare", 0);
            }
            assert_eq!(
                seen,
                wanted,
                "packet {}: {}",
                self.sent,
                self.bench.failure("")
            );
            self.sent += 1;
            self.latest = cycle;
        }
        while let Some((_, piece)) = self.gather.pop() {
            assert_eq!(Some(piece), self.pieces.pop_front());
            self.pieces_cut -= 1;
        }
        self.issued = self.issue.count() as usize;
    }

    /// From now on issues of READs and atomics are not taken, or are taken again.
    pub(crate) fn hold_issues(&mut self, hold: bool) {
        self.hold_issues = hold;
        let ready = self.bench.dut().input("issue_ready").unwrap();
        self.bench.dut_mut().set(ready, 0);
    }

    pub(crate) fn run(&mut self, cycles: u64) {
        (0..cycles).for_each(|_| self.step());
    }

    /// Runs until no more than `most` WQEs are on their way.
    pub(crate) fn run_until_few_wait(&mut self, most: usize) {
        for _ in 0..100_000 {
            if self.waiting.len() <= most {
                return;
            }
            self.step();
        }
        panic!("no event for {:?}", self.waiting.front());
    }

    /// Runs until all is sent and as expected.
    pub(crate) fn finish(&mut self) {
        let mut quiet = 0;
        for _ in 0..400_000 {
            let before = (self.s.sent(), self.sent, self.waiting.len());
            self.step();
            let after = (self.s.sent(), self.sent, self.waiting.len());
            quiet = if before == after { quiet + 1 } else { 0 };
            if quiet > 300 {
                break;
            }
        }
        assert!(self.waiting.is_empty(), "no event for {:?}", self.waiting);
        self.act(|bench, agents| bench.finish(agents, 10))
            .unwrap_or_else(|f| panic!("{f}"));
        for sink in [&mut self.issue, &mut self.flushed] {
            assert_eq!(sink.pop(), None, "not expected");
        }
        assert_eq!(self.packets.front(), None, "a packet is missing");
        assert_eq!(self.pieces.front(), None, "a piece is missing");
        self.executes.finish();
        assert_eq!(self.resent, self.expected_resent, "retransmissions");
        assert_eq!(self.cut, self.granted, "grants cut to their end");
        assert_eq!(self.pieces_cut, 0, "pieces told of that did not leave");
    }
}

/// Bytes as the words of a port of `width` bits.
fn words(bytes: &[u8], width: usize) -> Vec<u32> {
    let words = bytes
        .chunks(4)
        .map(|c| u32::from_le_bytes(c.try_into().unwrap()));
    let mut words: Vec<u32> = words.take(width.div_ceil(32)).collect();
    if !width.is_multiple_of(32) {
        *words.last_mut().unwrap() &= (1 << (width % 32)) - 1;
    }
    words
}
