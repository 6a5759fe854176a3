//! Packed types of the streams inside the memory blocks. First field = lowest bits.

// The methods that the derive generates have no documentation.
#![allow(missing_docs)]

use crate::bus::types::MrRight;
use rust_hdl_core::prelude::*;

/// Bytes in host memory.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct Range {
    /// First byte.
    pub addr: Bits<64>,
    /// Bytes less one, 0 to 8190.
    pub more: Bits<13>,
    /// Copied to the bursts.
    pub tag: Bits<4>,
}

/// A burst.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct Burst {
    /// First byte.
    pub addr: Bits<64>,
    /// Beats less one.
    pub len: Bits<8>,
    /// Last burst of its range.
    pub last: Bit,
    /// Of the range.
    pub tag: Bits<4>,
}

/// An access on its way through a memory region check.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct MrAccess {
    /// First byte.
    pub addr: Bits<64>,
    /// Bytes less one; then the last byte, with bit 64 when it is beyond the address space.
    pub more: Bits<65>,
    /// No bytes.
    pub none: Bit,
    /// lkey or rkey.
    pub key: Bits<32>,
    /// Protection domain.
    pub pd: Bits<24>,
    /// Right needed.
    pub right: MrRight,
    /// Queue pair that accesses.
    pub qpn: Bits<16>,
}

/// What a memory region check found, before it is put together.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct MrChecks {
    /// No bytes.
    pub none: Bit,
    /// The entry is valid and grants the right.
    pub right: Bit,
    /// The key is the entry's.
    pub key: Bit,
    /// The protection domain is the entry's.
    pub pd: Bit,
    /// The entry is not another queue pair's.
    pub queue: Bit,
    /// The first byte is not below the region.
    pub above: Bit,
    /// The last byte is not above the region.
    pub below: Bit,
}

/// How the beats of a run of bytes move, see `align`.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct Fit {
    /// Lanes by which its bytes move up.
    pub rotation: Bits<6>,
    /// Target lane of its first byte.
    pub start: Bits<6>,
    /// Target lane behind the last byte of its first source beat, counted on past the end of the target beat.
    pub first_end: Bits<7>,
    /// The same for its last source beat, if that is not the first.
    pub last_end: Bits<7>,
}

/// A piece of a packet's payload whose beats are on their way to `gather`.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct Piece {
    /// See [`Fit`].
    pub rotation: Bits<6>,
    /// See [`Fit`].
    pub start: Bits<6>,
    /// See [`Fit`].
    pub first_end: Bits<7>,
    /// See [`Fit`].
    pub last_end: Bits<7>,
    /// Last piece of its packet.
    pub last: Bit,
}

/// Room in a lane of `gather` that is taken ahead of its commands.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct GatherClaim {
    /// Beats taken less those given back, modulo 2^16.
    pub beats: Bits<16>,
    /// A packet is opened.
    pub opens: Bit,
    /// One is not, after all.
    pub returns: Bit,
}

/// A packet whose payload is all there.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct PacketEnd {
    /// Count of payload beats before the next packet, modulo twice the beats of the store.
    pub end: Bits<16>,
    /// A read failed.
    pub error: Bit,
}
