//! The send queues between a host that posts, a wire, and a peer that answers by the rules of a responder. What checks and
//! cuts WQEs, and what keeps track of READs, is played by the rig.

mod host;
mod outputs;
mod path;
mod peer;

use std::collections::{BTreeMap, VecDeque};

use ferroce_hdl::transport::requester::send_queues::SendQueues;
use ferroce_proto::abi::qpc::SqCtx;
use ferroce_sim::bench::{Agent, Bench, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;

pub(crate) use host::Memory;
use path::Partial;
use peer::Response;
pub(crate) use peer::Wire;

/// Counters of the send queues.
const COUNTERS: [&str; 9] = [
    "packet_seq_err",
    "implied_nak_seq_err",
    "rnr_nak_received",
    "remote_errors",
    "rx_acks",
    "rx_ghost_acks",
    "local_ack_timeout_err",
    "retry_exceeded_err",
    "rnr_nak_retry_err",
];
/// Log2 of the queue pairs.
pub(crate) const Q: usize = 4;
/// Log2 of the outstanding pool.
const O: usize = 10;
/// Messages a queue pair may have outstanding.
const RING: u64 = 64;

/// What a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Send,
    Read,
    Atomic,
    /// A bind: it sends nothing, and the test says when it was executed.
    Bind,
}

impl Kind {
    pub(crate) fn is_answered(self) -> bool {
        matches!(self, Self::Read | Self::Atomic)
    }
}

/// A message as it is posted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Post {
    pub(crate) kind: Kind,
    pub(crate) length: u32,
    /// 0 = 1.
    pub(crate) slots: u8,
    pub(crate) quiet: bool,
    pub(crate) fence: bool,
    /// Status with which the WQE is refused.
    pub(crate) bad: u8,
}

/// A message and what became of it.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) post: Post,
    index: u16,
    slots: u8,
    /// First PSN, counted from that of the queue pair.
    pub(crate) first: u32,
    pub(crate) packets: u32,
    started: bool,
    /// Packets for which an answer with data was given.
    answered: u32,
    /// Fence of the last of these.
    writes: u16,
}

impl Message {
    fn is_open(&self) -> bool {
        self.post.kind.is_answered() && self.started && self.answered < self.packets
    }
}

/// A completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) index: u16,
    pub(crate) status: u8,
    pub(crate) byte_len: u32,
    pub(crate) syndrome: u8,
}

/// A grant that let packets out: message, first packet, packets, PSNs it stands for.
pub(crate) type Part = (usize, u32, u32, u32);

/// A queue pair.
#[derive(Default)]
pub(crate) struct Qp {
    ctx: SqCtx,
    psn: u32,
    producer: u16,
    /// PSNs of all messages.
    pub(crate) next: u32,
    pub(crate) messages: Vec<Message>,
    pub(crate) done: Vec<Done>,
    pub(crate) parts: Vec<Part>,
    /// READs and atomics that were open at once.
    pub(crate) most_open: usize,
    /// PSNs sent at least once.
    sent: u32,
    /// PSNs the peer took.
    expected: u32,
    nak_sent: bool,
    /// READs and atomics under way.
    reads: VecDeque<usize>,
    closed: bool,
}

impl Qp {
    /// The latest message asked for a completion.
    pub(crate) fn is_calm(&self) -> bool {
        self.messages.last().is_none_or(|m| !m.post.quiet)
    }
}

/// A send queue that went into error, as reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) qpn: u64,
    pub(crate) status: u8,
}

/// Queue pair, incarnation, round, PSN behind.
type Departure = (u64, u64, u64, u32);

pub(crate) struct Rig {
    pub(crate) bench: Bench,
    pub(crate) wire: Wire,
    doorbell: StreamSource,
    command: StreamSource,
    failure: StreamSource,
    pub(crate) answer: StreamSource,
    start: StreamSource,
    flushed: StreamSource,
    slots: StreamSink,
    cq: StreamSink,
    reported: StreamSink,
    read: StreamSink,
    memory: Memory,
    pub(crate) qps: Vec<Qp>,
    partial: Option<Partial>,
    /// Asked for and not granted: queue pair and message, in order.
    asked: VecDeque<(u64, usize)>,
    responses: VecDeque<(u64, u64, Response)>,
    sent: VecDeque<(u64, Departure)>,
    /// Binds under way: queue pair and message.
    pub(crate) executing: Vec<(u64, usize)>,
    /// Grants that are not reported; none is while the wire `stands`.
    left: VecDeque<Departure>,
    pub(crate) stands: bool,
    /// Answers `closed` are held back while this is set.
    pub(crate) hold: bool,
    /// No grant is cut: completions wait.
    pub(crate) stuck: bool,
    held: Vec<u64>,
    writes: u16,
    /// When a count of writes has its responses.
    unwritten: VecDeque<(u64, u16)>,
    /// Writes that have them.
    written: u16,
    /// Grants that are to be cut; nothing is read for them.
    uncut: u64,
    pub(crate) refetches: u64,
    /// Grants of nothing.
    pub(crate) drops: u64,
    pub(crate) failures: Vec<Failure>,
    /// Queue pairs whose responder is to fail.
    pub(crate) down: Vec<u64>,
    pub(crate) drained: Vec<u64>,
    /// Walks of `retire`.
    pub(crate) walks: u64,
    /// Counters by name, see [`COUNTERS`].
    pub(crate) counts: BTreeMap<&'static str, u64>,
    /// Pairs of acknowledgements of one kind that were taken as one.
    pub(crate) pairs: u64,
    /// Events for congestion control.
    pub(crate) feedback: Vec<Feedback>,
}

/// Events of congestion control: kind, queue pair, bytes, round trip.
pub(crate) type Feedback = [u64; 4];

impl Rig {
    pub(crate) fn new(latency: u64, pauses: Pauses) -> Self {
        let mut bench = Bench::of(SendQueues::<512, Q, O>::default).expect("the block builds");
        let dut = bench.dut();
        let source = |name| StreamSource::new(dut, name, Pauses::NONE).expect("a stream in");
        let sink = |name, pauses| StreamSink::new(dut, name, pauses).expect("a stream out");
        let mut rig = Self {
            doorbell: source("doorbell"),
            command: source("command"),
            failure: source("failure"),
            answer: source("answer"),
            start: source("start"),
            flushed: source("flushed"),
            slots: sink("slots", pauses),
            cq: sink("cq", pauses),
            reported: sink("down", pauses),
            read: sink("read", pauses),
            memory: Memory::new(latency),
            qps: (0..1 << Q).map(|_| Qp::default()).collect(),
            partial: None,
            asked: VecDeque::new(),
            responses: VecDeque::new(),
            sent: VecDeque::new(),
            executing: Vec::new(),
            left: VecDeque::new(),
            stands: false,
            hold: false,
            stuck: false,
            held: Vec::new(),
            writes: 0xff00,
            unwritten: VecDeque::new(),
            written: 0xff00,
            uncut: 0,
            refetches: 0,
            drops: 0,
            failures: Vec::new(),
            down: Vec::new(),
            drained: Vec::new(),
            walks: 0,
            counts: COUNTERS.iter().map(|name| (*name, 0)).collect(),
            pairs: 0,
            feedback: Vec::new(),
            wire: Wire::default(),
            bench: {
                bench.dut_mut().settle();
                bench
            },
        };
        for name in [
            "sq_we",
            "cnp.valid",
            "congestion.enable",
            "left_valid",
            "closed",
            "part_cut",
            "piece_cut",
            "piece_read",
        ] {
            rig.set(name, 0);
        }
        let mut agents: [&mut dyn Agent; 11] = [
            &mut rig.doorbell,
            &mut rig.command,
            &mut rig.failure,
            &mut rig.answer,
            &mut rig.start,
            &mut rig.flushed,
            &mut rig.slots,
            &mut rig.cq,
            &mut rig.reported,
            &mut rig.read,
            &mut rig.memory,
        ];
        rig.bench.reset(&mut agents);
        while rig.output("ready") == 0 {
            rig.step();
        }
        rig
    }

    pub(crate) fn set(&mut self, name: &str, value: u64) {
        let input = self.bench.dut().input(name).expect("a port");
        self.bench.dut_mut().set(input, value);
    }

    pub(crate) fn output(&self, name: &str) -> u64 {
        let dut = self.bench.dut();
        dut.get(dut.output(name).expect("a port"))
    }

    pub(crate) fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.step();
        }
    }

    pub(crate) fn step(&mut self) {
        let now = self.bench.cycle();
        let sent = self.sent.front().copied().filter(|s| s.0 <= now);
        self.set("left.notify", sent.is_some().into());
        let left = match sent {
            Some(_) => self.sent.pop_front().map(|sent| sent.1),
            None if self.stands => None,
            None => self.left.pop_front(),
        };
        self.set("left_valid", left.is_some().into());
        if let Some((qpn, incarnation, round, next)) = left {
            self.set("left.qpn", qpn);
            self.set("left.round", round);
            self.set("left.incarnation", incarnation);
            self.set("left.next_psn", next.into());
            self.set("left.ack_req", 1);
        }
        while self.unwritten.front().is_some_and(|w| w.0 <= now) {
            let answered = self.unwritten.pop_front().expect("looked at");
            self.written = answered.1;
        }
        self.set("payload_issued", self.writes.into());
        self.set("payload_done", self.written.into());
        let is_cut = self.uncut > 0 && !self.stuck;
        self.set("part_cut", is_cut.into());
        self.uncut -= u64::from(is_cut);
        let mut agents: [&mut dyn Agent; 11] = [
            &mut self.doorbell,
            &mut self.command,
            &mut self.failure,
            &mut self.answer,
            &mut self.start,
            &mut self.flushed,
            &mut self.slots,
            &mut self.cq,
            &mut self.reported,
            &mut self.read,
            &mut self.memory,
        ];
        if let Err(failure) = self.bench.step(&mut agents) {
            panic!("{failure}");
        }
        self.look();
        while let Some((_, item)) = self.read.pop() {
            self.memory.read(item.get("addr"), item.get("len"));
        }
        while let Some((_, item)) = self.slots.pop() {
            self.take_slot(&item);
        }
        while let Some((_, item)) = self.cq.pop() {
            self.completed(&item);
        }
        while let Some((_, item)) = self.reported.pop() {
            self.went_down(item.get("payload"));
        }
        while self.responses.front().is_some_and(|r| r.0 <= now) {
            let (_, qpn, response) = self.responses.pop_front().expect("looked at");
            self.track(qpn, response);
        }
        if !self.hold {
            for qpn in std::mem::take(&mut self.held) {
                let item = self.answer.item();
                let fence = self.writes.into();
                self.answer
                    .push(item.with("qpn", qpn).with("closed", 1).with("fence", fence));
            }
        }
    }

    /// Runs until the last message of every queue pair is complete.
    pub(crate) fn finish(&mut self, limit: u64) {
        let end = self.bench.cycle() + limit;
        let is_open = |q: &Qp| {
            let last = q.messages.last();
            last.is_some_and(|m| q.done.last().is_none_or(|d| d.index != m.index))
        };
        while let Some(qpn) = self.qps.iter().position(is_open) {
            let qp = &self.qps[qpn];
            assert!(
                self.bench.cycle() < end,
                "{}",
                self.bench.failure(format!(
                    "queue pair {qpn}: {} of {} PSNs taken, done {:?} of {:?}",
                    qp.expected,
                    qp.next,
                    qp.done.last(),
                    qp.messages.last()
                ))
            );
            self.step();
        }
        self.run(300);
    }

    /// Index and status of the completions of `qpn`.
    pub(crate) fn done(&self, qpn: u64) -> Vec<(u16, u8)> {
        let done = &self.qps[qpn as usize].done;
        done.iter().map(|d| (d.index, d.status)).collect()
    }
}
