//! Queue pairs by the cycle in which something of them is due.

use std::collections::BTreeSet;

/// A cycle for some of the queue pairs.
#[derive(Clone)]
pub(super) struct Agenda {
    order: BTreeSet<(u64, u32)>,
    /// That in `order` of each queue pair.
    cycles: Vec<Option<u64>>,
}

impl Agenda {
    pub(super) fn new(qps: u32) -> Self {
        Self {
            order: BTreeSet::new(),
            cycles: vec![None; qps as usize],
        }
    }

    pub(super) fn set(&mut self, qpn: u32, cycle: Option<u64>) {
        let old = std::mem::replace(&mut self.cycles[qpn as usize], cycle);
        if old != cycle {
            if let Some(old) = old {
                self.order.remove(&(old, qpn));
            }
            self.order.extend(cycle.map(|cycle| (cycle, qpn)));
        }
    }

    /// The earliest cycle.
    pub(super) fn next(&self) -> Option<u64> {
        self.order.first().map(|(cycle, _)| *cycle)
    }

    /// A queue pair whose cycle has come.
    pub(super) fn due(&self, now: u64) -> Option<u32> {
        let (cycle, qpn) = self.order.first()?;
        (*cycle <= now).then_some(*qpn)
    }
}
