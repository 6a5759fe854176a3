//! Project tasks: `cargo xtask <task>`. Each brings the tools it needs or names the command that does.
#![forbid(unsafe_code)]

mod test;
mod tools;

use std::process::ExitCode;

use clap::Parser;

/// Tasks of the Ferroce project.
#[derive(Parser)]
#[command(name = "cargo xtask", version, arg_required_else_help = true)]
enum Task {
    /// Run all tests.
    Test(test::Args),
}

/// A mistake of the caller, as opposed to a failure of the task: exit code 2.
#[derive(Debug)]
struct Usage(String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

fn main() -> ExitCode {
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
