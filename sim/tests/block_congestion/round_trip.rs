//! Round trips as Verilog: a sample is of a packet that was sent once, and of its acknowledgement alone.

mod random;

use std::collections::VecDeque;

use ferroce_hdl::transport::congestion::round_trip::RoundTrip;
use ferroce_sim::bench::Bench;
use ferroce_sim::verilator::{Input, Output};

use super::rig::Kind;

const Q: usize = 4;
const QPS: usize = 1 << Q;
const PSNS: u32 = 1 << 24;
/// Cycles from a report to its event.
const LATENCY: u64 = 6;

fn plus(psn: u32, n: u32) -> u32 {
    (psn + n) & (PSNS - 1)
}

#[derive(Clone, Copy, Debug)]
struct Left {
    qpn: usize,
    psn: u32,
    next_psn: u32,
    incarnation: u64,
    asks: bool,
    at: u64,
}

#[derive(Clone, Copy, Debug)]
struct Report {
    qpn: usize,
    /// `None`: an RNR NAK.
    kind: Option<Kind>,
    psn: u32,
    voids: bool,
    plain: bool,
    bytes: u32,
    incarnation: u64,
}

impl Report {
    fn new(qpn: usize, kind: Kind, psn: u32) -> Self {
        Self {
            qpn,
            kind: Some(kind),
            psn,
            voids: matches!(kind, Kind::Nak | Kind::Timeout),
            plain: kind == Kind::Ack,
            bytes: 0,
            incarnation: 0,
        }
    }
}

/// What a report led to.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Event {
    kind: u64,
    qpn: u64,
    bytes: u64,
    rtt: u64,
}

struct Rig {
    bench: Bench,
    left: [Input; 5],
    report: [Input; 8],
    feedback: [Output; 5],
    /// Reports whose event is to come, with their cycle.
    due: VecDeque<(u64, Report)>,
    events: Vec<(u64, Report, Event)>,
}

impl Rig {
    fn new() -> Self {
        let mut bench = Bench::of(RoundTrip::<Q>::default).unwrap();
        let dut = bench.dut();
        let input = |name: &str| dut.input(name).unwrap();
        let output = |name: &str| dut.output(name).unwrap();
        let fields = [
            "qpn",
            "kind",
            "psn",
            "voids",
            "plain",
            "bytes",
            "incarnation",
        ];
        let report = fields.map(|field| input(&format!("report.payload.{field}")));
        let [a, b, c, d, e, f, g] = report;
        let fields = ["kind", "qpn", "bytes", "rtt"];
        let events = fields.map(|field| output(&format!("feedback.payload.{field}")));
        let [h, i, j, k] = events;
        let mut rig = Self {
            left: [
                input("left_valid"),
                input("left.qpn"),
                input("left.next_psn"),
                input("left.incarnation"),
                input("left.ack_req"),
            ],
            report: [input("report.valid"), a, b, c, d, e, f, g],
            feedback: [output("feedback.valid"), h, i, j, k],
            due: VecDeque::new(),
            events: Vec::new(),
            bench: {
                let dut = bench.dut_mut();
                for unused in ["left.notify", "left.round"] {
                    dut.set(dut.input(unused).unwrap(), 0);
                }
                bench
            },
        };
        rig.drive(None, None);
        rig.bench.reset(&mut []);
        let ready = rig.bench.dut().output("ready").unwrap();
        while !rig.bench.dut().is_set(ready) {
            rig.step(None, None);
        }
        rig
    }

    fn drive(&mut self, left: Option<Left>, report: Option<Report>) {
        let dut = self.bench.dut_mut();
        let values = left.map_or([0; 5], |left| {
            let Left {
                qpn,
                next_psn,
                incarnation,
                ..
            } = left;
            [
                1,
                qpn as u64,
                next_psn.into(),
                incarnation,
                left.asks.into(),
            ]
        });
        for (input, value) in self.left.into_iter().zip(values) {
            dut.set(input, value);
        }
        let values = report.map_or([0; 8], |r| {
            let kind = r.kind.map_or(0, |kind| kind as u64);
            [
                1,
                r.qpn as u64,
                kind,
                r.psn.into(),
                r.voids.into(),
                r.plain.into(),
                r.bytes.into(),
                r.incarnation,
            ]
        });
        for (input, value) in self.report.into_iter().zip(values) {
            dut.set(input, value);
        }
    }

    /// A cycle in which these come.
    fn step(&mut self, left: Option<Left>, report: Option<Report>) {
        let now = self.bench.cycle();
        self.drive(left, report);
        if let Some(report) = report.filter(|r| r.kind.is_some_and(|kind| kind != Kind::Reset)) {
            self.due.push_back((now + LATENCY, report));
        }
        self.bench.step(&mut []).unwrap();
        let dut = self.bench.dut();
        let [valid, kind, qpn, bytes, rtt] = self.feedback.map(|output| dut.get(output));
        let is_due = self.due.front().is_some_and(|due| due.0 == now + 1);
        let due = is_due.then(|| self.due.pop_front()).flatten();
        assert_eq!(valid == 1, due.is_some(), "cycle {now}: {due:?}");
        if let Some((at, report)) = due {
            let event = Event {
                kind,
                qpn,
                bytes,
                rtt,
            };
            let wanted = Event {
                kind: report.kind.unwrap() as u64,
                qpn: report.qpn as u64,
                bytes: report.bytes.into(),
                rtt,
            };
            assert_eq!(event, wanted);
            self.events.push((at - LATENCY, report, event));
        }
    }

    fn wait(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.step(None, None);
        }
    }

    fn left(&mut self, qpn: usize, next_psn: u32) {
        let left = Left {
            qpn,
            psn: plus(next_psn, PSNS - 1),
            next_psn,
            incarnation: 0,
            asks: true,
            at: 0,
        };
        self.step(Some(left), None);
    }

    fn report(&mut self, report: Report) {
        self.step(None, Some(report));
    }

    /// The round trip that this acknowledgement gives; 0: none.
    fn acked(&mut self, qpn: usize, psn: u32) -> u64 {
        self.report(Report::new(qpn, Kind::Ack, psn));
        self.wait(LATENCY);
        self.events.last().expect("an event").2.rtt
    }
}

/// The queue pair begins with `psn`.
fn rig_at(qpn: usize, psn: u32) -> Rig {
    let mut rig = Rig::new();
    rig.report(Report::new(qpn, Kind::Reset, psn));
    rig.wait(10);
    rig
}

#[test]
fn a_sample_is_the_time_from_departure_to_acknowledgement() {
    let mut rig = rig_at(3, 100);
    for (i, trip) in [9, 10, 77, 1000].into_iter().enumerate() {
        let psn = 101 + i as u32;
        rig.left(3, psn);
        rig.wait(trip - 1);
        assert_eq!(rig.acked(3, psn), trip + 1);
    }
}

#[test]
fn an_acknowledgement_that_goes_further_or_less_far_is_none() {
    let mut rig = rig_at(3, 100);
    rig.left(3, 104);
    rig.left(3, 108);
    rig.wait(20);
    assert_eq!(rig.acked(3, 102), 0);
    assert_eq!(rig.acked(3, 108), 0, "the peer may have waited");
    rig.left(3, 110);
    rig.wait(20);
    assert_ne!(rig.acked(3, 110), 0, "the next packet is measured");
    // by data
    rig.left(3, 112);
    rig.wait(20);
    let mut report = Report::new(3, Kind::Ack, 112);
    report.plain = false;
    rig.report(report);
    rig.wait(20);
    assert_eq!(rig.events.last().unwrap().2.rtt, 0);
}

#[test]
fn what_is_sent_again_is_no_sample() {
    for kind in [Some(Kind::Nak), Some(Kind::Timeout), None] {
        let mut rig = rig_at(3, 100);
        rig.left(3, 101);
        rig.left(3, 102);
        rig.wait(20);
        // 104 was granted by then
        let mut report = Report::new(3, Kind::Nak, 104);
        report.kind = kind;
        rig.report(report);
        // of before the go-back, and to be sent again
        rig.left(3, 103);
        rig.wait(20);
        for psn in 101..105 {
            rig.left(3, psn);
            rig.wait(20);
            assert_eq!(rig.acked(3, psn), 0, "{kind:?}, {psn}");
        }
        rig.left(3, 105);
        rig.wait(20);
        assert_eq!(rig.acked(3, 105), 22, "sent for the first time");
    }
}

#[test]
fn another_life_begins_with_reset() {
    let mut rig = rig_at(3, 100);
    rig.left(3, 101);
    let mut reset = Report::new(3, Kind::Reset, 100);
    reset.incarnation = 1;
    rig.report(reset);
    // of the former life, late
    rig.left(3, 102);
    rig.wait(20);
    assert_eq!(rig.acked(3, 101), 0);
    assert_eq!(rig.acked(3, 102), 0);
    let left = Left {
        qpn: 3,
        psn: 102,
        next_psn: 103,
        incarnation: 1,
        asks: true,
        at: 0,
    };
    rig.step(Some(left), None);
    rig.wait(20);
    assert_eq!(rig.acked(3, 103), 22);
}

/// A sample has 24 bits of cycles.
#[test]
fn a_long_round_trip_is_dropped() {
    let mut rig = rig_at(3, 100);
    rig.report(Report::new(4, Kind::Reset, 100));
    rig.left(3, 101);
    rig.left(4, 101);
    rig.wait((1 << 24) - 3);
    rig.report(Report::new(4, Kind::Ack, 101));
    assert_eq!(rig.acked(3, 101), 0);
    let events: Vec<_> = rig.events.iter().map(|(.., event)| event.rtt).collect();
    assert_eq!(events, [(1 << 24) - 1, 0]);
}

#[test]
fn a_departure_waits_for_reports_and_one_more_is_not_measured() {
    let mut rig = rig_at(3, 100);
    let other = Report::new(9, Kind::Ack, 0);
    let left = |qpn, next_psn| Left {
        qpn,
        psn: next_psn - 1,
        next_psn,
        incarnation: 0,
        asks: true,
        at: 0,
    };
    rig.report(Report::new(4, Kind::Reset, 100));
    rig.step(Some(left(3, 101)), Some(other));
    rig.step(Some(left(4, 101)), Some(other));
    rig.step(None, Some(other));
    rig.wait(20);
    assert_eq!(rig.acked(4, 101), 0);
    let trip = rig.acked(3, 101);
    assert!((26..=30).contains(&trip), "{trip}");
    // one that is acknowledged while it waits is not measured behind that
    rig.step(Some(left(3, 102)), Some(other));
    rig.report(Report::new(3, Kind::Ack, 102));
    rig.left(3, 103);
    rig.wait(20);
    assert_ne!(rig.acked(3, 103), 0);
}
