//! For how long the peer holds a class by its pauses (docs/classes.md, "A pause for ever").

use crate::nic::NS_PER_CYCLE;

/// Cycles of a millisecond.
const MILLISECOND: u64 = 1_000_000 / NS_PER_CYCLE;
/// As many cycles on hold are made up for by one that is free.
const FREE: u64 = 128;

/// Of a class.
#[derive(Clone, Default)]
pub(super) struct Held {
    cycles: u64,
    expired: bool,
}

impl Held {
    /// `cycles` cycles: a priority of it is asked to pause; it sends or has nothing to send. It may be held for `limit` ms, 0: for ever.
    pub(super) fn pass(&mut self, cycles: u64, limit: u32, asked: bool, free: bool) {
        if limit == 0 {
            *self = Self::default();
        } else if asked && !self.expired {
            self.cycles += cycles;
            self.expired = self.cycles > u64::from(limit) * MILLISECOND;
        } else if !asked && (free || self.expired) {
            self.cycles = self.cycles.saturating_sub(cycles * FREE);
            self.expired &= self.cycles > 0;
        }
    }

    /// It was held for too long, and not yet free for long enough.
    pub(super) fn expired(&self) -> bool {
        self.expired
    }
}
