//! The table of send queues and the memory region table, as the block sees them.

use std::collections::VecDeque;

use fastrand::Rng;
use ferroce_sim::bench::Agent;
use ferroce_sim::verilator::Dut;

use super::work::{NO_REGION, WRITABLE};

/// A grant under way: action, PSN, offset, count, again, last part, fresh, round, incarnation.
pub(super) type Grant = [(&'static str, u64); 10];

/// Gives grants in order, some cycles after they were made.
#[derive(Default)]
pub(super) struct Grants {
    pub(super) queue: VecDeque<(u64, Grant)>,
    pub(super) cycle: u64,
}

impl Agent for Grants {
    fn drive(&mut self, dut: &mut Dut, _: &mut Rng) {
        let due = self
            .queue
            .front()
            .is_some_and(|grant| grant.0 <= self.cycle);
        dut.set(dut.input("grant_valid").unwrap(), due.into());
        if due {
            for (field, value) in self.queue.pop_front().unwrap().1 {
                dut.set(dut.input(&format!("grant.{field}")).unwrap(), value);
            }
        }
        self.cycle += 1;
    }
    fn observe(&mut self, _: &Dut, _: u64) -> Result<(), String> {
        Ok(())
    }
    fn pending(&self) -> Option<String> {
        (!self.queue.is_empty()).then(|| "grants under way".into())
    }
    fn reset(&mut self, dut: &mut Dut) {
        dut.set(dut.input("grant_valid").unwrap(), 0);
    }
}

/// The memory region table, by key.
#[derive(Default)]
pub(super) struct Regions {
    pipe: VecDeque<Option<bool>>,
}

impl Agent for Regions {
    fn drive(&mut self, dut: &mut Dut, _: &mut Rng) {
        let due = self.pipe.len() == 4;
        let answer = due.then(|| self.pipe.pop_front().unwrap()).flatten();
        dut.set(dut.input("mr_done").unwrap(), answer.is_some().into());
        dut.set(dut.input("mr_ok").unwrap(), answer.unwrap_or(false).into());
    }
    fn observe(&mut self, dut: &Dut, _: u64) -> Result<(), String> {
        let asked = dut.is_set(dut.output("mr_valid").unwrap());
        let field = |name| dut.get(dut.output(name).unwrap());
        let (key, right) = (field("mr_request.key"), field("mr_request.right"));
        let pd_known = field("mr_request.pd") >> 8 == 0x7700;
        let good = key != u64::from(NO_REGION) && (right == 0 || key == u64::from(WRITABLE));
        let ok = field("mr_request.len") == 0 || (good && pd_known);
        self.pipe.push_back(asked.then_some(ok));
        Ok(())
    }
    fn pending(&self) -> Option<String> {
        None
    }
    fn reset(&mut self, dut: &mut Dut) {
        dut.set(dut.input("mr_done").unwrap(), 0);
    }
}
