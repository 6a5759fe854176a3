//! The AXI4 memory against a master written here: data, order, timing, faults and the checker.
//! `$FERROCE_SEED` seeds the random traffic.

mod master;
mod trouble;

use std::collections::VecDeque;
use std::rc::Rc;

use fastrand::Rng;
use ferroce_sim::axi::{Config, DECERR, OKAY};
use ferroce_sim::bench;
use ferroce_sim::memory::{HostMemory, Ranges};
use ferroce_sim::random::{Delay, Pauses};
use ferroce_sim::rate::Rate;

use master::Master;

const BASE: u64 = 0x7f00_0000_0000;
/// Bytes of memory of each ID.
const REGION: u64 = 0x4000;
const IDS: u8 = 16;

fn host() -> Rc<Ranges> {
    let host = Ranges::new();
    host.map(BASE, vec![0; (REGION * u64::from(IDS)) as usize])
        .unwrap();
    Rc::new(host)
}

fn contents(host: &Ranges) -> Vec<u8> {
    let mut bytes = vec![0; (REGION * u64::from(IDS)) as usize];
    host.read(BASE, &mut bytes).unwrap();
    bytes
}

/// A random piece of the region of `id` that crosses no 4 KiB boundary.
fn piece(rng: &mut Rng, id: u8, lanes: usize) -> (u64, usize) {
    let addr = BASE + u64::from(id) * REGION + rng.u64(..REGION);
    let room = (4096 - addr % 4096) as usize;
    let most = room.min(200 * lanes);
    (addr, rng.usize(1..=most))
}

#[test]
fn random_traffic_reads_what_was_written() {
    for (n, lanes) in [64, 64, 8, 8, 4].into_iter().enumerate() {
        let seed = bench::seed() + n as u64;
        for config in [Config::hostile(seed), Config::host(seed), Config::default()] {
            let memory = host();
            let mut shadow = contents(&memory);
            let mut master = Master::new(memory.clone(), lanes, &config);
            master.reluctance = 80;
            let mut rng = Rng::with_seed(seed);
            for _ in 0..400 {
                let id = rng.u8(..IDS);
                let (addr, len) = piece(&mut rng, id, lanes);
                let data: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
                let holes = rng.usize(2..40);
                let strobe = |at: usize| at % holes != 1;
                master.write(id, addr, &data, strobe);
                for at in (0..len).filter(|at| strobe(*at)) {
                    shadow[(addr - BASE) as usize + at] = data[at];
                }
            }
            master.finish();
            assert!(
                contents(&memory) == shadow,
                "lanes {lanes} seed {seed}: memory differs"
            );
            assert!(master.responses.iter().all(|r| r.2 == OKAY));

            let mut expected: Vec<VecDeque<(Vec<u8>, usize, bool)>> =
                vec![VecDeque::new(); usize::from(IDS)];
            for _ in 0..400 {
                let id = rng.u8(..IDS);
                let (addr, len) = piece(&mut rng, id, lanes);
                let skip = addr as usize % lanes;
                let beats = (skip + len).div_ceil(lanes);
                master.read(id, addr, beats);
                for beat in 0..beats {
                    let at = (addr - BASE) as usize - skip + beat * lanes;
                    let mask = if beat == 0 { skip } else { 0 };
                    let bytes = shadow[at..at + lanes].to_vec();
                    expected[usize::from(id)].push_back((bytes, mask, beat + 1 == beats));
                }
            }
            master.finish();
            for (_, id, resp, last, data) in &master.beats {
                let (bytes, mask, expected_last) = expected[usize::from(*id)].pop_front().unwrap();
                assert_eq!(*resp, OKAY);
                assert_eq!(*last, expected_last, "lanes {lanes} seed {seed}");
                assert!(
                    data[mask..] == bytes[mask..],
                    "lanes {lanes} seed {seed}: beat differs"
                );
            }
            assert!(expected.iter().all(VecDeque::is_empty));
            assert_eq!(master.violations(), [""; 0]);
            assert!(memory.faults().is_empty());
        }
    }
}

#[test]
fn answers_of_different_ids_overtake_and_interleave_only_when_allowed() {
    let order = |reorder| {
        let config = Config {
            reorder,
            read_latency: Delay::between(5, 60),
            write_latency: Delay::between(5, 60),
            ..Config::default()
        };
        let mut master = Master::new(host(), 64, &config);
        for n in 0..64u64 {
            let id = (n % 8) as u8;
            master.read(id, BASE + n * 256, 4);
            master.write(id, BASE + n * 256, &[1; 64], |_| true);
        }
        master.finish();
        let ids: Vec<u8> = master.beats.iter().map(|b| b.1).collect();
        let switches = ids.windows(2).filter(|w| w[0] != w[1]).count();
        let writes: Vec<u8> = master.responses.iter().map(|r| r.1).collect();
        (ids, switches, writes)
    };
    let (ids, switches, writes) = order(false);
    assert_eq!(switches, 63, "one burst after the other");
    assert!(ids.chunks(4).map(|c| c[0]).eq((0..64).map(|n| n % 8)));
    assert!(writes.iter().copied().eq((0..64).map(|n| n % 8)));
    let (ids, switches, writes) = order(true);
    assert!(switches > 63, "{switches}: no burst was interleaved");
    assert!(!ids.iter().copied().eq((0..64).flat_map(|n| [n % 8; 4])));
    assert!(!writes.iter().copied().eq((0..64).map(|n| n % 8)));
}

#[test]
fn latency_and_rate_are_as_set() {
    let config = Config {
        read_latency: Delay::fixed(20),
        write_latency: Delay::fixed(10),
        ..Config::default()
    };
    let mut master = Master::new(host(), 64, &config);
    master.step();
    let start = master.now;
    master.read(0, BASE, 1);
    master.write(0, BASE, &[7; 64], |_| true);
    master.finish();
    assert_eq!(master.beats[0].0, start + 21);
    assert_eq!(master.responses[0].0, start + 11);

    for (rate, cycles) in [
        (Rate::ONE, 640),
        (Rate::new(3, 4), 853),
        (Rate::new(1, 5), 3200),
    ] {
        let config = Config {
            read_rate: rate,
            write_rate: rate,
            ..config.clone()
        };
        let mut master = Master::new(host(), 64, &config);
        for n in 0..10 {
            master.read(0, BASE + n * 4096, 64);
            master.write(1, BASE + n * 4096, &[1; 4096], |_| true);
        }
        master.finish();
        let took = master.beats.last().unwrap().0 - master.beats[0].0 + 1;
        assert!(
            took.abs_diff(cycles) <= 5,
            "reads took {took} cycles, expected {cycles}"
        );
        let last = master.responses.last().unwrap().0;
        assert!(
            last.abs_diff(cycles + 12) <= 5,
            "writes took {last}, expected {cycles}"
        );
    }
}

#[test]
fn a_write_shows_between_its_data_and_its_response() {
    let config = Config {
        reorder: true,
        write_latency: Delay::fixed(100),
        ..Config::default()
    };
    let memory = host();
    let mut master = Master::new(memory.clone(), 64, &config);
    let (mut seen, mut at_once) = (Vec::new(), 0);
    for n in 0..50u64 {
        let addr = BASE + n * 64;
        master.write(0, addr, &[9; 64], |_| true);
        let start = master.now;
        let mut shown = None;
        while !master.idle() {
            master.step();
            let mut byte = [0];
            memory.read(addr, &mut byte).unwrap();
            if byte == [9] && shown.is_none() {
                shown = Some(master.now - start);
            }
        }
        let took = shown.expect("visible before the response");
        at_once += u32::from(took < 5);
        seen.push(took);
    }
    assert!(seen.iter().all(|took| *took <= 103), "{seen:?}");
    assert!(
        seen.iter().any(|took| *took > 60) && at_once < 10,
        "{seen:?}"
    );
}

#[test]
fn accesses_outside_of_memory_answer_decerr_and_are_faults() {
    let memory = Ranges::new();
    memory.map(BASE + 10, vec![5; 100]).unwrap();
    let memory = Rc::new(memory);
    let mut master = Master::new(memory.clone(), 64, &Config::default());
    // Both beats hold mapped bytes; the third does not.
    master.read(0, BASE + 10, 2);
    master.finish();
    assert!(master.beats.iter().all(|b| b.2 == OKAY));
    assert_eq!(master.beats[0].4[10..], [5; 54]);
    assert_eq!(master.beats[1].4[..46], [5; 46]);
    assert!(memory.faults().is_empty());
    master.beats.clear();
    master.read(1, BASE + 10, 3);
    master.finish();
    assert!(master.beats.iter().all(|b| b.2 == DECERR) && master.beats.len() == 3);
    assert_eq!(memory.faults().len(), 1);
    assert_eq!(memory.faults()[0].addr, BASE + 128);

    master.write(2, BASE + 109, &[1, 2], |_| true);
    master.write(3, BASE + 109, &[1, 2], |at| at == 0);
    master.write(4, u64::MAX - 3, &[1; 4], |_| true);
    master.finish();
    let mut responses: Vec<_> = master.responses.iter().map(|r| (r.1, r.2)).collect();
    responses.sort_unstable();
    assert_eq!(responses, [(2, DECERR), (3, OKAY), (4, DECERR)]);
    assert_eq!(memory.faults().len(), 3);
    assert_eq!(master.memory.stats().faults, 3);
    assert_eq!(master.violations(), [""; 0]);
}

#[test]
fn broken_rules_are_found() {
    type Break = fn(&mut Master);
    let cases: &[(&str, Break)] = &[
        ("cross a 4096-byte boundary", |m| m.read(0, BASE + 4032, 2)),
        ("cross a 4096-byte boundary", |m| {
            m.write(0, BASE + 4095, &[0; 2], |_| true)
        }),
        ("burst type 2", |m| {
            m.read(0, BASE, 1);
            m.ar[0].burst = 2;
        }),
        ("beats of 2^5 bytes", |m| {
            m.write(0, BASE, &[0; 64], |_| true);
            m.aw[0].size = 5;
        }),
        ("WLAST is 1 at beat 1 of 2", |m| {
            m.write(0, BASE, &[0; 128], |_| true);
            m.w[0].last = true;
        }),
        ("WLAST is 0 at beat 2 of 2", |m| {
            m.write(0, BASE, &[0; 128], |_| true);
            m.w[1].last = false;
        }),
        ("lanes outside of the burst", |m| {
            m.write(0, BASE + 3, &[0; 4], |_| true);
            m.w[0].strb |= 1 << 2;
        }),
        ("m_axi AR: valid was withdrawn", |m| {
            m.read(0, BASE, 1);
            m.step();
            m.from.ar.valid = false;
            m.step();
        }),
        ("m_axi AW: the payload changed", |m| {
            m.write(0, BASE, &[0; 64], |_| true);
            m.step();
            m.from.aw.addr += 64;
        }),
        ("m_axi W: the payload changed", |m| {
            m.write(0, BASE, &[0; 64], |_| true);
            m.step();
            m.from.w.data[5] += 1;
        }),
    ];
    for (expected, act) in cases {
        let memory = Ranges::new();
        memory.map(BASE, vec![0; 8192]).unwrap();
        let mut master = Master::new(Rc::new(memory), 64, &Config::default());
        act(&mut master);
        master.finish();
        let found = master.violations();
        assert!(
            found.len() == 1 && found[0].contains(expected),
            "expected `{expected}`, found {found:?}"
        );
    }
}

#[test]
fn data_may_run_ahead_of_its_address() {
    let config = Config {
        aw: Pauses::new(0.9, 30),
        ..Config::hostile(7)
    };
    let memory = host();
    let mut master = Master::new(memory.clone(), 64, &config);
    for n in 0..100u64 {
        master.write((n % 8) as u8, BASE + n * 256, &[n as u8 + 1; 200], |_| true);
    }
    master.finish();
    let bytes = contents(&memory);
    for n in 0..100 {
        assert_eq!(bytes[n * 256..n * 256 + 200], [n as u8 + 1; 200]);
    }
    assert_eq!(master.violations(), [""; 0]);
}

#[test]
fn a_reset_forgets_what_is_under_way() {
    let config = Config {
        read_latency: Delay::fixed(1000),
        write_latency: Delay::fixed(1000),
        ..Config::default()
    };
    let mut master = Master::new(host(), 64, &config);
    master.read(0, BASE, 4);
    master.write(0, BASE, &[1; 64], |_| true);
    (0..20).for_each(|_| master.step());
    assert!(!master.memory.idle());
    master.memory.reset();
    assert!(master.memory.idle());
    (0..3000).for_each(|_| master.step());
    assert!(master.beats.is_empty() && master.responses.is_empty());
}
