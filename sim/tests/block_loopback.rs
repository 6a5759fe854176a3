//! The loopback as Verilog: every frame whole at the right output, in order, without idle cycles.

use ferroce_hdl::eth::loopback::Loopback;
use ferroce_sim::bench::{Agent, AxisSink, AxisSource, Bench, Frame};
use ferroce_sim::random::Pauses;

const MAC: [u8; 6] = [0x02, 0x11, 0x22, 0x33, 0x44, 0x55];

/// Sends random frames, about half of them to the own address; returns the beats and the cycles they took.
fn frames<const W: usize, const K: usize>(count: usize, pauses: Pauses) -> (u64, u64) {
    let mut bench = Bench::of(Loopback::<W, K>::default).unwrap();
    let mac = bench.dut().input("mac").unwrap();
    let mut bytes = [0; 8];
    bytes[..6].copy_from_slice(&MAC);
    bench.dut_mut().set(mac, u64::from_le_bytes(bytes));
    let mut s = AxisSource::new(bench.dut(), "s", pauses).unwrap();
    let mut m = AxisSink::new(bench.dut(), "m", pauses).unwrap();
    let mut own = AxisSink::new(bench.dut(), "own", pauses).unwrap();
    bench.reset(&mut [&mut s, &mut m, &mut own]);
    let mut beats = 0;
    for number in 0..count {
        let rng = bench.rng();
        let length = rng.usize(60..=300);
        let mut bytes: Vec<u8> = (0..length).map(|_| rng.u8(..)).collect();
        bytes[..6].copy_from_slice(&MAC);
        let returns = rng.bool();
        if !returns {
            // one bit makes another address
            let bit = number % 48;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        // an address elsewhere in the frame says nothing
        bytes[6..12].copy_from_slice(&MAC);
        let at = 12 + rng.usize(..30);
        bytes[at..at + 6].copy_from_slice(&MAC);
        let mut frame = Frame::new(bytes);
        if rng.u8(..8) == 0 {
            frame = frame.bad();
        }
        beats += length.div_ceil(K) as u64;
        s.push(&frame);
        if returns {
            own.expect(frame);
        } else {
            m.expect(frame);
        }
    }
    let start = bench.cycle();
    let mut agents: [&mut dyn Agent; 3] = [&mut s, &mut m, &mut own];
    bench
        .finish(&mut agents, 400_000)
        .unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(m.count() + own.count(), count as u64);
    assert!(m.count() > 0 && own.count() > 0);
    (beats, bench.cycle() - start)
}

#[test]
fn frames_go_where_they_are_addressed_to() {
    for pauses in [Pauses::new(0.3, 8), Pauses::new(0.02, 100)] {
        frames::<512, 64>(1000, pauses);
        frames::<64, 8>(300, pauses);
    }
}

#[test]
fn a_beat_a_cycle() {
    let (beats, cycles) = frames::<512, 64>(1000, Pauses::NONE);
    assert_eq!(cycles, beats + 1);
}
