//! Cycle-accurate simulation of the engine.
#![deny(unsafe_code)]

pub mod bits;
#[allow(unsafe_code)]
pub mod memory;
pub mod nic;
#[allow(unsafe_code)]
pub mod verilator;
