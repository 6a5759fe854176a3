//! The targets and the run.

use std::rc::Rc;

use ferroce_hdl::engine::builds::STANDARD;
use ferroce_proto::abi::regs;
use ferroce_sim::memory::Ranges;
use ferroce_sim::model::Model;
use ferroce_sim::nic::Nic;
use ferroce_sim::rtl::build::BuildError;
use ferroce_sim::rtl::{Options, build};
use ferroce_sim::verilator;
use ferroce_system::pool;

use super::bench::Bench;
pub use super::seeded::Seeded;
use super::{Case, named};
use crate::differential::Card;
use crate::quiet;
use crate::world::World;

/// Cycles after which a card that does not say what it can is broken.
const ANSWER_CYCLES: u64 = 10_000;

/// An implementation of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The golden model with the table sizes of the standard build.
    Model,
    /// The standard build of the engine with a data path of this many bits, as Verilog.
    Rtl(usize),
    /// An engine with a defect.
    Seeded(Seeded),
}

impl Target {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 3] = [Self::Model, Self::Rtl(512), Self::Rtl(64)];

    /// Name in tables.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Model => "model".into(),
            Self::Rtl(width) => format!("RTL {width}"),
            Self::Seeded(seeded) => format!("RTL 64 with defect {}", seeded.number),
        }
    }

    /// A maker of cards in a world, and what they can, register FEATURES.
    ///
    /// # Errors
    /// The engine cannot be built.
    pub fn card(self, around: World) -> Result<(Card, u32), BuildError> {
        self.card_in(move |seed| world(around, seed))
    }

    /// A maker of cards in worlds that `options` has of a seed, and what they can, register FEATURES.
    ///
    /// # Errors
    /// The engine cannot be built.
    pub fn card_in(
        self,
        options: impl Fn(u64) -> Options + 'static,
    ) -> Result<(Card, u32), BuildError> {
        let card = match self {
            Self::Model => Card::new("model", |memory, _| Box::new(Model::new(STANDARD, memory))),
            Self::Seeded(seeded) => Card::new("engine", move |memory, seed| {
                let engine = seeded.engine(memory, &options(seed));
                engine.expect("there is memory for an engine")
            }),
            Self::Rtl(width) => {
                let engine = build::model(width, &verilator::Options::default())?;
                Card::new("engine", move |memory, seed| {
                    let engine = build::engine(&engine, memory, &options(seed));
                    Box::new(engine.expect("there is memory for an engine"))
                })
            }
        };
        let features = features(&mut *(card.build)(Rc::new(Ranges::new()), 0));
        Ok((card, features))
    }
}

/// The world of an engine in the suite. A case that waits for a command takes no frames, and a command may wait for
/// them.
#[must_use]
pub fn world(around: World, seed: u64) -> Options {
    Options {
        tx_room: usize::MAX,
        ..around.options(seed)
    }
}

/// What a card says of itself.
fn features(nic: &mut dyn Nic) -> u32 {
    nic.start_read32(regs::FEATURES.into());
    for _ in 0..ANSWER_CYCLES {
        nic.step();
        if let Some(value) = nic.take_read32() {
            return value;
        }
    }
    panic!("the card does not answer a read of FEATURES in {ANSWER_CYCLES} cycles");
}

/// What a case came to on a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The card keeps the rule.
    Passed,
    /// It does not; what was expected and what it did.
    Failed(String),
    /// The card does not claim what the case needs.
    NotClaimed,
}

/// Runs a case on cards of one kind.
#[must_use]
pub fn run(case: &Case, card: &Card, features: u32) -> Outcome {
    if features & case.needs != case.needs {
        return Outcome::NotClaimed;
    }
    let result = quiet::caught(|| {
        let mut bench = Bench::new(card);
        (case.run)(&mut bench);
        let failures = bench.failures();
        assert!(
            failures.is_empty(),
            "expected no DMA fault and no broken rule of a port, got {}",
            failures.join("; ")
        );
    });
    match result {
        Ok(()) => Outcome::Passed,
        Err(text) => Outcome::Failed(format!(
            "{text}\nrepeat with: cargo xtask conformance {}",
            case.name
        )),
    }
}

/// What the cases came to on the targets.
pub struct Report {
    /// The targets.
    pub targets: Vec<Target>,
    /// A case and its verdict on each target, in the order of the suite.
    pub rows: Vec<(&'static Case, Vec<Outcome>)>,
}

impl Report {
    /// The cases that failed, in words.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        for (case, outcomes) in &self.rows {
            for (target, outcome) in self.targets.iter().zip(outcomes) {
                if let Outcome::Failed(text) = outcome {
                    let (name, target) = (case.name, target.name());
                    failures.push(format!("{name} on {target} ({}): {text}", case.source));
                }
            }
        }
        failures
    }
}

/// Runs the cases [`named`] like `filter` on all processors; those that need what a card does not claim only if `unclaimed`.
/// `around` has the world of an engine by the place of the case.
///
/// # Errors
/// An engine cannot be built.
pub fn suite(
    targets: &[Target],
    filter: &str,
    unclaimed: bool,
    around: impl Fn(usize) -> World + Sync,
) -> Result<Report, BuildError> {
    suite_of(targets, named(filter).collect(), unclaimed, around)
}

/// As [`suite`], of these cases.
///
/// # Errors
/// An engine cannot be built.
pub fn suite_of(
    targets: &[Target],
    cases: Vec<&'static Case>,
    unclaimed: bool,
    around: impl Fn(usize) -> World + Sync,
) -> Result<Report, BuildError> {
    // Builds what has to be built, once; the threads find it in the cache.
    for target in targets {
        target.card(World::Fast)?;
    }
    let jobs =
        (0..targets.len()).flat_map(|target| (0..cases.len()).map(move |place| (target, place)));
    let outcomes = pool::each(pool::processors(), jobs, || {
        let all = |target: &Target| World::ALL.map(|around| target.card(around));
        let cards: Vec<_> = targets.iter().map(all).collect();
        let (cases, around) = (&cases, &around);
        move |(target, place)| {
            let around = around(place);
            let card = &cards[target][around as usize];
            let (card, features) = card.as_ref().expect("it was built a moment ago");
            let outcome = run(
                cases[place],
                card,
                if unclaimed { u32::MAX } else { *features },
            );
            match outcome {
                Outcome::Failed(text) if around != World::Fast => {
                    Outcome::Failed(format!("{text} --world {}", around.name()))
                }
                outcome => outcome,
            }
        }
    });
    let of = |place| outcomes.iter().skip(place).step_by(cases.len()).cloned();
    Ok(Report {
        targets: targets.to_vec(),
        rows: (0..)
            .zip(&cases)
            .map(|(place, &case)| (case, of(place).collect()))
            .collect(),
    })
}
