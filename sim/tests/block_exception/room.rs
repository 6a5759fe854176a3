//! The room of frames of the host.

use std::collections::VecDeque;

use fastrand::Rng;
use ferroce_sim::bench::Agent;
use ferroce_sim::verilator::{Dut, Input, Output};

/// Lets frames leave at random times.
pub(crate) struct Room {
    waits: Output,
    frame: [Output; 2],
    may_leave: Input,
    /// A frame waits, or leaves.
    pub(crate) waiting: bool,
    /// None may leave.
    pub(crate) shut: bool,
    gives: bool,
    given: bool,
    /// Class and beats of those that were let go and have not left.
    pub(crate) gone: VecDeque<[u64; 2]>,
}

impl Room {
    pub(crate) fn new(dut: &Dut) -> Self {
        let output = |name: &str| dut.output(name).expect("a port");
        Self {
            waits: output("host_waits"),
            frame: ["host_class", "host_beats"].map(output),
            may_leave: dut.input("host_may_leave").expect("a port"),
            waiting: false,
            shut: false,
            gives: false,
            given: false,
            gone: VecDeque::new(),
        }
    }
}

impl Agent for Room {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        self.gives = self.waiting && !self.given && !self.shut && rng.u8(..4) == 0;
        dut.set(self.may_leave, self.gives.into());
    }

    fn observe(&mut self, dut: &Dut, _: u64) -> Result<(), String> {
        if self.gives {
            self.gone
                .push_back(self.frame.map(|output| dut.get(output)));
        }
        self.waiting = dut.is_set(self.waits);
        self.given = self.waiting && (self.given || self.gives);
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        None
    }

    fn reset(&mut self, dut: &mut Dut) {
        dut.set(self.may_leave, 0);
    }
}
