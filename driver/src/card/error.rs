//! Why a card cannot be opened, or an address not be set.

use ferroce_proto::abi::regs;
use ferroce_proto::wire::Gid;
use thiserror::Error;

use crate::BackendError;
use crate::command::CommandError;
use crate::device::{AbiVersion, Status};

/// A card could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another context has it open; a reset would destroy the objects of that context.
    #[error("the card is open: drop all that was opened on it, or share that context")]
    InUse,
    /// BAR0 is too small for the registers and doorbells.
    #[error(
        "BAR0 has {found} bytes, this driver needs {expected}: this is not a Ferroce card, or an image with another address map; check which device was opened"
    )]
    Bar {
        /// Bytes of the BAR.
        found: u64,
        /// Bytes needed.
        expected: u64,
    },
    /// Nothing answers.
    #[error(
        "register MAGIC reads as all ones: the card does not answer; check that it is plugged in and configured, and that memory access is enabled"
    )]
    Absent,
    /// Another device.
    #[error(
        "register MAGIC reads {found:#010x}, expected {expected:#010x} (\"FRCE\"): this is not a Ferroce card; check which device was opened",
        expected = regs::MAGIC_VALUE
    )]
    Magic {
        /// Value read.
        found: u32,
    },
    /// The card speaks another contract.
    #[error(
        "the card speaks version {card} of the host contract, this driver version {driver}: load a card image and a driver of equal major version"
    )]
    Version {
        /// Version of the card.
        card: AbiVersion,
        /// Version of this driver.
        driver: AbiVersion,
    },
    /// The card was built with tables that this driver cannot address.
    #[error(
        "parameter {parameter} of the card is {value}, this driver takes {minimum} to {maximum}: load another build, or a newer driver"
    )]
    Parameter {
        /// Name of the parameter, as in the registers PARAMS to PARAMS3.
        parameter: &'static str,
        /// Its value.
        value: u32,
        /// Smallest value.
        minimum: u32,
        /// Largest value.
        maximum: u32,
    },
    /// The card did not get ready.
    #[error(
        "the card was not ready {limit_ns} ns after its reset ({status}): check its clocks, or load its image again"
    )]
    NotReady {
        /// Time waited in ns.
        limit_ns: u64,
        /// State of the card.
        status: Status,
    },
    /// No memory for the command rings.
    #[error("no memory for the command rings")]
    Memory(#[from] BackendError),
    /// The first command failed.
    #[error("the card does not carry out commands")]
    Command(#[from] CommandError),
}

/// A GID table entry could not be set.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum GidError {
    /// The table is shorter.
    #[error("GID index {index} is beyond the table of {limit} entries: use 0 to {}", .limit - 1)]
    Index {
        /// Index asked for.
        index: u8,
        /// Entries of the table.
        limit: u32,
    },
    /// The card cannot do IPv6.
    #[error(
        "GID {0} is an IPv6 address and this build of the card does IPv4 only: use an IPv4-mapped GID"
    )]
    Ipv6(Gid),
    /// The address stands in the table: of two equal entries the card looks at the lower one alone.
    #[error("address {} is GID {index} already: use that, or empty it first", .gid.ip())]
    Taken {
        /// The address asked for.
        gid: Gid,
        /// The entry that has it.
        index: u8,
    },
    /// The card refused.
    #[error(transparent)]
    Command(#[from] CommandError),
}
