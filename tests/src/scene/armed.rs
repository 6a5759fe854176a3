//! A completion queue whose host sleeps: an event comes for the next completion of the kind that it asked for.

use fastrand::Rng;
use ferroce_proto::abi::cq::{Cqe, status};
use ferroce_proto::abi::doorbell::{ARM_ANY, ARM_SOLICITED};
use ferroce_sim::testhost::Host;

/// Orders that were given and not answered.
#[derive(Default)]
pub(super) struct Armed {
    any: bool,
    solicited: bool,
    /// Cycle since which an event is due.
    due: Option<u64>,
}

impl Armed {
    /// A completion came.
    pub(super) fn saw(&mut self, cqe: &Cqe, now: u64) {
        let asked = self.any
            || self.solicited && (cqe.recv && cqe.solicited || cqe.status != status::SUCCESS);
        if asked {
            self.due.get_or_insert(now);
        }
    }

    /// An event came.
    pub(super) fn reported(&mut self) {
        *self = Self::default();
    }

    /// An event is to come.
    pub(super) fn is_due(&self) -> bool {
        self.due.is_some()
    }

    /// An event has been due for `patience` cycles.
    pub(super) fn is_late(&self, now: u64, patience: u64) -> bool {
        self.due.is_some_and(|due| now >= due + patience)
    }

    /// The queue is empty, and the host sleeps now and then.
    pub(super) fn step(&mut self, host: &mut Host, cqn: u16, rng: &mut Rng) {
        if self.any || self.solicited || rng.u8(..16) > 0 {
            return;
        }
        // A weaker order takes no other back.
        let orders: [&[u32]; 4] = [
            &[ARM_ANY],
            &[ARM_SOLICITED],
            &[ARM_ANY, ARM_SOLICITED],
            &[ARM_SOLICITED, ARM_ANY],
        ];
        for order in orders[rng.usize(..4)] {
            host.arm_cq(cqn, *order);
            self.any |= *order == ARM_ANY;
            self.solicited |= *order == ARM_SOLICITED;
        }
    }
}
