//! `dma_read`: six clients, any alignment, errors, rates.

use std::rc::Rc;

use fastrand::Rng;
use ferroce_hdl::memory::dma_read::{CLIENTS, DmaRead};
use ferroce_sim::axi::Config;
use ferroce_sim::bench::{Agent, Bench, StreamSource};
use ferroce_sim::memory::Ranges;
use ferroce_sim::random::{Delay, Pauses};
use ferroce_sim::verilator::{Dut, Output};

use super::common::{AxiPort, byte_at, bytes, filled, uneven};

/// Where the tests read.
const BASE: u64 = 0x7fff_1234_0000;
const SIZE: usize = 1 << 16;

/// A request and whether its bytes are mapped.
#[derive(Debug)]
struct Request {
    addr: u64,
    len: usize,
    mapped: bool,
}

/// Takes the beats of a client and compares them with what it asked for.
pub(crate) struct Beats {
    name: String,
    data: Output,
    last: Output,
    error: Output,
    valid: Output,
    lanes: usize,
    expected: std::collections::VecDeque<Request>,
    /// Beats of the oldest request seen.
    seen: usize,
    failed: bool,
    /// Cycles of the first and the latest beat.
    pub(crate) cycles: Option<(u64, u64)>,
    pub(crate) count: u64,
}

impl Beats {
    fn new(dut: &Dut, client: usize, lanes: usize) -> Self {
        let find = |field| {
            dut.output(&format!("beats_{client}_{field}"))
                .expect("a port of the client")
        };
        Self {
            name: format!("beats_{client}"),
            data: find("data"),
            last: find("last"),
            error: find("error"),
            valid: find("valid"),
            lanes,
            expected: Default::default(),
            seen: 0,
            failed: false,
            cycles: None,
            count: 0,
        }
    }

    fn beat(&mut self, data: &[u8], last: bool, error: bool) -> Result<(), String> {
        let Some(request) = self.expected.front() else {
            return Err("a beat that nobody asked for".into());
        };
        let lanes = self.lanes as u64;
        let base = (request.addr & !(lanes - 1)) + self.seen as u64 * lanes;
        let end = request.addr + request.len as u64;
        self.seen += 1;
        self.failed |= error;
        for (addr, &byte) in (base..).zip(data) {
            if (request.addr..end).contains(&addr) && !error && byte != byte_at(addr) {
                return Err(format!(
                    "{request:?}: {byte:#x} at {addr:#x}, expected {:#x}",
                    byte_at(addr)
                ));
            }
        }
        if last != (base + lanes >= end) {
            return Err(format!("{request:?}: last is {last} at beat {}", self.seen));
        }
        if last {
            if self.failed == request.mapped {
                return Err(format!("{request:?}: error is {}", self.failed));
            }
            self.expected.pop_front();
            (self.seen, self.failed) = (0, false);
        }
        Ok(())
    }
}

impl Agent for Beats {
    fn drive(&mut self, _: &mut Dut, _: &mut Rng) {}

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        if !dut.is_set(self.valid) {
            return Ok(());
        }
        let mut data = vec![0; self.lanes / 4];
        dut.read(self.data, &mut data);
        self.count += 1;
        self.cycles = Some((self.cycles.map_or(cycle, |(first, _)| first), cycle));
        let (last, error) = (dut.is_set(self.last), dut.is_set(self.error));
        self.beat(&bytes(&data), last, error)
            .map_err(|what| format!("`{}`: {what}", self.name))
    }

    fn pending(&self) -> Option<String> {
        let left = self.expected.len();
        (left > 0).then(|| format!("`{}` waits for {left} answers", self.name))
    }

    fn reset(&mut self, _: &mut Dut) {}
}

struct Setup {
    bench: Bench,
    memory: AxiPort,
    sources: Vec<StreamSource>,
    beats: Vec<Beats>,
    lanes: usize,
}

impl Setup {
    fn new<const W: usize, const K: usize>(
        memory: Rc<Ranges>,
        config: &Config,
        pauses: Pauses,
    ) -> Self {
        let mut bench = Bench::of(DmaRead::<W, K, 7>::default).unwrap();
        let stall = bench.dut().input("stall").unwrap();
        bench.dut_mut().set(stall, 0);
        let dut = bench.dut();
        let source = |i| StreamSource::new(dut, &format!("request_{i}"), pauses).unwrap();
        let mut setup = Self {
            memory: AxiPort::new(dut, memory, K, config),
            sources: (0..CLIENTS).map(source).collect(),
            beats: (0..CLIENTS).map(|i| Beats::new(dut, i, K)).collect(),
            bench,
            lanes: K,
        };
        setup.with(|bench, agents| bench.reset(agents));
        setup
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Bench, &mut [&mut dyn Agent]) -> R) -> R {
        let mut agents: Vec<&mut dyn Agent> = vec![&mut self.memory];
        agents.extend(self.sources.iter_mut().map(|s| s as &mut dyn Agent));
        agents.extend(self.beats.iter_mut().map(|b| b as &mut dyn Agent));
        act(&mut self.bench, &mut agents)
    }

    fn ask(&mut self, client: usize, addr: u64, len: usize) {
        let mapped = addr >= BASE && addr + len as u64 <= BASE + SIZE as u64;
        let source = &mut self.sources[client];
        source.push(source.item().with("addr", addr).with("len", len as u64));
        self.beats[client]
            .expected
            .push_back(Request { addr, len, mapped });
    }

    fn finish(&mut self, limit: u64) {
        self.with(|bench, agents| bench.finish(agents, limit))
            .unwrap();
    }

    fn beats_of(&self, addr: u64, len: usize) -> u64 {
        let lanes = self.lanes as u64;
        (addr + len as u64 - 1) / lanes - addr / lanes + 1
    }
}

fn random<const W: usize, const K: usize>(config: &Config, requests: usize, longest: usize) {
    let mut setup = Setup::new::<W, K>(filled(BASE, SIZE), config, uneven());
    for n in 0..requests {
        let rng = setup.bench.rng();
        let len = match rng.u8(..4) {
            0 => rng.usize(1..=longest),
            1 => rng.usize(1..=64),
            2 => longest.min(4096),
            _ => rng.usize(1..=2 * K),
        };
        let addr = BASE + rng.u64(..(SIZE - len) as u64);
        setup.ask(n % CLIENTS, addr, len);
    }
    setup.finish(400_000);
}

#[test]
fn any_range_from_fast_memory() {
    random::<512, 64>(&Config::default(), 600, 8191);
    random::<64, 8>(&Config::default(), 300, 8191);
}

#[test]
fn any_range_from_a_loaded_host() {
    random::<512, 64>(&Config::host(11), 600, 8191);
    random::<64, 8>(&Config::host(12), 300, 8191);
}

#[test]
fn any_range_from_hostile_memory() {
    random::<512, 64>(&Config::hostile(13), 400, 8191);
    random::<64, 8>(&Config::hostile(14), 200, 4096);
}

#[test]
fn ranges_end_where_they_should_around_4_kib() {
    let mut setup = Setup::new::<512, 64>(filled(BASE, SIZE), &Config::default(), Pauses::NONE);
    for (n, edge) in [0x1000, 0x2000, 0x5000].into_iter().enumerate() {
        for (before, len) in [
            (0, 1),
            (0, 4096),
            (1, 1),
            (1, 2),
            (64, 64),
            (64, 65),
            (65, 4096),
            (4096, 8191),
        ] {
            setup.ask(n, BASE + edge - before, len);
        }
    }
    setup.finish(5_000);
}

#[test]
fn a_failed_read_marks_its_request_only() {
    let mut setup = Setup::new::<512, 64>(filled(BASE, SIZE), &Config::default(), Pauses::NONE);
    let error = setup.bench.dut().output("error").unwrap();
    setup.ask(2, BASE + 100, 300);
    setup.finish(200);
    assert!(!setup.bench.dut().is_set(error));
    setup.ask(2, BASE + SIZE as u64 - 0x800, 0x1000);
    setup.ask(2, BASE + 5, 64);
    setup.ask(4, 0x4000, 64);
    setup.ask(5, BASE, 4);
    let mut pulses = 0;
    for _ in 0..200 {
        setup.with(|bench, agents| bench.step(agents)).unwrap();
        pulses += u32::from(setup.bench.dut().is_set(error));
    }
    setup.finish(10);
    assert_eq!(
        pulses, 33,
        "0x800 bytes of client 2 and one beat of client 4"
    );
}

#[test]
fn full_rate_and_latency() {
    let memory = filled(BASE, SIZE);
    let mut setup = Setup::new::<512, 64>(memory.clone(), &Config::default(), Pauses::NONE);
    // The first look at the levels of its clients takes the block one cycle.
    setup.with(|bench, agents| bench.run(agents, 2)).unwrap();
    let mut beats = 0;
    for n in 0..64 {
        let (addr, len) = (BASE + 77 * n, 4096);
        setup.ask(n as usize % 4, addr, len);
        beats += setup.beats_of(addr, len);
    }
    let start = setup.bench.cycle();
    setup.finish(5_000);
    let (first, _) = setup.beats[0].cycles.unwrap();
    let last = setup
        .beats
        .iter()
        .filter_map(|b| b.cycles)
        .map(|(_, last)| last)
        .max()
        .unwrap();
    assert_eq!(last - first + 1, beats, "a beat a cycle");
    // Two cycles to AR, one in the memory, one from R.
    assert_eq!(first - start, 4);

    // Requests of one beat: an AR a cycle.
    let mut setup = Setup::new::<512, 64>(memory, &Config::default(), Pauses::NONE);
    for n in 0..600 {
        setup.ask(n % CLIENTS, BASE + 64 * n as u64, 64);
    }
    setup.finish(1_000);
    let first = setup
        .beats
        .iter()
        .filter_map(|b| b.cycles)
        .map(|(first, _)| first)
        .min()
        .unwrap();
    let last = setup
        .beats
        .iter()
        .filter_map(|b| b.cycles)
        .map(|(_, last)| last)
        .max()
        .unwrap();
    assert_eq!(last - first + 1, 600, "a request a cycle");
}

#[test]
fn a_busy_client_does_not_hold_up_another() {
    let config = Config {
        read_latency: Delay::fixed(300),
        max_reads: 1000,
        ..Config::default()
    };
    let mut setup = Setup::new::<512, 64>(filled(BASE, SIZE), &config, Pauses::NONE);
    for n in 0..300 {
        setup.ask(2, BASE + 64 * n, 64);
    }
    setup.with(|bench, agents| bench.run(agents, 200)).unwrap();
    let under_way = setup.memory.memory.stats().peak_reads;
    assert!(
        (100..=128).contains(&under_way),
        "{under_way} reads of one client under way"
    );
    setup.ask(1, BASE, 64);
    let asked = setup.bench.cycle();
    setup.finish(2_000);
    let (first, _) = setup.beats[1].cycles.unwrap();
    // The memory of this test answers in the order of the addresses: 300 cycles, and what is ahead.
    assert!(first - asked <= 310, "{} cycles", first - asked);
}
