//! The writer with everything at its ports; every completion is checked as it arrives.

mod check;
mod command;
mod reports;
mod tokens;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ferroce_hdl::queue::cq_write::CqWrite;
use ferroce_proto::abi::cq::{CqCtx, Cqe};
use ferroce_sim::bench::{Bench, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::{Input, Output};

use super::record::{Recorder, Records};
use reports::Reports;

/// Log2 of the completion queues of the blocks under test.
pub(crate) const C: usize = 4;
/// Inputs of tokens.
pub(crate) const RECV: usize = 0;
pub(crate) const SEND: usize = 1;
/// Added to a count: so many bursts ago that it came round.
pub(crate) const OLD: u64 = 1 << 40;
/// Bit of a queue pair number that tells the input; the other bits count the tokens of the input.
const FROM_SEND: u16 = 1 << 15;

/// A token that was pushed and has neither become a CQE nor been lost.
#[derive(Clone, Debug)]
struct Token {
    qpn: u16,
    cqn: u16,
    /// Payload bursts that have to be done.
    fence: u64,
    /// Its CQE but for the phase.
    cqe: Cqe,
    /// It becomes no CQE.
    marker: bool,
    /// A marker behind it came out.
    passed: bool,
    /// Cycle in which it was taken.
    taken: Option<u64>,
    /// Accesses of peers that were begun by then.
    begun: [u64; 2],
}

/// A completion queue as the host sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ring {
    pub(crate) ctx: CqCtx,
    /// Before it was resized, and the first entries that are not there.
    old: VecDeque<(CqCtx, u32)>,
    open: bool,
    pub(crate) written: u32,
    pub(crate) consumed: u32,
    /// Tokens on their way.
    pub(crate) pending: u32,
    /// Number of the last CQE and the first loss of each input.
    last_cqe: [Option<u16>; 2],
    first_lost: [Option<u16>; 2],
    /// What the last read that succeeded said.
    known: u32,
    /// Of each read the cycle in which it was taken, and what was known behind it.
    looks: Vec<(u64, u32)>,
    /// What was known when the first loss found no room, of what could be.
    full_by: Vec<u32>,
}

impl Ring {
    pub(crate) fn size(&self) -> u32 {
        1 << self.ctx.log_size
    }

    /// All entries are the host's to take.
    pub(crate) fn is_full(&self) -> bool {
        self.written - self.consumed == self.size()
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.open && self.first_lost.iter().any(Option::is_some)
    }
}

/// A block of 2^C queues and its surroundings.
pub(crate) struct Rig {
    pub(crate) bench: Bench,
    pub(crate) rings: Vec<Ring>,
    pub(crate) records: Records,
    pub(crate) recorder: Recorder,
    pub(crate) sources: [StreamSource; 2],
    commands: StreamSource,
    arms: StreamSource,
    pub(crate) events: StreamSink,
    pub(crate) reports: Reports,
    /// No event is taken.
    deaf: bool,
    pub(crate) write: StreamSink,
    pub(crate) beats: StreamSink,
    pub(crate) lost: StreamSink,
    marks: StreamSink,
    /// Markers that came out.
    pub(crate) drains: u64,
    issued_port: Input,
    done_port: Input,
    cqe_done_port: Input,
    overflow: Output,
    refused: Output,
    switched: Output,
    outcome: Output,
    look: Output,
    refused_since: Input,
    /// Queue pair that was looked for in the cycle before.
    looked: u64,
    /// Tokens that belong to a queue pair whose payload was refused from this count on.
    pub(crate) spoiled: BTreeMap<u16, u64>,
    /// Of these, those that are to be reported beside their CQE.
    pub(crate) due_refusals: BTreeSet<u16>,
    busy: Output,
    lanes: usize,
    /// Payload bursts issued and done.
    pub(crate) issued: u64,
    pub(crate) done: u64,
    tokens: [VecDeque<Token>; 2],
    /// Number and queue of the tokens that an outcome is due for.
    judged: VecDeque<(u16, u16)>,
    pushed: [u16; 2],
    /// Accesses of peers, reads and atomics: begun, over. They go on by themselves.
    pub(crate) accesses: [[u64; 2]; 2],
    access_ports: [[Input; 2]; 2],
    awaited: Output,
    over: Input,
    /// Of a queue pair: the atomics that its completion waits for, and those that are over.
    pub(crate) own_atomics: BTreeMap<u16, (u64, u64)>,
    /// Chance that one of the queue pair that is awaited is over in a cycle, in 1/256.
    pub(crate) ending_atomics: u8,
    /// Chance that one begins in a cycle, in 1/256.
    pub(crate) accessing: u8,
    /// Chance that one ends in a cycle.
    pub(crate) ending: u8,
    /// Some sends have a fence too.
    pub(crate) fenced_sends: bool,
    /// Address and cycle of bursts whose beats are to come, and the bytes so far.
    bursts: VecDeque<(u64, u64)>,
    bytes: Vec<(u64, u8)>,
    ended: VecDeque<Vec<(u64, u8)>>,
    /// CQEs in the order of their arrival: queue, qpn, cycle of the burst.
    pub(crate) seen: Vec<(u16, u16, u64)>,
    pub(crate) losses: u64,
    pub(crate) overflows: u64,
    expected_overflows: u64,
}

/// Every second receive.
fn is_judged(qpn: u16) -> bool {
    qpn & (FROM_SEND | 1) == 1
}

fn sink(bench: &Bench, name: &str, back: Pauses) -> StreamSink {
    if name == "beats" {
        let payload = ["data", "strb", "last"];
        StreamSink::with_ports(bench.dut(), name, &payload, ["valid", "ready"], back)
    } else {
        StreamSink::new(bench.dut(), name, back)
    }
    .expect("a stream out")
}

impl Rig {
    /// After reset and sweep; every queue is closed. `idle` are the pauses of the sources, `back` those of the sinks.
    pub(crate) fn new<const W: usize, const K: usize>(idle: Pauses, back: Pauses) -> Self {
        let bench = Bench::of(CqWrite::<W, K, C>::default).expect("the block builds");
        let dut = bench.dut();
        let source = |name| StreamSource::new(dut, name, idle).expect("a stream in");
        let records = Records::default();
        let mut rig = Self {
            rings: vec![Ring::default(); 1 << C],
            recorder: Recorder::new(dut, records.clone()),
            records,
            sources: [source("recv"), source("send")],
            commands: source("command"),
            arms: source("arm"),
            events: sink(&bench, "events", back),
            reports: Reports::new(1 << C),
            deaf: false,
            write: sink(&bench, "write", back),
            beats: sink(&bench, "beats", back),
            lost: sink(&bench, "lost", back),
            marks: sink(&bench, "marks", back),
            drains: 0,
            issued_port: dut.input("issued").expect("a port"),
            done_port: dut.input("done").expect("a port"),
            cqe_done_port: dut.input("cqe_done").expect("a port"),
            overflow: dut.output("overflow").expect("a port"),
            refused: dut.output("refused").expect("a port"),
            switched: dut.output("switched").expect("a port"),
            outcome: dut.output("outcome").expect("a port"),
            look: dut.output("look").expect("a port"),
            refused_since: dut.input("refused_since").expect("a port"),
            looked: 0,
            spoiled: BTreeMap::new(),
            due_refusals: BTreeSet::new(),
            busy: dut.output("activity.busy").expect("a port"),
            lanes: K,
            // the counts wrap around early
            issued: 0xfff0,
            done: 0xfff0,
            tokens: Default::default(),
            judged: VecDeque::new(),
            pushed: [0; 2],
            accesses: [[0xfff0; 2]; 2],
            access_ports: ["reads", "atomics"].map(|kind| {
                ["begun", "over"].map(|count| {
                    dut.input(&format!("accesses.{kind}_{count}"))
                        .expect("a port")
                })
            }),
            awaited: dut.output("awaited").expect("a port"),
            over: dut.input("over").expect("a port"),
            own_atomics: BTreeMap::new(),
            ending_atomics: 255,
            accessing: 0,
            ending: 255,
            fenced_sends: false,
            bursts: VecDeque::new(),
            bytes: Vec::new(),
            ended: VecDeque::new(),
            seen: Vec::new(),
            losses: 0,
            overflows: 0,
            expected_overflows: 0,
            bench,
        };
        let [recv, send] = &mut rig.sources;
        rig.bench.reset(&mut [
            recv,
            send,
            &mut rig.commands,
            &mut rig.arms,
            &mut rig.events,
            &mut rig.write,
            &mut rig.beats,
            &mut rig.lost,
            &mut rig.marks,
            &mut rig.recorder,
        ]);
        (0..40).for_each(|_| rig.step());
        rig
    }

    /// Replaces the sinks of CQEs by such that pause as `back` says.
    pub(crate) fn slow(&mut self, back: Pauses) {
        self.write = sink(&self.bench, "write", back);
        self.beats = sink(&self.bench, "beats", back);
    }

    /// Has events taken no more, or again.
    pub(crate) fn deafen(&mut self, deaf: bool) {
        let pauses = Pauses::new(
            if deaf { 1.0 } else { 0.0 },
            if deaf { u32::MAX } else { 0 },
        );
        self.events = sink(&self.bench, "events", pauses);
        self.deaf = deaf;
    }

    /// The host takes `n` entries and says so.
    pub(crate) fn consume(&mut self, cqn: u16, n: u32) {
        let ring = &mut self.rings[usize::from(cqn)];
        assert!(
            ring.written - ring.consumed >= n,
            "the host takes what is there"
        );
        ring.consumed += n;
        let record = self
            .records
            .borrow_mut()
            .insert(ring.ctx.consumer, ring.consumed);
        assert!(record.is_some());
    }

    /// Tokens on their way.
    pub(crate) fn pending(&self) -> usize {
        self.tokens.iter().map(VecDeque::len).sum()
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.bench.dut().is_set(self.busy)
    }

    #[track_caller]
    pub(crate) fn step(&mut self) {
        let dut = self.bench.dut_mut();
        dut.set(self.issued_port, self.issued & 0xffff);
        dut.set(self.done_port, self.done & 0xffff);
        for (counts, ports) in self.accesses.iter().zip(&self.access_ports) {
            for (count, port) in counts.iter().zip(ports) {
                dut.set(*port, count & 0xffff);
            }
        }
        // the other side of the queue pair was refused everything
        let (qpn, other) = (self.looked as u16, 1);
        let mark = self.spoiled.get(&qpn);
        let mark = mark.map_or(0, |end| {
            1 | (end & 0xffff) << 1 | u64::from(*end >= OLD) << 17
        });
        let is_send = qpn & FROM_SEND != 0;
        let marks = if is_send {
            other | mark << 18
        } else {
            mark | other << 18
        };
        dut.set(self.refused_since, marks);
        let awaited = dut.get(self.awaited) as u16;
        let over = self
            .own_atomics
            .get(&awaited)
            .map_or(0, |atomics| atomics.1);
        let told = u64::from(self.bench.rng().u8(..4) > 0);
        let dut = self.bench.dut_mut();
        let over = told << 21 | (over & 31) << 16 | u64::from(awaited);
        dut.set(self.over, over);
        self.looked = dut.get(self.look);
        self.land();
        let before = [self.sources[RECV].sent(), self.sources[SEND].sent()];
        let cycle = self.bench.cycle();
        let rings = self.arms.sent();
        let [recv, send] = &mut self.sources;
        let result = self.bench.step(&mut [
            recv,
            send,
            &mut self.commands,
            &mut self.arms,
            &mut self.events,
            &mut self.write,
            &mut self.beats,
            &mut self.lost,
            &mut self.marks,
            &mut self.recorder,
        ]);
        result.unwrap_or_else(|failure| panic!("{failure}"));
        let rung = self.arms.sent() > rings;
        for (input, before) in before.into_iter().enumerate() {
            if self.sources[input].sent() > before {
                let tokens = &mut self.tokens[input];
                let next = tokens.iter_mut().find(|token| token.taken.is_none());
                let next = next.expect("it was pushed");
                next.taken = Some(cycle);
                next.begun = self.accesses.map(|counts| counts[0]);
            }
        }
        for counts in &mut self.accesses {
            let rng = self.bench.rng();
            let under_way = counts[0] - counts[1];
            counts[0] += u64::from(rng.u8(1..) <= self.accessing && under_way < 256);
            counts[1] += u64::from(rng.u8(1..) <= self.ending && under_way > 0);
        }
        if let Some((due, over)) = self.own_atomics.get_mut(&awaited) {
            let ends = self.bench.rng().u8(1..) <= self.ending_atomics;
            *over += u64::from(ends && over < due);
        }
        while let Some(look) = self.recorder.looks.pop_front() {
            let ring = self.rings.iter_mut().find(|r| r.ctx.consumer == look.addr);
            // a queue that was closed or opened elsewhere since
            let Some(ring) = ring else { continue };
            ring.known = look.value.unwrap_or(ring.known);
            ring.looks.push((look.asked, ring.known));
        }
        self.overflows += self.bench.dut().get(self.overflow);
        if let Err(problem) = self.compare().and_then(|()| self.hear(cycle, rung)) {
            panic!("{}", self.bench.failure(problem));
        }
        if self.pending() > 0 && !self.is_busy() {
            let is_inside = |t: &Token| t.taken.is_some() && !t.marker;
            let waits = self.tokens.iter().flatten().any(is_inside);
            assert!(!waits, "a token is inside, and the block says it is idle");
        }
    }

    /// Runs until every token has become a CQE or is lost; the host lets entries lie.
    #[track_caller]
    pub(crate) fn settle(&mut self) {
        self.done = self.issued;
        for _ in 0..20_000 {
            if self.pending() == 0 && !self.is_busy() {
                break;
            }
            self.step();
        }
        assert_eq!(self.pending(), 0, "tokens are stuck");
        assert!(!self.is_busy(), "nothing is left, and the block is busy");
        (0..40).for_each(|_| self.step());
        assert_eq!(self.overflows, self.expected_overflows, "counter");
        self.check_reports();
    }
}
