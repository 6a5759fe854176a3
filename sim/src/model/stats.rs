//! Statistics, by the names of [`STATS`].

use ferroce_proto::abi::regs::STATS;

/// A counter: its place in [`STATS`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat(usize);

macro_rules! constants {
    ($( $(#[$doc:meta])* $name:ident $constant:ident $bits:literal, )*) => {
        /// Places of the counters, by name.
        #[allow(non_camel_case_types)]
        enum At { $($name),* }
        $( $(#[$doc])* #[allow(dead_code, reason = "a MAC and a full buffer, which the model has not, drop frames")]
        pub(super) const $constant: Stat = Stat(At::$name as usize); )*
    };
}
ferroce_proto::counters!(constants);

impl Stat {
    /// That `n` places behind it.
    pub(super) const fn nth(self, n: usize) -> Self {
        Self(self.0 + n)
    }
}

/// The counters.
#[derive(Clone)]
pub(super) struct Stats {
    counters: [u64; STATS.len()],
    /// High half of the counter whose low half was read last.
    latch: u32,
}

impl Stats {
    pub(super) const fn new() -> Self {
        Self {
            counters: [0; STATS.len()],
            latch: 0,
        }
    }

    pub(super) fn count(&mut self, stat: Stat) {
        self.add(stat, 1);
    }

    pub(super) fn add(&mut self, stat: Stat, n: u64) {
        self.counters[stat.0] = self.counters[stat.0].wrapping_add(n);
    }

    /// Value of 32-bit word `word` of the statistics page.
    pub(super) fn read32(&mut self, word: usize) -> u32 {
        let Some(&counter) = self.counters.get(word / 2) else {
            return 0;
        };
        if word % 2 == 1 {
            return self.latch;
        }
        self.latch = (counter >> 32) as u32;
        counter as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_low_half_latches_the_high_half() {
        let mut s = Stats::new();
        s.add(RX_BYTES, 0x1_ffff_ffff);
        assert_eq!(s.read32(2), 0xffff_ffff);
        s.count(RX_BYTES);
        assert_eq!(s.read32(3), 1, "as it was when the low half was read");
        assert_eq!((s.read32(2), s.read32(3)), (0, 2));
        assert_eq!(s.read32(2 * STATS.len()), 0);
    }
}
