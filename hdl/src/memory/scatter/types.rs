//! Packed types inside `scatter`. First field = lowest bits.

// The methods that the derive generates have no documentation.
#![allow(missing_docs)]

use crate::bus::types::PlaceKind;
use rust_hdl_core::prelude::*;

/// What is the same for all of a packet, from its placement to the ruling on it.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct Packet {
    /// See `Place`.
    pub qpn: Bits<16>,
    /// See `Place`.
    pub kind: PlaceKind,
    /// See `Place`.
    pub incarnation: Bits<2>,
    /// See `Place`.
    pub unreliable: Bit,
    /// It begins its message.
    pub opens: Bit,
    /// See `Place`.
    pub complete: Bit,
    /// See `Place`.
    pub reset: Bit,
    /// An atomic that is no duplicate.
    pub runs: Bit,
    /// See `Place`.
    pub answer: Bit,
    /// See `Place`.
    pub closed: Bit,
}

/// An entry of a scatter list; a place that is no list has one.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct Entry {
    /// First byte.
    pub addr: Bits<64>,
    /// Bytes; behind the first stage those from `offset` on.
    pub len: Bits<32>,
    /// lkey or rkey.
    pub key: Bits<32>,
    /// Bytes of the message before the packet; behind the first stage bytes to skip in this entry.
    pub offset: Bits<32>,
    /// First entry of its place.
    pub first: Bit,
    /// Last entry of its place.
    pub last: Bit,
    /// The WQE was not read, or its list is longer than allowed or than its slots.
    pub broken: Bit,
    /// Payload bytes of the packet.
    pub plen: Bits<13>,
    /// Protection domain.
    pub pd: Bits<24>,
    /// See `Place`.
    pub lane: Bits<6>,
    /// See `Place`.
    pub beats: Bits<10>,
    /// The packet.
    pub packet: Packet,
    /// A key is invalidated if all is well.
    pub inv: Bit,
    /// That key.
    pub inv_key: Bits<32>,
    /// Its protection domain.
    pub inv_pd: Bits<24>,
}

/// A piece of a packet's payload and where it goes, to be checked.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct Target {
    /// First byte.
    pub addr: Bits<64>,
    /// Bytes, 0 to 4096.
    pub len: Bits<13>,
    /// lkey or rkey.
    pub key: Bits<32>,
    /// Protection domain.
    pub pd: Bits<24>,
    /// Last piece of its place.
    pub last: Bit,
    /// The buffer is too short for the packet.
    pub short: Bit,
    /// The WQE is unusable.
    pub broken: Bit,
    /// See `Place`.
    pub lane: Bits<6>,
    /// See `Place`.
    pub beats: Bits<10>,
    /// The packet.
    pub packet: Packet,
    /// A key is invalidated if all is well.
    pub inv: Bit,
    /// That key.
    pub inv_key: Bits<32>,
    /// Its protection domain.
    pub inv_pd: Bits<24>,
}

/// What the verdict needs of a target, while its region is looked up.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct Pending {
    /// Last piece of its place.
    pub last: Bit,
    /// The buffer is too short for the packet.
    pub short: Bit,
    /// The WQE is unusable.
    pub broken: Bit,
    /// The packet.
    pub packet: Packet,
    /// A key is invalidated if all is well.
    pub inv: Bit,
    /// That was refused.
    pub refused: Bit,
}

/// What the verdict remembers of a queue pair.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct Poison {
    /// A placement failed.
    pub poisoned: Bit,
    /// A message of an unreliable queue pair failed: the rest of it is dropped.
    pub dropping: Bit,
    /// Cause that the next CQE has.
    pub cause: FailCause,
    /// Atomics that passed, modulo 2^5.
    pub atomics: Bits<5>,
    /// One did since the latest completion.
    pub after_atomics: Bit,
}

/// Why a receive WQE failed.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum FailCause {
    /// Not by itself: WR_FLUSH_ERR.
    Flush,
    /// LOC_LEN_ERR.
    Length,
    /// LOC_PROT_ERR.
    Protection,
    /// LOC_QP_OP_ERR.
    Operation,
}

/// Verdict on a place.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct MrResult {
    /// Placed, acknowledged and completed as it says.
    pub good: Bit,
    /// It failed: low bits of the syndrome (0x60 + code) of the NAK; 0 if it did not.
    pub nak: Bits<2>,
    /// Not good, and a CQE is due.
    pub complete: Bit,
    /// Cause of the CQE or failure.
    pub cause: FailCause,
    /// Sends an Answer to the requester.
    pub answer: Bit,
    /// It failed, and with it its message alone: the queue pair goes on. Of a WRITE its CQE has LOC_ACCESS_ERR.
    pub spared: Bit,
    /// A completion of it waits for the atomics before it.
    pub after_atomics: Bit,
    /// Atomics that passed before it, modulo 2^5.
    pub atomics: Bits<5>,
}

/// A checked piece.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct Run {
    /// First byte.
    pub addr: Bits<64>,
    /// Bytes, 0 to 4096.
    pub len: Bits<13>,
    /// It is one write burst; undefined if `len` is 0.
    pub fits: Bit,
    /// Last piece of its packet.
    pub last: Bit,
    /// See `Place`.
    pub lane: Bits<6>,
    /// See `Place`.
    pub beats: Bits<10>,
}

/// Beats to move for a piece, or to drop for a packet.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct Move {
    /// See `Fit`.
    pub rotation: Bits<6>,
    /// See `Fit`.
    pub start: Bits<6>,
    /// See `Fit`.
    pub first_end: Bits<7>,
    /// See `Fit`.
    pub last_end: Bits<7>,
    /// Place of the first target beat in its burst window.
    pub index: Bits<8>,
    /// Source beats, 0 only without data.
    pub beats: Bits<10>,
    /// The last source beat holds bytes of the next piece too.
    pub keep: Bit,
    /// Nothing is written.
    pub discard: Bit,
    /// Last of its packet.
    pub last: Bit,
}

/// A source beat, rotated, on its way to the output.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct Step {
    /// See [`Move`].
    pub index: Bits<8>,
    /// The target beat is complete.
    pub full: Bit,
    /// First beat of its piece.
    pub first: Bit,
    /// Last beat of its piece.
    pub last: Bit,
    /// It has bytes behind the target beat.
    pub over: Bit,
    /// It has no bytes to write.
    pub empty: Bit,
    /// Last of its packet.
    pub close: Bit,
}

/// What is left of a place when its pieces are known: ACK and CQE.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct Tail {
    /// See `Place`.
    pub qpn: Bits<16>,
    /// See `Place`.
    pub kind: PlaceKind,
    /// See `Place`.
    pub incarnation: Bits<2>,
    /// See `Place`.
    pub end: Bit,
    /// See `Place`.
    pub ack: Bit,
    /// See `Place`.
    pub unreliable: Bit,
    /// See `Place`.
    pub psn: Bits<24>,
    /// See `Place`.
    pub msn: Bits<24>,
    /// See `Place`.
    pub syndrome: Bits<8>,
    /// See `Place`.
    pub complete: Bit,
    /// See `Place`.
    pub cqn: Bits<16>,
    /// See `Place`.
    pub cqe_opcode: Bits<8>,
    /// See `Place`.
    pub status: Bits<8>,
    /// See `Place`.
    pub wqe_index: Bits<16>,
    /// See `Place`.
    pub byte_len: Bits<32>,
    /// See `Place`.
    pub imm: Bits<32>,
    /// See `Place`.
    pub with_imm: Bit,
    /// See `Place`.
    pub with_inv: Bit,
    /// See `Place`.
    pub solicited: Bit,
    /// See `Place`.
    pub src_qpn: Bits<24>,
    /// See `Place`.
    pub pkey: Bits<16>,
    /// See `Place`.
    pub grh: Bit,
    /// See `Place`.
    pub reset: Bit,
    /// See `Place`.
    pub rsp_flush: Bit,
    /// See `Place`.
    pub last_wqe: Bit,
    /// See `Place`.
    pub reply: Bit,
    /// See `Place`.
    pub answer: Bit,
    /// See `Place`.
    pub implied: Bit,
    /// See `Place`.
    pub data: Bit,
    /// See `Place`.
    pub closed: Bit,
}
