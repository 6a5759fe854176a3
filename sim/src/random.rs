//! Seeded chance: the dials of every model that makes life hard for the engine.
//!
//! Each model owns a generator made from its seed, so a run is repeated by its seeds alone.

use fastrand::Rng;
use ferroce_proto::wire::{
    AethRepr, AtomicAckEthRepr, AtomicEthRepr, DethRepr, Ext, Extensions, Opcode, RethRepr,
    Syndrome,
};

/// A probability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chance {
    /// Out of 2^32.
    threshold: u64,
}

impl Chance {
    /// Probability 0; draws nothing from the generator.
    pub const NEVER: Self = Self { threshold: 0 };

    /// Probability `p`.
    ///
    /// # Panics
    /// If `p` is not within 0 to 1.
    #[must_use]
    pub fn new(p: f64) -> Self {
        assert!(
            (0.0..=1.0).contains(&p),
            "probability {p} is not within 0 to 1"
        );
        Self {
            threshold: (p * (1u64 << 32) as f64) as u64,
        }
    }

    /// Whether it happens this time.
    #[inline]
    pub fn hit(self, rng: &mut Rng) -> bool {
        self.threshold != 0 && u64::from(rng.u32(..)) < self.threshold
    }
}

/// A delay in cycles, uniform within its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delay {
    min: u32,
    max: u32,
}

impl Delay {
    /// Always `cycles`.
    #[must_use]
    pub const fn fixed(cycles: u32) -> Self {
        Self {
            min: cycles,
            max: cycles,
        }
    }

    /// `min` to `max` cycles, both included.
    ///
    /// # Panics
    /// If `min` is above `max`.
    #[must_use]
    pub fn between(min: u32, max: u32) -> Self {
        assert!(min <= max, "delay from {min} to {max} cycles is empty");
        Self { min, max }
    }

    /// Cycles this time.
    #[inline]
    pub fn draw(self, rng: &mut Rng) -> u64 {
        u64::from(if self.min == self.max {
            self.min
        } else {
            rng.u32(self.min..=self.max)
        })
    }
}

/// Random pauses of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// Chance, in a cycle without pause, that one begins.
    pub chance: Chance,
    /// A pause lasts 1 to this many cycles; 0 is taken as 1.
    pub longest: u32,
}

impl Pauses {
    /// None.
    pub const NONE: Self = Self {
        chance: Chance::NEVER,
        longest: 0,
    };

    /// Pauses that begin with probability `p` and last 1 to `longest` cycles.
    ///
    /// # Panics
    /// If `p` is not within 0 to 1.
    #[must_use]
    pub fn new(p: f64, longest: u32) -> Self {
        Self {
            chance: Chance::new(p),
            longest,
        }
    }
}

/// A channel that pauses as [`Pauses`] say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pausing {
    pauses: Pauses,
    left: u32,
}

impl Pausing {
    pub(crate) fn new(pauses: Pauses) -> Self {
        Self { pauses, left: 0 }
    }

    /// Whether the channel pauses in the coming cycle; called once a cycle.
    #[inline]
    pub(crate) fn now(&mut self, rng: &mut Rng) -> bool {
        if self.left == 0 && self.pauses.chance.hit(rng) {
            self.left = rng.u32(1..=self.pauses.longest.max(1));
        }
        let pausing = self.left > 0;
        self.left = self.left.saturating_sub(1);
        pausing
    }
}

/// The extension headers of an opcode, each field anywhere in its range.
#[must_use]
pub fn extensions(rng: &mut Rng, opcode: Opcode) -> Extensions {
    let has = |ext| opcode.has(ext);
    Extensions {
        deth: has(Ext::Deth).then(|| DethRepr {
            qkey: rng.u32(..),
            src_qp: rng.u32(..1 << 24),
        }),
        reth: has(Ext::Reth).then(|| RethRepr {
            va: rng.u64(..),
            rkey: rng.u32(..),
            dma_len: rng.u32(..),
        }),
        atomic: has(Ext::AtomicEth).then(|| AtomicEthRepr {
            va: rng.u64(..),
            rkey: rng.u32(..),
            swap_add: rng.u64(..),
            compare: rng.u64(..),
        }),
        aeth: has(Ext::Aeth).then(|| AethRepr {
            syndrome: Syndrome::from_bits(rng.u8(..)),
            msn: rng.u32(..1 << 24),
        }),
        atomic_ack: has(Ext::AtomicAckEth).then(|| AtomicAckEthRepr {
            original: rng.u64(..),
        }),
        imm: has(Ext::ImmDt).then(|| rng.u32(..)),
        ieth: has(Ext::Ieth).then(|| rng.u32(..)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_chance_are_certain() {
        let mut rng = Rng::with_seed(1);
        let (never, always) = (Chance::new(0.0), Chance::new(1.0));
        assert!((0..1000).all(|_| !never.hit(&mut rng) && always.hit(&mut rng)));
        let hits = (0..10_000)
            .filter(|_| Chance::new(0.3).hit(&mut rng))
            .count();
        assert!((2700..3300).contains(&hits), "{hits} of 10000 at 0.3");
    }

    #[test]
    fn delays_reach_both_bounds() {
        let mut rng = Rng::with_seed(2);
        let drawn: Vec<_> = (0..200)
            .map(|_| Delay::between(3, 5).draw(&mut rng))
            .collect();
        for cycles in 3..=5 {
            assert!(drawn.contains(&cycles), "{cycles} never drawn");
        }
        assert!(drawn.iter().all(|d| (3..=5).contains(d)));
        assert_eq!(Delay::fixed(7).draw(&mut rng), 7);
    }

    #[test]
    fn pauses_have_the_length_asked_for() {
        let mut rng = Rng::with_seed(3);
        let mut channel = Pausing::new(Pauses::new(0.05, 4));
        let (mut run, mut longest) = (0, 0);
        for _ in 0..10_000 {
            run = if channel.now(&mut rng) { run + 1 } else { 0 };
            longest = longest.max(run);
        }
        assert!(longest >= 4, "longest pause {longest}");
        let mut quiet = Pausing::new(Pauses::NONE);
        assert!((0..100).all(|_| !quiet.now(&mut rng)));
    }
}
