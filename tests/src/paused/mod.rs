//! Classes of traffic that the peer pauses, or the host slows down, and lets go on, amid connections of all kinds, packets marked for congestion and
//! frames of the hosts: what is of another class goes on, and all of a class comes once it may.
//!
//! A round is a world of its own, of a seed, as those of [`soak`](crate::soak) are. Its wire loses nothing but, in some rounds,
//! requests.

mod flood;

use fastrand::Rng;
use ferroce_proto::abi::classes::share;
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::abi::regs::{self, CNP_CONFIG_RESET};
use ferroce_proto::wire::Mtu;
use ferroce_sim::ethernet::pause::Pause;
use ferroce_sim::link::Config;
use ferroce_sim::random::Chance;
use ferroce_sim::rtl::Options;
use ferroce_sim::testhost::{QpOptions, Side};

use crate::conformance::run::Target;
use crate::quiet;
use crate::scene::kernel::Kernel;
use crate::scene::shape::{Shape, options};
use crate::scene::{STEP, Scene};
use crate::soak::Soaked;
use crate::world::World;
use flood::{FLOODS, Flood};

/// Cycles in which a command is answered: one that ends something waits for what stands in paused classes.
const COMMAND: u64 = 1_000_000;
/// Cycles that a message takes at most while no card is to pause its class: in the fast world; and in the class of the flood, or
/// where receivers are slow and pause their senders.
const PATIENCE: u64 = 90_000;
const LONG: u64 = 5 * PATIENCE;
/// Cycles of a pause: the longest is longer than PATIENCE.
const PAUSE: std::ops::Range<u64> = 1_000..2 * PATIENCE;
/// Cycles after which a pause is asked for again.
const REFRESH: u64 = 40_000;
/// Cycles before a pause in which requests are lost, in some rounds.
const LOSING: u64 = 4_000;
/// Cycles from one pause to the next, about.
const INTERVAL: u64 = 12_000;
/// Classes of the priorities after reset: two priorities each.
const CLASSES: usize = 4;

/// The priorities of all that is sent, a bit each. A pause of the test is of the other priority of its class, so it ends none that
/// the peer asked for.
const ODD: u32 = 0xaa;
/// Lowest rate of a queue pair that CNPs slow down, Mb/s.
const MIN_RATE: u32 = 10_000;
/// Rates of queue pairs that hosts slow down, Mb/s: from packet to packet several timers pass.
const SLOW: std::ops::Range<u32> = 5..40;
/// Cycles after which a queue pair may still be as slow as it was: 300 us, see `rate_limit_is_lifted`.
const LIFTED: u64 = 75_000;

const SIDES: [Side; 2] = [Side::A, Side::B];

/// A round of `cycles` of traffic of a seed; the card at the other end is of the same kind, so neither sends more than the other
/// takes.
///
/// # Errors
/// What broke, with the seed.
pub fn round(target: Target, cycles: u64, seed: u64) -> Result<Soaked, String> {
    let mut rng = Rng::with_seed(seed);
    // what holds a message up shows where nothing else does
    let around = match seed % 4 {
        0 => World::of(seed),
        _ => World::Fast,
    };
    let world = move |seed| Options {
        tx_room: usize::MAX,
        ..around.options(seed)
    };
    let (card, _) = target.card_in(world).map_err(|e| e.to_string())?;
    let direct = target == Target::Model;
    let run = || {
        let wire = Config {
            latency: rng.u64(1..50),
            ..Config::default()
        };
        let mut scene = Scene::new([&card, &card], [direct; 2], seed, &wire, COMMAND);
        scene.marks = Chance::new([0.0, 0.05, 1.0][rng.usize(..3)]);
        for (register, value) in registers(&mut rng) {
            scene.pair.a.write32(register, value);
            scene.pair.b.write32(register, value);
        }
        let is_fast = around == World::Fast;
        let has_short_timers = is_fast && rng.bool();
        let mut flood = Flood::new(&mut scene, &mut rng);
        let lines = rng.u32(3..=8);
        for line in 0..lines {
            let shape = shape(&mut rng, line);
            let beside = usize::from(shape.options.tclass >> 6) != flood.class;
            let is_short = has_short_timers && beside;
            let options = QpOptions {
                retry_cnt: if is_short { 3 } else { 7 },
                ..shape.options
            };
            let shape = Shape {
                options,
                patience: if is_fast && beside { PATIENCE } else { LONG },
                timeout: is_short.then_some(4),
                ..shape
            };
            scene.add([2 + line, 2 + lines - 1 - line], shape, rng.u64(..));
        }
        go_on(&mut scene, &mut flood, has_short_timers, cycles, &mut rng);
        let tally = scene.tally();
        Soaked {
            rounds: 1,
            incarnations: 2 * u64::from(lines + FLOODS),
            messages: tally.messages + flood.done,
            bytes: tally.bytes,
            requests_lost: scene.lost,
            rnr_naks: scene.pair.a.stat("rnr_nak_received"),
            cycles: scene.now,
            slowest: scene.kernels[0].slowest,
            ..Soaked::default()
        }
    };
    quiet::caught(run).map_err(|what| format!("{around:?} world, seed {seed}: {what}"))
}

fn registers(rng: &mut Rng) -> [(u32, u32); 8] {
    [
        (regs::PFC_CONFIG, ODD << 8 | 0xff),
        // four classes have room for this and their headroom
        (regs::PFC_XOFF, share(100, 60)),
        (regs::PFC_XON, share(40, 20)),
        // DSCP 0, that of frames of the hosts, has priority 1; DSCP 63, that of CNPs, has 7
        (regs::DSCP_PRIO_0, 1),
        (regs::CNP_CONFIG, CNP_CONFIG_RESET | 0x3f),
        (regs::MIN_TIME_BETWEEN_CNPS, rng.u32(1..=4)),
        (regs::RP_CONFIG, u32::from(rng.bool())),
        (regs::RPG_MIN_RATE, MIN_RATE),
    ]
}

/// A traffic class of an odd priority.
fn tclass(rng: &mut Rng) -> u8 {
    rng.u8(..) & !3 | 0x20
}

fn shape(rng: &mut Rng, line: u32) -> Shape {
    let kind = [qp_type::RC, qp_type::RC, qp_type::UC, qp_type::UD][rng.usize(..4)];
    let mtu = [Mtu::Mtu512, Mtu::Mtu1024, Mtu::Mtu4096][rng.usize(..3)];
    Shape {
        options: QpOptions {
            tclass: tclass(rng),
            vlan: (rng.u8(..4) == 0).then(|| rng.u16(..) & 0xefff),
            window: [0, 0, 5, 16][rng.usize(..4)],
            // longer than a pause, as no response is lost
            timeout: 9,
            ..options(kind, mtu)
        },
        longest: match kind {
            qp_type::UD => 1 << mtu.log2(),
            _ => 1 << rng.u8(8..=13),
        },
        lossy: false,
        late: kind == qp_type::RC && rng.bool(),
        patience: LONG,
        mark: 0x9a05_0000 | line,
        timeout: None,
    }
}

/// A class that a card is to pause, or whose queue pairs its host slows down.
#[derive(Clone, Copy)]
struct Held {
    side: Side,
    priority: usize,
    /// Mb/s of its queue pairs, in place of a pause.
    limit: Option<u32>,
    /// Cycle from which on it is held; before that its requests are lost.
    since: u64,
    /// Cycle in which it may go on, and in which it is held again.
    until: u64,
    again: u64,
}

impl Held {
    fn class(&self) -> usize {
        self.priority / 2
    }

    /// The card is asked to hold it, or to go on.
    fn ask(&self, scene: &mut Scene, ends: bool) {
        match self.limit {
            None => {
                let quanta = if ends { 0 } else { u16::MAX };
                let pause = Pause::of(self.priority, quanta);
                let from = scene.pair.host(SIDES[1 - self.side as usize]).mac;
                scene.pair.host(self.side).nic.receive(&pause.emit(from));
            }
            Some(mbps) => {
                let mbps = if ends { 0 } else { mbps };
                scene.limit(self.side, self.class(), mbps);
            }
        }
    }
}

/// `cycles` cycles in which classes are to pause, and until all is at rest.
fn go_on(scene: &mut Scene, flood: &mut Flood, has_short_timers: bool, cycles: u64, rng: &mut Rng) {
    // Requests of A wait longer than its short timers; their answers do not, as B is never asked to pause then.
    let paused = if has_short_timers {
        &SIDES[..1]
    } else {
        &SIDES
    };
    scene.open_all();
    let mut held: Vec<Held> = Vec::new();
    let end = scene.now + cycles;
    let last = end + 4 * LONG;
    while scene.now < end || !flood.at_rest(scene) || !held.is_empty() {
        assert!(scene.now < last, "the flood does not end");
        scene.step();
        flood.step(scene, rng, &held);
        let now = scene.now;
        let lost = held.iter().filter(|it| now < it.since);
        scene.loses = lost.fold(0, |classes, it| classes | 1 << it.class());
        held.retain_mut(|it| {
            let ends = now >= it.until;
            if ends || now >= it.again {
                it.again = now + REFRESH;
                it.ask(scene, ends);
            }
            !ends
        });
        for line in &mut scene.lines {
            let class = line.class();
            for it in held.iter().filter(|it| it.class() == class) {
                let free = now + if it.limit.is_some() { LIFTED } else { 0 };
                line.free_since = line.free_since.max(free);
            }
        }
        if now < end && rng.u64(..INTERVAL / STEP) == 0 {
            let (side, priority) = (paused[rng.usize(..paused.len())], 2 * rng.usize(..CLASSES));
            let class = priority / 2;
            // one class a card at least goes on
            let beside = held.iter().filter(|it| it.side == side);
            let is_held = |it: &Held| it.class() == class && it.side == side;
            if beside.count() < CLASSES - 1 && !held.iter().any(is_held) {
                // Requests that are lost just before a pause are due again in it, as timers are shorter than pauses.
                let loses = has_short_timers && class != flood.class;
                let since = now + if loses { LOSING } else { 0 };
                let slows = loses && rng.bool();
                held.push(Held {
                    side,
                    priority,
                    limit: slows.then(|| rng.u32(SLOW)),
                    since,
                    until: since + rng.u64(PAUSE),
                    again: since,
                });
            }
        }
    }
    scene.until(COMMAND, "commands end", |scene| {
        scene.kernels.iter().all(Kernel::idle)
    });
    scene.rest(LONG);
    flood.step(scene, rng, &[]);
    flood.check(scene);
    scene.check();
}
