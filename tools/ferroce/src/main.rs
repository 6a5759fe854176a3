//! The program `ferroce`.

use std::process::ExitCode;

use ferroce::cli::{self, Command};

/// An open RoCEv2 NIC: engine, simulated cards, libraries.
#[derive(clap::Parser)]
#[command(name = "ferroce", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    cli::main(|cli: Cli| cli.command.run())
}
