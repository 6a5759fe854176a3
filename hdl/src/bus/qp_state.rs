//! States of a queue pair, as the host contract numbers them, and what they mean to a send queue (IB1 10.3.1).
use ferroce_proto::abi::qpc::state;

use crate::prelude::*;

/// Nothing is sent or received.
pub const RESET: u64 = state::RESET as u64;
/// Ready to receive.
pub const RTR: u64 = state::RTR as u64;
/// Ready to send.
pub const RTS: u64 = state::RTS as u64;
/// The send queue drains.
pub const SQD: u64 = state::SQD as u64;
/// The send queue is in error.
pub const SQE: u64 = state::SQE as u64;
/// The queue pair is in error.
pub const ERR: u64 = state::ERR as u64;

/// Responses count for the send queue.
#[kernel_fn]
pub fn takes_responses(state: Bits<3>) -> Bit {
    (state == RTS) | (state == SQD)
}

/// The send queue is in error: what is posted is flushed.
#[kernel_fn]
pub fn is_sq_error(state: Bits<3>) -> Bit {
    (state == ERR) | (state == SQE)
}
