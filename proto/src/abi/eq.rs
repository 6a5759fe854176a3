//! Event queues: context image and entries.

use super::layout::{codes, layout};

/// Smallest log2 of the entries of a ring.
pub const MIN_LOG_EQE: u8 = 1;
/// Largest one.
pub const MAX_LOG_EQE: u8 = 16;

layout! { $
    /// Event queue context, as handed over by [`crate::abi::cmd::opcode::CREATE_EQ`].
    pub struct EqCtx (with_eq_ctx) [64] {
        /// Address of the ring, 64-byte aligned.
        base: u64 [64],
        /// Address of the 4-byte consumer record.
        consumer: u64 [64],
        /// Log2 of the ring's entries, 1 to 16.
        log_size: u8 [5],
        /// MSI-X vector.
        vector: u16 [11],
        /// Shortest time between two interrupts in cycles of 1.024 us.
        moderation: u16 [16],
    }
}

layout! { $
    /// Event queue entry.
    pub struct Eqe (with_eqe) [16] {
        /// Kind, see [`event`].
        event: u8 [8],
        /// Detail: the completion status that caused a queue pair error.
        detail: u8 [8],
        /// Reserved, 0.
        rsv0: u16 [16],
        /// Number of the queue pair, completion queue or shared receive queue.
        object: u32 [32],
        /// Reserved, 0.
        rsv1: u64 [63],
        /// Phase, as in a CQE.
        owner: bool [1],
    }
}

/// Events of a queue that wait for room in its ring; a further one is lost.
pub const WAITING: usize = 64;

codes! {
/// Kinds of event.
pub mod event {
    /// A completion queue that was armed has a new entry.
    pub const COMPLETION: u8 = 0;
    /// A completion queue overflowed; its queue pairs are in error.
    pub const CQ_ERROR: u8 = 1;
    /// A queue pair went into error.
    pub const QP_FATAL: u8 = 2;
    /// A responder refused a request (invalid request).
    pub const QP_REQ_ERR: u8 = 3;
    /// A responder refused access.
    pub const QP_ACCESS_ERR: u8 = 4;
    /// A send queue drained after SQD.
    pub const SQ_DRAINED: u8 = 5;
    /// The port came up.
    pub const PORT_UP: u8 = 6;
    /// The port went down.
    pub const PORT_DOWN: u8 = 7;
    /// A shared receive queue has fewer WQEs left than its limit, when one was taken or the limit set by ARM_SRQ; the limit is 0 again.
    pub const SRQ_LIMIT: u8 = 8;
    /// The exception queue has received.
    pub const EXCEPTION: u8 = 9;
    /// A connected queue pair accepted its first request while it was in RTR.
    pub const COMM_EST: u8 = 10;
    /// A queue pair in error with a shared receive queue has its last receive CQE in memory, and takes no WQE any more.
    pub const LAST_WQE_REACHED: u8 = 11;
}
}
