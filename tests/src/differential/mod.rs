//! Random differential test: the same scenario on two pairs of cards, which must come to the same.
//!
//! A seed makes a [`Scenario`]: up to eight connections with queues, memory regions and messages of
//! every shape, sound and faulty, hostile frames and commands, and a wire; addresses, numbers of objects and fields of headers
//! that no rule depends on are drawn from it too. [`Setup::check`] executes it on two cards of the
//! reference and on a pair that holds the card under test at one side or both, and compares what they came to:
//!
//! * all registered memory and the bytes around it;
//! * the completions of every queue in order, whole entries but for the phase, of failed ones what verbs define;
//! * the packet at every PSN, headers and payload; ACKs by what they acknowledge in the end; NAKs;
//! * the dynamic state of the queue pairs, the counters, the answers of commands.
//!
//! By itself every run must keep the rules:
//!
//! * memory belongs to the host again from a completion on, which overwrites what was sent and looks at what came then;
//! * no DMA fault, no broken port rule, every ICRC right;
//! * no gap in the PSNs, the same packet whenever a PSN is sent again, the right MSN in every response, no ACK of a READ or
//!   atomic, which its own response acknowledges;
//! * completions in order, counters of frames that agree with the wire.
//!
//! Timing differs between implementations, so what it decides is left out, here and nowhere else:
//!
//! | what | why | how |
//! |---|---|---|
//! | number of ACKs | responders may coalesce | the last one and every MSN are compared |
//! | retransmissions, RNR NAKs | a receive buffer that is late, loss | by PSN instead of by order ([`Agreement::Contents`]) |
//! | packets behind one that fails | the NAK is on its way | PSNs that both sent ([`Agreement::UntilFailure`]) |
//! | which of two faults of a queue pair is counted | one is found when a packet is decided, one when its memory is looked up | their sum |
//! | order of completions of different queues | they run concurrently | each queue by itself |
//! | AckReq within a message | up to the requester | taken out |
//! | messages against a failing queue pair from its own side | a race that verbs leave open | not generated, see [`generate`] |
//! | NAK or silence from a queue pair that failed, on a wire with loss | the NAK may be lost | not generated |
//!
//! [`Agreement::Contents`]: scenario::Agreement::Contents
//! [`Agreement::UntilFailure`]: scenario::Agreement::UntilFailure

mod bench;
pub mod campaign;
pub mod case;
pub mod generate;
mod hostile;
mod numbers;
pub mod outcome;
mod owner;
mod port;
pub mod run;
pub mod scenario;
pub mod shrink;
pub mod tap;
mod wqe;

use std::rc::Rc;

use ferroce_hdl::engine::{FEATURES, builds::STANDARD};
use ferroce_proto::abi::regs::Params;
use ferroce_sim::memory::HostMemory;
use ferroce_sim::model::Model;
use ferroce_sim::nic::Nic;

use generate::Class;
use outcome::Outcome;
use run::run;
use scenario::Scenario;
use serde::{Deserialize, Serialize};
use shrink::Selection;

use crate::quiet;
use crate::world::{Draw, draw};

/// Builds a card after reset on a host's memory; the number seeds what is random about it.
pub type Factory = dyn Fn(Rc<dyn HostMemory>, u64) -> Box<dyn Nic>;

/// An implementation of the card.
pub struct Card {
    /// Its name in reports.
    pub name: &'static str,
    /// Makes one.
    pub build: Box<Factory>,
}

impl Card {
    /// An implementation under a name.
    pub fn new(
        name: &'static str,
        build: impl Fn(Rc<dyn HostMemory>, u64) -> Box<dyn Nic> + 'static,
    ) -> Self {
        Self {
            name,
            build: Box::new(build),
        }
    }
}

/// What is compared with what.
pub struct Setup {
    /// Table sizes of both implementations.
    pub params: Params,
    /// Features (see `abi::regs::feature`) of both implementations.
    pub features: u32,
    /// The implementation to compare with.
    pub reference: Card,
    /// The implementation under test.
    pub subject: Card,
}

/// Where the implementation under test is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Pairing {
    /// At both sides.
    Both,
    /// At side A, the reference at side B.
    SideA,
    /// At side B, the reference at side A.
    SideB,
}

impl Pairing {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Both, Self::SideA, Self::SideB];

    /// That of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        draw(seed, Draw::Pairing, Self::ALL)
    }
}

/// A scenario on which two implementations differ.
#[derive(Debug)]
pub struct Mismatch {
    /// What is left of the scenario, as small as it could be made.
    pub left: Selection,
    /// That scenario.
    pub scenario: Scenario,
    /// What differs, the gravest first.
    pub differences: Vec<String>,
}

impl Setup {
    /// A standard build of the engine, with the golden model of its size and features as reference.
    #[must_use]
    pub fn engine(subject: Card) -> Self {
        Self {
            params: STANDARD,
            features: FEATURES,
            reference: Card::new("model", |memory, _| {
                Box::new(Model::with_features(STANDARD, FEATURES, memory))
            }),
            subject,
        }
    }

    /// Executes the scenario of a seed in the pairing of that seed.
    ///
    /// # Errors
    /// What differs, or how a test host panicked, in words.
    pub fn meets(&self, seed: u64, class: Class) -> Result<(), String> {
        let scenario = generate::scenario(seed, class, self.features);
        let found = quiet::caught(|| self.compare(&scenario, Pairing::of(seed)));
        let text = match found {
            Ok(found) if found.is_empty() => return Ok(()),
            Ok(found) => found.join("; "),
            Err(text) => text,
        };
        Err(format!("{class:?} scenario {seed}: {text}"))
    }

    /// What differs when `scenario` runs in a pairing; empty if nothing does.
    #[must_use]
    pub fn compare(&self, scenario: &Scenario, pairing: Pairing) -> Vec<String> {
        self.compare_with(&self.expected(scenario), scenario, pairing)
    }

    /// What a scenario comes to.
    fn expected(&self, scenario: &Scenario) -> Outcome {
        run(scenario, &self.params, [&self.reference, &self.reference])
    }

    fn compare_with(
        &self,
        expected: &Outcome,
        scenario: &Scenario,
        pairing: Pairing,
    ) -> Vec<String> {
        let (r, s) = (&self.reference, &self.subject);
        let cards = match pairing {
            Pairing::Both => [s, s],
            Pairing::SideA => [s, r],
            Pairing::SideB => [r, s],
        };
        let actual = run(scenario, &self.params, cards);
        expected.differences(&actual, scenario)
    }

    /// Executes the scenario of a seed in a pairing; shrinks it if the implementations differ, with at most `budget` more
    /// comparisons.
    ///
    /// # Errors
    /// [`Mismatch`] if they do.
    pub fn check(
        &self,
        seed: u64,
        class: Class,
        pairing: Pairing,
        budget: u32,
    ) -> Result<(), Box<Mismatch>> {
        let scenario = generate::scenario(seed, class, self.features);
        if self.compare(&scenario, pairing).is_empty() {
            return Ok(());
        }
        // A scenario without the step that fails may wait for ever: that is no smaller form of it.
        let left = shrink::shrink(&scenario, budget, |smaller| {
            let expected = self.expected(smaller);
            expected.failures.is_empty()
                && !self.compare_with(&expected, smaller, pairing).is_empty()
        });
        let scenario = left.of(&scenario);
        let differences = self.compare(&scenario, pairing);
        Err(Box::new(Mismatch {
            left,
            scenario,
            differences,
        }))
    }
}
