//! What can be wrong with a card behind a socket.

use std::io;
use std::path::PathBuf;

use ferroce_proto::abi::{pci, regs};
use ferroce_vfio_user::ProtocolError;
use thiserror::Error;

/// A card behind a vfio-user socket could not be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VfioUserError {
    /// No server listens at the socket.
    #[error("cannot connect to {path}: start the card first (`cargo xtask card --socket {path} ...`)", path = .path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// Answer of the system.
        #[source]
        source: io::Error,
    },
    /// The thread that serves the card's accesses cannot be started, or a descriptor not be had.
    #[error("the system has no thread or file descriptor left for the card")]
    Thread(#[source] io::Error),
    /// The other end is gone.
    #[error(
        "the card is gone: it ended, did not answer in time, or serves another client; start it again and open it anew"
    )]
    Lost,
    /// The other end refused a request.
    #[error("the card refused {command}: {source}")]
    Refused {
        /// What was asked for.
        command: &'static str,
        /// Its reason.
        #[source]
        source: io::Error,
    },
    /// The other end speaks another version.
    #[error(
        "the card speaks vfio-user {major}.{minor}, this driver {}.{}",
        ferroce_vfio_user::MAJOR,
        ferroce_vfio_user::MINOR
    )]
    Version {
        /// Major version of the card.
        major: u16,
        /// Minor version of the card.
        minor: u16,
    },
    /// What is there is not a PCI device.
    #[error("what answers at the socket is not a PCI device: check the path")]
    NotPci,
    /// Another PCI device.
    #[error(
        "device {vendor:04x}:{device:04x} is at the socket, expected {:04x}:{:04x}: check the path",
        pci::VENDOR,
        pci::DEVICE
    )]
    Device {
        /// Its vendor ID.
        vendor: u16,
        /// Its device ID.
        device: u16,
    },
    /// BAR0 is too small for the registers.
    #[error(
        "BAR0 has {bytes} bytes, expected {}: card and driver do not fit",
        regs::BAR0_BYTES
    )]
    Bar {
        /// Bytes it has.
        bytes: u64,
    },
    /// The other end does not keep to the protocol.
    #[error("the card broke the protocol")]
    Protocol(#[from] ProtocolError),
}

impl From<VfioUserError> for io::Error {
    fn from(error: VfioUserError) -> Self {
        match error {
            VfioUserError::Refused { source, .. } => source,
            VfioUserError::Lost => Self::new(io::ErrorKind::NotConnected, error),
            other => Self::other(other),
        }
    }
}
