//! `pause_out` by itself: what moves through a buffer at random, against a count in plain Rust.

use std::collections::VecDeque;

use fastrand::Rng;
use ferroce_hdl::eth::pause_out::PauseOut;
use ferroce_proto::abi::classes::{CLASSES, PRIORITIES};
use ferroce_sim::bench::Bench;

/// Cycles from a move to the level, and to the classes that are refused.
const LEVEL_AFTER: usize = 7;
const REFUSE_AFTER: usize = 6;
/// By so much sooner a backlog in front of the engine is in the level.
const BACKLOG_SOONER: usize = 3;
/// Cycles of a millisecond.
const MILLISECOND: u64 = 250_000;

/// What the host says.
#[derive(Clone, Copy, Default)]
struct Setup {
    /// Class of each priority, four bits each.
    prio_class: u64,
    sends: u64,
    xoff: [u64; 2],
    xon: [u64; 2],
    lossy: [u64; 2],
    storm: u64,
}

impl Setup {
    fn class_of(&self, priority: usize) -> usize {
        (self.prio_class >> (4 * priority) & 3) as usize
    }
}

/// A packet in the buffer.
struct Packet {
    class: usize,
    /// Of payload.
    beats: u64,
    /// No beat of any kind.
    bare: bool,
}

/// What a cycle moves.
#[derive(Clone, Copy, Default)]
struct Moves {
    kept: bool,
    kept_class: usize,
    kept_beats: u64,
    beat: bool,
    last: bool,
    beat_class: usize,
    bare: bool,
    bare_class: usize,
}

struct Rig {
    bench: Bench,
    setup: Setup,
    /// Beats of a unit of 64 bytes.
    unit: u64,
    /// Packets with beats, and without, in their order.
    long: VecDeque<Packet>,
    bare: VecDeque<Packet>,
    held: [[u64; 2]; CLASSES],
    asks: [bool; CLASSES],
    level: u64,
    stays: [u64; PRIORITIES],
    /// Much waits in front: now, and what the block is still to see of it.
    backlog: bool,
    backlogs: VecDeque<bool>,
    levels: VecDeque<u64>,
    refusals: VecDeque<u64>,
    /// Events that were counted.
    begun: u64,
    warnings: u64,
    errors: u64,
}

impl Rig {
    fn new(lanes: u64) -> Self {
        let bench = match lanes {
            64 => Bench::of(PauseOut::<64>::default),
            _ => Bench::of(PauseOut::<8>::default),
        };
        let mut rig = Self::with(bench.expect("it builds"), 64 / lanes);
        rig.restart(Setup::default());
        rig
    }

    fn with(bench: Bench, unit: u64) -> Self {
        Self {
            bench,
            setup: Setup::default(),
            unit,
            long: VecDeque::new(),
            bare: VecDeque::new(),
            held: Default::default(),
            asks: Default::default(),
            level: 0,
            stays: Default::default(),
            backlog: false,
            backlogs: VecDeque::from([false; BACKLOG_SOONER]),
            levels: VecDeque::from([0; LEVEL_AFTER]),
            refusals: VecDeque::from([0; REFUSE_AFTER]),
            begun: 0,
            warnings: 0,
            errors: 0,
        }
    }

    /// A reset, empty, with other registers.
    fn restart(&mut self, setup: Setup) {
        self.long.clear();
        self.bare.clear();
        self.held = Default::default();
        self.asks = Default::default();
        self.level = 0;
        self.stays = Default::default();
        self.backlog = false;
        self.backlogs = VecDeque::from([false; BACKLOG_SOONER]);
        self.levels = VecDeque::from([0; LEVEL_AFTER]);
        self.refusals = VecDeque::from([0; REFUSE_AFTER]);
        self.begun = 0;
        self.setup = setup;
        self.drive(Moves::default());
        self.set("backlog", 0);
        self.bench.reset(&mut []);
    }

    fn set(&mut self, name: &str, value: u64) {
        let input = self.bench.dut().input(name).expect("a port");
        self.bench.dut_mut().set(input, value);
    }

    fn get(&self, name: &str) -> u64 {
        let output = self.bench.dut().output(name).expect("a port");
        self.bench.dut().get(output)
    }

    fn drive(&mut self, moves: Moves) {
        let halves = |halves: [u64; 2]| halves[1] << 16 | halves[0];
        let Setup {
            prio_class,
            sends,
            xoff,
            xon,
            lossy,
            storm,
        } = self.setup;
        self.set("setup.prio_class", prio_class);
        self.set("setup.sends", sends);
        self.set("setup.xoff", halves(xoff));
        self.set("setup.xon", halves(xon));
        self.set("setup.lossy", halves(lossy));
        self.set("setup.storm", storm);
        self.set("moves.kept", moves.kept.into());
        self.set("moves.kept_class", moves.kept_class as u64);
        self.set("moves.kept_beats", moves.kept_beats);
        self.set("moves.beat", moves.beat.into());
        self.set("moves.last", moves.last.into());
        self.set("moves.beat_class", moves.beat_class as u64);
        self.set("moves.bare", moves.bare.into());
        self.set("moves.bare_class", moves.bare_class as u64);
    }

    /// A packet comes, and what is there may leave.
    fn moves(&mut self, comes: Option<Packet>, leave: [bool; 2]) -> Moves {
        let mut moves = Moves::default();
        if let Some(front) = self.long.front_mut().filter(|_| leave[0]) {
            moves.beat = front.beats > 0;
            moves.beat_class = front.class;
            front.beats -= u64::from(moves.beat);
            self.held[front.class][0] -= u64::from(moves.beat);
            moves.last = front.beats == 0;
            if moves.last {
                self.held[front.class][1] -= 1;
                self.long.pop_front();
            }
        }
        if leave[1]
            && let Some(packet) = self.bare.pop_front()
        {
            moves.bare = true;
            moves.bare_class = packet.class;
            self.held[packet.class][1] -= 1;
        }
        if let Some(packet) = comes {
            moves.kept = true;
            moves.kept_class = packet.class;
            moves.kept_beats = packet.beats;
            self.held[packet.class][0] += packet.beats;
            self.held[packet.class][1] += 1;
            let queue = if packet.bare {
                &mut self.bare
            } else {
                &mut self.long
            };
            queue.push_back(packet);
        }
        moves
    }

    /// What must follow from what is held now.
    fn expect(&mut self) {
        let Setup {
            sends,
            xoff,
            xon,
            lossy,
            ..
        } = self.setup;
        let sending = |p: &usize| sends >> p & 1 == 1;
        let held = self
            .held
            .map(|[beats, packets]| [beats / self.unit, packets]);
        let mut lossless = 0;
        for p in (0..PRIORITIES).filter(sending) {
            lossless |= 1 << self.setup.class_of(p);
        }
        for (c, [beats, packets]) in held.into_iter().enumerate() {
            let over = beats >= xoff[0] || packets >= xoff[1];
            let under = beats < xon[0] && packets < xon[1];
            self.asks[c] =
                lossless >> c & 1 == 1 && (over || self.backlog || self.asks[c] && !under);
        }
        for p in 0..PRIORITIES {
            let wanted = sending(&p) && self.asks[self.setup.class_of(p)];
            if self.stays[p] > 0 {
                self.stays[p] -= 1;
            } else if wanted != (self.level >> p & 1 == 1) {
                self.level ^= 1 << p;
                self.stays[p] = 15;
                self.begun += u64::from(wanted);
            }
        }
        self.levels.push_back(self.level);
        let of_lossy = |i: usize| -> u64 {
            let classes = (0..CLASSES).filter(|c| lossless >> c & 1 == 0);
            classes.map(|c| self.held[c][i]).sum()
        };
        let full = of_lossy(0) / self.unit >= lossy[0] || of_lossy(1) >= lossy[1];
        let refused = if full && lossless != 0 {
            !lossless & 0xf
        } else {
            0
        };
        self.refusals.push_back(refused);
    }

    /// A cycle; the level and the refusals must be those of the cycles before.
    fn step(&mut self, comes: Option<Packet>, leave: [bool; 2]) {
        let moves = self.moves(comes, leave);
        self.drive(moves);
        self.backlogs.push_back(self.backlog);
        let seen = self.backlogs.pop_front().expect("one a cycle");
        self.set("backlog", seen.into());
        self.bench.dut_mut().settle();
        let level = self.levels.pop_front().expect("one a cycle");
        let refused = self.refusals.pop_front().expect("one a cycle");
        let cycle = self.bench.cycle();
        assert_eq!(self.get("pause_send"), level, "level, cycle {cycle}");
        assert_eq!(self.get("refuse"), refused, "refused, cycle {cycle}");
        self.expect();
        self.bench.step(&mut []).expect("no rule is broken");
    }

    /// As [`Rig::step`] without anything that moves, for many cycles; the level is not looked at.
    fn wait(&mut self, cycles: u64) {
        self.drive(Moves::default());
        let output = |name: &str| self.bench.dut().output(name).expect("a port");
        let [warning, error] = ["counts.warning", "counts.error"].map(output);
        for _ in 0..cycles {
            self.bench.step(&mut []).expect("no rule is broken");
            self.warnings += self.bench.dut().get(warning);
            self.errors += self.bench.dut().get(error);
        }
    }

    /// Moves without a look at the level.
    fn pass(&mut self, comes: Option<Packet>, leave: [bool; 2]) {
        let moves = self.moves(comes, leave);
        self.drive(moves);
        self.bench.step(&mut []).expect("no rule is broken");
        self.drive(Moves::default());
    }
}

fn some_packet(rng: &mut Rng) -> Packet {
    let class = rng.usize(..CLASSES);
    let (beats, bare) = match rng.u8(..4) {
        0 => (0, true),
        // a GRH, the original value of an atomic
        1 => (0, false),
        2 => (rng.u64(1..4), false),
        _ => (rng.u64(1..70), false),
    };
    Packet { class, beats, bare }
}

#[test]
fn levels_and_refusals_follow_what_is_held() {
    for lanes in [64, 8] {
        let mut rig = Rig::new(lanes);
        let mut begun = 0;
        for round in 0..60 {
            let rng = rig.bench.rng();
            let beats = 600 / (64 / lanes);
            let xoff = [rng.u64(1..beats), rng.u64(1..40)];
            let setup = Setup {
                prio_class: rng.u64(..) & 0x3333_3333,
                sends: if round % 5 == 4 { 0 } else { rng.u64(..256) },
                xoff,
                xon: xoff.map(|most| rng.u64(0..=most)),
                lossy: [rng.u64(1..beats), rng.u64(1..80)],
                storm: 0,
            };
            rig.restart(setup);
            for phase in 0..4 {
                let mut rng = rig.bench.rng().fork();
                let (comes, goes) = [(4, 2), (2, 2), (8, 2), (40, 1)][phase];
                for _ in 0..300 {
                    rig.backlog ^= rng.u32(..100) == 0 && round % 2 == 0;
                    let packet = (rng.u32(..comes) == 0).then(|| some_packet(&mut rng));
                    let leave = [rng.u32(..goes) == 0, rng.u32(..goes) == 0];
                    rig.step(packet, leave);
                }
            }
            begun += rig.begun;
        }
        assert!(begun > 100, "{begun} pauses");
    }
}

/// A beat of a class.
fn a_beat(class: usize) -> Option<Packet> {
    let (beats, bare) = (1, false);
    Some(Packet { class, beats, bare })
}

/// A priority for each class, which has 5 beats and asks from 4 on, for 10 ms.
fn storming(rig: &mut Rig) {
    rig.setup = Setup {
        prio_class: 0x2310,
        sends: ALL,
        xoff: [4, 0xffff],
        xon: [2, 0xffff],
        lossy: [0xffff; 2],
        storm: 10,
    };
    for class in (0..CLASSES).cycle().take(5 * CLASSES) {
        rig.pass(a_beat(class), [false; 2]);
    }
    rig.wait(20);
    assert_eq!(rig.get("pause_send"), ALL);
}

/// The priorities of [`storming`].
const ALL: u64 = 0xf;

#[test]
fn a_storm_ends_by_itself() {
    let (mut rig, each) = (Rig::new(64), CLASSES as u64);
    storming(&mut rig);
    rig.wait(9 * MILLISECOND - 200);
    assert_eq!((rig.warnings, rig.errors), (0, 0));
    rig.wait(MILLISECOND + 1000);
    assert_eq!((rig.warnings, rig.errors), (each, 0));
    assert_eq!(rig.get("pause_send"), ALL);
    rig.wait(MILLISECOND + 100);
    assert_eq!((rig.warnings, rig.errors), (each, each));
    assert_eq!(rig.get("pause_send"), 0);
    // a beat that leaves is not enough: 4 are held
    (0..CLASSES).for_each(|_| rig.pass(None, [true; 2]));
    rig.wait(100);
    assert_eq!(rig.get("pause_send"), 0);
    // below XON it is over; what comes then asks again
    (0..3 * CLASSES).for_each(|_| rig.pass(None, [true; 2]));
    rig.wait(100);
    storming(&mut rig);
    assert_eq!((rig.warnings, rig.errors), (each, each));
}

#[test]
fn what_leaves_is_no_storm() {
    let mut rig = Rig::new(64);
    storming(&mut rig);
    rig.setup.storm = 2;
    for _ in 0..8 {
        rig.wait(MILLISECOND);
        (0..CLASSES).for_each(|class| rig.pass(a_beat(class), [true, false]));
        assert_eq!(rig.get("pause_send"), ALL);
    }
    assert_eq!(rig.errors, 0);
    rig.setup.storm = 0;
    rig.wait(4 * MILLISECOND);
    assert_eq!((rig.get("pause_send"), rig.errors), (ALL, 0));
}
