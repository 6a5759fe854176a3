//! `dma_write`: four clients, counts of writes done, errors, rates.

use std::rc::Rc;

use ferroce_hdl::bus::axi::burst_bytes;
use ferroce_hdl::memory::dma_write::{CLIENTS, DmaWrite};
use ferroce_sim::axi::Config;
use ferroce_sim::bench::{Agent, Bench, StreamSource};
use ferroce_sim::memory::Ranges;
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::Output;

use super::common::{AxiPort, byte_at, dump, fill, uneven, words};

/// Each client writes its own region once, burst after burst.
const BASE: u64 = 0x7fff_1234_0000;
const REGION: u64 = 1 << 20;

struct Setup {
    bench: Bench,
    memory: AxiPort,
    ranges: Rc<Ranges>,
    commands: Vec<StreamSource>,
    beats: Vec<StreamSource>,
    done: Vec<Output>,
    issued: Vec<Output>,
    /// Bursts asked for: first byte, bytes.
    asked: Vec<Vec<(u64, usize)>>,
    lanes: usize,
}

impl Setup {
    fn new<const W: usize, const K: usize>(config: &Config, pauses: Pauses) -> Self {
        let ranges = Rc::new(Ranges::new());
        for client in 0..CLIENTS as u64 {
            ranges
                .map(BASE + client * REGION, vec![0xee; REGION as usize])
                .unwrap();
        }
        let mut bench = Bench::of(DmaWrite::<W, K>::default).unwrap();
        let stall = bench.dut().input("stall").unwrap();
        bench.dut_mut().set(stall, 0);
        let dut = bench.dut();
        let beats = |i| {
            let payload = ["data", "strb", "last"];
            StreamSource::with_ports(
                dut,
                &format!("beats_{i}"),
                &payload,
                ["valid", "ready"],
                pauses,
            )
            .unwrap()
        };
        let output = |name: &str| {
            (0..CLIENTS)
                .map(|i| dut.output(&format!("{name}_{i}")).unwrap())
                .collect()
        };
        let mut setup = Self {
            memory: AxiPort::new(dut, ranges.clone(), K, config),
            commands: (0..CLIENTS)
                .map(|i| StreamSource::new(dut, &format!("command_{i}"), pauses).unwrap())
                .collect(),
            beats: (0..CLIENTS).map(beats).collect(),
            done: output("done"),
            issued: output("issued"),
            asked: vec![vec![]; CLIENTS],
            ranges,
            bench,
            lanes: K,
        };
        setup.with(|bench, agents| bench.reset(agents));
        setup
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Bench, &mut [&mut dyn Agent]) -> R) -> R {
        let mut agents: Vec<&mut dyn Agent> = vec![&mut self.memory];
        agents.extend(self.commands.iter_mut().map(|s| s as &mut dyn Agent));
        agents.extend(self.beats.iter_mut().map(|b| b as &mut dyn Agent));
        act(&mut self.bench, &mut agents)
    }

    /// Writes [`byte_at`] to `len` bytes.
    fn write(&mut self, client: usize, addr: u64, len: usize) {
        let lanes = self.lanes as u64;
        let (first, end) = (addr & !(lanes - 1), addr + len as u64);
        let beats = (end - first).div_ceil(lanes);
        let command = &mut self.commands[client];
        command.push(command.item().with("addr", addr).with("len", beats - 1));
        for beat in 0..beats {
            let at = first + beat * lanes;
            let inside = |i: &u64| (addr..end).contains(&(at + i));
            let strb = (0..lanes).filter(inside).fold(0, |strb, i| strb | 1 << i);
            // Bytes that are not to be written are wrong.
            let data: Vec<_> = (0..lanes)
                .map(|i| byte_at(at + i) ^ if inside(&i) { 0 } else { 0x5a })
                .collect();
            let source = &mut self.beats[client];
            let mut item = source
                .item()
                .with("strb", strb)
                .with("last", u64::from(beat + 1 == beats));
            item.set_words("data", &words(&data));
            source.push(item);
        }
        self.asked[client].push((addr, len));
    }

    /// Runs to the end and looks at memory whenever a write is reported done.
    fn finish(&mut self, limit: u64) {
        for _ in 0..limit {
            self.with(|bench, agents| bench.step(agents)).unwrap();
            for client in 0..CLIENTS {
                let dut = self.bench.dut();
                let (done, issued) = (dut.get(self.done[client]), dut.get(self.issued[client]));
                assert!(
                    done <= issued,
                    "client {client}: {done} of {issued} bursts done"
                );
                if done > 0 {
                    self.check(client, done as usize - 1);
                }
            }
            let left = |this: &Self, i: usize| {
                this.bench.dut().get(this.done[i]) as usize != this.asked[i].len()
            };
            if !(0..CLIENTS).any(|i| left(self, i)) {
                break;
            }
        }
        self.with(|bench, agents| bench.finish(agents, 10)).unwrap();
        for client in 0..CLIENTS {
            let bursts = self.asked[client].len();
            assert_eq!(self.bench.dut().get(self.issued[client]) as usize, bursts);
            assert_eq!(self.bench.dut().get(self.done[client]) as usize, bursts);
            (0..bursts).for_each(|n| self.check(client, n));
        }
    }

    /// Memory holds a burst and nothing beside it was touched.
    fn check(&self, client: usize, burst: usize) {
        let (addr, len) = self.asked[client][burst];
        let found = dump(&self.ranges, addr - 1, len + 2);
        let right = (addr..)
            .zip(&found[1..=len])
            .all(|(addr, &byte)| byte == byte_at(addr));
        assert!(
            right,
            "client {client}: {len} bytes at {addr:#x} are not there"
        );
        assert_eq!(
            (found[0], found[len + 1]),
            (0xee, 0xee),
            "beside {len} bytes at {addr:#x}"
        );
    }
}

/// Bursts with a gap of a byte at least between them.
fn random<const W: usize, const K: usize>(config: &Config, bursts: usize) {
    let mut setup = Setup::new::<W, K>(config, uneven());
    let mut at = [1; CLIENTS];
    for n in 0..bursts {
        let client = n % CLIENTS;
        let rng = setup.bench.rng();
        let mut addr = BASE + client as u64 * REGION + at[client] + rng.u64(1..200);
        let room = burst_bytes(K) - addr as usize % burst_bytes(K);
        let len = match rng.u8(..4) {
            0 => room,
            1 => rng.usize(1..=room),
            2 => rng.usize(1..=64).min(room),
            _ => {
                addr = addr.next_multiple_of(burst_bytes(K) as u64);
                burst_bytes(K)
            }
        };
        at[client] = addr + len as u64 + 1 - BASE - client as u64 * REGION;
        setup.write(client, addr, len);
    }
    setup.finish(200_000);
}

#[test]
fn any_burst_to_fast_memory() {
    random::<512, 64>(&Config::default(), 300);
    random::<64, 8>(&Config::default(), 200);
}

#[test]
fn any_burst_to_a_loaded_host() {
    random::<512, 64>(&Config::host(21), 300);
    random::<64, 8>(&Config::host(22), 200);
}

#[test]
fn any_burst_to_hostile_memory() {
    random::<512, 64>(&Config::hostile(23), 300);
    random::<64, 8>(&Config::hostile(24), 200);
}

#[test]
fn full_rate_and_latency() {
    for (beats, bursts) in [(1u64, 200u64), (3, 60), (64, 20)] {
        let mut setup = Setup::new::<512, 64>(&Config::default(), Pauses::NONE);
        for n in 0..bursts {
            let client = n % CLIENTS as u64;
            let addr = BASE + client * REGION + 64 + n / CLIENTS as u64 * 8192;
            setup.write(
                client as usize,
                addr.next_multiple_of(4096),
                64 * beats as usize,
            );
        }
        let wvalid = setup.bench.dut().output("m_axi_wvalid").unwrap();
        let awvalid = setup.bench.dut().output("m_axi_awvalid").unwrap();
        let start = setup.bench.cycle();
        let (mut first_aw, mut first_w, mut last_w, mut total) = (None, None, 0, 0);
        while total < beats * bursts {
            setup.with(|bench, agents| bench.step(agents)).unwrap();
            // The step shows the coming cycle.
            let now = setup.bench.cycle();
            if setup.bench.dut().is_set(awvalid) {
                first_aw.get_or_insert(now);
            }
            if setup.bench.dut().is_set(wvalid) {
                first_w.get_or_insert(now);
                (last_w, total) = (now, total + 1);
            }
        }
        assert_eq!(first_aw.unwrap() - start, 1);
        assert_eq!(first_w.unwrap() - start, 2);
        assert_eq!(
            last_w - first_w.unwrap() + 1,
            total,
            "a beat a cycle in bursts of {beats}"
        );
        setup.finish(100);
    }
}

#[test]
fn a_failed_write_is_reported_and_counts_as_done() {
    let mut setup = Setup::new::<512, 64>(&Config::default(), Pauses::NONE);
    fill(&setup.ranges, 0x1_0000_0000, 4096);
    let errors = ["error", "ring_error"].map(|name| setup.bench.dut().output(name).unwrap());
    setup.write(1, BASE + REGION + 1, 7);
    setup.finish(100);
    let pulses = |setup: &mut Setup| {
        let mut pulses = [0; 2];
        for _ in 0..50 {
            setup.with(|bench, agents| bench.step(agents)).unwrap();
            let is_set = errors.map(|error| setup.bench.dut().is_set(error));
            pulses = [0, 1].map(|n| pulses[n] + u32::from(is_set[n]));
        }
        pulses
    };
    assert_eq!(pulses(&mut setup), [0, 0]);
    setup.write(1, 0x4000, 64);
    setup.write(1, BASE + REGION + 100, 7);
    assert_eq!(pulses(&mut setup), [1, 1]);
    // Payload, results of atomics and frames of the host are no entries of rings.
    setup.write(0, 0x4000, 64);
    assert_eq!(pulses(&mut setup), [1, 0]);
    assert_eq!(setup.bench.dut().get(setup.done[1]), 3);
    setup.check(1, 2);
}

/// `refused` is of the latest response of each client.
#[test]
fn a_refused_write_is_reported_with_its_count() {
    let mut setup = Setup::new::<512, 64>(&Config::default(), Pauses::NONE);
    fill(&setup.ranges, 0x1_0000_0000, 4096);
    let refused = [0, 1].map(|n| setup.bench.dut().output(&format!("refused_{n}")).unwrap());
    for (n, addr) in [BASE + 64, 0x4000, BASE + 128, 0x8000]
        .into_iter()
        .enumerate()
    {
        setup.write(0, addr, 64);
        setup.write(1, 0x4000, 64);
        while setup.bench.dut().get(setup.done[0]) == n as u64 {
            setup.with(|bench, agents| bench.step(agents)).unwrap();
        }
        let is_refused = setup.bench.dut().is_set(refused[0]);
        assert_eq!(is_refused, addr < BASE, "write {n}");
        setup.with(|bench, agents| bench.run(agents, 20)).unwrap();
        let of_each = refused.map(|port| setup.bench.dut().is_set(port));
        assert_eq!(of_each, [is_refused, true], "client 1 is another");
    }
}

/// `refused` of a client changes with its own responses alone.
fn refusals<const W: usize, const K: usize>() {
    let mut setup = Setup::new::<W, K>(&Config::default(), Pauses::NONE);
    let dut = setup.bench.dut();
    let ports = [0, 1, 2, 3, 4, 5].map(|n| dut.output(&format!("refused_{n}")).unwrap());
    let mut expected = [false; CLIENTS];
    for client in 0..CLIENTS {
        let good = BASE + client as u64 * REGION + 64;
        for addr in [0x4000, good, 0x4000] {
            setup.write(client, addr, 64);
            let due = setup.asked[client].len() as u64;
            while setup.bench.dut().get(setup.done[client]) < due {
                setup.with(|bench, agents| bench.step(agents)).unwrap();
            }
            expected[client] = addr < BASE;
            let found = ports.map(|port| setup.bench.dut().is_set(port));
            assert_eq!(found, expected, "client {client}");
        }
    }
}

#[test]
fn a_refusal_is_that_of_one_client() {
    refusals::<512, 64>();
    refusals::<64, 8>();
}

#[test]
fn reset_leaves_nothing_under_way() {
    let mut setup = Setup::new::<512, 64>(&Config::hostile(25), Pauses::NONE);
    for n in 0..20 {
        setup.write(0, BASE + 64 + 8192 * n, 4000);
    }
    setup.with(|bench, agents| bench.run(agents, 200)).unwrap();
    setup.with(|bench, agents| bench.reset(agents));
    let dut = setup.bench.dut();
    for name in [
        "m_axi_awvalid",
        "m_axi_wvalid",
        "issued_0",
        "done_0",
        "error",
    ] {
        assert_eq!(dut.get(dut.output(name).unwrap()), 0, "{name}");
    }
}
