//! A bus that fails: single beats with SLVERR or DECERR, with all ones or with data; writes that vanish. Answers are late by
//! up to 8192 cycles, or all of them by up to 32768; responses come before writes are visible, lines tear, and resets come at any
//! moment.
//!
//! A burst of trouble has three parts. In the first the memory of an owner of queues fails while it does what it likes, and
//! connections of others have exactly the results of the golden model. In the second their memory refuses accesses: messages
//! fail, and those that succeed are right. In the third all memory fails, the rings of commands too, until a reset, by the pin
//! or by register CONTROL, in the midst of it. Registers answer all the
//! while, memory outside all regions or taken back is not reached, and behind the reset all connections work again, each byte
//! right.

use fastrand::Rng;
use ferroce_sim::rtl::Options;
use ferroce_sim::testhost::Side;

use super::acts::plan;
use super::bystanders::{Patience, scene};
use super::owner::Owner;
use crate::conformance::run::Target;
use crate::quiet;
use crate::scene::Scene;
use crate::scene::line::State;
use crate::scene::tapped::Troubles;
use crate::world::pausing;

/// Acts of the owner in a burst.
const ACTS: u64 = 40;
/// Steps of a good exchange.
const GOOD: u64 = 1500;
/// Cycles in which all comes to rest.
const REST: u64 = 2_000_000;
const PATIENCE: Patience = Patience {
    command: 400_000,
    message: 1_000_000,
};

/// What a bus came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disturbed {
    /// Bursts of trouble.
    pub bursts: u64,
    /// Accesses that failed.
    pub failed: u64,
    /// Accesses that were late.
    pub late: u64,
    /// Resets.
    pub resets: u64,
    /// Connections that failed while their memory refused accesses.
    pub gave_up: u64,
    /// Messages that came right.
    pub messages: u64,
}

impl std::ops::AddAssign for Disturbed {
    fn add_assign(&mut self, other: Self) {
        self.bursts += other.bursts;
        self.failed += other.failed;
        self.late += other.late;
        self.resets += other.resets;
        self.gave_up += other.gave_up;
        self.messages += other.messages;
    }
}

/// Whether the bus of a seed has a bridge, which answers writes before memory does: it tells of no refusal.
const fn has_bridge(seed: u64) -> bool {
    seed.is_multiple_of(2)
}

/// The bus that a seed has.
fn around(seed: u64) -> Options {
    let mut options = pausing(seed);
    if has_bridge(seed) {
        options.memory = options.memory.bridge();
    }
    options
}

/// `bursts` of trouble of a seed.
///
/// # Errors
/// What broke, with the seed.
pub fn disturb(target: Target, bursts: u64, seed: u64) -> Result<Disturbed, String> {
    let (card, _) = target
        .card_in(move |_| around(seed))
        .map_err(|e| e.to_string())?;
    let run = || {
        let mut rng = Rng::with_seed(seed);
        let mut scene = scene(&card, target == Target::Model, seed, PATIENCE);
        scene.kernels[0].posts = true;
        let mut report = Disturbed::default();
        for burst in 0..bursts {
            beside(&mut scene, &mut report, &mut rng, burst as u32);
            if !has_bridge(seed) {
                refused(&mut scene, &mut report, &mut rng);
            }
            everywhere(&mut scene, &mut report, &mut rng);
            report.bursts += 1;
            // A good exchange.
            scene.open_all();
            (0..GOOD).for_each(|_| scene.step());
            scene.rest(REST);
            assert!(
                scene.strays.is_empty(),
                "a frame of an owner behind a reset"
            );
            scene.check();
            scene
                .lines
                .iter_mut()
                .for_each(|line| line.state = State::Open);
        }
        report.messages = scene.tally().messages;
        report
    };
    quiet::caught(run).map_err(|what| format!("seed {seed}: {what}"))
}

/// The owner's memory fails.
fn beside(scene: &mut Scene, report: &mut Disturbed, rng: &mut Rng, burst: u32) {
    let mut owner = Owner::new(scene, rng.u64(..), 1 + 8 * burst);
    owner.strict = false;
    let one_in = 1 << rng.u32(1..=6);
    let late_in = [0, 0, 200, 2000][rng.usize(..4)];
    for act in plan(ACTS, rng.u64(..)) {
        let troubles = Troubles::new(owner.places(), one_in, late_in, rng.u64(..));
        report.count(scene.watches[0].trouble(Some(troubles)));
        act.apply(&mut owner, scene);
    }
    owner.survive(scene);
    let late = Troubles::new(Vec::new(), 0, late_in, rng.u64(..));
    report.count(scene.watches[0].trouble(Some(late)));
    if rng.bool() {
        owner.die_now(scene);
    }
    owner.leave(scene);
    report.count(scene.watches[0].trouble(None));
    scene.check();
}

/// Memory of the connections refuses accesses: what succeeds all the same is right.
fn refused(scene: &mut Scene, report: &mut Disturbed, rng: &mut Rng) {
    let mut places = Vec::new();
    for line in &mut scene.lines {
        line.refused = true;
        places.extend(line.memory(0).map(|mr| mr.addr..mr.addr + mr.len));
    }
    let one_in = 1 << rng.u32(4..=8);
    let troubles = Troubles::refuse(places, one_in, rng.u64(..));
    scene.watches[0].trouble(Some(troubles));
    (0..GOOD).for_each(|_| scene.step());
    report.count(scene.watches[0].trouble(None));
    report.gave_up += scene.lines.iter().filter(|line| line.gave_up).count() as u64;
}

/// All memory fails, and then there is a reset.
fn everywhere(scene: &mut Scene, report: &mut Disturbed, rng: &mut Rng) {
    let idle = |scene: &Scene| scene.kernels[0].idle();
    scene.until(PATIENCE.command, "commands end", idle);
    let give_up = |scene: &mut Scene| scene.lines.iter_mut().for_each(|line| line.gave_up = true);
    let one_in = 1 << rng.u32(..=6);
    let stands = rng.u8(..4) == 0;
    // While memory stands nothing fails: what peers send goes on until there is no room for it.
    if !stands {
        give_up(scene);
    }
    let late_in = [0, 20, 200][rng.usize(..3)];
    let troubles = match stands {
        true => Troubles::stand(rng.u64(..)),
        false => Troubles::new(Vec::new(), one_in, late_in, rng.u64(..)),
    };
    scene.watches[0].trouble(Some(troubles));
    for step in 0..rng.u32(..if stands { 8000 } else { 1000 }) {
        if step % 32 == 0 {
            scene.ring_receives(Side::A);
        }
        scene.step();
    }
    give_up(scene);
    scene.reset(Side::A, rng.bool());
    report.count(scene.watches[0].trouble(None));
    scene.recover(Side::A);
    report.resets += 1;
    scene.strays.clear();
}

impl Disturbed {
    fn count(&mut self, troubles: Option<Troubles>) {
        if let Some(troubles) = troubles {
            self.failed += troubles.failed;
            self.late += troubles.late;
        }
    }
}
