//! `cargo xtask emit`: the engine as Verilog, with what a tool chain needs beside it.

mod bundle;
mod rtl;
mod text;

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use ferroce_hdl::engine::builds::STANDARD;

pub use bundle::Bundle;
pub use rtl::Build;

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to write it for.
    #[arg(long, value_enum, default_value = "generic")]
    board: Board,
    #[command(flatten)]
    build: BuildArgs,
    /// Directory to write; it is made, and has to be empty if it is there.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Replace what an earlier run wrote to DIR.
    #[arg(long)]
    force: bool,
}

/// Sizes of a build.
#[derive(Clone, Debug, clap::Args)]
// clap names groups by the type.
#[group(skip)]
pub(crate) struct BuildArgs {
    /// Data path in bits: 512 or 64.
    #[arg(long, default_value_t = 512, value_name = "BITS")]
    width: u64,
    /// Queue pairs: a power of two from 16 to 16384.
    #[arg(long, default_value_t = 1 << STANDARD.log_qp, value_name = "N")]
    qps: u64,
    /// Memory regions: a power of two from 64 to 65536.
    #[arg(long, default_value_t = 1 << STANDARD.log_mr, value_name = "N")]
    mrs: u64,
    /// Completion queues: a power of two from 16 to 16384.
    #[arg(long, default_value_t = 1 << STANDARD.log_cq, value_name = "N")]
    cqs: u64,
    /// Messages that may be outstanding, of all queue pairs together: a power of two from 1024 to 65536.
    #[arg(long, default_value_t = 1 << STANDARD.log_outstanding, value_name = "N")]
    outstanding: u64,
}

/// Boards that the engine can be written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Board {
    /// The engine alone, with AXI ports.
    Generic,
}

/// Runs the task.
///
/// # Errors
/// [`Usage`](crate::Usage) for a size that cannot be built or a directory that is not free; else what failed.
pub(crate) fn run(args: &Args) -> Result<()> {
    let Board::Generic = args.board;
    let build = Build::new(&args.build)?;
    let place = bundle::Place::new(&args.out, args.force)?;
    let bundle = text::generic(&build, &build.modules()?);
    let files = bundle.files().count();
    place.write(&bundle)?;
    println!(
        "wrote {files} files to {}; README.md there has the next commands",
        args.out.display()
    );
    Ok(())
}
