//! Completion queues: context image and entries.

use super::layout::{codes, layout};

/// Smallest log2 of the entries of a ring.
pub const MIN_LOG_CQE: u8 = 1;
/// Largest one.
pub const MAX_LOG_CQE: u8 = 22;

layout! { $
    /// Completion queue context, as handed over by [`CREATE_CQ`](crate::abi::cmd::opcode::CREATE_CQ) and
    /// [`RESIZE_CQ`](crate::abi::cmd::opcode::RESIZE_CQ).
    pub struct CqCtx (with_cq_ctx) [64] {
        /// Address of the ring, 64-byte aligned.
        base: u64 [64],
        /// Address of the 4-byte consumer record: the count of entries the host has taken.
        consumer: u64 [64],
        /// Log2 of the ring's entries, 1 to 22.
        log_size: u8 [5],
        /// Event queue that reports completions and errors.
        eqn: u8 [8],
    }
}

layout! { $
    /// Completion queue entry. Its last 8 bytes become visible to the host no earlier than the rest.
    pub struct Cqe (with_cqe) [32] {
        /// Local queue pair number.
        qpn: u32 [24],
        /// What completed, see [`opcode`].
        opcode: u8 [8],
        /// Producer index of the WQE (send: its first slot; receive: its ordinal), modulo 2^16. Of a shared receive queue the
        /// number of the WQE, 0xffff if that could not be read.
        wqe_index: u16 [16],
        /// Reserved, 0.
        rsv0: u16 [16],
        /// Bytes received or read; a datagram's count with the 40 of its GRH.
        byte_len: u32 [32],
        /// Immediate data, or the invalidated rkey.
        imm: u32 [32],
        /// Source queue pair (UD).
        src_qpn: u32 [24],
        /// Reserved, 0.
        rsv1: u8 [8],
        /// P_Key of the packet (UD).
        pkey: u16 [16],
        /// Reserved, 0.
        rsv2: u64 [48],
        /// Result, see [`status`]; the value of `enum ibv_wc_status`.
        status: u8 [8],
        /// Cause in detail: the AETH syndrome of a NAK, else 0.
        vendor_err: u8 [8],
        /// `imm` holds immediate data.
        with_imm: bool [1],
        /// `imm` holds an invalidated rkey.
        with_inv: bool [1],
        /// The first 40 bytes of the buffer hold a GRH.
        grh: bool [1],
        /// The message asked for a solicited event.
        solicited: bool [1],
        /// The entry belongs to a receive queue.
        recv: bool [1],
        /// Reserved, 0.
        rsv3: u16 [10],
        /// Phase: 1 on the first pass over the ring, then 0, alternating.
        owner: bool [1],
    }
}

/// `wqe_index` of a WQE of a shared receive queue whose number could not be read.
pub const NO_NUMBER: u16 = 0xffff;

codes! {
/// What completed (field `opcode` of [`Cqe`]).
pub mod opcode {
    /// SEND of any form.
    pub const SEND: u8 = 0;
    /// RDMA WRITE of any form.
    pub const WRITE: u8 = 1;
    /// RDMA READ.
    pub const READ: u8 = 2;
    /// Compare and swap.
    pub const CMP_SWAP: u8 = 3;
    /// Fetch and add.
    pub const FETCH_ADD: u8 = 4;
    /// A memory window bound.
    pub const BIND_MW: u8 = 5;
    /// A key invalidated locally.
    pub const LOCAL_INV: u8 = 6;
    /// Receive of a SEND.
    pub const RECV: u8 = 0x80;
    /// Receive of the immediate data of a WRITE.
    pub const RECV_WRITE_IMM: u8 = 0x81;
}
}

codes! {
/// Results (`enum ibv_wc_status` of libibverbs).
pub mod status {
    /// Success.
    pub const SUCCESS: u8 = 0;
    /// Local length error: a receive buffer too short, or a WQE over the limits.
    pub const LOC_LEN_ERR: u8 = 1;
    /// Local queue pair operation error: a WQE that makes no sense.
    pub const LOC_QP_OP_ERR: u8 = 2;
    /// Local protection error: lkey, PD, rights or bounds of a gather or scatter entry.
    pub const LOC_PROT_ERR: u8 = 4;
    /// Flushed: the queue pair was in error before the WQE ran.
    pub const WR_FLUSH_ERR: u8 = 5;
    /// A memory window was not bound.
    pub const MW_BIND_ERR: u8 = 6;
    /// Local access error: the region of a WRITE with immediate went away before its last packet.
    pub const LOC_ACCESS_ERR: u8 = 8;
    /// Remote invalid request: NAK code 1.
    pub const REM_INV_REQ_ERR: u8 = 9;
    /// Remote access error: NAK code 2.
    pub const REM_ACCESS_ERR: u8 = 10;
    /// Remote operation error: NAK code 3.
    pub const REM_OP_ERR: u8 = 11;
    /// Transport retries exceeded.
    pub const RETRY_EXC_ERR: u8 = 12;
    /// RNR retries exceeded.
    pub const RNR_RETRY_EXC_ERR: u8 = 13;
    /// Response that cannot be.
    pub const BAD_RESP_ERR: u8 = 7;
    /// Remote aborted.
    pub const REM_ABORT_ERR: u8 = 16;
    /// General error.
    pub const GENERAL_ERR: u8 = 21;
}
}
