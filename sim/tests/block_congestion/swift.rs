//! Swift as Verilog: every queue pair as the golden reference has it, bit for bit, behind every event.

use std::collections::VecDeque;

use ferroce_hdl::transport::congestion::swift::Swift as Block;
use ferroce_sim::bench::{Agent, Bench, StreamSink, StreamSource};
use ferroce_sim::bits;
use ferroce_sim::model::congestion::{Swift, SwiftParams, SwiftState};
use ferroce_sim::nic::NS_PER_CYCLE;
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::{Dut, Field, Output};

use super::rig::Kind;

const Q: usize = 4;
const QPS: usize = 1 << Q;

#[derive(Clone, Copy, Debug)]
struct Look {
    at: u64,
    kind: u64,
    qpn: usize,
    bytes: u32,
    rtt: u64,
    state: SwiftState,
}

/// Records what the block shows of itself.
struct Watch {
    valid: Output,
    look: Output,
    fields: Vec<Field>,
    looks: VecDeque<Look>,
}

impl Watch {
    fn new(dut: &Dut) -> Self {
        let mut ports = dut.model().ports().iter();
        let port = ports.find(|port| port.name == "look").unwrap();
        Self {
            valid: dut.output("look_valid").unwrap(),
            look: dut.output("look").unwrap(),
            fields: port.fields.clone(),
            looks: VecDeque::new(),
        }
    }
}

impl Agent for Watch {
    fn drive(&mut self, _: &mut Dut, _: &mut fastrand::Rng) {}

    fn observe(&mut self, dut: &Dut, _: u64) -> Result<(), String> {
        if !dut.is_set(self.valid) {
            return Ok(());
        }
        let words = dut.view(self.look);
        let get = |path: &str| {
            let field = self.fields.iter().find(|field| field.path == path);
            let field = field.unwrap_or_else(|| panic!("no field {path}"));
            bits::extract(words, field.offset, field.width)
        };
        let decreased = get("state.decreased") != 0;
        self.looks.push_back(Look {
            at: get("at"),
            kind: get("taken.kind"),
            qpn: get("taken.qpn") as usize,
            bytes: get("taken.bytes") as u32,
            rtt: get("taken.rtt"),
            state: SwiftState {
                cwnd: get("state.cwnd"),
                rtt: get("state.rtt"),
                decreased_at: decreased.then(|| get("state.decreased_at")),
                retransmits: get("state.retransmits") as u32,
            },
        });
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        None
    }

    fn reset(&mut self, _: &mut Dut) {}
}

pub(crate) fn set_params(dut: &mut Dut, port: &str, p: &SwiftParams) {
    let mut set = |name: &str, value: u32| {
        let input = dut.input(&format!("{port}.{name}")).unwrap();
        dut.set(input, value.into());
    };
    set("base_target", p.base_target);
    set("ai", p.ai);
    set("beta", p.beta);
    set("max_mdf", p.max_mdf);
    set("fs_range", p.fs_range);
    set("fs_alpha", p.fs_alpha);
    set("fs_beta", p.fs_beta);
    set("min_cwnd", p.min_cwnd);
    set("max_cwnd", p.max_cwnd);
    set("initial_cwnd", p.initial_cwnd);
    set("retx_reset_threshold", p.retx_reset_threshold);
}

struct Rig {
    bench: Bench,
    source: StreamSource,
    updates: StreamSink,
    watch: Watch,
    params: SwiftParams,
    /// `None`: the queue pair is another algorithm's.
    references: Vec<Option<Swift>>,
    /// Events that were pushed and are not done; with Reset the code of the path MTU, 0: another algorithm's.
    sent: VecDeque<(Kind, usize, u32)>,
    /// Updates to come: queue pair, rate, window in PSNs.
    expected: VecDeque<(usize, Option<u32>, u32)>,
    /// Windows that fell, and that grew.
    moves: [u64; 2],
    /// Windows below a packet.
    limited: u64,
}

impl Rig {
    fn new(params: SwiftParams, pauses: Pauses) -> Self {
        let mut bench = Bench::of(Block::<Q>::default).unwrap();
        set_params(bench.dut_mut(), "params", &params);
        let dut = bench.dut();
        let mut rig = Self {
            source: StreamSource::new(dut, "s", Pauses::NONE).unwrap(),
            updates: StreamSink::new(dut, "m", pauses).unwrap(),
            watch: Watch::new(dut),
            params,
            references: vec![None; QPS],
            sent: VecDeque::new(),
            expected: VecDeque::new(),
            moves: [0; 2],
            limited: 0,
            bench,
        };
        rig.bench.reset(&mut [&mut rig.source, &mut rig.updates]);
        for qpn in 0..QPS {
            rig.reset(qpn, 1 + qpn as u32 % 5);
        }
        rig
    }

    fn reset(&mut self, qpn: usize, packet: u32) {
        let item = self.source.item().with("kind", Kind::Reset as u64);
        let item = item.with("qpn", qpn as u64);
        self.source.push(item.with("packet", packet.into()));
        self.sent.push_back((Kind::Reset, qpn, packet));
    }

    fn push(&mut self, kind: Kind, qpn: usize, bytes: u32, rtt: u64) {
        let item = self.source.item().with("kind", kind as u64);
        let item = item.with("qpn", qpn as u64).with("bytes", bytes.into());
        self.source.push(item.with("rtt", rtt));
        self.sent.push_back((kind, qpn, 0));
    }

    fn cycle(&mut self) {
        let agents: &mut [&mut dyn Agent] =
            &mut [&mut self.source, &mut self.updates, &mut self.watch];
        if let Err(failure) = self.bench.step(agents) {
            panic!("{failure}");
        }
        if let Some(look) = self.watch.looks.pop_front() {
            self.check(&look);
        }
        while let Some((_, item)) = self.updates.pop() {
            let limited = item.get("limited") == 1;
            let update = (
                item.get("qpn") as usize,
                limited.then(|| item.get("rate") as u32),
                item.get("window") as u32,
            );
            assert_eq!(Some(update), self.expected.pop_front());
            self.limited += u64::from(limited);
        }
    }

    fn check(&mut self, look: &Look) {
        let (kind, qpn, packet) = self.sent.pop_front().expect("an event was pushed");
        assert_eq!((kind as u64, qpn), (look.kind, look.qpn));
        let now = look.at * NS_PER_CYCLE;
        if kind == Kind::Reset {
            let params = SwiftParams {
                log_packet: 7 + packet,
                ..self.params
            };
            self.references[qpn] = (packet > 0).then(|| Swift::new(params));
        }
        let Some(reference) = &mut self.references[qpn] else {
            return self.expected.push_back((qpn, None, 0));
        };
        let before = reference.state().cwnd;
        match kind {
            Kind::Ack => {
                let rtt = (look.rtt > 0).then_some(look.rtt * NS_PER_CYCLE);
                reference.on_ack(now, look.bytes, rtt);
            }
            Kind::Nak => {
                reference.on_nak(now);
            }
            Kind::Timeout => {
                reference.on_timeout(now);
            }
            _ => {}
        }
        assert_eq!(*reference.state(), look.state, "{look:?}, {before}");
        self.moves[0] += u64::from(look.state.cwnd < before);
        self.moves[1] += u64::from(look.state.cwnd > before);
        let update = (qpn, reference.rate_mbps(), reference.packets());
        self.expected.push_back(update);
    }

    fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.cycle();
        }
    }
}

/// Parameters anywhere in their ranges.
fn random_params(rng: &mut fastrand::Rng) -> SwiftParams {
    let mut ns = |most: u32| {
        let shift = rng.u32(..20);
        rng.u32(..=most >> shift)
    };
    let (base_target, fs_range) = (ns((1 << 20) - 5) + 4, ns((1 << 20) - 1));
    let (fs_alpha, fs_beta) = (ns((1 << 20) - 1), ns((1 << 20) - 1));
    SwiftParams {
        base_target,
        ai: (rng.u32(1..1 << 16) >> rng.u32(..16)) | 1,
        beta: rng.u32(..=1024),
        max_mdf: rng.u32(..=1024),
        fs_range,
        fs_alpha,
        fs_beta,
        min_cwnd: rng.u32(1..=1024),
        max_cwnd: (rng.u32(1..4096) >> rng.u32(..12)).max(1),
        initial_cwnd: (rng.u32(1..4096) >> rng.u32(..12)).max(1),
        retx_reset_threshold: rng.u32(1..=7),
        ..SwiftParams::default()
    }
}

/// Random events.
fn random(params: SwiftParams, pauses: Pauses, count: usize) -> Rig {
    let mut rig = Rig::new(params, pauses);
    for _ in 0..count {
        let rng = rig.bench.rng();
        let (kind, qpn) = (rng.u8(..40), rng.usize(..QPS));
        let bytes = rng.u32(..1 << 24) >> rng.u32(..24);
        // often near the target
        let near = u64::from(params.base_target) / NS_PER_CYCLE;
        let rtt = match rng.u8(..4) {
            0 => 0,
            1 => rng.u64(..1 << 24) >> rng.u32(..24),
            _ => rng.u64(near / 2..near * 2 + 2).clamp(1, (1 << 24) - 1),
        };
        let wait = rng.u64(..400) << (rng.u8(..8) / 7 * 5);
        match kind {
            0..34 => rig.push(Kind::Ack, qpn, bytes, rtt),
            34..36 => rig.push(Kind::Nak, qpn, bytes, 0),
            36..39 => rig.push(Kind::Timeout, qpn, bytes, 0),
            _ => {
                let packet = rng.u32(..6);
                rig.reset(qpn, packet);
            }
        }
        rig.run(wait);
    }
    while !rig.sent.is_empty() || !rig.expected.is_empty() {
        rig.cycle();
    }
    rig
}

#[test]
fn swift_as_the_reference_with_its_defaults() {
    let rig = random(SwiftParams::default(), Pauses::NONE, 3000);
    assert!(rig.moves.iter().all(|n| *n > 300), "{:?}", rig.moves);
    assert!(rig.limited > 0);
}

#[test]
fn swift_as_the_reference_with_random_parameters() {
    let mut moves = [0; 2];
    for seed in 0..30 {
        let params = random_params(&mut fastrand::Rng::with_seed(seed));
        assert_eq!(params.check(), Ok(()));
        let rig = random(params, Pauses::new(0.05, 50), 400);
        moves = [0, 1].map(|i| moves[i] + rig.moves[i]);
    }
    assert!(moves.iter().all(|n| *n > 500), "{moves:?}");
}
