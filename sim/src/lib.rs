//! Cycle-accurate simulation of the engine.
#![deny(unsafe_code)]

pub mod bench;
pub mod bits;
#[allow(unsafe_code)]
pub mod memory;
pub mod nic;
pub mod random;
#[allow(unsafe_code)]
pub mod verilator;
