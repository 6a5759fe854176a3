//! The command line.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use clap::error::ErrorKind;
use tracing::level_filters::LevelFilter;

use crate::{Usage, card, demo, emit, library, regs, replay, stats};

/// The commands of users.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Send a file from host to host, through two engines and a wire between them.
    Demo(demo::Args),
    /// Serve the engine as a PCIe card over vfio-user, to QEMU or to a driver, or in a SimBricks simulation.
    #[command(visible_alias = "simnic")]
    Card(card::Args),
    /// Play one side of a capture of real traffic against the engine and compare what it sends.
    Replay(replay::Args),
    /// Write the engine as Verilog, with what a tool chain needs beside it.
    Emit(emit::Args),
    /// Build the verbs library for unmodified programs, libibverbs.so.1.
    #[command(visible_alias = "libibverbs")]
    Lib(library::Args),
    /// Write the register map and the host contract: pages, SystemRDL and the header for C.
    Regs(regs::Args),
    /// Show the counters of a card, once or live.
    Stats(stats::Args),
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// [`Usage`]: a mistake of the caller; else what went wrong.
    pub fn run(&self) -> Result<()> {
        match self {
            Self::Demo(args) => demo::run(args),
            Self::Card(args) => card::run(args),
            Self::Replay(args) => replay::run(args),
            Self::Emit(args) => emit::run(args),
            Self::Lib(args) => library::run(args),
            Self::Regs(args) => regs::run(args),
            Self::Stats(args) => stats::run(args),
        }
    }
}

/// Parses the command line and runs what it asks for. An error is a line on standard error.
pub fn main<T: Parser>(run: impl FnOnce(T) -> Result<()>) -> ExitCode {
    // a command reports its failure itself, in a line
    ferroce_driver::log::start(LevelFilter::OFF);
    let parsed = T::try_parse().map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => error.exit(),
        _ => Usage(one_line(&error)).into(),
    });
    match parsed.and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
        }
    }
}

/// What clap prints in several lines, without how to call the command at large.
pub fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim);
    let text: Vec<_> = lines
        .take_while(|line| !line.starts_with("Usage:"))
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
        .map(|line| line.trim_start_matches("error: "))
        .collect();
    format!("{}; --help tells more", text.join("; "))
}
