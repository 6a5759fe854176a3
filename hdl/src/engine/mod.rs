//! The engine.
pub mod failures;
pub mod receive;
pub mod transmit;
