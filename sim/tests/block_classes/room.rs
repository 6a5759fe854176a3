//! Room of parts: lanes that ask, begin, drop and send, in front of queues that are counted.

use fastrand::Rng;
use ferroce_hdl::egress::CLASSES;
use ferroce_hdl::egress::class_room::ClassRoom;
use ferroce_sim::bench::{Agent, Bench};
use ferroce_sim::random::Chance;
use ferroce_sim::verilator::{Dut, Input, Output};

use crate::lane::{GRANT, LATENCY, Lane, Part};

const LANES: usize = 2;
/// Beats of a queue.
const BEATS: u64 = 2048;
/// Beats of the largest part.
const QUANTUM: u64 = 1024;
/// Log2 of the cycles that a lane waits.
const LOG_WAIT: usize = 12;

type Dims = ClassRoom<8, LOG_WAIT, { QUANTUM as usize }>;

struct Ports {
    ask: [Input; LANES],
    start: [Input; LANES],
    pass: [Input; LANES],
    undo: [(Input, Input, Output); LANES],
    number: [Output; LANES],
    taken: Output,
    refused: Output,
    idle: Input,
    shut: Input,
    room: Vec<Input>,
    reserve: Output,
    give_back: Output,
}

struct World {
    ports: Ports,
    lanes: [Lane; LANES],
    shut: u64,
    /// Chance that a queue sends a beat in a cycle; the wire takes one a cycle.
    rate: [f64; CLASSES],
    /// Chance that a part, or a frame of it, is dropped.
    drops: Chance,
    now: u64,
    // queues
    room: [u64; CLASSES],
    back: [u64; CLASSES],
    held: [u64; CLASSES],
    sent: [u64; CLASSES],
}

fn read_space(word: u64) -> Option<(usize, u64)> {
    (word >> 18 & 1 == 1).then_some((word as usize & 15, word >> 4 & 0x3fff))
}

impl World {
    fn new(dut: &Dut) -> Self {
        let input = |name: String| dut.input(&name).unwrap();
        let output = |name: String| dut.output(&name).unwrap();
        let ports = Ports {
            ask: [0, 1].map(|i| input(format!("ask_{i}"))),
            start: [0, 1].map(|i| input(format!("start_{i}"))),
            pass: [0, 1].map(|i| input(format!("pass_{i}"))),
            undo: [0, 1].map(|i| {
                let name = |part| format!("undo_{i}_{part}");
                (
                    input(name("payload")),
                    input(name("valid")),
                    output(name("ready")),
                )
            }),
            number: [0, 1].map(|i| output(format!("number_{i}"))),
            taken: output("taken".into()),
            refused: output("refused".into()),
            idle: input("idle".into()),
            shut: input("shut".into()),
            room: (0..CLASSES).map(|i| input(format!("room_{i}"))).collect(),
            reserve: output("reserve".into()),
            give_back: output("give_back".into()),
        };
        Self {
            ports,
            lanes: Default::default(),
            shut: 0,
            rate: [1.0; CLASSES],
            drops: Chance::NEVER,
            now: 0,
            room: [BEATS; CLASSES],
            back: [0; CLASSES],
            held: [0; CLASSES],
            sent: [0; CLASSES],
        }
    }

    /// The wire takes a beat of one of the queues that may send.
    fn wire(&mut self, rng: &mut Rng) {
        let may: Vec<_> = (0..CLASSES)
            .filter(|&class| self.shut >> class & 1 == 0 && self.held[class] > 0)
            .filter(|&class| Chance::new(self.rate[class]).hit(rng))
            .collect();
        if may.is_empty() {
            return;
        }
        let class = may[rng.usize(..may.len())];
        self.held[class] -= 1;
        self.back[class] += 1;
        self.sent[class] += 1;
    }
}

impl Agent for World {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        let mut idle = 0;
        for (i, lane) in self.lanes.iter_mut().enumerate() {
            lane.drive(self.now, self.drops, rng);
            dut.set(self.ports.ask[i], Part::space(lane.ask.as_ref()));
            dut.set(self.ports.start[i], Part::space(lane.start.as_ref()));
            let pass = lane
                .pass
                .map_or(0, |(_, part, beats)| part | beats << 8 | 1 << 22);
            dut.set(self.ports.pass[i], pass);
            let (payload, valid, _) = self.ports.undo[i];
            dut.set(payload, Part::space(lane.undo.front()) & 0x3_ffff);
            dut.set(valid, u64::from(!lane.undo.is_empty()));
            idle |= u64::from(!lane.is_busy()) << i;
        }
        dut.set(self.ports.idle, idle);
        dut.set(self.ports.shut, self.shut);
        self.wire(rng);
        for (port, room) in self.ports.room.iter().zip(self.room) {
            dut.set(*port, room);
        }
    }

    fn observe(&mut self, dut: &Dut, _: u64) -> Result<(), String> {
        self.now += 1;
        for (room, back) in self.room.iter_mut().zip(&mut self.back) {
            *room += std::mem::take(back);
        }
        if let Some((class, beats)) = read_space(dut.get(self.ports.give_back)) {
            self.back[class] += beats;
        }
        let reserved = read_space(dut.get(self.ports.reserve));
        if let Some((class, beats)) = reserved {
            let left = self.room[class].checked_sub(beats);
            self.room[class] = left.ok_or(format!("class {class}: {beats} beats are not there"))?;
        }
        let (taken, refused) = (dut.get(self.ports.taken), dut.get(self.ports.refused));
        for (i, lane) in self.lanes.iter_mut().enumerate() {
            let (_, _, ready) = self.ports.undo[i];
            if dut.is_set(ready) {
                lane.undo.pop_front();
            }
            if let Some(mut part) = lane.start.take() {
                part.number = dut.get(self.ports.number[i]);
                part.due = self.now + LATENCY;
                lane.parts.push_back(part);
            }
            if let Some((class, _, beats)) = lane.pass.take() {
                self.held[class] += beats;
                lane.beats[class] += beats;
            }
            let answer = taken >> i & 1 | (refused >> i & 1) << 1;
            if answer == 0 {
                continue;
            }
            let mut part = lane.ask.take().ok_or("an answer to no question")?;
            lane.longest = lane.longest.max(self.now - lane.asked);
            if answer == 1 {
                if reserved != Some((part.class, part.bound)) {
                    return Err("what is taken is reserved".into());
                }
                part.due = self.now + GRANT;
                lane.taken.push_back(part);
            } else {
                lane.refused[part.class] += 1;
            }
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        let whole: Vec<_> = (0..CLASSES)
            .map(|class| self.room[class] + self.back[class])
            .collect();
        (whole != [BEATS; CLASSES]).then(|| format!("room for {whole:?}"))
    }

    fn reset(&mut self, _: &mut Dut) {}
}

struct Rig {
    bench: Bench,
    world: World,
}

impl Rig {
    fn new(classes: [&[usize]; LANES], most: [u64; LANES]) -> Self {
        let mut bench = Bench::of(Dims::default).unwrap();
        let mut world = World::new(bench.dut());
        bench.reset(&mut [&mut world]);
        for (lane, (classes, most)) in world.lanes.iter_mut().zip(classes.into_iter().zip(most)) {
            lane.classes = classes.to_vec();
            lane.most = most;
        }
        Self { bench, world }
    }

    #[track_caller]
    fn run(&mut self, cycles: u64) {
        if let Err(failure) = self.bench.run(&mut [&mut self.world], cycles) {
            panic!("{failure}");
        }
    }

    fn count_afresh(&mut self) {
        self.world.sent = Default::default();
        for lane in &mut self.world.lanes {
            lane.beats = Default::default();
            lane.refused = Default::default();
            lane.longest = 0;
        }
    }

    /// No new parts; all room is there again in the end.
    #[track_caller]
    fn drain(&mut self) {
        self.world.shut = 0;
        self.world.rate = [1.0; CLASSES];
        for lane in &mut self.world.lanes {
            lane.classes.clear();
        }
        if let Err(failure) = self.bench.finish(&mut [&mut self.world], 100_000) {
            panic!("{failure}");
        }
    }
}

#[test]
fn all_room_comes_back_whatever_is_dropped() {
    for drops in [0.0, 0.1, 0.5, 0.95] {
        for most in [[8, 8], [QUANTUM, 8], [QUANTUM, QUANTUM]] {
            let mut rig = Rig::new([&[0, 1, 2, 3], &[3, 1, 0]], most);
            rig.world.drops = Chance::new(drops);
            for step in 0..10 {
                rig.world.shut = (step * 7) & 0xf;
                rig.run(3000);
            }
            rig.drain();
        }
    }
}

#[test]
fn one_class_alone_has_the_full_rate_and_is_never_refused() {
    for most in [8, 70, QUANTUM] {
        let mut rig = Rig::new([&[2], &[]], [most, 0]);
        rig.run(5000);
        rig.count_afresh();
        rig.run(20_000);
        let lane = &rig.world.lanes[0];
        assert_eq!(lane.refused, [0; CLASSES]);
        // the smallest parts: a question in 2 cycles
        assert!(rig.world.sent[2] > 19_500, "{:?}", rig.world.sent);
        rig.drain();
    }
}

#[test]
fn a_class_that_is_shut_or_slow_leaves_the_full_rate_to_others() {
    for slow in [false, true] {
        let mut rig = Rig::new([&[0, 1], &[0]], [QUANTUM, 8]);
        if slow {
            rig.world.rate[0] = 0.01;
        } else {
            rig.world.shut = 1;
        }
        rig.run(20_000);
        rig.count_afresh();
        rig.run(100_000);
        let sent = rig.world.sent;
        // a slow class is tried again now and then, which holds up the lane
        let least = if slow { 95_000 } else { 99_900 };
        assert!(sent[0] + sent[1] > least, "{sent:?}");
        assert!(rig.world.lanes[0].refused[0] > 0);
        // both lanes have room of it
        for lane in &rig.world.lanes {
            assert_eq!(lane.beats[0] > 100, slow, "{:?}", lane.beats);
        }
        rig.drain();
    }
}

#[test]
fn neither_lane_starves_the_other() {
    for most in [[QUANTUM, 8], [8, QUANTUM], [QUANTUM, QUANTUM]] {
        let mut rig = Rig::new([&[1], &[1]], most);
        rig.world.rate[1] = 0.8;
        rig.run(5000);
        rig.count_afresh();
        rig.run(100_000);
        for lane in &rig.world.lanes {
            assert!(lane.beats[1] > 200, "{:?}", lane.beats);
            assert!(
                lane.longest < 2 * QUANTUM * 10 / 8 + 100,
                "{}",
                lane.longest
            );
            assert_eq!(lane.refused, [0; CLASSES]);
        }
        rig.drain();
    }
}
