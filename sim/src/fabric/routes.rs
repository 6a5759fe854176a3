//! Which ports of a switch lead to a host, and which of them a frame takes.

use fastrand::Rng;

use super::{Frame, frame, host_of};

/// How a frame chooses among ports that lead equally far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// By the hash of its five-tuple: a flow has one way.
    #[default]
    Ecmp,
    /// At random: a flow has all ways, and its frames may overtake each other.
    Spray,
}

/// The table of one switch.
#[derive(Clone, Debug)]
pub struct Routes {
    /// Ports by host.
    ports: Vec<Vec<usize>>,
    spread: Spread,
    /// Makes the hash of this switch another than that of its neighbours.
    seed: u64,
}

impl Routes {
    /// `ports` lead to each host.
    #[must_use]
    pub const fn new(ports: Vec<Vec<usize>>, spread: Spread, seed: u64) -> Self {
        Self {
            ports,
            spread,
            seed,
        }
    }

    /// The port that a frame takes; `None` if none leads to its destination.
    pub fn port(&self, frame: &Frame, rng: &mut Rng) -> Option<usize> {
        let ports = self.ports.get(host_of(frame.get(..6)?)?)?;
        match (ports.len(), self.spread) {
            (0, _) => None,
            (1, _) => Some(ports[0]),
            (count, Spread::Ecmp) => {
                Some(ports[(frame::hash(frame, self.seed) % count as u64) as usize])
            }
            (count, Spread::Spray) => Some(ports[rng.usize(..count)]),
        }
    }
}
