//! A Verilated card with the engine's ports, driven through [`Nic`]. `$FERROCE_SEED` seeds the worlds.

use std::rc::Rc;

use ferroce_sim::axi::DECERR;
use ferroce_sim::bench::{self, RESET_CYCLES};
use ferroce_sim::memory::{HostMemory, Ranges};
use ferroce_sim::nic::Nic;
use ferroce_sim::rtl::{Engine, Options, VerilatedPins, verilated};
use ferroce_sim::verilator::{self, Spec};

const BASE: u64 = 0x7f12_3456_0000;

fn engine(lanes: usize, options: &Options) -> (Engine<VerilatedPins>, Rc<Ranges>) {
    let source = include_str!("rtl/copier.v").replace("LANES = 64", &format!("LANES = {lanes}"));
    let spec = Spec::new("copier", source)
        .clock("clk")
        .ports(verilated::ports(lanes));
    let model = verilator::build(&spec, &verilator::Options::default()).unwrap();
    let pins = VerilatedPins::new(model.instance().unwrap()).unwrap();
    let memory = Rc::new(Ranges::new());
    memory
        .map(BASE, (0..16384).map(|i| (i * 7 + (i >> 8)) as u8).collect())
        .unwrap();
    (Engine::new(pins, memory.clone(), options), memory)
}

fn read32(nic: &mut dyn Nic, offset: u64) -> u32 {
    nic.start_read32(offset);
    for _ in 0..1000 {
        nic.step();
        if let Some(value) = nic.take_read32() {
            return value;
        }
    }
    panic!("no answer from {offset:#x} within 1000 cycles");
}

fn copy(nic: &mut dyn Nic, source: u64, target: u64, beats: u32) -> u16 {
    for (offset, value) in [(8, source), (16, target)] {
        nic.write32(offset, value as u32);
        nic.write32(offset + 4, (value >> 32) as u32);
    }
    nic.write32(0x18, beats - 1);
    for _ in 0..20_000 {
        nic.step();
        if let Some(vector) = nic.interrupt() {
            return vector;
        }
    }
    panic!("no interrupt within 20000 cycles");
}

fn worlds(lanes: usize) -> Vec<Options> {
    let seed = bench::seed() + lanes as u64;
    vec![
        Options::default(),
        Options::host(seed),
        Options::hostile(seed),
        Options::hostile(seed + 1),
    ]
}

#[test]
fn registers_keep_what_is_written_in_order() {
    for options in worlds(64) {
        let (mut nic, _) = engine(64, &options);
        for value in 0..20u32 {
            nic.write32(0, value);
            nic.write32(0, value.wrapping_mul(0x9e37_79b9));
            assert_eq!(read32(&mut nic, 0), value.wrapping_mul(0x9e37_79b9));
        }
        assert_eq!(read32(&mut nic, 0x3f_fffc), 0);
        assert_eq!(nic.failures(), [""; 0]);
    }
}

#[test]
fn memory_is_copied() {
    for lanes in [64, 8] {
        for options in worlds(lanes) {
            let (mut nic, memory) = engine(lanes, &options);
            let beats = 4096 / lanes.max(16) as u32;
            let bytes = beats as usize * lanes;
            assert_eq!(copy(&mut nic, BASE, BASE + 8192, beats), 5 << 2);
            let (mut from, mut to) = (vec![0; bytes], vec![0; bytes + 1]);
            memory.read(BASE, &mut from).unwrap();
            memory.read(BASE + 8192, &mut to).unwrap();
            assert!(
                to[..bytes] == from
                    && to[bytes] == ((8192 + bytes) * 7 + ((8192 + bytes) >> 8)) as u8
            );
            assert_eq!(read32(&mut nic, 0x1c), 1);
            assert_eq!(nic.failures(), [""; 0]);
            assert_eq!(nic.dma_stats().written_bytes, bytes as u64);
            assert!(nic.ports_are_idle());
        }
    }
}

#[test]
fn a_fault_is_answered_and_fails_the_run() {
    let (mut nic, memory) = engine(64, &Options::default());
    assert_eq!(
        copy(&mut nic, BASE, BASE + 16384, 1),
        5 << 2 | u16::from(DECERR)
    );
    assert_eq!(memory.faults().len(), 1);
    let failures = nic.failures();
    assert!(
        failures.len() == 1 && failures[0].contains("not mapped"),
        "{failures:?}"
    );
}

#[test]
fn frames_come_back_whole_and_in_order() {
    for lanes in [64, 8] {
        for options in worlds(lanes) {
            let (mut nic, _) = engine(lanes, &options);
            let lengths: Vec<usize> = (1..=130).chain([1500, 2000]).collect();
            let frame = |len: usize| (0..len).map(|i| (i ^ len) as u8).collect::<Vec<_>>();
            let mut back = Vec::new();
            for chunk in lengths.chunks(4) {
                chunk.iter().for_each(|len| nic.receive(&frame(*len)));
                nic.receive_bad(&[0xbd; 100]);
                for _ in 0..10_000 {
                    nic.step();
                    back.extend(nic.transmit());
                    if back.last().map(Vec::len) == chunk.last().copied() {
                        break;
                    }
                }
            }
            assert!(back.iter().map(Vec::len).eq(lengths.iter().copied()));
            assert!(back.iter().all(|f| *f == frame(f.len())));
            assert_eq!(nic.failures(), [""; 0]);
        }
    }
}

#[test]
fn a_port_that_is_not_emptied_waits() {
    let (mut nic, _) = engine(64, &Options::default());
    (0..20u8).for_each(|n| nic.receive(&[n; 640]));
    nic.run_until(1000);
    let back: Vec<u8> = (0..4)
        .map(|_| nic.transmit().expect("four frames")[0])
        .collect();
    assert_eq!(back, [0, 1, 2, 3]);
    assert_eq!(
        nic.transmit(),
        None,
        "the port took more than it has room for"
    );
    nic.run_until(2000);
    assert!((4..8).all(|n| nic.transmit().expect("four more")[0] == n));
}

#[test]
fn rules_broken_at_the_network_port_are_found() {
    for (breaks, expected) in [(1, "a pause inside a frame"), (2, "TREADY fell")] {
        let (mut nic, _) = engine(64, &Options::default());
        nic.write32(4, breaks);
        nic.receive(&[7; 200]);
        nic.run_until(200);
        let failures = nic.failures();
        assert!(
            failures.iter().any(|f| f.contains(expected)),
            "{expected}: {failures:?}"
        );
    }
}

#[test]
fn a_reset_starts_time_anew_and_forgets() {
    let (mut nic, _) = engine(64, &Options::host(1));
    nic.write32(0, 0xabcd);
    assert_eq!(read32(&mut nic, 0), 0xabcd);
    nic.receive(&[1; 100]);
    nic.write32(0x18, 0);
    (0..20).for_each(|_| nic.step());
    nic.reset();
    assert_eq!(nic.now(), 0);
    assert_eq!(read32(&mut nic, 0), 0);
    assert!(nic.now() > RESET_CYCLES);
    nic.run_until(2000);
    assert_eq!(nic.transmit(), None);
    assert_eq!(nic.interrupt(), None);
    assert_eq!(nic.failures(), [""; 0]);
}

#[test]
fn a_run_is_repeated_by_its_seed() {
    let run = |seed| {
        let (mut nic, _) = engine(64, &Options::hostile(seed));
        copy(&mut nic, BASE, BASE + 8192, 64);
        nic.receive(&[1; 999]);
        while nic.transmit().is_none() {
            nic.step();
        }
        (nic.now(), *nic.dma_stats())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}
