//! Endurance: many queue pairs on a wire that loses, doubles, reorders and spoils frames, random operations of random sizes,
//! processes that die in the midst of them, and cards that are reset. Each byte that arrives is compared, see
//! `scene::line::Line`.
//!
//! A round is a world of its own, of a seed; so a campaign goes on at any seed.

use fastrand::Rng;
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::wire::Mtu;
use ferroce_sim::link::Config;
use ferroce_sim::random::Chance;
use ferroce_sim::testhost::{QpOptions, Side};

use crate::conformance::run::Target;
use crate::quiet;
use crate::scene::kernel::Kernel;
use crate::scene::line::State;
use crate::scene::shape::{Shape, options};
use crate::scene::{STEP, Scene};
use crate::world::{World, pausing};

/// Cycles in which a command is answered beside all that traffic.
const COMMAND: u64 = 100_000;
/// Cycles that a message takes at most on a wire with losses, and all of them together.
const PATIENCE: u64 = 20_000_000;
/// Cycles from the end of one process to that of the next, about.
const INTERVAL: u64 = 4_000;
/// Deaths for one reset of a card.
const RESET: u32 = 12;
/// Cycles in which frames of a former life are gone from the wire, though not from the port that takes them.
const TIME_WAIT: u64 = 8_000;

/// What a round, or several, came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Soaked {
    /// Rounds.
    pub rounds: u64,
    /// Queue pairs, each of a life.
    pub incarnations: u64,
    /// Messages that came.
    pub messages: u64,
    /// Their bytes, each compared.
    pub bytes: u64,
    /// Datagrams and messages of unreliable connections that the wire lost.
    pub lost: u64,
    /// Requests that were lost just before a pause of their class.
    pub requests_lost: u64,
    /// RNR NAKs that the first card received, if classes are paused.
    pub rnr_naks: u64,
    /// Processes that died.
    pub deaths: u64,
    /// Connections that gave up, on a wire that loses frames.
    pub gave_up: u64,
    /// Cards that were reset.
    pub resets: u64,
    /// Cycles.
    pub cycles: u64,
    /// Most cycles that a command took.
    pub slowest: u64,
}

impl std::ops::AddAssign for Soaked {
    fn add_assign(&mut self, other: Self) {
        self.rounds += other.rounds;
        self.incarnations += other.incarnations;
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.lost += other.lost;
        self.requests_lost += other.requests_lost;
        self.rnr_naks += other.rnr_naks;
        self.deaths += other.deaths;
        self.gave_up += other.gave_up;
        self.resets += other.resets;
        self.cycles += other.cycles;
        self.slowest = self.slowest.max(other.slowest);
    }
}

/// A round of `cycles` of traffic of a seed; the card at the other end is of the same kind or a model.
///
/// # Errors
/// What broke, with the seed.
pub fn round(target: Target, cycles: u64, seed: u64) -> Result<Soaked, String> {
    let mut rng = Rng::with_seed(seed);
    let around = World::of(seed);
    let other = [target, Target::Model][rng.usize(..2)];
    let cards = [target, other].map(|target| target.card_in(pausing));
    let [a, b] = cards.map(|card| card.map(|(card, _)| card).map_err(|e| e.to_string()));
    let (a, b) = (a?, b?);
    let direct = [target, other].map(|target| target == Target::Model);
    let run = || {
        let wire = wire(&mut rng);
        let mut scene = Scene::new([&a, &b], direct, seed, &wire, COMMAND);
        let lines = rng.u32(3..=12);
        for line in 0..lines {
            let shape = shape(&mut rng, line);
            scene.add([2 + line, 2 + lines - 1 - line], shape, rng.u64(..));
        }
        let mut report = soak(&mut scene, cycles, &mut rng);
        let tally = scene.tally();
        report.rounds = 1;
        report.messages = tally.messages;
        report.bytes = tally.bytes;
        report.lost = tally.lost;
        report.incarnations = scene
            .lines
            .iter()
            .map(|line| 2 * u64::from(line.opened))
            .sum();
        report.cycles = scene.now;
        report.slowest = scene.kernels[0].slowest;
        report
    };
    quiet::caught(run).map_err(|what| format!("{around:?} world, seed {seed}: {what}"))
}

fn wire(rng: &mut Rng) -> Config {
    let chances = [0.0, 0.001, 0.003, 0.01];
    let mut chance = || match chances[rng.usize(..chances.len())] {
        0.0 => Chance::NEVER,
        p => Chance::new(p),
    };
    Config {
        loss: chance(),
        duplication: chance(),
        reordering: chance(),
        corruption: chance(),
        latency: rng.u64(1..300),
        hold_limit: 1500,
        ..Config::default()
    }
}

fn shape(rng: &mut Rng, line: u32) -> Shape {
    let kind = [qp_type::RC, qp_type::RC, qp_type::UC, qp_type::UD][rng.usize(..4)];
    let mtus = [
        Mtu::Mtu256,
        Mtu::Mtu512,
        Mtu::Mtu1024,
        Mtu::Mtu2048,
        Mtu::Mtu4096,
    ];
    let mtu = mtus[rng.usize(..mtus.len())];
    let longest = match (kind, rng.u8(..8)) {
        (qp_type::UD, _) => 1 << mtu.log2(),
        // more than a turn of a queue pair
        (_, 0) => 1 << rng.u8(14..=16),
        _ => 1 << rng.u8(8..=13),
    };
    Shape {
        options: QpOptions {
            tclass: rng.u8(..) & !3,
            vlan: (rng.u8(..4) == 0).then(|| rng.u16(..) & 0xefff),
            window: [0, 0, 5, 16][rng.usize(..4)],
            rate_limit: [0, 0, 0, 10_000][rng.usize(..4)],
            // 131 us: with 33 us load alone used retries up, on the engine in the hostile world with seed 27
            timeout: 5,
            ..options(kind, mtu)
        },
        longest,
        lossy: true,
        late: kind == qp_type::RC && rng.u8(..4) == 0,
        patience: PATIENCE,
        mark: 0x50a0_0000 | line,
        timeout: None,
    }
}

/// All commands that were given are answered.
fn commands_end(scene: &mut Scene) {
    scene.until(COMMAND * 8, "commands end", |scene| {
        scene.kernels.iter().all(Kernel::idle)
    });
}

fn soak(scene: &mut Scene, cycles: u64, rng: &mut Rng) -> Soaked {
    let mut report = Soaked::default();
    scene.open_all();
    let mut closed = vec![0; scene.lines.len()];
    while scene.now < cycles {
        scene.step();
        for line in 0..scene.lines.len() {
            let over = scene.have_taken(closed[line] + TIME_WAIT);
            let it = &mut scene.lines[line];
            let dies = rng.u64(..INTERVAL / STEP * closed.len() as u64) == 0;
            match it.state {
                State::Open if it.gave_up || dies => {
                    report.gave_up += u64::from(it.gave_up);
                    report.deaths += u64::from(!it.gave_up);
                    it.die(&mut scene.kernels, [true; 2]);
                    closed[line] = scene.now;
                }
                State::Closed if over => scene.open(line),
                _ => {}
            }
        }
        if rng.u64(..INTERVAL / STEP * u64::from(RESET)) == 0 {
            let side = [Side::A, Side::B][rng.usize(..2)];
            commands_end(scene);
            scene.reset(side, rng.bool());
            scene.recover(side);
            closed.fill(scene.now);
            report.resets += 1;
        }
    }
    commands_end(scene);
    scene.rest(PATIENCE);
    scene.check();
    report
}
