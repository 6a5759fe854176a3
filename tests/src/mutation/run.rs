//! Which mutants the conformance suite and the differential test find.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ferroce_hdl::emit::Design;
use ferroce_hdl::engine;
use ferroce_sim::memory::HostMemory;
use ferroce_sim::nic::Nic;
use ferroce_sim::rtl::{Engine, Inputs, Outputs, Pins, VerilatedPins};
use ferroce_sim::verilator::{self, Port, Spec};
use ferroce_system::pool;

use super::schemata::{CHOICE, with_all};
use super::sites::Mutant;
use crate::conformance::run::{Outcome, run, world};
use crate::conformance::{Case, all};
use crate::differential::generate::Class;
use crate::differential::{Card, Setup};
use crate::world::World;

/// Scenarios of the differential test that a mutant meets when no case of the suite has found it, of each class.
const SCENARIOS: u64 = 20;

/// Cycles of a card's run. Without a mutant none gets near: one that a case still waits for then never ends.
const LIFE: u64 = 20_000_000;

/// The pins of a card that may be broken so that a case would wait for ever.
struct Mortal {
    pins: VerilatedPins,
    left: u64,
}

impl Pins for Mortal {
    fn lanes(&self) -> usize {
        self.pins.lanes()
    }

    fn settle(&mut self, inputs: &Inputs, outputs: &mut Outputs) {
        self.pins.settle(inputs, outputs);
    }

    fn clock(&mut self) {
        assert!(self.left > 0, "the card is at work after {LIFE} cycles");
        self.left -= 1;
        self.pins.clock();
    }
}

/// An engine with mutants in it.
pub struct Engines {
    model: verilator::Model,
    mutants: Vec<Mutant>,
}

impl Engines {
    /// Builds the engine `design` with `mutants`, which are of its text.
    ///
    /// # Errors
    /// What Verilator or the compiler says.
    pub fn build(design: &Design, mutants: Vec<Mutant>) -> Result<Self, verilator::Error> {
        let mut spec = Spec::from(design);
        spec.source = with_all(&spec.source, &spec.top, &mutants);
        spec.ports.push(Port::input(CHOICE, 16));
        let model = verilator::build(&spec, &verilator::Options::default())?;
        Ok(Self { model, mutants })
    }

    /// A maker of cards with the mutant of this number.
    fn card(&self, number: usize) -> Card {
        let model = self.model.clone();
        Card::new("mutant", move |memory, _| engine(&model, number, memory))
    }

    /// What finds the mutant of this number; `None` if nothing does. `cases` are tried in their order.
    fn finder(&self, number: usize, cases: &[&'static Case]) -> Option<String> {
        let card = self.card(number);
        let fails =
            |case: &&&Case| matches!(run(case, &card, engine::FEATURES), Outcome::Failed(_));
        if let Some(case) = cases.iter().find(fails) {
            return Some(case.name.into());
        }
        let setup = Setup::engine(card);
        for class in [Class::Lossless, Class::Lossy] {
            for seed in 1..=SCENARIOS {
                if setup.meets(seed, class).is_err() {
                    return Some(format!("{class:?} scenario {seed}"));
                }
            }
        }
        None
    }

    /// Tries all mutants, on all processors; `progress` hears of each. What found each of them, `None` where nothing did.
    ///
    /// # Errors
    /// The engine as it is fails: by what.
    pub fn try_all(
        &self,
        progress: &(dyn Fn(&Mutant, Option<&str>) + Sync),
    ) -> Result<Vec<Option<String>>, String> {
        let suite: Vec<_> = all().collect();
        // Cases that found many are tried first.
        let finds = Mutex::new(BTreeMap::<String, u32>::new());
        let finder = |number: usize| {
            let mut cases = suite.clone();
            let known = lock(&finds).clone();
            cases.sort_by_key(|case| Reverse(known.get(case.name)));
            let finder = self.finder(number, &cases);
            let Some(mutant) = number.checked_sub(1) else {
                return finder.map_or(Ok(None), Err);
            };
            progress(&self.mutants[mutant], finder.as_deref());
            if let Some(finder) = &finder {
                *lock(&finds).entry(finder.clone()).or_default() += 1;
            }
            Ok(finder)
        };
        let mut found = pool::try_each(pool::processors(), 0..=self.mutants.len(), || &finder)?;
        found.remove(0);
        Ok(found)
    }

    /// The mutants.
    #[must_use]
    pub fn mutants(&self) -> &[Mutant] {
        &self.mutants
    }
}

fn engine(model: &verilator::Model, number: usize, memory: Rc<dyn HostMemory>) -> Box<dyn Nic> {
    let mut dut = model.instance().expect("there is memory for an engine");
    let choice = dut.input(CHOICE).expect("it is among the ports");
    dut.set(choice, number as u64);
    let pins = VerilatedPins::new(dut).expect("the ports are those of the engine");
    let pins = Mortal { pins, left: LIFE };
    Box::new(Engine::new(pins, memory, &world(World::Fast, 1)))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
