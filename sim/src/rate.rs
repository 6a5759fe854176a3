//! Rates as fractions: exact, so that a run never depends on rounding.

/// Units (bytes, beats) in a number of cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    units: u32,
    cycles: u32,
}

impl Rate {
    /// One unit every cycle.
    pub const ONE: Self = Self {
        units: 1,
        cycles: 1,
    };

    /// `units` in every `cycles` cycles.
    ///
    /// # Panics
    /// If either is 0.
    #[must_use]
    pub const fn new(units: u32, cycles: u32) -> Self {
        assert!(units > 0 && cycles > 0, "a rate of 0 never moves anything");
        Self { units, cycles }
    }

    /// Bytes a cycle of 4 ns on an Ethernet of `gigabits` per second: 100 Gb/s are 50 bytes a cycle.
    ///
    /// # Panics
    /// If `gigabits` is 0.
    #[must_use]
    pub const fn ethernet(gigabits: u32) -> Self {
        Self::new(gigabits, 2)
    }

    /// Units of the fraction, see [`cycles`](Self::cycles).
    #[must_use]
    pub const fn units(self) -> u32 {
        self.units
    }

    /// Cycles in which [`units`](Self::units) pass.
    #[must_use]
    pub const fn cycles(self) -> u32 {
        self.cycles
    }
}

/// Lets a stream of beats through at a [`Rate`], with a burst of one beat at most.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    rate: Rate,
    credit: u32,
}

impl Pacer {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, credit: 0 }
    }

    /// A cycle has passed.
    #[inline]
    pub(crate) fn tick(&mut self) {
        let most = self.rate.cycles + self.rate.units;
        self.credit = (self.credit + self.rate.units).min(most);
    }

    /// Whether a beat may pass now.
    #[inline]
    pub(crate) fn ready(&self) -> bool {
        self.credit >= self.rate.cycles
    }

    /// A beat passes.
    #[inline]
    pub(crate) fn take(&mut self) {
        self.credit = self.credit.saturating_sub(self.rate.cycles);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beats_pass_at_the_rate() {
        for (units, cycles) in [(1, 1), (3, 4), (1, 7), (25, 32)] {
            let mut pacer = Pacer::new(Rate::new(units, cycles));
            let mut passed = 0;
            for _ in 0..cycles * 100 {
                pacer.tick();
                if pacer.ready() {
                    pacer.take();
                    passed += 1;
                }
            }
            assert_eq!(passed, units * 100, "{units}/{cycles}");
        }
    }

    #[test]
    fn idle_time_is_not_saved_up() {
        let mut pacer = Pacer::new(Rate::new(1, 4));
        (0..100).for_each(|_| pacer.tick());
        let burst = std::iter::from_fn(|| pacer.ready().then(|| pacer.take())).count();
        assert_eq!(burst, 1);
    }
}
