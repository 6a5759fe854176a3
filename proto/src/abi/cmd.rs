//! Command ring: 256-byte entries, each answered by a 32-byte completion in a second ring.
//!
//! An entry is a [`CmdHead`] of 64 bytes and three images of 64 bytes at bytes 64, 128 and 192.

use super::layout::{codes, layout};

/// Bytes of a command entry.
pub const CMD_BYTES: usize = 256;

codes! {
/// Operations and the images they take.
pub mod opcode {
    /// Does nothing, answers OK.
    pub const NOP: u8 = 0;
    /// Queue pair `index`: images [`SqCtx`](crate::abi::qpc::SqCtx), [`AvCtx`](crate::abi::qpc::AvCtx),
    /// [`RqCtx`](crate::abi::qpc::RqCtx) as chosen by the `qp_*` bits.
    /// To state RESET with both reset bits: answered after every access and CQE of the queue pair is done.
    pub const MODIFY_QP: u8 = 1;
    /// Queue pair `index`: answers the dynamic state in `value` (see [`QpState`](super::QpState)).
    pub const QUERY_QP: u8 = 2;
    /// Completion queue `index`: image [`CqCtx`](crate::abi::cq::CqCtx).
    pub const CREATE_CQ: u8 = 3;
    /// Completion queue `index` is forgotten.
    pub const DESTROY_CQ: u8 = 4;
    /// Memory region at table place `index`: image [`MrCtx`](crate::abi::mr::MrCtx) (with `valid` 0: deregister).
    /// Answered after every earlier access to the region is done.
    pub const WRITE_MR: u8 = 5;
    /// Event queue `index`: image [`EqCtx`](crate::abi::eq::EqCtx).
    pub const CREATE_EQ: u8 = 6;
    /// Event queue `index` is forgotten.
    pub const DESTROY_EQ: u8 = 7;
    /// GID table entry `index`: image [`GidEntry`](super::GidEntry).
    pub const SET_GID: u8 = 8;
    /// Port: image [`PortConfig`](super::PortConfig).
    pub const SET_PORT: u8 = 9;
    /// Address handle `index`: image [`AvCtx`](crate::abi::qpc::AvCtx) (its `remote_qpn` does not count: a WQE names it).
    /// Handles are not forgotten; what was sent before goes where the image before said.
    pub const WRITE_AH: u8 = 10;
    /// Shared receive queue `index`: image [`SrqCtx`](crate::abi::qpc::SrqCtx). Its consumer index starts at 0; the host owns the
    /// producer index and writes 0 to its doorbell first.
    pub const CREATE_SRQ: u8 = 11;
    /// Shared receive queue `index` is forgotten; no queue pair that receives from it is left.
    pub const DESTROY_SRQ: u8 = 12;
    /// Shared receive queue `index`: the `limit` of image [`SrqCtx`](crate::abi::qpc::SrqCtx) is set; nothing else of it counts.
    pub const ARM_SRQ: u8 = 13;
    /// Completion queue `index` goes on in the ring and with the consumer record of image [`CqCtx`](crate::abi::cq::CqCtx):
    /// `value` answers the count of entries before the first of the new ring, modulo 2^24. Its place there, and its phase,
    /// are those of the count in the new size; what was armed stays so. `BAD_STATE` if more entries than the new ring holds
    /// are not among the `cq_taken`, and if the queue has overflowed.
    /// Answered after every access to what it leaves is done.
    pub const RESIZE_CQ: u8 = 14;
}
}

codes! {
/// Answers (field `status` of [`CmdCpl`]).
pub mod status {
    /// Done.
    pub const OK: u8 = 0;
    /// No such operation.
    pub const BAD_OPCODE: u8 = 1;
    /// `index` is beyond what the build has.
    pub const BAD_INDEX: u8 = 2;
    /// A field of the image is out of range.
    pub const BAD_PARAM: u8 = 3;
    /// The object is not in a state that permits it.
    pub const BAD_STATE: u8 = 4;
}
}

layout! { $
    /// Head of a command.
    pub struct CmdHead (with_cmd_head) [64] {
        /// Operation, see [`opcode`].
        opcode: u8 [8],
        /// Copy image 1 into the requester's table.
        qp_sq: bool [1],
        /// Copy image 2 into the address table.
        qp_av: bool [1],
        /// Copy image 3 into the responder's table.
        qp_rq: bool [1],
        /// Set the requester's dynamic state: `sq_state`, and on `sq_reset` everything else to its start with `sq_psn`.
        qp_sq_state: bool [1],
        /// With `qp_sq_state`: start afresh.
        sq_reset: bool [1],
        /// Set the responder's dynamic state: `rq_state`, and on `rq_reset` everything else to its start with `rq_psn`.
        qp_rq_state: bool [1],
        /// With `qp_rq_state`: start afresh.
        rq_reset: bool [1],
        /// Reserved, 0.
        rsv0: bool [1],
        /// Returned in the completion.
        token: u16 [16],
        /// Number of the object.
        index: u32 [32],
        /// New state of the requester, see [`state`](crate::abi::qpc::state).
        sq_state: u8 [8],
        /// First PSN to send.
        sq_psn: u32 [24],
        /// New state of the responder.
        rq_state: u8 [8],
        /// First PSN expected.
        rq_psn: u32 [24],
        /// RESIZE_CQ: entries that the host has taken, modulo 2^24.
        cq_taken: u32 [24],
    }
}

layout! { $
    /// Completion of a command.
    pub struct CmdCpl (with_cmd_cpl) [32] {
        /// As in the command.
        token: u16 [16],
        /// As in the command.
        opcode: u8 [8],
        /// Result, see [`status`].
        status: u8 [8],
        /// As in the command.
        index: u32 [32],
        /// Answer of a query, or of [`opcode::RESIZE_CQ`].
        value: u128 [128],
        /// Reserved, 0.
        rsv0: u64 [63],
        /// Phase, as in a CQE.
        owner: bool [1],
    }
}

layout! { $
    /// Dynamic state of a queue pair, the answer of [`opcode::QUERY_QP`].
    pub struct QpState (with_qp_state) [16] {
        /// State of the requester.
        sq_state: u8 [4],
        /// State of the responder.
        rq_state: u8 [4],
        /// Next PSN to send.
        sq_psn: u32 [24],
        /// Oldest PSN not acknowledged.
        una_psn: u32 [24],
        /// Reserved, 0.
        rsv0: u8 [8],
        /// PSN expected.
        rq_psn: u32 [24],
        /// Messages completed as responder.
        msn: u32 [24],
        /// Receive WQEs consumed, modulo 2^16.
        rq_index: u16 [16],
    }
}

layout! { $
    /// Entry of the GID table.
    pub struct GidEntry (with_gid_entry) [64] {
        /// The GID, first byte in the lowest bits; an IPv4 address is ::ffff:a.b.c.d.
        gid: u128 [128],
        /// Entry in use.
        valid: bool [1],
        /// IPv6; else IPv4.
        ipv6: bool [1],
    }
}

layout! { $
    /// Port configuration.
    pub struct PortConfig (with_port_config) [64] {
        /// MAC address, first byte in the lowest bits.
        mac: u64 [48],
        /// Accept every destination MAC address; RoCEv2 packets to that of another port are for the exception queue.
        promiscuous: bool [1],
    }
}
