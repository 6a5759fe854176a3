//! A card in a SimBricks simulation: a process between a simulated host and a simulated network.
//!
//! Messages pass through shared memory (`slots`), one queue each way; a UNIX socket hands the memory over and says what is
//! in it (`meet`). What the host and the card say to each other is in `pcie`; the turns of the card are those of
//! [`Simulated`]. See `docs/simbricks.md`.

mod intro;
mod link;
mod meet;
mod pcie;
mod simulated;
#[allow(unsafe_code)]
mod slots;

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::vfio_user::PlaceError;

pub use intro::VERSION;
pub use pcie::Bus;
pub use simulated::{Ended, Report, Simulated};

/// Picoseconds of a cycle of the card.
const CYCLE_PS: u64 = crate::nic::NS_PER_CYCLE * 1000;

/// Whether time follows the peers'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// No: each runs as fast as it can.
    Off,
    /// With a peer that offers it.
    Offered,
    /// Yes; a peer that does not is refused.
    Required,
}

/// The links of a card.
#[derive(Clone, Debug)]
pub struct Config {
    /// Socket to which the host connects.
    pub pci: PathBuf,
    /// Socket to which the network connects; without it the port has no cable.
    pub eth: Option<PathBuf>,
    /// Whether time follows the peers'.
    pub sync: Sync,
    /// Picoseconds that a message takes. As often the card sends a peer its time.
    pub latency_ps: u64,
}

/// No run, or the end of one.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SimbricksError {
    /// A socket cannot be had.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The peer speaks another version.
    #[error("the peer at {} speaks version {version} of the SimBricks protocol, the card version {VERSION}", path.display())]
    Version {
        /// The socket.
        path: PathBuf,
        /// The peer's version.
        version: u64,
    },
    /// The peer is of another kind.
    #[error("the peer at {} speaks {theirs}, and the card {ours} there", path.display())]
    Protocol {
        /// The socket.
        path: PathBuf,
        /// What it speaks.
        theirs: String,
        /// What it should.
        ours: String,
    },
    /// The two do not agree whether time is synchronised.
    #[error("the peer at {} {}: start both with the same", path.display(), if *.required { "does not synchronise, and the card has to" } else { "has to synchronise, and the card does not" })]
    Sync {
        /// The socket.
        path: PathBuf,
        /// The card has to.
        required: bool,
    },
    /// The peer went before it said what it is.
    #[error("the peer at {} closed the connection before its introduction was whole", path.display())]
    Closed {
        /// The socket.
        path: PathBuf,
    },
    /// The peer broke the protocol.
    #[error("the peer sent what the protocol has not: {0}")]
    Malformed(String),
    /// Frames cannot be captured.
    #[error("cannot write the capture")]
    Capture(#[source] io::Error),
    /// The system refused.
    #[error("the system refused shared memory or a socket")]
    Io(#[from] io::Error),
}

impl SimbricksError {
    /// The setup that the card or its peer was started with cannot work.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Malformed(_) | Self::Capture(_) | Self::Io(_))
    }
}
