//! The transport: requester and responder.

pub mod place_order;
pub mod requester;
pub mod responder;
