//! Takes interrupts, with pauses, and notes when they were asked for and taken.

use fastrand::Rng;
use ferroce_sim::bench::Agent;
use ferroce_sim::random::Chance;
use ferroce_sim::verilator::{Dut, Input, Output};

/// The taker of interrupts.
pub(crate) struct Irq {
    valid: Output,
    vector: Output,
    ready: Input,
    /// Chance that one that waits is taken in a cycle.
    pub(crate) chance: Chance,
    taking: bool,
    waiting: Option<u16>,
    /// Asked for in this cycle; taken in this cycle.
    pub(crate) raised: Option<u16>,
    pub(crate) taken: Option<u16>,
}

impl Irq {
    pub(crate) fn new(dut: &Dut) -> Self {
        Self {
            valid: dut.output("irq_valid").expect("a port"),
            vector: dut.output("irq_vector").expect("a port"),
            ready: dut.input("irq_ready").expect("a port"),
            chance: Chance::new(1.0),
            taking: false,
            waiting: None,
            raised: None,
            taken: None,
        }
    }
}

impl Agent for Irq {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        self.taking = self.chance.hit(rng);
        dut.set(self.ready, self.taking.into());
    }

    fn observe(&mut self, dut: &Dut, _: u64) -> Result<(), String> {
        let valid = dut.is_set(self.valid);
        let vector = valid.then(|| dut.get(self.vector) as u16);
        if self.waiting.is_some() && self.waiting != vector {
            return Err(format!("interrupt {:?} became {vector:?}", self.waiting));
        }
        self.raised = vector.filter(|_| self.waiting.is_none());
        self.taken = vector.filter(|_| self.taking);
        self.waiting = vector.filter(|_| !self.taking);
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        self.waiting.map(|vector| format!("interrupt {vector}"))
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.waiting = None;
        dut.set(self.ready, 0);
    }
}
