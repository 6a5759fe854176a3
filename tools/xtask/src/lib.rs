//! Project tasks: `cargo xtask <task>`. Each brings the tools it needs or names the command that does.
//!
//! Exit codes: 0 done; 1 the task failed, or found a difference; 2 a mistake of the caller, see
//! [`Usage`]: then nothing was written.
#![forbid(unsafe_code)]

pub mod bench;
mod cli;
mod conformance;
mod coverage;
mod docs;
mod fabric;
mod formal;
mod fuzz;
mod hostile;
mod interop;
mod mutate;
mod plots;
mod pyverbs;
mod release;
mod seeded;
mod soak;
pub mod synth;
mod test;

use std::process::ExitCode;

pub use ferroce::Usage;
use ferroce::{card, demo, dut, emit, library, output, regs, report, tools};

/// Runs the task that the command line names.
#[must_use]
pub fn main() -> ExitCode {
    ferroce::cli::main(|task: cli::Task| task.run())
}
