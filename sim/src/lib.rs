//! Cycle-accurate simulation of the engine.

pub mod memory;
pub mod nic;
