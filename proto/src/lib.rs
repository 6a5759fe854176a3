//! The two contracts of the product: what the peer sees on the wire and what the host sees in registers and rings.
#![no_std]
#![forbid(unsafe_code)]

pub mod abi;
pub mod wire;
