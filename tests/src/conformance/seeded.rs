//! An engine that may be broken.

use std::rc::Rc;

use ferroce_sim::memory::HostMemory;
use ferroce_sim::mutation::schemata::CHOICE;
use ferroce_sim::nic::Nic;
use ferroce_sim::rtl::{Engine, Inputs, Options, Outputs, Pins, VerilatedPins};
use ferroce_sim::verilator;

/// One of the defects of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Seeded {
    /// The engine, with the input [`CHOICE`].
    pub model: &'static verilator::Model,
    /// The defect, from 1; 0 is the engine without.
    pub number: usize,
}

impl PartialEq for Seeded {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Seeded {}

impl Seeded {
    pub(super) fn engine(
        &self,
        memory: Rc<dyn HostMemory>,
        options: &Options,
    ) -> Result<Box<dyn Nic>, verilator::Error> {
        let mut dut = self.model.instance_randomised(options.seed)?;
        let choice = dut.input(CHOICE)?;
        dut.set(choice, self.number as u64);
        let pins = VerilatedPins::new(dut)?;
        let pins = Mortal { pins, left: LIFE };
        Ok(Box::new(Engine::new(pins, memory, options)))
    }
}

/// Cycles of a card's run. Without a defect none gets near: one that a test still waits for then never ends.
const LIFE: u64 = 50_000_000;

/// The pins of a card that may be broken so that a test would wait for ever.
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
