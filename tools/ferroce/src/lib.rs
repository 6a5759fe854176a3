//! `ferroce`: the commands of users. `cargo xtask` has them too, beside the tasks of developers.
//!
//! Exit codes: 0 done; 1 the command failed, or found a difference; 2 a mistake of the caller, see
//! [`Usage`]: then nothing was written.
#![forbid(unsafe_code)]

pub mod abi;
pub mod card;
pub mod cli;
pub mod demo;
pub mod dut;
pub mod emit;
pub mod library;
pub mod output;
pub mod regs;
pub mod replay;
pub mod report;
pub mod stats;
pub mod tools;
mod usage;

pub use usage::Usage;
