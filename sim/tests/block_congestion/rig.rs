//! `dcqcn` with its neighbours, and the golden reference of each queue pair.

use std::collections::{BTreeSet, VecDeque};

use ferroce_hdl::transport::congestion::dcqcn::Dcqcn as Block;
use ferroce_sim::bench::{Agent, Bench, Item, StreamSink, StreamSource};
use ferroce_sim::bits;
use ferroce_sim::model::congestion::{Dcqcn, Params, State};
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::{Dut, Field, Input, Output};

/// Log2 of the queue pairs.
const Q: usize = 4;
pub(crate) const QPS: u16 = 1 << Q;
pub(crate) const LINE: u32 = 100_000;
/// Times are counted modulo this.
const TURN: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Cnp = 1,
    Sent = 2,
    Ack = 3,
    Nak = 4,
    Timeout = 5,
    Reset = 6,
}

/// A queue pair was looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) qpn: u16,
    pub(crate) visit: bool,
    /// Microseconds, without end.
    pub(crate) at: u64,
    pub(crate) state: State,
}

/// Records what the block shows of itself.
struct Watch {
    valid: Output,
    look: Output,
    fields: Vec<Field>,
    lost: Output,
    looks: VecDeque<Vec<u32>>,
    losses: u64,
}

impl Watch {
    fn new(dut: &Dut) -> Self {
        let mut ports = dut.model().ports().iter();
        let port = ports.find(|port| port.name == "look").unwrap();
        Self {
            valid: dut.output("look_valid").unwrap(),
            look: dut.output("look").unwrap(),
            fields: port.fields.clone(),
            lost: dut.output("lost").unwrap(),
            looks: VecDeque::new(),
            losses: 0,
        }
    }

    fn get(&self, words: &[u32], path: &str) -> u64 {
        let field = self.fields.iter().find(|field| field.path == path);
        let field = field.unwrap_or_else(|| panic!("no field {path}"));
        bits::extract(words, field.offset, field.width)
    }

    fn pop(&mut self, now: u64) -> Option<Look> {
        let words = self.looks.pop_front()?;
        let get = |path: &str| self.get(&words, path);
        let of = |path: &str| get(&format!("state.{path}"));
        Some(Look {
            qpn: get("qpn") as u16,
            visit: get("visit") != 0,
            at: now - (now.wrapping_sub(get("at"))) % TURN,
            state: State {
                active: of("active") != 0,
                rate: of("rate") as u32,
                target: of("target") as u32,
                alpha: of("alpha") as u32,
                alpha_ticks: of("alpha_ticks") as u32,
                alpha_cnp: of("alpha_cnp") != 0,
                decrease_cnp: of("decrease_cnp") != 0,
                time_stage: of("time_stage") as u32,
                byte_stage: of("byte_stage") as u32,
                byte_count: of("byte_count") as u32,
                alpha_at: of("alpha_at"),
                decrease_at: of("decrease_at"),
                increase_at: of("increase_at"),
            },
        })
    }
}

impl Agent for Watch {
    fn drive(&mut self, _: &mut Dut, _: &mut fastrand::Rng) {}

    fn observe(&mut self, dut: &Dut, _: u64) -> Result<(), String> {
        if dut.is_set(self.valid) {
            self.looks.push_back(dut.view(self.look).to_vec());
        }
        self.losses += u64::from(dut.is_set(self.lost));
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        None
    }

    fn reset(&mut self, _: &mut Dut) {}
}

pub(crate) struct Rig {
    pub(crate) bench: Bench,
    pub(crate) params: Params,
    source: StreamSource,
    updates: StreamSink,
    watch: Watch,
    tick: Input,
    ready: Output,
    references: Vec<Dcqcn>,
    /// Those that a CNP was sent for.
    active: BTreeSet<u16>,
    /// Events that are to be looked at.
    sent: VecDeque<(Kind, u16, u32)>,
    /// Rate updates to come.
    expected: VecDeque<(u16, bool, u32)>,
    pub(crate) us: u64,
    pub(crate) looks: [u64; 2],
    /// CNPs may be lost.
    pub(crate) lossy: bool,
    /// States are compared with the reference.
    pub(crate) checks: bool,
}

impl Rig {
    pub(crate) fn new(params: Params, pauses: Pauses) -> Self {
        let mut bench = Bench::of(Block::<Q>::default).unwrap();
        let dut = bench.dut();
        let mut rig = Self {
            params,
            source: StreamSource::new(dut, "s", Pauses::NONE).unwrap(),
            updates: StreamSink::new(dut, "m", pauses).unwrap(),
            watch: Watch::new(dut),
            tick: dut.input("tick").unwrap(),
            ready: dut.output("ready").unwrap(),
            references: vec![Dcqcn::new(params, LINE); usize::from(QPS)],
            active: BTreeSet::new(),
            sent: VecDeque::new(),
            expected: VecDeque::new(),
            us: 0,
            looks: [0; 2],
            lossy: false,
            checks: true,
            bench: {
                set_params(bench.dut_mut(), &params);
                bench
            },
        };
        rig.bench.dut_mut().set(rig.tick, 0);
        rig.bench.reset(&mut [&mut rig.source, &mut rig.updates]);
        rig.until_ready();
        rig
    }

    /// Until the table stands.
    fn until_ready(&mut self) {
        for _ in 0..200 {
            self.cycle(false);
            if self.bench.dut().is_set(self.ready) {
                return;
            }
        }
        panic!("not ready in 200 cycles");
    }

    pub(crate) fn push(&mut self, kind: Kind, qpn: u16, bytes: u32) {
        let item = self.source.item().with("kind", kind as u64);
        let item = item
            .with("qpn", qpn.into())
            .with("bytes", bytes.into())
            .with("rtt", 77);
        self.source.push(item);
        let counts = match kind {
            Kind::Cnp => {
                self.active.insert(qpn);
                true
            }
            Kind::Reset => {
                self.active.remove(&qpn);
                true
            }
            Kind::Sent => self.active.contains(&qpn),
            _ => false,
        };
        if counts {
            self.sent.push_back((kind, qpn, bytes));
        }
    }

    /// Other parameters from now on; between two looks.
    pub(crate) fn set_params(&mut self, params: Params) {
        self.params = params;
        set_params(self.bench.dut_mut(), &params);
        for reference in &mut self.references {
            let state = *reference.state();
            *reference = Dcqcn::new(params, LINE);
            reference.set_state(state);
        }
        self.until_ready();
    }

    /// Alpha of a queue pair now, by the reference, 1/65536.
    pub(crate) fn alpha(&self, qpn: u16) -> u32 {
        self.references[usize::from(qpn)].alpha()
    }

    /// The state of a queue pair, by the reference.
    pub(crate) fn state(&self, qpn: u16) -> &State {
        self.references[usize::from(qpn)].state()
    }

    /// Events that are not done.
    pub(crate) fn waiting(&self) -> usize {
        self.sent.len()
    }

    pub(crate) fn losses(&self) -> u64 {
        self.watch.losses
    }

    /// A cycle, in which a microsecond ends or not; what was looked at in it.
    pub(crate) fn cycle(&mut self, tick: bool) -> Option<Look> {
        self.bench.dut_mut().set(self.tick, tick.into());
        let agents: &mut [&mut dyn Agent] =
            &mut [&mut self.source, &mut self.updates, &mut self.watch];
        if let Err(failure) = self.bench.step(agents) {
            panic!("{failure}");
        }
        let look = self.watch.pop(self.us);
        if let Some(look) = look {
            self.check(&look);
        }
        while let Some((_, item)) = self.updates.pop() {
            if !self.checks {
                continue;
            }
            let wanted = self.expected.pop_front().expect("a rate update is due");
            assert_eq!(update_of(&item), wanted, "cycle {}", self.bench.cycle());
        }
        self.us += u64::from(tick);
        look
    }

    /// What was looked at is as the reference has it.
    fn check(&mut self, look: &Look) {
        self.looks[usize::from(look.visit)] += 1;
        if !self.checks {
            if !look.visit {
                self.sent.pop_front();
            }
            return;
        }
        let now = look.at * 1000;
        let reference = &mut self.references[usize::from(look.qpn)];
        let before = reference.state().rate;
        let mut resets = false;
        if look.visit {
            reference.advance(now);
        } else {
            while self.lossy && self.sent.front().is_some_and(|sent| sent.1 != look.qpn) {
                self.sent.pop_front();
            }
            let (kind, qpn, bytes) = self.sent.pop_front().expect("an event");
            assert_eq!(qpn, look.qpn);
            match kind {
                Kind::Cnp => reference.on_cnp(now),
                Kind::Sent => reference.on_sent(now, bytes),
                _ => {
                    *reference = Dcqcn::new(self.params, LINE);
                    resets = true;
                }
            }
        }
        let mut wanted = *reference.state();
        for at in [
            &mut wanted.alpha_at,
            &mut wanted.decrease_at,
            &mut wanted.increase_at,
        ] {
            *at %= TURN;
        }
        // no period ends where each CNP decreases at once
        if self.params.rate_reduce_monitor_period == 0 {
            wanted.decrease_at = look.state.decrease_at;
        }
        assert_eq!(
            look.state, wanted,
            "queue pair {} at {} us, {:?}",
            look.qpn, look.at, self.params
        );
        if resets || before != wanted.rate {
            let limited = reference.is_limited();
            self.expected
                .push_back((look.qpn, limited, reference.state().rate));
        }
    }
}

fn update_of(item: &Item) -> (u16, bool, u32) {
    assert_eq!(item.get("window"), 0);
    let qpn = item.get("qpn") as u16;
    (qpn, item.get("limited") != 0, item.get("rate") as u32)
}

pub(crate) fn set_params(dut: &mut Dut, p: &Params) {
    let mut ports = dut.model().ports().iter();
    let port = ports.find(|port| port.name == "params").unwrap().clone();
    let input = dut.input("params").unwrap();
    let values = [
        ("clamp_tgt_rate", u32::from(p.clamp_tgt_rate)),
        (
            "clamp_tgt_rate_after_time_inc",
            u32::from(p.clamp_tgt_rate_after_time_inc),
        ),
        ("rpg_time_reset", p.rpg_time_reset),
        ("rpg_byte_reset", p.rpg_byte_reset),
        ("rpg_threshold", p.rpg_threshold),
        ("rpg_max_rate", p.rpg_max_rate),
        ("rpg_ai_rate", p.rpg_ai_rate),
        ("rpg_hai_rate", p.rpg_hai_rate),
        ("rpg_gd", p.rpg_gd),
        ("rpg_min_dec_fac", p.rpg_min_dec_fac),
        ("rpg_min_rate", p.rpg_min_rate),
        ("rate_to_set_on_first_cnp", p.rate_to_set_on_first_cnp),
        ("dce_tcp_g", p.dce_tcp_g),
        ("dce_tcp_rtt", p.dce_tcp_rtt),
        ("rate_reduce_monitor_period", p.rate_reduce_monitor_period),
        ("initial_alpha_value", p.initial_alpha_value),
        ("alpha_first", u32::from(p.alpha_first)),
        ("alpha_whole", u32::from(p.alpha_whole)),
        ("line_rate", LINE),
    ];
    assert_eq!(port.fields.len(), values.len());
    let mut words = vec![0; port.width.div_ceil(32)];
    for (name, value) in values {
        let field = port.fields.iter().find(|field| field.path == name);
        let field = field.unwrap_or_else(|| panic!("no field {name}"));
        bits::insert(&mut words, field.offset, field.width, value.into());
    }
    dut.write(input, &words);
}
