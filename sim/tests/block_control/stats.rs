//! `stats`: every pulse counts, once.

use ferroce_hdl::control::stats::Stats;
use ferroce_proto::abi::regs::STATS;
use ferroce_sim::bench::Bench;
use ferroce_sim::verilator::{Input, Output};

/// Counters with a pulse of more than a bit.
fn largest(name: &str) -> u64 {
    match name {
        "rx_bytes" => 127,
        "rx_wrong_address" | "rx_acks" | "rx_ghost_acks" => 3,
        "tx_bytes" => 8191,
        "rp_rtt_cycles" => (1 << 24) - 1,
        _ => 1,
    }
}

struct Rig {
    bench: Bench,
    pulses: Vec<Input>,
    index: Input,
    read: Input,
    value: Output,
    valid: Output,
    ready: Output,
    /// What every counter is to hold.
    counts: Vec<u64>,
}

impl Rig {
    fn new() -> Self {
        let bench = Bench::of(Stats::default).expect("the counters build");
        let dut = bench.dut();
        let pulse = |name: &&str| dut.input(&format!("pulses.{name}")).expect("a counter");
        let mut rig = Self {
            pulses: STATS.iter().map(pulse).collect(),
            index: dut.input("index").unwrap(),
            read: dut.input("read").unwrap(),
            value: dut.output("value").unwrap(),
            valid: dut.output("valid").unwrap(),
            ready: dut.output("ready").unwrap(),
            counts: vec![],
            bench,
        };
        rig.reset();
        rig
    }

    fn reset(&mut self) {
        for pulse in &self.pulses {
            self.bench.dut_mut().set(*pulse, 0);
        }
        self.bench.dut_mut().set(self.read, 0);
        self.bench.reset(&mut []);
        self.counts = vec![0; STATS.len()];
    }

    /// A cycle in which counter i grows by `by(i)`.
    fn step(&mut self, mut by: impl FnMut(usize) -> u64) {
        for (i, pulse) in self.pulses.iter().enumerate() {
            let n = by(i);
            self.bench.dut_mut().set(*pulse, n);
            self.counts[i] += n;
        }
        self.bench.step(&mut []).expect("no agent breaks a rule");
    }

    /// Reads a counter while pulses go on; its value, and cycles it took.
    fn read(&mut self, index: usize, mut by: impl FnMut(usize) -> u64) -> (u64, u64) {
        self.bench.dut_mut().set(self.index, index as u64);
        self.bench.dut_mut().set(self.read, 1);
        for cycles in 0..134 {
            self.bench.dut_mut().settle();
            if self.bench.dut().is_set(self.valid) {
                let value = self.bench.dut().get(self.value);
                // it stands as long as it is asked for
                self.step(&mut by);
                self.bench.dut_mut().settle();
                assert!(self.bench.dut().is_set(self.valid));
                assert_eq!(self.bench.dut().get(self.value), value);
                self.bench.dut_mut().set(self.read, 0);
                self.step(&mut by);
                self.bench.dut_mut().settle();
                assert!(!self.bench.dut().is_set(self.valid));
                return (value, cycles);
            }
            self.step(&mut by);
        }
        panic!("counter {index} is not answered");
    }

    /// All counters are exact when nothing is counted any more.
    fn check(&mut self) {
        for (index, name) in STATS.iter().enumerate() {
            assert_eq!(self.read(index, |_| 0).0, self.counts[index], "{name}");
        }
        for index in STATS.len()..128 {
            assert_eq!(self.read(index, |_| 0).0, 0, "there is no counter {index}");
        }
    }

    fn random(&mut self) -> impl FnMut(usize) -> u64 + use<> {
        let mut rng = self.bench.rng().fork();
        move |i| {
            if rng.bool() {
                0
            } else {
                rng.u64(..=largest(STATS[i]))
            }
        }
    }
}

#[test]
fn counters_start_at_0_and_are_ready_after_a_round() {
    let mut rig = Rig::new();
    let mut cycles = 0;
    while !rig.bench.dut().is_set(rig.ready) {
        rig.step(|_| 0);
        cycles += 1;
        assert!(cycles <= 131, "not ready");
    }
    rig.check();
}

#[test]
fn each_counter_counts_its_own_pulses() {
    let mut rig = Rig::new();
    for (index, name) in STATS.iter().enumerate() {
        let most = largest(name);
        for _ in 0..=index {
            rig.step(|i| if i == index { most } else { 0 });
        }
    }
    rig.check();
}

#[test]
fn full_rate_on_all_counters_from_the_first_cycle_on() {
    let mut rig = Rig::new();
    for _ in 0..1000 {
        rig.step(|i| largest(STATS[i]));
    }
    rig.check();
    for _ in 0..333 {
        rig.step(|i| largest(STATS[i]));
    }
    rig.check();
}

#[test]
fn counters_go_on_past_32_bits() {
    let mut rig = Rig::new();
    let tx_bytes = STATS.iter().position(|name| *name == "tx_bytes").unwrap();
    let pulse = rig.pulses[tx_bytes];
    rig.bench.dut_mut().set(pulse, 8191);
    let cycles = (1 << 32) / 8191 + 1000;
    rig.bench.run(&mut [], cycles).unwrap();
    rig.counts[tx_bytes] = 8191 * cycles;
    assert!(rig.counts[tx_bytes] > 1 << 32);
    rig.check();
}

#[test]
fn a_read_holds_every_pulse_before_it() {
    let mut rig = Rig::new();
    let mut by = rig.random();
    for round in 0..600 {
        let pause = rig.bench.rng().u64(..80);
        for _ in 0..pause {
            rig.step(&mut by);
        }
        let index = round % STATS.len();
        let before = rig.counts[index];
        let (value, cycles) = rig.read(index, &mut by);
        assert!(cycles <= 131, "{cycles} cycles");
        let range = before..=rig.counts[index];
        assert!(
            range.contains(&value),
            "{}: {value}, expected {range:?}",
            STATS[index]
        );
    }
    rig.check();
}

#[test]
fn reset_clears_all() {
    let mut rig = Rig::new();
    let mut by = rig.random();
    for _ in 0..500 {
        rig.step(&mut by);
    }
    rig.reset();
    assert!(!rig.bench.dut().is_set(rig.ready));
    // a read in the first round sees the first round
    rig.step(|_| 1);
    assert_eq!(rig.read(0, |_| 0).0, 1);
    rig.check();
}
