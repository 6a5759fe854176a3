//! Numbers that peers see, of queue pairs, keys and first PSNs: an outsider cannot guess them.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

/// What they are made of, for as long as a card is open.
#[derive(Clone)]
pub(crate) enum Names {
    /// The same each time.
    Repeatable(u32),
    Random(RandomState),
}

impl Names {
    pub(crate) fn new(seed: Option<u64>) -> Self {
        match seed {
            Some(seed) => Self::Repeatable(seed as u32),
            None => Self::Random(RandomState::new()),
        }
    }

    /// The number of `range`, which is not empty, that is given out first.
    pub(crate) fn first(&self, kind: &str, range: &Range<u32>) -> u32 {
        let number = match self {
            Self::Repeatable(seed) => *seed,
            Self::Random(state) => state.hash_one(kind) as u32,
        };
        range.start + number % (range.end - range.start)
    }

    /// First PSN of incarnation `life` of a queue pair, far from those of others: late packets never match another one.
    pub(crate) fn psn(&self, life: u32) -> u32 {
        let number = match self {
            // Fibonacci hashing: multiples of 2^32 / phi are spread evenly.
            Self::Repeatable(seed) => life.wrapping_add(*seed).wrapping_mul(0x9e37_79b9),
            Self::Random(state) => state.hash_one(("PSN", life)) as u32,
        };
        number >> 8
    }

    /// The variant of the key of place `place` before the first one.
    pub(crate) fn variant(&self, place: u32) -> u8 {
        match self {
            Self::Repeatable(seed) => *seed as u8,
            Self::Random(state) => state.hash_one(("key", place)) as u8,
        }
    }
}
