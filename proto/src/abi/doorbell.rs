//! Doorbells: 32-bit writes in pages of BAR0 that hold nothing else.
//!
//! A producer index is free running; the card uses its low 16 bits. The host owns it: no command
//! changes it, RESET does not clear it, and the card takes it in every state of the queue pair.

/// First byte of the send and receive queue doorbells.
pub const QP_BASE: u64 = 0x10_0000;
/// First byte of the completion queue doorbells.
pub const CQ_BASE: u64 = 0x20_0000;
/// First byte of the shared receive queue doorbells.
pub const SRQ_BASE: u64 = 0x30_0000;
/// Bytes from one queue's doorbell to the next.
pub const STRIDE: u64 = 8;

/// Send queue doorbell of a queue pair; the value is the producer index in slots.
#[must_use]
pub const fn sq(qpn: u32) -> u64 {
    QP_BASE + qpn as u64 * STRIDE
}

/// Receive queue doorbell of a queue pair; the value is the producer index in WQEs.
#[must_use]
pub const fn rq(qpn: u32) -> u64 {
    QP_BASE + qpn as u64 * STRIDE + 4
}

/// Arm doorbell of a completion queue; the value is [`ARM_ANY`] or [`ARM_SOLICITED`] or-ed with the consumer index's low 24 bits.
#[must_use]
pub const fn cq(cqn: u32) -> u64 {
    CQ_BASE + cqn as u64 * STRIDE
}

/// Shared receive queue doorbell; the value is the producer index of its ring, in WQEs.
#[must_use]
pub const fn srq(srqn: u32) -> u64 {
    SRQ_BASE + srqn as u64 * STRIDE
}

/// Report the next completion.
pub const ARM_ANY: u32 = 1 << 30;
/// Report the next solicited or failed completion.
pub const ARM_SOLICITED: u32 = 1 << 31;
/// Bits of the consumer index in the value of the arm doorbell.
pub const ARM_INDEX: u32 = (1 << 24) - 1;
