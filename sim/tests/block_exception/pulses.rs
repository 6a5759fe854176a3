//! What the queue counts.

use std::collections::BTreeMap;

use fastrand::Rng;
use ferroce_sim::bench::Agent;
use ferroce_sim::verilator::{Dut, Input, Output};

/// Adds up the pulses.
pub(crate) struct Pulses {
    pub(crate) outputs: [Output; 6],
    pub(crate) other: Input,
    /// A frame of the transport is counted in this cycle.
    pub(crate) is_other: bool,
    pub(crate) counts: [u64; 6],
    /// `m_axis`: valid, last, mark; and the mark of the last beat that was offered in each cycle.
    pub(crate) wire: [Output; 3],
    pub(crate) marks: BTreeMap<u64, u64>,
}

impl Agent for Pulses {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        self.is_other = rng.u8(..4) != 0;
        dut.set(self.other, self.is_other.into());
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        let [valid, last, mark] = self.wire.map(|output| dut.get(output));
        if valid & last == 1 {
            self.marks.insert(cycle, mark);
        }
        let values = self.outputs.map(|output| dut.get(output));
        if values[4] != 0 && self.is_other {
            return Err("two frames counted in a cycle".into());
        }
        for (i, (count, value)) in self.counts.iter_mut().zip(values).enumerate() {
            *count += if i < 5 || values[4] != 0 { value } else { 0 };
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        None
    }

    fn reset(&mut self, dut: &mut Dut) {
        dut.set(self.other, 0);
    }
}
