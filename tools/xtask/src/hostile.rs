//! `cargo xtask hostile`: frames of an attacker, beside a connection that must not notice.

use anyhow::{Result, bail};
use ferroce_system::pool;
use ferroce_tests::hostile::{Report, attack};

use crate::conformance::Dut;
use crate::tools;

/// Frames of one attack; a longer campaign has several seeds.
const FRAMES: u64 = 5000;

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The device under attack.
    #[arg(long, value_enum, default_value = "rtl512")]
    dut: Dut,
    /// Frames in all.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    frames: u64,
    /// First seed; attacks of 5000 frames have a seed each.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the task.
///
/// # Errors
/// What broke first.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.dut != Dut::Model {
        tools::ensure_present(&[tools::VERILATOR, tools::CXX, tools::ZLIB])?;
    }
    let target = args.dut.target();
    let seeds = args.seed..args.seed + args.frames.div_ceil(FRAMES);
    let frames = |seed| FRAMES.min(args.frames - (seed - args.seed) * FRAMES);
    let reports = pool::each(pool::processors(), seeds, || {
        |seed| attack(target, frames(seed), seed)
    });
    let mut sum = Report::default();
    for report in reports {
        match report {
            Ok(report) => {
                sum.frames += report.frames;
                sum.messages += report.messages;
                sum.revived += report.revived;
            }
            Err(what) => bail!("{what}"),
        }
    }
    println!(
        "{}: {} hostile frames, {} messages of the neighbour right beside them, {} queue pairs opened again",
        target.name(),
        sum.frames,
        sum.messages,
        sum.revived
    );
    Ok(())
}
