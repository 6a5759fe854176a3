//! The transport: requester, responder, congestion control.

pub mod congestion;
pub mod place_order;
pub mod place_queue;
pub mod requester;
pub mod responder;
