//! The responder with everything at its ports, each event checked against the reference in the order it was admitted.

use std::collections::{BTreeMap, VecDeque};

use fastrand::Rng;
use ferroce_hdl::transport::responder::Responder;
use ferroce_proto::abi::qpc::RqCtx;
use ferroce_sim::bench::{Agent, Bench, Item, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::{Dut, Input, Output};

use super::drive::{ImagePort, Q, difference, request, with};
use super::reference::{Command, Outcome, Packet, Place, Rq};

/// Cycles from a request to its answer in the memory region table.
const MR_CYCLES: usize = 4;

/// Whether the region table of the test allows a remote write; most are allowed.
pub(crate) fn allowed(rkey: u32, pd: u32, addr: u64, len: u32) -> bool {
    let mix = (u64::from(rkey) << 32 | u64::from(pd)) ^ addr.rotate_left(17) ^ u64::from(len);
    len == 0 || mix.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61 != 0
}

/// The check port of the memory region table.
struct Regions {
    request: [Output; 5],
    valid: Output,
    ok: Input,
    done: Input,
    answers: VecDeque<Option<bool>>,
}

impl Regions {
    fn new(dut: &Dut) -> Self {
        let output = |name: &str| dut.output(name).expect("the check port");
        let fields = ["key", "pd", "addr", "len", "right"];
        Self {
            request: fields.map(|field| output(&format!("check_request.{field}"))),
            valid: output("check_valid"),
            ok: dut.input("check_ok").expect("the check port"),
            done: dut.input("check_done").expect("the check port"),
            answers: VecDeque::from([None; MR_CYCLES]),
        }
    }
}

impl Agent for Regions {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        let answer = self.answers.pop_front().expect("filled every cycle");
        dut.set(self.done, answer.is_some().into());
        dut.set(self.ok, answer.unwrap_or(rng.bool()).into());
    }

    fn observe(&mut self, dut: &Dut, _: u64) -> Result<(), String> {
        let [key, pd, addr, len, right] = self.request.map(|field| dut.get(field));
        let verdict = right == 2 && allowed(key as u32, pd as u32, addr, len as u32);
        self.answers
            .push_back(dut.is_set(self.valid).then_some(verdict));
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        None
    }

    fn reset(&mut self, _: &mut Dut) {}
}

/// Counters by name.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

/// Answers to commands, and counters.
struct Watch {
    query_valid: Output,
    query: [Output; 4],
    answers: VecDeque<[u64; 4]>,
    counters: Vec<(&'static str, Output)>,
    counts: Counts,
}

const COUNTERS: [&str; 13] = [
    "rx_unknown_qp",
    "rx_qp_state",
    "rx_wrong_transport",
    "rx_pkey_violations",
    "rx_wrong_address",
    "rx_write_requests",
    "rx_send_requests",
    "out_of_sequence",
    "duplicate_request",
    "rnr_nak_sent",
    "invalid_request_errors",
    "access_errors",
    "operational_errors",
];

impl Watch {
    fn new(dut: &Dut) -> Self {
        let output = |name: String| dut.output(&name).expect("an output of the responder");
        let fields = ["rq_state", "rq_psn", "msn", "rq_index"];
        Self {
            query_valid: output("query_valid".into()),
            query: fields.map(|field| output(format!("query.{field}"))),
            answers: VecDeque::new(),
            counters: COUNTERS
                .iter()
                .map(|name| (*name, output(format!("counts.{name}"))))
                .collect(),
            counts: Counts::new(),
        }
    }
}

impl Agent for Watch {
    fn drive(&mut self, _: &mut Dut, _: &mut Rng) {}

    fn observe(&mut self, dut: &Dut, _: u64) -> Result<(), String> {
        if dut.is_set(self.query_valid) {
            self.answers
                .push_back(self.query.map(|field| dut.get(field)));
        }
        for (name, output) in &self.counters {
            *self.counts.entry(name).or_default() += dut.get(*output);
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        None
    }

    fn reset(&mut self, _: &mut Dut) {}
}

/// An event that is not a packet and not a failed placement.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Doorbell(u16),
    SqFailed,
    Command(Command),
}

/// Numbers of the variants of `RqEventKind`.
mod kind {
    pub(super) const DOORBELL: u64 = 2;
    pub(super) const SQ_FAILED: u64 = 4;
    pub(super) const COMMAND: u64 = 5;
}

/// A flush of the reference, and how many placements come before it.
struct Flush {
    index: u16,
    behind: u64,
}

/// The responder of 2^Q queue pairs and its surroundings.
pub(crate) struct Rig {
    pub(crate) bench: Bench,
    pub(crate) qps: Vec<Rq>,
    pub(crate) packets: StreamSource,
    events: StreamSource,
    errors: StreamSource,
    pub(crate) places: StreamSink,
    reads: StreamSink,
    failures: StreamSink,
    regions: Regions,
    watch: Watch,
    images: ImagePort,
    sent_packets: VecDeque<(Packet, u8)>,
    sent_events: VecDeque<(u32, Event)>,
    sent_errors: VecDeque<(u32, [u8; 3])>,
    expected_places: VecDeque<Place>,
    expected_flushes: Vec<VecDeque<Flush>>,
    expected_reads: VecDeque<(u64, u64)>,
    expected_failures: VecDeque<(u32, u8, u8)>,
    expected_answers: VecDeque<[u64; 4]>,
    expected_counts: Counts,
    announced: u64,
    placed: u64,
    /// Placements that arrived, for directed tests.
    pub(crate) seen: Vec<(u64, Item)>,
}

impl Rig {
    /// After reset and sweep. `idle` are the pauses of the sources, `back` those of the sinks.
    pub(crate) fn new(idle: Pauses, back: Pauses) -> Self {
        let bench = Bench::of(Responder::<Q>::default).expect("the responder builds");
        let source = |name| StreamSource::new(bench.dut(), name, idle).expect("a stream in");
        let sink = |name| StreamSink::new(bench.dut(), name, back).expect("a stream out");
        let mut rig = Self {
            qps: (0..1 << Q).map(Rq::new).collect(),
            packets: source("s"),
            events: source("events"),
            errors: source("errors"),
            places: sink("m"),
            reads: sink("reads"),
            failures: sink("failures"),
            regions: Regions::new(bench.dut()),
            watch: Watch::new(bench.dut()),
            images: ImagePort::new(bench.dut()),
            sent_packets: VecDeque::new(),
            sent_events: VecDeque::new(),
            sent_errors: VecDeque::new(),
            expected_places: VecDeque::new(),
            expected_flushes: (0..1 << Q).map(|_| VecDeque::new()).collect(),
            expected_reads: VecDeque::new(),
            expected_failures: VecDeque::new(),
            expected_answers: VecDeque::new(),
            expected_counts: COUNTERS.iter().map(|name| (*name, 0)).collect(),
            announced: 0,
            placed: 0,
            seen: Vec::new(),
            bench,
        };
        rig.reset();
        rig
    }

    fn reset(&mut self) {
        self.images.end(self.bench.dut_mut());
        self.bench.reset(&mut [
            &mut self.packets,
            &mut self.events,
            &mut self.errors,
            &mut self.places,
            &mut self.reads,
            &mut self.failures,
        ]);
    }

    /// Resets everything; the sinks pause as `back` says from then on. Nothing may wait to be sent.
    pub(crate) fn restart(&mut self, back: Pauses) {
        assert_eq!(self.waiting(), (0, 0), "sources forget nothing");
        for (name, sink) in [
            ("m", &mut self.places),
            ("reads", &mut self.reads),
            ("failures", &mut self.failures),
        ] {
            *sink = StreamSink::new(self.bench.dut(), name, back).expect("as before");
        }
        self.qps = (0..1 << Q).map(Rq::new).collect();
        self.expected_places.clear();
        self.expected_reads.clear();
        self.expected_failures.clear();
        self.reset();
    }

    /// A cycle; what was admitted in it goes through the reference, what arrived is compared.
    pub(crate) fn step(&mut self) {
        let before = [self.packets.sent(), self.events.sent(), self.errors.sent()];
        let result = self.bench.step(&mut [
            &mut self.packets,
            &mut self.events,
            &mut self.errors,
            &mut self.places,
            &mut self.reads,
            &mut self.failures,
            &mut self.regions,
            &mut self.watch,
        ]);
        result.unwrap_or_else(|failure| panic!("{failure}"));
        let after = [self.packets.sent(), self.events.sent(), self.errors.sent()];
        let admitted: u64 = after.iter().zip(before).map(|(a, b)| a - b).sum();
        assert!(admitted <= 1, "one event a cycle, not {admitted}");
        if after[0] > before[0] {
            let (packet, found) = self.sent_packets.pop_front().expect("it was pushed");
            self.apply_packet(&packet, found);
        }
        if after[1] > before[1] {
            let (qpn, event) = self.sent_events.pop_front().expect("it was pushed");
            self.apply_event(qpn, &event);
        }
        if after[2] > before[2] {
            let (qpn, [incarnation, syndrome, status]) =
                self.sent_errors.pop_front().expect("it was pushed");
            let outcome = self.qps[qpn as usize].place_error(incarnation, syndrome, status);
            self.expect(qpn, outcome);
        }
        self.compare();
    }

    fn apply_packet(&mut self, packet: &Packet, found: u8) {
        let place = packet.qpn as usize % self.qps.len();
        let qp = &mut self.qps[place];
        let ok = allowed(packet.rkey, qp.ctx.pd, packet.ext, packet.dma_len);
        let outcome = qp.packet(packet, found, ok);
        self.expect(place as u32, outcome);
    }

    fn apply_event(&mut self, qpn: u32, event: &Event) {
        let qp = &mut self.qps[qpn as usize];
        let outcome = match event {
            Event::Doorbell(producer) => {
                qp.doorbell(*producer);
                Outcome::default()
            }
            Event::SqFailed => {
                qp.sq_failed();
                Outcome::default()
            }
            Event::Command(command) => {
                let [state, psn] = [qp.state.into(), qp.psn.into()];
                self.expected_answers
                    .push_back([state, psn, qp.msn.into(), qp.index.into()]);
                qp.command(command)
            }
        };
        self.expect(qpn, outcome);
    }

    fn expect(&mut self, qpn: u32, outcome: Outcome) {
        if let Some(place) = outcome.place {
            self.announced += 1;
            self.expected_places.push_back(place);
        }
        self.expected_reads.extend(outcome.read);
        let failure = outcome.failure;
        self.expected_failures
            .extend(failure.map(|(event, detail)| (qpn, event, detail)));
        for name in outcome.counts {
            *self.expected_counts.entry(name).or_default() += 1;
        }
        let behind = self.announced;
        let flushes = self.qps[qpn as usize].flushed.drain(..);
        self.expected_flushes[qpn as usize].extend(flushes.map(|index| Flush { index, behind }));
    }

    #[track_caller]
    fn compare(&mut self) {
        while let Some((cycle, item)) = self.places.pop() {
            let problem = if item.get("complete") == 1 && item.get("status") == 5 {
                self.flushed(&item)
            } else {
                self.placed += 1;
                match self.expected_places.pop_front() {
                    Some(Place(fields)) => difference(&item, &fields),
                    None => Some(format!("placement not expected: {item:?}")),
                }
            };
            if let Some(problem) = problem {
                panic!("{}", self.bench.failure(problem));
            }
            self.seen.push((cycle, item));
        }
        while let Some((_, item)) = self.reads.pop() {
            let got = (item.get("addr"), item.get("log_slots"));
            assert_eq!(Some(got), self.expected_reads.pop_front(), "WQE read");
        }
        while let Some((_, item)) = self.failures.pop() {
            let fields = ["qpn", "event", "detail"].map(|field| item.get(field));
            let got = (fields[0] as u32, fields[1] as u8, fields[2] as u8);
            assert_eq!(Some(got), self.expected_failures.pop_front(), "failure");
        }
        while let Some(answer) = self.watch.answers.pop_front() {
            // the flush runs in the background: the index is compared when it is done
            let expected = self.expected_answers.pop_front().expect("one a command");
            assert_eq!(answer[..3], expected[..3], "state, PSN, MSN");
            if answer[0] != 6 {
                assert_eq!(answer[3], expected[3], "receive WQE index");
            }
        }
    }

    fn flushed(&mut self, item: &Item) -> Option<String> {
        let qpn = item.get("qpn") as usize;
        let Some(Flush { index, behind }) = self.expected_flushes[qpn].pop_front() else {
            return Some(format!("flush not expected: {item:?}"));
        };
        if self.placed < behind {
            return Some(format!("flush overtook a placement: {item:?}"));
        }
        let fields = [
            ("kind", 0),
            ("beats", 0),
            ("ack", 0),
            ("reset", 0),
            ("cqn", self.qps[qpn].ctx.cqn.into()),
            ("cqe_opcode", 0x80),
            ("wqe_index", index.into()),
            ("byte_len", 0),
            ("with_imm", 0),
            ("with_inv", 0),
            ("solicited", 0),
        ];
        difference(item, &fields)
    }

    /// Queues a packet that passed the static checks with `found`.
    pub(crate) fn push(&mut self, packet: Packet, found: u8) {
        let qp = &self.qps[packet.qpn as usize % self.qps.len()];
        let item = with(self.packets.item(), &request(&qp.ctx, &packet, found));
        self.packets.push(item);
        self.sent_packets.push_back((packet, found));
    }

    /// Queues an event.
    pub(crate) fn post(&mut self, qpn: u32, event: Event) {
        let item = self.events.item().with("qpn", qpn.into());
        let item = match &event {
            Event::Doorbell(producer) => item
                .with("kind", kind::DOORBELL)
                .with("index", (*producer).into()),
            Event::SqFailed => item.with("kind", kind::SQ_FAILED),
            Event::Command(command) => item
                .with("kind", kind::COMMAND)
                .with("set", command.state.is_some().into())
                .with("state", command.state.unwrap_or(0).into())
                .with("reset", command.reset.is_some().into())
                .with("psn", command.reset.unwrap_or(0).into())
                .with("image", command.image.into()),
        };
        self.events.push(item);
        self.sent_events.push_back((qpn, event));
    }

    /// Queues the report of a placement that failed.
    pub(crate) fn fail_place(&mut self, qpn: u32, incarnation: u8, syndrome: u8, status: u8) {
        let fields = [
            ("qpn", qpn.into()),
            ("incarnation", incarnation.into()),
            ("syndrome", syndrome.into()),
            ("status", status.into()),
        ];
        self.errors.push(with(self.errors.item(), &fields));
        self.sent_errors
            .push_back((qpn, [incarnation, syndrome, status]));
    }

    /// Writes the image of a queue pair.
    pub(crate) fn image(&mut self, qpn: u32, ctx: RqCtx) {
        self.images.start(self.bench.dut_mut(), qpn, &ctx);
        self.step();
        self.images.end(self.bench.dut_mut());
        self.qps[qpn as usize].ctx = ctx;
    }

    /// Brings a queue pair through RESET to RTR, its ring empty, expecting `psn`.
    pub(crate) fn connect(&mut self, qpn: u32, ctx: RqCtx, psn: u32) {
        let reset = Command {
            state: Some(0),
            ..Command::default()
        };
        self.post(qpn, Event::Command(reset));
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
        let others = self.sent_events.len() + self.sent_errors.len();
        (self.sent_packets.len(), others)
    }

    /// Whether packets or events of a queue pair wait, or it is still to be flushed.
    pub(crate) fn is_busy(&self, qpn: u32) -> bool {
        !self.expected_flushes[qpn as usize].is_empty()
            || self.sent_events.iter().any(|event| event.0 == qpn)
            || self.sent_errors.iter().any(|error| error.0 == qpn)
            || self.has_packets(qpn)
    }

    /// Whether packets of a queue pair wait to be admitted.
    pub(crate) fn has_packets(&self, qpn: u32) -> bool {
        let mut waiting = self.sent_packets.iter();
        waiting.any(|(packet, _)| packet.qpn % (1 << Q) == qpn)
    }

    fn is_settled(&self) -> bool {
        self.waiting() == (0, 0)
            && self.expected_places.is_empty()
            && self.expected_reads.is_empty()
            && self.expected_failures.is_empty()
            && self.expected_answers.is_empty()
            && self.expected_flushes.iter().all(VecDeque::is_empty)
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
