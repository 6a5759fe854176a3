//! Defects that were mended, put back on purpose: which random campaign finds each, and how soon.
//!
//! All of them stand in one engine of 64 bits, of which an input chooses one, so it is built once. The campaigns take turns, a
//! seed each, and each has the same part of the time, until one fails or time is up; conformance cases and tests of a
//! defect's own have no part in it.

mod class_defects;
mod defect;
mod defects;

use std::time::{Duration, Instant};

use ferroce_hdl::emit::{Design, block_of};
use ferroce_hdl::engine::builds;
use ferroce_sim::mutation::schemata::{Choice, put_into};
use ferroce_sim::mutation::sites::Site;
use ferroce_sim::verilator::{self, Spec};

use crate::conformance::run::{Outcome, Seeded, Target, run};
use crate::conformance::{LONG_LIVES, all};
use crate::differential::Setup;
use crate::differential::generate::Class;
use crate::hostile::{attack, disturb, misuse};
use crate::world::{World, stand};
use crate::{former, paused, soak};

pub use defect::{Change, Defect};

/// All defects.
pub fn defects() -> impl Iterator<Item = &'static Defect> {
    defects::DEFECTS.iter().chain(class_defects::DEFECTS)
}

/// Data path of the engine.
const WIDTH: usize = 64;

/// A random campaign in portions of a few seconds.
pub struct Campaign {
    /// Its name.
    pub name: &'static str,
    run: fn(Target, u64) -> Result<(), String>,
}

/// The campaigns, in the order of their turns.
pub const CAMPAIGNS: [Campaign; 8] = [
    Campaign {
        name: "lossless",
        run: |target, seed| differential(target, Class::Lossless, 20, seed),
    },
    Campaign {
        name: "lossy",
        run: |target, seed| differential(target, Class::Lossy, 5, seed),
    },
    Campaign {
        name: "former lives",
        run: |target, seed| former::rounds(target, seed, 50),
    },
    Campaign {
        name: "hostile frames",
        run: |target, seed| attack(target, 1000, seed).map(drop),
    },
    Campaign {
        name: "hostile owner",
        run: |target, seed| misuse(target, 60, seed, 0).map(drop),
    },
    Campaign {
        name: "hostile bus",
        run: |target, seed| disturb(target, 1, seed).map(drop),
    },
    Campaign {
        name: "endurance",
        run: |target, seed| soak::round(target, 20_000, seed).map(drop),
    },
    Campaign {
        name: "paused classes",
        run: |target, seed| paused::round(target, 200_000, seed).map(drop),
    },
];

/// `count` scenarios.
fn differential(target: Target, class: Class, count: u64, seed: u64) -> Result<(), String> {
    let options = move |seed| {
        let mut options = World::of(seed).options(seed);
        if class == Class::Lossless {
            options.tx_stand = stand(seed);
        }
        options
    };
    let (card, _) = target.card_in(options).map_err(|e| e.to_string())?;
    let setup = Setup::engine(card);
    let mut seeds = (seed - 1) * count + 1..=seed * count;
    seeds.try_for_each(|seed| setup.meets(seed, class))
}

/// Where the changes of all defects stand in the Verilog of an engine.
///
/// # Errors
/// A change whose line does not stand once in its block.
fn choices(source: &str) -> Result<Vec<Choice>, String> {
    let mut block = "";
    let mut lines = Vec::new();
    for (number, line) in source.lines().enumerate() {
        if let Some(rest) = line.strip_prefix("module ") {
            block = block_of(rest.split(' ').next().unwrap_or_default());
        }
        lines.push((block, number, line.trim_start()));
    }
    let mut choices = Vec::new();
    for (number, defect) in (1..).zip(defects()) {
        for change in defect.changes {
            let mut found = lines.iter().filter(|(block, _, line)| {
                let sizes = block.strip_prefix(change.block);
                sizes.is_some_and(|sizes| sizes.is_empty() || sizes.starts_with('_'))
                    && *line == change.line
                    && Site::of(line).is_some()
            });
            let (Some((_, line, _)), None) = (found.next(), found.next()) else {
                let (name, Change { block, line, .. }) = (defect.name, change);
                return Err(format!(
                    "{name}: this does not stand once in `{block}`: {line}"
                ));
            };
            choices.push(Choice {
                number,
                line: *line,
                expression: change.becomes.into(),
            });
        }
    }
    Ok(choices)
}

/// The engine with all defects.
///
/// # Errors
/// What Verilator or the compiler says, or a change that has no place.
pub fn engine() -> Result<&'static verilator::Model, String> {
    let design: Design = builds::verilog(WIDTH)?;
    let choices = choices(&design.source())?;
    with_choices(&design, choices).map_err(|e| e.to_string())
}

/// The engine `design` with `choices`, for the life of the process.
pub(crate) fn with_choices(
    design: &Design,
    choices: Vec<Choice>,
) -> Result<&'static verilator::Model, verilator::Error> {
    let mut spec = Spec::from(design);
    put_into(&mut spec, choices);
    let model = verilator::build(&spec, &verilator::Options::default())?;
    Ok(Box::leak(Box::new(model)))
}

/// The first failure.
pub struct Found {
    /// The campaign.
    pub campaign: &'static str,
    /// Its portion.
    pub seed: u64,
    /// What it said.
    pub what: String,
}

/// The engine with the defect of a number from 1, or with none.
#[must_use]
pub const fn target(model: &'static verilator::Model, number: usize) -> Target {
    Target::Seeded(Seeded { model, number })
}

/// What the case of a defect makes of a target in each world; none if there is no such case.
///
/// # Errors
/// What Verilator or the compiler says.
pub fn case_of(defect: &Defect, target: Target) -> Result<Option<[Outcome; 3]>, String> {
    let Some(name) = defect.case else {
        return Ok(None);
    };
    let case = all().chain(LONG_LIVES).find(|case| case.name == name);
    let case = case.ok_or_else(|| format!("{}: no case {name}", defect.name))?;
    let mut outcomes = Vec::new();
    for world in World::ALL {
        let (card, features) = target.card(world).map_err(|e| e.to_string())?;
        outcomes.push(run(case, &card, features));
    }
    Ok(outcomes.try_into().ok())
}

/// What `campaigns` make of a target in the time given, each in the same part of it; and what they took.
///
/// # Panics
/// Without a campaign.
#[must_use]
pub fn find(target: Target, campaigns: &[&Campaign], time: Duration) -> (Option<Found>, Duration) {
    let start = spent();
    // portions of each, and the time that they took
    let mut done = vec![(0, Duration::ZERO); campaigns.len()];
    loop {
        let began = spent();
        if began - start > time {
            return (None, began - start);
        }
        let turns = campaigns.iter().zip(&mut done);
        let next = turns.min_by_key(|(_, (_, took))| *took);
        let (campaign, (seed, took)) = next.expect("there is a campaign");
        *seed += 1;
        let result = crate::quiet::caught(|| (campaign.run)(target, *seed));
        if let Err(what) = result.and_then(|result| result) {
            let found = Found {
                campaign: campaign.name,
                seed: *seed,
                what,
            };
            return (Some(found), spent() - start);
        }
        *took += spent() - began;
    }
}

/// Time that this thread had a processor, which other work beside it does not change; without a kernel that tells, the clock.
fn spent() -> Duration {
    static BEGIN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = text.and_then(|text| text.split(' ').next()?.parse().ok());
    nanos.map_or_else(
        || BEGIN.get_or_init(Instant::now).elapsed(),
        Duration::from_nanos,
    )
}

#[cfg(test)]
mod tests {
    use ferroce_hdl::control::drain::section::{
        CLASS_QUEUES, CNPS, PASSAGE, QP_EVENTS, REQUESTS, RESPONSES, TO_REQUESTER, TO_RESPONDER,
    };

    /// A drain with a section more counts those behind it anew.
    #[test]
    fn drains_leave_out_what_they_say() {
        let left_out = |name| -> Vec<usize> {
            let defect = super::defects().find(|defect| defect.name == name);
            let changes = defect.expect("it is there").changes.iter();
            let section = |line: &str| line.split('_').nth_back(1)?.parse().ok();
            changes.filter_map(|change| section(change.line)).collect()
        };
        let wire = [REQUESTS, RESPONSES, CNPS, PASSAGE, CLASS_QUEUES];
        assert_eq!(left_out("drain_without_wire"), wire);
        let events = [TO_REQUESTER, TO_RESPONDER, QP_EVENTS];
        assert_eq!(left_out("drain_without_events"), events);
    }

    #[test]
    fn every_change_has_its_place() {
        let design = super::builds::verilog(super::WIDTH).expect("the engine is emitted");
        let choices = super::choices(&super::Spec::from(&design).source).expect("each has");
        assert!(choices.len() >= super::defects().count());
    }

    #[test]
    fn every_case_is_one_of_the_suite() {
        for defect in super::defects() {
            let mut cases = super::all().chain(super::LONG_LIVES);
            let is_case = |name| cases.any(|case| case.name == name);
            assert!(defect.case.is_none_or(is_case), "{}", defect.name);
        }
    }
}
