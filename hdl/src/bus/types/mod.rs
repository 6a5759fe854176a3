//! Packed types of the streams between blocks. First field = lowest bits.
//!
//! Numbers are plain binary. `qpn` of 16 bits is the local queue pair index; GIDs have their first byte
//! in the lowest bits.

// The accessors that the derive generates have no documentation.
#![allow(missing_docs)]

mod activity;
pub mod image;
mod receive;
mod transmit;

pub use activity::*;
pub use receive::*;
pub use transmit::*;

use crate::bus::payload::payload;
use rust_hdl_core::prelude::*;

/// The right that an access to a memory region needs.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum MrRight {
    /// To send from it.
    LocalRead,
    /// To receive into it, or what a READ or atomic brings.
    LocalWrite,
    /// WRITE.
    RemoteWrite,
    /// READ.
    RemoteRead,
    /// Atomic.
    RemoteAtomic,
}

payload! {
    /// A completion to write (`scatter`, `retire`, flush to `cq_write`).
    CqToken {
        /// Completion queue.
        cqn: Bits<16>,
        /// The payload writes issued before this count (modulo 2^16) must have their B response first.
        fence: Bits<16>,
        /// Fields of the CQE.
        qpn: Bits<16>,
        /// CQE opcode.
        opcode: Bits<8>,
        /// WQE index.
        wqe_index: Bits<16>,
        /// Bytes.
        byte_len: Bits<32>,
        /// Immediate data or invalidated rkey.
        imm: Bits<32>,
        /// CQE status.
        status: Bits<8>,
        /// AETH syndrome behind a remote error.
        vendor_err: Bits<8>,
        /// `imm` is immediate data.
        with_imm: Bit,
        /// `imm` is an invalidated rkey.
        with_inv: Bit,
        /// Solicited.
        solicited: Bit,
        /// Receive queue.
        recv: Bit,
        /// Source queue pair (UD).
        src_qpn: Bits<24>,
        /// P_Key of the packet (UD).
        pkey: Bits<16>,
        /// The buffer begins with a GRH (UD).
        grh: Bit,
        /// `fence` counts; else the completion stands for no payload.
        fenced: Bit,
        /// No completion: the send queue of `qpn` drained, or with `recv` it took its last receive WQE of a shared receive
        /// queue; its completions stand in front of it.
        marker: Bit,
        /// Its acknowledgement waits for its completion (`ack_hold`).
        judged: Bit,
        /// It waits for the atomics of its queue pair before it.
        after_atomics: Bit,
        /// With `after_atomics`: the atomics of its queue pair up to it, modulo 2^5.
        atomics: Bits<5>,
    }

    /// Atomics of a queue pair that are over (`reply` to `cq_write`).
    AtomicsOver {
        /// Queue pair.
        qpn: Bits<16>,
        /// How many, modulo 2^5.
        count: Bits<5>,
    }

    /// A read for `dma_read`: any address, any length; the client has room for the answer, which is the beats that hold a byte of the range.
    ReadReq {
        /// Host address.
        addr: Bits<64>,
        /// Bytes, 1 to 8191; the range may cross 4 KiB boundaries.
        len: Bits<13>,
    }

    /// Payload of a packet, for which room is taken ahead.
    PayloadSize {
        /// Lane of its first byte, modulo 64.
        lane: Bits<6>,
        /// Bytes, 1 to 4096.
        plen: Bits<13>,
    }

    /// Accesses to memory for the peer: READ responses and atomics; modulo 2^16.
    AccessCounts {
        /// Reads whose rkey was looked up.
        reads_begun: Bits<16>,
        /// In the same order, those that are over.
        reads_over: Bits<16>,
        /// Atomics whose rkey was looked up.
        atomics_begun: Bits<16>,
        /// In the same order, those that are over.
        atomics_over: Bits<16>,
    }

    /// A write burst for `dma_write`; its beats follow on the client's beat stream, already at their lanes, strobes set.
    WriteCmd {
        /// Host address of the first byte.
        addr: Bits<64>,
        /// Beats less one; the burst does not cross a multiple of `bus::axi::burst_bytes`.
        len: Bits<8>,
    }

    /// Memory region check (`scatter`, requester, responder to `mr_table`).
    MrReq {
        /// lkey or rkey.
        key: Bits<32>,
        /// Protection domain of the queue pair.
        pd: Bits<24>,
        /// First byte.
        addr: Bits<64>,
        /// Bytes; 0 always passes.
        len: Bits<32>,
        /// Queue pair that accesses.
        qpn: Bits<16>,
        /// Right needed.
        right: MrRight,
    }

    /// A key to invalidate, or a memory window to bind (`scatter`, requester to `mr_table`).
    KeyChange {
        /// A window is bound; else a key is invalidated.
        binds: Bit,
        /// The key to invalidate, or that of the window from then on.
        key: Bits<32>,
        /// Protection domain of the queue pair.
        pd: Bits<24>,
        /// Queue pair.
        qpn: Bits<16>,
        /// Bind: key of the region.
        lkey: Bits<32>,
        /// First byte.
        addr: Bits<64>,
        /// Bytes.
        length: Bits<64>,
        /// A peer may write.
        remote_write: Bit,
        /// A peer may read.
        remote_read: Bit,
        /// A peer may use atomics.
        remote_atomic: Bit,
    }
}
