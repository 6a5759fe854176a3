//! The loopback and the return path as Verilog: every frame whole at the right output, in order, without idle cycles.

use fastrand::Rng;
use ferroce_hdl::eth::loopback::Loopback;
use ferroce_hdl::eth::return_path::ReturnPath;
use ferroce_sim::bench::{Agent, AxisSink, AxisSource, Bench, Frame};
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::{Dut, Input, Output};

const MAC: [u8; 6] = [0x02, 0x11, 0x22, 0x33, 0x44, 0x55];

/// Counts the frames that the block says to pass, and holds up those to the own address.
struct Ends {
    hold: Input,
    passes: Output,
    returns: Output,
    own: [Output; 2],
    /// One in 256 cycles in which `hold` changes.
    chance: u8,
    holds: bool,
    /// A frame is offered, and not taken to its end.
    inside: bool,
    passed: u64,
    returned: u64,
}

impl Ends {
    fn new(dut: &Dut, chance: u8) -> Self {
        let output = |name: &str| dut.output(name).unwrap();
        Self {
            hold: dut.input("hold").unwrap(),
            passes: output("passes"),
            returns: output("returned"),
            own: ["own_tvalid", "own_tlast"].map(output),
            chance,
            holds: false,
            inside: false,
            passed: 0,
            returned: 0,
        }
    }
}

impl Agent for Ends {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        self.holds ^= rng.u8(..) < self.chance;
        dut.set(self.hold, self.holds.into());
    }

    fn observe(&mut self, dut: &Dut, _: u64) -> Result<(), String> {
        let [valid, last] = self.own.map(|port| dut.is_set(port));
        if valid && self.holds && !self.inside {
            return Err("an own frame begins".into());
        }
        let returned = dut.is_set(self.returns);
        if valid {
            self.inside = !(last && returned);
        }
        self.passed += dut.get(self.passes);
        self.returned += u64::from(returned);
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        None
    }

    fn reset(&mut self, dut: &mut Dut) {
        dut.set(self.hold, 0);
    }
}

/// Sends random frames, about half of them to the own address; returns the beats and the cycles they took.
fn frames<const W: usize, const K: usize>(count: usize, pauses: Pauses) -> (u64, u64) {
    let mut bench = Bench::of(Loopback::<W, K>::default).unwrap();
    let mac = bench.dut().input("mac").unwrap();
    let mut bytes = [0; 8];
    bytes[..6].copy_from_slice(&MAC);
    bench.dut_mut().set(mac, u64::from_le_bytes(bytes));
    let mark = bench.dut().input("mark").unwrap();
    // a request
    bench.dut_mut().set(mark, 0x21);
    let m_mark = bench.dut().output("m_mark").unwrap();
    let mut s = AxisSource::new(bench.dut(), "s", pauses).unwrap();
    let mut m = AxisSink::new(bench.dut(), "m", pauses).unwrap();
    let mut own = AxisSink::new(bench.dut(), "own", pauses).unwrap();
    let mut ends = Ends::new(bench.dut(), if pauses == Pauses::NONE { 0 } else { 20 });
    bench.reset(&mut [&mut s, &mut m, &mut own, &mut ends]);
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
    let mut agents: [&mut dyn Agent; 4] = [&mut s, &mut m, &mut own, &mut ends];
    bench
        .finish(&mut agents, 400_000)
        .unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(m.count() + own.count(), count as u64);
    assert!(m.count() > 0 && own.count() > 0);
    assert_eq!(bench.dut().get(m_mark), 0x21);
    assert_eq!((ends.passed, ends.returned), (count as u64, own.count()));
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

/// Sends frames from the wire, with `pauses`, and own ones, one in `distance` cycles; they come out whole, each input's in
/// order, those of the wire all. Returns the own frames that came and those that were counted as dropped.
fn merged<const W: usize, const K: usize>(pauses: Pauses, distance: u64) -> (u64, u64) {
    const OWN: u64 = 100;
    let mut bench = Bench::of(ReturnPath::<W, K, 8>::default).unwrap();
    let overflows = bench.dut().output("overflows").unwrap();
    let overflow = bench.dut().input("overflow").unwrap();
    bench.dut_mut().set(overflow, 0);
    let mut wire = AxisSource::new(bench.dut(), "s_axis", pauses).unwrap();
    let mut own = AxisSource::new(bench.dut(), "own", Pauses::NONE).unwrap();
    let mut sink = AxisSink::new(bench.dut(), "m_axis", Pauses::NONE).unwrap();
    bench.reset(&mut [&mut wire, &mut own, &mut sink]);
    let mut sent: [Vec<Frame>; 2] = Default::default();
    let frame = |bench: &mut Bench, number: u64, from: u8| {
        let rng = bench.rng();
        let length = rng.usize(60..=100 * K);
        let mut bytes: Vec<u8> = (0..length).map(|_| rng.u8(..)).collect();
        bytes[0] = from;
        bytes[1..9].copy_from_slice(&number.to_be_bytes());
        let bad = rng.u8(..8) == 0;
        let frame = Frame::new(bytes);
        if bad { frame.bad() } else { frame }
    };
    for number in 0..400 {
        let frame = frame(&mut bench, number, 0);
        wire.push(&frame);
        sent[0].push(frame);
    }
    let mut dropped = 0;
    for cycle in 0..80_000 {
        if cycle % distance == 0 && cycle / distance < OWN {
            let frame = frame(&mut bench, cycle / distance, 1);
            own.push(&frame);
            sent[1].push(frame);
        }
        bench.step(&mut [&mut wire, &mut own, &mut sink]).unwrap();
        dropped += u64::from(bench.dut().get(overflows) != 0);
    }
    let mut left = sent.map(Vec::into_iter);
    let mut came = [0; 2];
    while let Some((_, frame)) = sink.pop() {
        let from = usize::from(frame.bytes[0]);
        let skipped = left[from].position(|sent| sent == frame);
        let is_next = skipped.is_some_and(|skipped| from == 1 || skipped == 0);
        assert!(is_next, "frame {:02x?} came", &frame.bytes[..9]);
        came[from] += 1;
    }
    assert_eq!(
        (came[0], came[1] + dropped),
        (400, OWN),
        "{dropped} dropped"
    );
    (came[1], dropped)
}

#[test]
fn own_frames_come_in_among_those_of_the_wire() {
    // In the second half the wire is idle.
    for pauses in [Pauses::new(0.3, 8), Pauses::new(0.02, 100)] {
        let (came, dropped) = merged::<512, 64>(pauses, 700);
        assert!(came > 40, "{came} came, {dropped} dropped");
        let (came, dropped) = merged::<64, 8>(pauses, 700);
        assert!(came > 40, "{came} came, {dropped} dropped");
    }
}

#[test]
fn a_full_wire_is_never_held_up() {
    let (came, dropped) = merged::<512, 64>(Pauses::NONE, 120);
    assert!(came > 0 && dropped > 0, "{came} came, {dropped} dropped");
}
