//! `pause_in` by itself: pauses and frames at random, each priority in any class, against plain Rust.

use ferroce_hdl::egress::pause_in::PauseIn;
use ferroce_hdl::egress::{CLASSES, QUEUES};
use ferroce_proto::abi::classes::PRIORITIES;
use ferroce_sim::bench::Bench;

use crate::gate::{get, set};
use crate::peer::MILLISECOND;

/// Cycles from a pause to its acknowledgement, if nothing of its class is under way.
const ACKNOWLEDGED_AFTER: usize = 4;
/// And from the last beat of what was under way.
const STILL_FOR: usize = 3;
/// From so many cycles behind a queue's pause on nothing of it begins.
const BEGINS_UNTIL: usize = 2;

const ALL_CLASSES: u64 = (1 << CLASSES) - 1;
const ALL_PRIORITIES: u64 = (1 << PRIORITIES) - 1;

/// A cycle, as it must be.
#[derive(Clone, Copy, Default)]
struct Cycle {
    /// Priorities that are paused and obeyed.
    obeyed: u64,
    /// Classes that start no frame from the next cycle on.
    shut: u64,
    /// Classes of which a frame is under way.
    moves: u64,
}

struct Rig {
    bench: Bench,
    /// Class of each priority.
    class_of: [usize; PRIORITIES],
    obeys: u64,
    /// Classes that were held for too long.
    expired: u64,
    /// Priorities that the peer pauses.
    request: u64,
    /// Queues of which a frame is under way.
    active: u64,
    stall: bool,
    /// The latest cycles, the present one first.
    cycles: [Cycle; ACKNOWLEDGED_AFTER + 1],
    /// Cycles in which the pause of each priority in each class must be acknowledged.
    acknowledged: [[u64; CLASSES]; PRIORITIES],
    /// Cycles in which all must stand still.
    stalled: u64,
}

impl Rig {
    fn new() -> Self {
        Self {
            bench: Bench::of(PauseIn::default).unwrap(),
            class_of: [0; PRIORITIES],
            obeys: 0,
            expired: 0,
            request: 0,
            active: 0,
            stall: false,
            cycles: Default::default(),
            acknowledged: Default::default(),
            stalled: 0,
        }
    }

    /// A reset, with random classes of the priorities.
    fn restart(&mut self, obeys: u64, watchdog: u64) {
        let rng = self.bench.rng();
        self.class_of = [(); PRIORITIES].map(|()| rng.usize(..CLASSES));
        self.obeys = obeys;
        self.expired = 0;
        self.request = 0;
        self.active = 0;
        self.stall = false;
        self.cycles = Default::default();
        let classes = self.class_of.iter().enumerate();
        let table: u64 = classes.map(|(p, &class)| (class as u64) << (4 * p)).sum();
        set(&mut self.bench, "setup.prio_class", table);
        set(&mut self.bench, "setup.obeys", obeys);
        set(&mut self.bench, "setup.watchdog", watchdog);
        self.drive();
        self.bench.reset(&mut []);
    }

    fn drive(&mut self) {
        let waiting = self.bench.rng().u64(..256);
        set(&mut self.bench, "request", self.request);
        set(&mut self.bench, "active", self.active);
        set(&mut self.bench, "waiting", waiting);
        set(&mut self.bench, "stall", self.stall.into());
    }

    /// The classes of priorities.
    fn classes_of(&self, priorities: u64) -> u64 {
        let classes = self.class_of.iter().enumerate();
        let paused = classes.filter(|&(p, _)| priorities >> p & 1 == 1);
        paused.fold(0, |all, (_, &class)| all | 1_u64 << class)
    }

    /// The priorities of classes.
    fn priorities_of(&self, classes: u64) -> u64 {
        let classes_of_all = self.class_of.iter().enumerate();
        let theirs = classes_of_all.filter(|&(_, &class)| classes >> class & 1 == 1);
        theirs.fold(0, |all, (p, _)| all | 1_u64 << p)
    }

    /// What the present inputs ask for.
    fn present(&self) -> Cycle {
        let obeyed = self.request & self.obeys & !self.priorities_of(self.expired);
        let shut = if self.stall {
            ALL_CLASSES
        } else {
            self.classes_of(obeyed)
        };
        Cycle {
            obeyed,
            shut,
            moves: (self.active | self.active >> CLASSES) & ALL_CLASSES,
        }
    }

    /// Pauses, frames and stops begin and end at random, frames only in queues that may start one.
    fn draw(&mut self) {
        // the newest of the cycles is the one before
        let closed = self.cycles[BEGINS_UNTIL].shut;
        let rng = self.bench.rng();
        for p in 0..PRIORITIES {
            self.request ^= u64::from(rng.u8(..32) == 0) << p;
        }
        for queue in 0..QUEUES {
            let is_active = self.active >> queue & 1 == 1;
            let may_begin = closed >> (queue % CLASSES) & 1 == 0;
            let turns = if is_active {
                rng.u8(..4) == 0
            } else {
                may_begin && rng.u8(..8) == 0
            };
            self.active ^= u64::from(turns) << queue;
        }
        self.stall ^= rng.u8(..if self.stall { 16 } else { 128 }) == 0;
    }

    /// A cycle; what the block says must follow from it and those before.
    fn step(&mut self) {
        self.draw();
        self.drive();
        self.cycles.rotate_right(1);
        self.cycles[0] = self.present();
        self.bench.dut_mut().settle();
        let [now, before, ..] = self.cycles;
        let cycle = self.bench.cycle();
        let [pause, paused, acknowledged, stalled] =
            ["pause", "paused", "acknowledge", "stalled"].map(|name| get(&self.bench, name));
        let queues = before.shut | before.shut << CLASSES;
        assert_eq!(pause, queues, "queues, cycle {cycle}");
        let begins = now.obeyed & !before.obeyed;
        assert_eq!(paused, begins, "pauses that begin, cycle {cycle}");
        // what is not obeyed is acknowledged at once
        assert_eq!(
            acknowledged & !now.obeyed,
            self.request & !now.obeyed,
            "not obeyed, cycle {cycle}"
        );
        // nothing that is under way stands still
        let moving = self.priorities_of(now.moves) & now.obeyed;
        assert_eq!(acknowledged & moving, 0, "under way, cycle {cycle}");
        assert!(stalled & u64::from(now.moves > 0) == 0, "cycle {cycle}");
        // what has had its time does
        let latest = self.cycles[..STILL_FOR].iter();
        let moved = latest.fold(0, |all: u64, cycle| all | cycle.moves);
        let all = [ALL_PRIORITIES, ALL_CLASSES];
        let [asked, shut] = self.cycles.iter().fold(all, |[asked, shut], cycle| {
            [asked & cycle.obeyed, shut & cycle.shut]
        });
        let still = asked & !self.priorities_of(moved);
        assert_eq!(acknowledged & still, still, "stands, cycle {cycle}");
        let all_still = shut == ALL_CLASSES && moved == 0;
        assert!(stalled == 1 || !all_still, "all stand, cycle {cycle}");
        for (p, &class) in self.class_of.iter().enumerate() {
            self.acknowledged[p][class] += still >> p & 1;
        }
        self.stalled += u64::from(all_still);
        self.bench.step(&mut []).unwrap();
    }

    /// Pauses last for a millisecond, and their classes are held for no longer.
    fn expire(&mut self, request: u64) {
        self.request = request;
        self.drive();
        let held = self.classes_of(request);
        // a millisecond has 0.05 % more
        for (cycles, classes) in [(MILLISECOND, held), (MILLISECOND / 1000, 0)] {
            self.bench.run(&mut [], cycles).unwrap();
            let queues = classes | classes << CLASSES;
            assert_eq!(get(&self.bench, "pause"), queues, "{request:08b}");
            assert_eq!(get(&self.bench, "acknowledge"), request);
        }
        self.expired = held;
        self.cycles = [self.present(); ACKNOWLEDGED_AFTER + 1];
    }
}

/// Whatever the classes of the priorities.
#[test]
fn a_pause_stops_its_class_and_is_acknowledged_when_that_stands_still() {
    let mut rig = Rig::new();
    for _ in 0..100 {
        let rng = rig.bench.rng();
        let obeys = rng.u64(..=ALL_PRIORITIES) | rng.u64(..=ALL_PRIORITIES);
        rig.restart(obeys, 0);
        for _ in 0..200 {
            rig.step();
        }
    }
    let seen = rig.acknowledged;
    assert!(seen.iter().flatten().all(|&cycles| cycles > 0), "{seen:?}");
    assert!(rig.stalled > 100, "{} cycles", rig.stalled);
}

/// Classes of which some priority was paused for too long send, and all of their pauses are acknowledged; the others are obeyed.
#[test]
fn a_class_that_is_held_for_too_long_is_obeyed_no_more() {
    let mut rig = Rig::new();
    for _ in 0..4 {
        rig.restart(ALL_PRIORITIES, 1);
        let rng = rig.bench.rng();
        let request = 1_u64 << rng.usize(..PRIORITIES) | 1_u64 << rng.usize(..PRIORITIES);
        rig.expire(request);
        for _ in 0..500 {
            rig.step();
        }
    }
}
