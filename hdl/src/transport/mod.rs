//! The transport: requester and responder.

pub mod requester;
pub mod responder;
