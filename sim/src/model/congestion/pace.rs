//! The pace of one queue pair: when it may start again.
//!
//! Time counts in cycles of 4 ns, a start in 1/256 of them. A byte at 1 Mb/s takes 2000 cycles; the time of a byte is rounded down to 2^-20.

/// Cycles behind its schedule that a queue pair may catch up with.
const CATCH_UP: u64 = 4096 << 8;

/// Start times of a queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Time of a byte in 2^-20 cycles, 0: no limit.
    gap: u64,
    /// Next start in 2^-8 cycles.
    start: u64,
    /// Bytes of the latest grant.
    last: u64,
}

impl Pace {
    /// The rate is `mbps` from now on, or has no limit. A start that is planned moves with it.
    ///
    /// # Panics
    /// If the rate is 0.
    pub fn set_rate(&mut self, now: u64, mbps: Option<u32>) {
        let gap = mbps.map_or(0, |mbps| {
            assert!(mbps > 0, "a rate of 0 never moves anything");
            (2000 << 20) / u64::from(mbps)
        });
        let planned = self.start >> 8 > now;
        if planned {
            self.start -= self.span(self.last);
        }
        self.gap = gap;
        if planned {
            self.start += self.span(self.last);
        }
    }

    /// It sends `bytes`.
    pub fn grant(&mut self, bytes: u32) {
        self.last = u64::from(bytes);
        self.start += self.span(self.last);
    }

    /// It wants to start again: the cycle in which it may. One that was idle has no credit; one that just sent, `busy`, may be a little
    /// behind its schedule.
    pub fn start(&mut self, now: u64, busy: bool) -> u64 {
        let credit = if busy { CATCH_UP } else { 0 };
        self.start = self.start.max((now << 8).saturating_sub(credit));
        self.start >> 8
    }

    /// The cycle of the next start.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.start >> 8
    }

    const fn span(&self, bytes: u64) -> u64 {
        (bytes * self.gap) >> 12
    }
}
