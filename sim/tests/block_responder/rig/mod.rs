//! The responder with everything at its ports, each event checked against the reference in the order it was admitted.

mod agents;
mod check;

use std::collections::VecDeque;

use ferroce_hdl::transport::responder::Responder;
use ferroce_hdl::transport::responder::event::RqEventKind;
use ferroce_proto::abi::qpc::{RqCtx, SrqCtx};
use ferroce_sim::bench::{Bench, Item, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;

use super::drive::{ImagePort, Q, S, requests, with};
use super::reference::{Command, Packet, Place, Rq, Srqs};
use agents::{COUNTERS, Regions, Watch};
pub(crate) use agents::{Counts, rkey_ok};

/// Bytes of a beat.
const BEAT: u32 = 64;

/// Ports of events.
const EVENTS: [&str; 3] = ["events", "doorbells", "replied"];

/// An event that is not a packet and not a failed placement.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Doorbell(u16),
    SqFailed,
    /// A READ or atomic of an incarnation was answered.
    Replied(u8),
    Command(Command),
    /// Producer index of a shared receive queue.
    SrqDoorbell(u16),
    /// A shared receive queue begins to exist.
    SrqCreate(u16),
    /// It ends to exist.
    SrqDestroy,
    /// Its limit is set.
    SrqArm(u16),
}

/// A flush of the reference, and how many placements come before it.
struct Flush {
    /// `None`: there is none left.
    index: Option<u16>,
    after_places: u64,
}

/// The responder of 2^Q queue pairs and its surroundings.
pub(crate) struct Rig {
    pub(crate) bench: Bench,
    pub(crate) qps: Vec<Rq>,
    pub(crate) srqs: Srqs,
    pub(crate) packets: StreamSource,
    /// Of [`EVENTS`].
    events: [StreamSource; 3],
    errors: StreamSource,
    pub(crate) places: StreamSink,
    reads: StreamSink,
    replies: StreamSink,
    failures: StreamSink,
    limits: StreamSink,
    regions: Regions,
    watch: Watch,
    images: ImagePort,
    shared_images: ImagePort,
    /// Packets, what the static checks found, and which request of the packet it is.
    sent_packets: VecDeque<(Packet, u8, usize)>,
    sent_events: [VecDeque<(u32, Event)>; 3],
    sent_errors: VecDeque<(u32, [u8; 4])>,
    /// With what is to be read for them.
    expected_places: VecDeque<(Place, Option<Fields>)>,
    expected_flushes: Vec<VecDeque<Flush>>,
    /// Of the placements that arrived, and the reads whose placement did not.
    expected_reads: VecDeque<Fields>,
    early_reads: VecDeque<Item>,
    expected_replies: VecDeque<Vec<(&'static str, u64)>>,
    expected_failures: VecDeque<(u32, u8, u8)>,
    /// `None` if only that there is an answer counts.
    expected_answers: VecDeque<Option<[u64; 4]>>,
    expected_limits: VecDeque<(u16, u8)>,
    expected_counts: Counts,
    announced: u64,
    placed: u64,
    /// Placements that arrived, for directed tests.
    pub(crate) seen: Vec<(u64, Item)>,
    /// Receive WQEs to read, for directed tests.
    pub(crate) fetched: Vec<Item>,
    /// READs and atomics to answer, for directed tests.
    pub(crate) asked: Vec<Item>,
    /// Shared receive queues reported so far.
    pub(crate) limits_seen: usize,
}

/// Fields of an item and what they are to be.
type Fields = Vec<(&'static str, u64)>;

impl Rig {
    /// After reset and sweep. `idle` are the pauses of the sources, `back` those of the sinks.
    pub(crate) fn new(idle: Pauses, back: Pauses) -> Self {
        let bench = Bench::of(Responder::<Q, S>::default).expect("the responder builds");
        let source = |name| StreamSource::new(bench.dut(), name, idle).expect("a stream in");
        let sink = |name| StreamSink::new(bench.dut(), name, back).expect("a stream out");
        let srqs = Srqs::new(1 << S);
        let mut rig = Self {
            qps: (0..1 << Q).map(|qpn| Rq::new(qpn, &srqs)).collect(),
            srqs,
            packets: source("s"),
            events: EVENTS.map(source),
            errors: source("errors"),
            places: sink("m"),
            reads: sink("reads"),
            replies: sink("replies"),
            failures: sink("failures"),
            // what finds no room may be forgotten
            limits: StreamSink::new(bench.dut(), "limits", Pauses::NONE).expect("a stream out"),
            regions: Regions::new(bench.dut()),
            watch: Watch::new(bench.dut()),
            images: ImagePort::new(bench.dut()),
            shared_images: ImagePort::shared(bench.dut()),
            sent_packets: VecDeque::new(),
            sent_events: Default::default(),
            sent_errors: VecDeque::new(),
            expected_places: VecDeque::new(),
            expected_flushes: (0..1 << Q).map(|_| VecDeque::new()).collect(),
            expected_reads: VecDeque::new(),
            early_reads: VecDeque::new(),
            expected_replies: VecDeque::new(),
            expected_failures: VecDeque::new(),
            expected_answers: VecDeque::new(),
            expected_limits: VecDeque::new(),
            expected_counts: COUNTERS.iter().map(|name| (*name, 0)).collect(),
            announced: 0,
            placed: 0,
            seen: Vec::new(),
            fetched: Vec::new(),
            asked: Vec::new(),
            limits_seen: 0,
            bench,
        };
        rig.reset();
        rig
    }

    fn reset(&mut self) {
        self.images.end(self.bench.dut_mut());
        self.shared_images.end(self.bench.dut_mut());
        let [events, doorbells, replied] = &mut self.events;
        self.bench.reset(&mut [
            &mut self.packets,
            events,
            doorbells,
            replied,
            &mut self.errors,
            &mut self.places,
            &mut self.reads,
            &mut self.replies,
            &mut self.failures,
            &mut self.limits,
        ]);
    }

    /// Resets everything; the sinks pause as `back` says from then on. Nothing may wait to be sent.
    pub(crate) fn restart(&mut self, back: Pauses) {
        assert_eq!(self.waiting(), (0, 0), "sources forget nothing");
        let sink = |name| StreamSink::new(self.bench.dut(), name, back).expect("as before");
        (self.places, self.reads) = (sink("m"), sink("reads"));
        (self.replies, self.failures) = (sink("replies"), sink("failures"));
        self.srqs = Srqs::new(1 << S);
        self.qps = (0..1 << Q).map(|qpn| Rq::new(qpn, &self.srqs)).collect();
        self.expected_places.clear();
        self.expected_reads.clear();
        self.early_reads.clear();
        self.expected_replies.clear();
        self.expected_failures.clear();
        self.reset();
    }

    /// A cycle; what was admitted in it goes through the reference, what arrived is compared.
    pub(crate) fn step(&mut self) {
        let before = self.admitted();
        let [events, doorbells, replied] = &mut self.events;
        let result = self.bench.step(&mut [
            &mut self.packets,
            events,
            doorbells,
            replied,
            &mut self.errors,
            &mut self.places,
            &mut self.reads,
            &mut self.replies,
            &mut self.failures,
            &mut self.limits,
            &mut self.regions,
            &mut self.watch,
        ]);
        result.unwrap_or_else(|failure| panic!("{failure}"));
        let after = self.admitted();
        let admitted: u64 = after.iter().zip(before).map(|(a, b)| a - b).sum();
        assert!(admitted <= 1, "one event a cycle, not {admitted}");
        if after[0] > before[0] {
            let (packet, found, part) = self.sent_packets.pop_front().expect("it was pushed");
            self.apply_packet(&packet, found, part);
        }
        if after[1] > before[1] {
            let (qpn, fields) = self.sent_errors.pop_front().expect("it was pushed");
            let outcome = self.qps[qpn as usize].place_error(fields);
            self.expect(qpn, outcome);
        }
        for port in 0..EVENTS.len() {
            if after[2 + port] > before[2 + port] {
                let sent = &mut self.sent_events[port];
                let (qpn, event) = sent.pop_front().expect("it was pushed");
                self.apply_event(qpn, &event);
            }
        }
        self.compare();
    }

    /// What each source brought so far.
    fn admitted(&self) -> [u64; 5] {
        let [events, doorbells, replied] = &self.events;
        [&self.packets, &self.errors, events, doorbells, replied].map(StreamSource::sent)
    }

    /// Queues a packet that passed the static checks with `found`.
    pub(crate) fn push(&mut self, packet: Packet, found: u8) {
        let qp = &self.qps[packet.qpn as usize % self.qps.len()];
        let requests = requests(&qp.ctx, &packet, found, BEAT);
        for (part, fields) in requests.iter().enumerate() {
            self.packets.push(with(self.packets.item(), fields));
            self.sent_packets.push_back((packet.clone(), found, part));
        }
    }

    /// Queues an event, of a queue pair or of a shared receive queue.
    pub(crate) fn post(&mut self, qpn: u32, event: Event) {
        let number = match event {
            Event::SrqDoorbell(_) | Event::SrqCreate(_) | Event::SrqDestroy | Event::SrqArm(_) => {
                "srqn"
            }
            _ => "qpn",
        };
        let item = self.events[0].item().with(number, qpn.into());
        let command = |limit: u16| {
            let item = item.clone().with("kind", RqEventKind::SrqCommand as u64);
            item.with("index", limit.into())
        };
        let item = match &event {
            Event::Doorbell(producer) => item
                .with("kind", RqEventKind::Doorbell as u64)
                .with("index", (*producer).into()),
            Event::SrqDoorbell(producer) => item
                .with("kind", RqEventKind::SrqDoorbell as u64)
                .with("index", (*producer).into()),
            Event::SrqCreate(limit) => command(*limit).with("set", 1).with("image", 1),
            Event::SrqDestroy => command(0).with("set", 1),
            Event::SrqArm(limit) => command(*limit),
            Event::SqFailed => item.with("kind", RqEventKind::SqFailed as u64),
            Event::Replied(incarnation) => item
                .with("kind", RqEventKind::Replied as u64)
                .with("incarnation", (*incarnation).into()),
            Event::Command(command) => item
                .with("kind", RqEventKind::Command as u64)
                .with("set", command.state.is_some().into())
                .with("state", command.state.unwrap_or(0).into())
                .with("reset", command.reset.is_some().into())
                .with("psn", command.reset.unwrap_or(0).into())
                .with("image", command.image.into()),
        };
        let port = match event {
            Event::Doorbell(_) | Event::SrqDoorbell(_) => 1,
            Event::Replied(_) => 2,
            _ => 0,
        };
        self.events[port].push(item);
        self.sent_events[port].push_back((qpn, event));
    }

    /// Queues the report of a placement that failed.
    pub(crate) fn fail_place(&mut self, qpn: u32, incarnation: u8, syndrome: u8, status: u8) {
        self.report_place(qpn, [incarnation, syndrome, status, 0]);
    }

    /// Queues the report of a placement that failed, its queue pair spared.
    pub(crate) fn spare_place(&mut self, qpn: u32, incarnation: u8) {
        self.report_place(qpn, [incarnation, 0x62, 4, 1]);
    }

    fn report_place(&mut self, qpn: u32, error: [u8; 4]) {
        let [incarnation, syndrome, status, spared] = error;
        let fields = [
            ("qpn", qpn.into()),
            ("incarnation", incarnation.into()),
            ("syndrome", syndrome.into()),
            ("status", status.into()),
            ("spared", spared.into()),
        ];
        self.errors.push(with(self.errors.item(), &fields));
        self.sent_errors.push_back((qpn, error));
    }

    /// Writes the image of a queue pair.
    pub(crate) fn image(&mut self, qpn: u32, ctx: RqCtx) {
        self.images.start(self.bench.dut_mut(), qpn, &ctx);
        self.step();
        self.images.end(self.bench.dut_mut());
        self.qps[qpn as usize].ctx = ctx;
    }

    /// Creates a shared receive queue.
    pub(crate) fn create_srq(&mut self, srqn: u16, ctx: SrqCtx) {
        let port = &self.shared_images;
        port.start_shared(self.bench.dut_mut(), srqn.into(), &ctx);
        self.step();
        self.shared_images.end(self.bench.dut_mut());
        self.srqs.get(srqn).ctx = ctx;
        self.post(srqn.into(), Event::SrqCreate(ctx.limit));
        self.settle();
    }

    /// Brings a queue pair through RESET to RTR, its ring empty, expecting `psn`.
    pub(crate) fn connect(&mut self, qpn: u32, ctx: RqCtx, psn: u32) {
        let reset = Command {
            state: Some(0),
            ..Command::default()
        };
        self.post(qpn, Event::Command(reset));
        self.settle();
        self.post(qpn, Event::Doorbell(0));
        self.settle();
        self.image(qpn, ctx);
        let open = Command {
            state: Some(2),
            reset: Some(psn),
            image: true,
        };
        self.post(qpn, Event::Command(open));
        self.settle();
    }

    /// Items that wait to be admitted: packets, others.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let events = self.sent_events.iter().map(VecDeque::len);
        let others = self.sent_errors.len() + events.sum::<usize>();
        (self.sent_packets.len(), others)
    }

    /// Whether packets or events of a queue pair wait, or it is still to be flushed.
    pub(crate) fn is_busy(&self, qpn: u32) -> bool {
        !self.expected_flushes[qpn as usize].is_empty()
            || self
                .sent_events
                .iter()
                .flatten()
                .any(|event| event.0 == qpn)
            || self.sent_errors.iter().any(|error| error.0 == qpn)
            || self.has_packets(qpn)
    }

    /// Whether packets of a queue pair wait to be admitted.
    pub(crate) fn has_packets(&self, qpn: u32) -> bool {
        let mut waiting = self.sent_packets.iter();
        waiting.any(|(packet, ..)| packet.qpn % (1 << Q) == qpn)
    }

    /// Runs until everything that was sent has had its effect, and no more than that.
    #[track_caller]
    pub(crate) fn settle(&mut self) {
        for _ in 0..20_000 {
            if self.is_settled() {
                break;
            }
            self.step();
        }
        assert!(
            self.is_settled(),
            "stuck: {:?} wait, {:?} next",
            self.waiting(),
            self.expected_places.front()
        );
        (0..40).for_each(|_| self.step());
    }

    /// What the counters of the block came to.
    pub(crate) fn counts(&self) -> &Counts {
        &self.watch.counts
    }

    /// The state of every queue pair, and the counters, are those of the reference.
    pub(crate) fn finish(&mut self) {
        self.settle();
        for qpn in 0..1 << Q {
            self.post(qpn, Event::Command(Command::default()));
        }
        self.settle();
        assert_eq!(self.watch.counts, self.expected_counts);
    }
}
