//! Work queue entries. A send WQE takes 1 to 5 slots of 64 bytes, a receive WQE 1, 2, 4 or 8.
//!
//! The slots of a send WQE follow each other modulo the ring: behind the last comes the first.

use super::layout::{codes, layout};

/// Bytes of a slot.
pub const SLOT_BYTES: usize = 64;
/// Bytes of a gather/scatter entry.
pub const SGE_BYTES: usize = 16;
/// Gather entries in the first slot of a send WQE; each further slot holds four.
pub const SEND_SGES_FIRST: usize = 2;
/// Scatter entries in the first slot of a receive WQE; each further slot holds four.
pub const RECV_SGES_FIRST: usize = 3;
/// Longest gather or scatter list.
pub const MAX_SGE: usize = 16;
/// Longest message in bytes (IBA 9.7.7: 2^31).
pub const MAX_MSG: u32 = 1 << 31;
/// Inline payload bytes in the first slot of a send WQE; each further slot holds 64.
pub const INLINE_FIRST: usize = 32;

codes! {
/// Operation of a send WQE (field `opcode`).
pub mod opcode {
    /// SEND.
    pub const SEND: u8 = 0;
    /// SEND with immediate.
    pub const SEND_IMM: u8 = 1;
    /// SEND with invalidate.
    pub const SEND_INV: u8 = 2;
    /// RDMA WRITE.
    pub const WRITE: u8 = 3;
    /// RDMA WRITE with immediate.
    pub const WRITE_IMM: u8 = 4;
    /// RDMA READ.
    pub const READ: u8 = 5;
    /// Compare and swap.
    pub const CMP_SWAP: u8 = 6;
    /// Fetch and add.
    pub const FETCH_ADD: u8 = 7;
    /// Binds the memory window that `imm` names, see [`WindowBind`](super::WindowBind). Sends nothing and has no payload: no
    /// list, no inline data, length 0.
    pub const BIND_MW: u8 = 8;
    /// Invalidates the key `imm`: that of a type 2 window of this queue pair, or of a region that a peer may invalidate. Sends
    /// nothing and has no payload.
    pub const LOCAL_INV: u8 = 9;
}
}

layout! { $
    /// First slot of a send WQE, without its gather entries (first 32 of 64 bytes).
    ///
    /// Bytes 32 to 64 hold two [`Sge`], or inline payload, or one [`Sge`] and the two
    /// 64-bit operands of an atomic ([`AtomicOperands`]). A UD WQE carries [`UdAddress`] in the
    /// place of `remote_addr` and `rkey`.
    pub struct SendWqe (with_send_wqe) [32] {
        /// Operation, see [`opcode`].
        opcode: u8 [8],
        /// A CQE is written on success too.
        signaled: bool [1],
        /// The solicited-event bit goes out with the last packet.
        solicited: bool [1],
        /// Starts only after all earlier READs and atomics of the queue pair completed.
        fence: bool [1],
        /// The payload stands in the WQE itself.
        inline_data: bool [1],
        /// Reserved, 0.
        rsv0: u8 [4],
        /// Entries of the gather list, 0 to 16.
        num_sge: u8 [8],
        /// Slots of this WQE, 1 to 5.
        slots: u8 [8],
        /// Immediate data (host order of the value), or the key to invalidate, or the new one of the window to bind.
        imm: u32 [32],
        /// Remote virtual address.
        remote_addr: u64 [64],
        /// Remote key.
        rkey: u32 [32],
        /// Bytes of the message: the sum of the gather list.
        length: u32 [32],
    }
}

layout! { $
    /// Gather or scatter entry.
    pub struct Sge (with_sge) [16] {
        /// Virtual address, equal to the IOVA.
        addr: u64 [64],
        /// Bytes.
        length: u32 [32],
        /// Local key.
        lkey: u32 [32],
    }
}

layout! { $
    /// Operands of an atomic, at byte 48 of its WQE.
    pub struct AtomicOperands (with_atomic_operands) [16] {
        /// Swap value, or the value to add.
        swap_add: u64 [64],
        /// Value to compare with.
        compare: u64 [64],
    }
}

layout! { $
    /// What a memory window is bound to, at byte 32 of its WQE. The window is that of the place in `imm` of the WQE, which is
    /// its key from then on.
    pub struct WindowBind (with_window_bind) [32] {
        /// First address.
        addr: u64 [64],
        /// Reserved, 0.
        rsv0: u64 [64],
        /// Local key of the region.
        lkey: u32 [32],
        /// A peer may write.
        remote_write: bool [1],
        /// A peer may read.
        remote_read: bool [1],
        /// A peer may use atomics.
        remote_atomic: bool [1],
        /// Reserved, 0.
        rsv1: u32 [29],
        /// Bytes; 0 unbinds a window of type 1.
        length: u64 [64],
    }
}

layout! { $
    /// Destination of a UD SEND, at byte 8 of its WQE.
    pub struct UdAddress (with_ud_address) [12] {
        /// Address handle number.
        ah: u32 [32],
        /// Destination queue pair, 24 bits.
        remote_qpn: u32 [32],
        /// Q_Key of the destination.
        qkey: u32 [32],
    }
}

layout! { $
    /// Head of a receive WQE (first 16 bytes of its first slot); three [`Sge`] follow.
    pub struct RecvWqe (with_recv_wqe) [16] {
        /// Entries of the scatter list, 0 to 16.
        num_sge: u8 [8],
        /// Reserved, 0.
        rsv0: u32 [24],
        /// Bytes of the buffer: the sum of the scatter list.
        length: u32 [32],
    }
}
