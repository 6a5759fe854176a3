//! Project tasks: `cargo xtask <task>`. Each brings the tools it needs or names the command that does.
//!
//! Exit codes: 0 done; 1 the task failed, or found a difference; 2 a mistake of the caller, see
//! [`Usage`]: then nothing was written.
#![forbid(unsafe_code)]

pub mod abi;
pub mod bench;
mod cli;
mod conformance;
mod coverage;
pub mod demo;
mod docs;
pub mod emit;
mod formal;
mod hostile;
mod interop;
mod libibverbs;
mod mutate;
pub mod output;
mod pyverbs;
pub mod regs;
pub mod replay;
pub mod report;
mod simnic;
pub mod synth;
mod test;
mod tools;
mod usage;

use std::process::ExitCode;

use tracing::level_filters::LevelFilter;

pub use usage::Usage;

/// Runs the task that the command line names.
#[must_use]
pub fn main() -> ExitCode {
    // a task says itself what failed, in a line
    ferroce_driver::log::start(LevelFilter::OFF);
    let result = cli::parse().and_then(|task| match task {
        cli::Task::Bench(args) => bench::run(&args),
        cli::Task::Conformance(args) => conformance::run(&args),
        cli::Task::Coverage(args) => coverage::run(&args),
        cli::Task::Demo(args) => demo::run(&args),
        cli::Task::Docs(args) => docs::run(&args),
        cli::Task::Emit(args) => emit::run(&args),
        cli::Task::Formal(args) => formal::run(&args),
        cli::Task::Hostile(args) => hostile::run(&args),
        cli::Task::Interop(args) => interop::run(&args),
        cli::Task::Libibverbs(args) => libibverbs::run(&args),
        cli::Task::Mutate(args) => mutate::run(&args),
        cli::Task::Pyverbs(args) => pyverbs::run(&args),
        cli::Task::Regs(args) => regs::run(&args),
        cli::Task::Replay(args) => replay::run(&args),
        cli::Task::Simnic(args) => simnic::run(&args),
        cli::Task::Synth(args) => synth::run(&args),
        cli::Task::Test(args) => test::run(&args),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
        }
    }
}
