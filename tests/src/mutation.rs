//! Which mutants of the engine the conformance suite and the random campaigns find.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ferroce_hdl::emit::Design;
use ferroce_hdl::engine;
use ferroce_sim::mutation::schemata::Choice;
use ferroce_sim::mutation::sites::Mutant;
use ferroce_sim::verilator;
use serde::{Deserialize, Serialize};

use crate::conformance::run::{Outcome, run};
use crate::conformance::{Case, SLOW, all};
use crate::quiet::caught;
use crate::seeded::{CAMPAIGNS, Found, find, target, with_choices};
use crate::world::World;

/// What found a mutant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finder {
    /// The kind of test.
    pub net: String,
    /// The test.
    pub name: String,
}

impl Finder {
    /// A test of this kind.
    #[must_use]
    pub fn new(net: &str, name: impl Into<String>) -> Self {
        Self {
            net: net.into(),
            name: name.into(),
        }
    }

    /// A case of the conformance suite.
    #[must_use]
    pub fn case(name: &str) -> Self {
        Self::new("conformance cases", name)
    }
}

/// An engine with mutants in it.
pub struct Engines {
    model: &'static verilator::Model,
    /// How many each case found.
    finds: Mutex<BTreeMap<&'static str, u32>>,
    campaigns: Duration,
}

impl Engines {
    /// Builds the engine `design` with `mutants`, which are of its text, and gives the campaigns this time for each.
    ///
    /// # Errors
    /// What Verilator or the compiler says.
    pub fn build(
        design: &Design,
        mutants: &[Mutant],
        campaigns: Duration,
    ) -> Result<Self, verilator::Error> {
        let choices = (1..).zip(mutants).map(Choice::of).collect();
        Ok(Self {
            model: with_choices(design, choices)?,
            finds: Mutex::default(),
            campaigns,
        })
    }

    /// What finds the mutant of this number from 1, or the engine as it is with 0; `None` if nothing does.
    #[must_use]
    pub fn finder(&self, number: usize) -> Option<Finder> {
        let target = target(self.model, number);
        let Ok(Ok((card, _))) = caught(|| target.card(World::Hostile)) else {
            return Some(Finder::case("register FEATURES"));
        };
        // minutes of the suite behind minutes of the campaigns
        let campaigns: Vec<_> = CAMPAIGNS.iter().collect();
        let (found, _) = find(target, &campaigns, self.campaigns);
        if let Some(Found { campaign, seed, .. }) = found {
            let name = format!("{campaign}, portion {seed}");
            return Some(Finder::new("random campaigns", name));
        }
        let fails = |case: &&Case| matches!(run(case, &card, engine::FEATURES), Outcome::Failed(_));
        let case = self.cases().into_iter().find(fails)?;
        *lock(&self.finds).entry(case.name).or_default() += 1;
        Some(Finder::case(case.name))
    }

    /// The suite, with those first that found many, and last those that take long.
    fn cases(&self) -> Vec<&'static Case> {
        let mut cases: Vec<_> = all().collect();
        let finds = lock(&self.finds).clone();
        cases.sort_by_key(|case| {
            let found = finds.get(case.name).copied();
            (Reverse(found), SLOW.contains(&case.name))
        });
        cases
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
