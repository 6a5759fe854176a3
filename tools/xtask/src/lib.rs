//! Project tasks: `cargo xtask <task>`. Each brings the tools it needs or names the command that does.
//!
//! Exit codes: 0 done; 1 the task failed, or found a difference; 2 a mistake of the caller, see
//! [`Usage`]: then nothing was written.
#![forbid(unsafe_code)]

pub mod output;
pub mod report;
mod test;
mod tools;
mod usage;

use std::process::ExitCode;

use clap::Parser;

pub use usage::Usage;

/// Tasks of the Ferroce project.
#[derive(Parser)]
#[command(name = "cargo xtask", version, arg_required_else_help = true)]
enum Task {
    /// Run all tests.
    Test(test::Args),
}

/// Runs the task that the command line names.
#[must_use]
pub fn main() -> ExitCode {
    let result = match Task::parse() {
        Task::Test(args) => test::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
        }
    }
}
