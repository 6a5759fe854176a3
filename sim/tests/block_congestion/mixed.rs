//! The whole reaction point with queue pairs of both algorithms: rates and windows as the references have them, bit for bit.

use fastrand::Rng;
use ferroce_hdl::transport::congestion::reaction_point::ReactionPoint;
use ferroce_sim::bench::{Bench, StreamSource};
use ferroce_sim::model::congestion::{Dcqcn, Params, Swift, SwiftParams};
use ferroce_sim::nic::NS_PER_CYCLE;
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::{Input, Output};

use super::rig::{Kind, LINE, set_params};
use super::swift;

const QPS: usize = 16;
/// Cycles in which all that happened becomes a rate: an event, a visit of all queue pairs, a division.
const SETTLES: u64 = 800;

/// What congestion control and the host say of a queue pair.
#[derive(Clone)]
struct Reference {
    dcqcn: Dcqcn,
    swift: Option<Swift>,
    limit: Option<u32>,
}

impl Reference {
    /// Cycles of a byte in 2^-20, and PSNs that may be outstanding; 0 for none.
    fn pace(&self) -> (u32, u32) {
        let dcqcn = self.dcqcn.is_limited().then(|| self.dcqcn.rate_mbps());
        let swift = self.swift.as_ref().and_then(Swift::rate_mbps);
        let rate = dcqcn.into_iter().chain(swift).chain(self.limit).min();
        let window = self.swift.as_ref().map_or(0, Swift::packets);
        (rate.map_or(0, |rate| (2000 << 20) / rate), window)
    }
}

struct Rig {
    bench: Bench,
    events: StreamSource,
    limits: StreamSource,
    feedback: [Input; 5],
    tick: Input,
    watched: [Output; 5],
    ready: Output,
    params: Params,
    swift: SwiftParams,
    references: Vec<Reference>,
    /// As the block has them.
    paces: [(u32, u32); QPS],
    us: u64,
}

impl Rig {
    fn new(params: Params, swift: SwiftParams) -> Self {
        let mut bench = Bench::of(ReactionPoint::<4, 6>::default).unwrap();
        set_params(bench.dut_mut(), &params);
        swift::set_params(bench.dut_mut(), "swift_params", &swift);
        let dut = bench.dut();
        let input = |name: &str| dut.input(name).unwrap();
        let fields = [
            "valid",
            "payload.kind",
            "payload.qpn",
            "payload.bytes",
            "payload.rtt",
        ];
        let outputs = ["paced_valid", "paced_qpn", "paced", "gap", "window"];
        let zeros = [input("order_valid"), input("feedback.valid"), input("tick")];
        let m_ready = input("m_ready");
        let mut rig = Self {
            events: StreamSource::new(dut, "events", Pauses::NONE).unwrap(),
            limits: StreamSource::new(dut, "limits", Pauses::NONE).unwrap(),
            feedback: fields.map(|field| input(&format!("feedback.{field}"))),
            tick: input("tick"),
            watched: outputs.map(|name| dut.output(name).unwrap()),
            ready: dut.output("ready").unwrap(),
            params,
            swift,
            references: Vec::new(),
            paces: [(0, 0); QPS],
            us: 0,
            bench,
        };
        for input in zeros {
            rig.bench.dut_mut().set(input, 0);
        }
        rig.bench.dut_mut().set(m_ready, 1);
        rig.reset();
        rig.settle();
        rig
    }

    /// Reset, of the references too: no event came for any queue pair.
    fn reset(&mut self) {
        let fresh = Reference {
            dcqcn: Dcqcn::new(self.params, LINE),
            swift: None,
            limit: None,
        };
        self.references = vec![fresh; QPS];
        self.paces = [(0, 0); QPS];
        self.us = 0;
        self.bench.reset(&mut [&mut self.events, &mut self.limits]);
        while !self.bench.dut().is_set(self.ready) {
            self.cycle();
        }
    }

    fn cycle(&mut self) {
        self.bench
            .step(&mut [&mut self.events, &mut self.limits])
            .unwrap();
        let dut = self.bench.dut();
        let [valid, qpn, paced, gap, window] = self.watched.map(|output| dut.get(output) as u32);
        if valid == 1 {
            assert_eq!(paced == 1, gap > 0);
            self.paces[qpn as usize] = (gap, window);
        }
    }

    fn settle(&mut self) {
        for _ in 0..SETTLES {
            self.cycle();
        }
    }

    /// Time stands meanwhile.
    fn check(&mut self) {
        self.settle();
        for (qpn, reference) in self.references.iter().enumerate() {
            let (has, wants) = (self.paces[qpn], reference.pace());
            assert_eq!(has, wants, "queue pair {qpn} at {} us", self.us);
        }
    }

    fn event(&mut self, kind: Kind, qpn: usize, bytes: u32, packet: u32) {
        let item = self.events.item().with("kind", kind as u64);
        let item = item.with("qpn", qpn as u64).with("bytes", bytes.into());
        self.events.push(item.with("packet", packet.into()));
        let reference = &mut self.references[qpn];
        let now = self.us * 1000;
        match kind {
            Kind::Cnp if reference.swift.is_none() => reference.dcqcn.on_cnp(now),
            Kind::Sent => reference.dcqcn.on_sent(now, bytes),
            Kind::Reset => {
                let params = SwiftParams {
                    log_packet: 7 + packet,
                    ..self.swift
                };
                reference.dcqcn = Dcqcn::new(self.params, LINE);
                reference.swift = (packet > 0).then(|| Swift::new(params));
            }
            _ => {}
        }
    }

    fn feedback(&mut self, kind: Kind, qpn: usize, bytes: u32, rtt: u64) {
        let values = [1, kind as u64, qpn as u64, bytes.into(), rtt];
        for (input, value) in self.feedback.into_iter().zip(values) {
            self.bench.dut_mut().set(input, value);
        }
        // when it counts is known to some cycles
        let now = self.bench.cycle();
        self.cycle();
        self.bench.dut_mut().set(self.feedback[0], 0);
        let Some(swift) = &mut self.references[qpn].swift else {
            return;
        };
        match kind {
            Kind::Ack => {
                let rtt = (rtt > 0).then_some(rtt * NS_PER_CYCLE);
                swift.on_ack(now * NS_PER_CYCLE, bytes, rtt)
            }
            Kind::Nak => swift.on_nak(now * NS_PER_CYCLE),
            _ => swift.on_timeout(now * NS_PER_CYCLE),
        };
    }

    fn limit(&mut self, qpn: usize, mbps: Option<u32>) {
        let item = self.limits.item().with("qpn", qpn as u64);
        let item = item.with("limited", mbps.is_some().into());
        self.limits
            .push(item.with("rate", mbps.unwrap_or(0).into()));
        self.references[qpn].limit = mbps;
    }

    fn microsecond(&mut self) {
        self.bench.dut_mut().set(self.tick, 1);
        self.cycle();
        self.bench.dut_mut().set(self.tick, 0);
        self.us += 1;
        for reference in &mut self.references {
            reference.dcqcn.advance(self.us * 1000);
        }
    }

    /// A round trip that is over since the last decrease, or is not, whatever the cycles that an event waits.
    fn round_trip(&mut self, qpn: usize, rng: &mut Rng) -> u64 {
        let rtt = rng.u64(..4) * rng.u64(1..20_000);
        let state = self.references[qpn].swift.as_ref().map(Swift::state);
        let since = state.and_then(|state| state.decreased_at);
        let elapsed = since.map_or(u64::MAX, |at| self.bench.cycle() - at);
        if rtt.abs_diff(elapsed) < SETTLES {
            0
        } else {
            rtt
        }
    }
}

#[test]
fn each_queue_pair_by_its_own_algorithm() {
    let mut rng = Rng::with_seed(ferroce_sim::bench::seed());
    let params = Params {
        rpg_time_reset: 5,
        rate_reduce_monitor_period: 2,
        ..Params::default()
    };
    let swift = SwiftParams {
        initial_cwnd: 4,
        ..SwiftParams::default()
    };
    let mut rig = Rig::new(params, swift);
    let (mut slowed, mut narrow, mut mixed) = (0, 0, 0);
    for _ in 0..3000 {
        let qpn = rng.usize(..QPS);
        match rng.u8(..20) {
            0 => rig.event(Kind::Reset, qpn, 0, rng.u32(..6)),
            1 => {
                let limit = rng.bool().then(|| rng.u32(1..LINE) >> rng.u32(..10));
                rig.limit(qpn, limit.filter(|limit| *limit > 0));
            }
            2..5 => rig.event(Kind::Cnp, qpn, 0, 0),
            5..7 => rig.event(Kind::Sent, qpn, rng.u32(..1 << 20), 0),
            7..15 => {
                let rtt = rig.round_trip(qpn, &mut rng);
                rig.feedback(Kind::Ack, qpn, rng.u32(1..1 << 16), rtt);
            }
            kind @ 15..17 => {
                let kind = [Kind::Nak, Kind::Timeout][usize::from(kind) - 15];
                // the known round trip must be over, or not
                let state = rig.references[qpn].swift.as_ref().map(Swift::state);
                let near = state.is_some_and(|state| {
                    let elapsed = state.decreased_at.map(|at| rig.bench.cycle() - at);
                    elapsed.is_some_and(|n| n.abs_diff(state.rtt) < SETTLES)
                });
                if !near {
                    rig.feedback(kind, qpn, 0, 0);
                }
            }
            _ => rig.microsecond(),
        }
        rig.check();
        let pace = rig.paces[qpn];
        let limited = rig.references[qpn].limit.is_some();
        slowed += u64::from(pace.0 > 0 && pace.1 == 0 && !limited);
        narrow += u64::from(pace.1 > 0);
        mixed += u64::from(pace.0 > 0 && pace.1 > 0);
    }
    let seen = [slowed, narrow, mixed];
    assert!(seen.iter().all(|n| *n > 100), "{seen:?}");
}

/// A Reset that comes with what the network did before makes a new queue pair all the same, of either algorithm.
#[test]
fn a_reset_comes_behind_what_was_before() {
    let mut rig = Rig::new(Params::default(), SwiftParams::default());
    for packet in [5, 0, 3] {
        rig.event(Kind::Reset, 3, 0, 5);
        rig.settle();
        for _ in 0..4 {
            rig.feedback(Kind::Ack, 3, 4096, 50_000);
        }
        rig.event(Kind::Reset, 3, 0, packet);
        // of the former life still, and what that becomes is void
        for _ in 0..5 {
            rig.feedback(Kind::Nak, 3, 0, 0);
        }
        let Reference { dcqcn, .. } = rig.references[3].clone();
        let params = SwiftParams {
            log_packet: 7 + packet,
            ..rig.swift
        };
        rig.references[3] = Reference {
            dcqcn,
            swift: (packet > 0).then(|| Swift::new(params)),
            limit: None,
        };
        rig.settle();
        rig.check();
    }
}

/// An event is under way somewhere in the block when the reset comes: nothing of it is there behind the reset.
#[test]
fn a_reset_forgets_what_is_under_way() {
    let params = Params {
        rate_reduce_monitor_period: 0,
        ..Params::default()
    };
    // a queue pair becomes Swift's and has a window, or is slowed at once
    for (kind, packet) in [(Kind::Reset, 5), (Kind::Cnp, 0)] {
        let mut rig = Rig::new(params, SwiftParams::default());
        for cycles in 1..=100 {
            rig.event(kind, 3, 0, packet);
            for _ in 0..cycles {
                rig.cycle();
            }
            rig.reset();
            rig.check();
        }
        rig.event(kind, 3, 0, packet);
        rig.check();
        assert_ne!(rig.paces[3], (0, 0), "{kind:?} counts without a reset");
    }
}
