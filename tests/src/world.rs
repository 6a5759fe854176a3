//! The worlds that an engine stands in, and what a seed draws.

use fastrand::Rng;
use ferroce_sim::axi::stream::Stand;
use ferroce_sim::random::Pauses;
use ferroce_sim::rtl::Options;

/// How the world around an engine behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum World {
    /// No latency, everything in order.
    Fast,
    /// A loaded host, see [`Options::host`].
    Loaded,
    /// Pauses on every port and responses of memory in any order that AXI allows, see [`Options::hostile`].
    Hostile,
}

impl World {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Fast, Self::Loaded, Self::Hostile];

    /// That of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        draw(seed, Draw::World, Self::ALL)
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Loaded => "loaded",
            Self::Hostile => "hostile",
        }
    }

    /// It, with the pauses and latencies of a seed.
    #[must_use]
    pub fn options(self, seed: u64) -> Options {
        match self {
            Self::Fast => Options {
                seed,
                ..Options::default()
            },
            Self::Loaded => Options::host(seed),
            Self::Hostile => Options::hostile(seed),
        }
    }
}

/// The world of a seed for a card that waits for no frame to leave; in every second one the wire stands now and then, up to 500 or
/// 3000 cycles.
#[must_use]
pub fn pausing(seed: u64) -> Options {
    let options = World::of(seed).options(seed);
    let tx = match rng(seed, Draw::Wire).u8(..4) {
        0 => Pauses::new(0.005, 500),
        1 => Pauses::new(0.002, 3000),
        _ => options.tx,
    };
    Options {
        tx_room: usize::MAX,
        tx,
        ..options
    }
}

/// The wire that a seed has behind a card: one in four stands once, 128 to 32768 cycles.
#[must_use]
pub fn stand(seed: u64) -> Stand {
    let mut rng = rng(seed, Draw::Stand);
    match rng.u8(..4) {
        0 => Stand {
            after: rng.u64(..40),
            cycles: 1 << rng.u8(7..=15),
        },
        _ => Stand::default(),
    }
}

/// Whether the engine of a seed served another host before: one in four.
#[must_use]
pub fn inherits(seed: u64) -> bool {
    draw(seed, Draw::Inherited, [true, false, false, false])
}

/// What is drawn from a seed beside the steps of its scenario, each apart from the others: so each meets each.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Draw {
    World = 1,
    Pairing,
    Ipv6,
    Poll,
    Stand,
    Inherited,
    Window,
    Rate,
    Longest,
    Signals,
    Wire,
    Swift,
}

/// One of `choices`.
pub(crate) fn draw<T: Copy, const N: usize>(seed: u64, what: Draw, choices: [T; N]) -> T {
    choices[rng(seed, what).usize(..N)]
}

fn rng(seed: u64, what: Draw) -> Rng {
    Rng::with_seed(seed ^ (what as u64) << 56)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Draw, World, draw};
    use crate::differential::Pairing;

    /// Each world meets each pairing and both kinds of address, at either side.
    #[test]
    fn draws_are_apart() {
        for side in [1, 2] {
            let mut met = BTreeMap::new();
            for seed in 1..=400 {
                let world = World::of(seed ^ side);
                let ipv6 = draw(seed, Draw::Ipv6, [false, true, false, false]);
                *met.entry((world, Pairing::of(seed), ipv6)).or_insert(0) += 1;
            }
            assert_eq!(met.len(), 18, "{met:?}");
            assert!(met.values().all(|&times| times >= 4), "{met:?}");
        }
    }
}
