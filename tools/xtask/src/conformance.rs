//! `cargo xtask conformance`: the conformance suite, its table, and the page of it in `docs`.

use anyhow::{Result, ensure};
use clap::ValueEnum;
use ferroce_tests::conformance::run::{Target, suite};
use ferroce_tests::conformance::{named, table};
use ferroce_tests::world::World;

use crate::dut::Dut;
use crate::output::put;
use crate::report::{self, Figure, Report};
use crate::{Usage, tools};

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only cases whose name contains this.
    name: Option<String>,
    /// What to run them on; all when not given.
    #[arg(long, value_enum)]
    dut: Option<Dut>,
    /// The world around an engine.
    #[arg(long, value_enum, default_value = "fast")]
    world: Around,
    /// Also the cases that need what the device does not claim in register FEATURES.
    #[arg(long)]
    unclaimed: bool,
    /// Write the page of cases and verdicts, docs/conformance.md.
    #[arg(long, conflicts_with_all = ["name", "dut", "world", "unclaimed"])]
    write: bool,
    #[command(flatten)]
    report: report::Args,
}

/// A device as the suite has it.
pub(crate) const fn target(dut: Dut) -> Target {
    match dut {
        Dut::Model => Target::Model,
        Dut::Rtl512 => Target::Rtl(512),
        Dut::Rtl64 => Target::Rtl(64),
    }
}

/// What is around an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Around {
    /// No latency, everything in order.
    Fast,
    /// A loaded host: a microsecond to read, answers out of order.
    Loaded,
    /// Pauses on every port, answers in any order.
    Hostile,
}

/// Runs the task.
///
/// # Errors
/// [`Usage`] if there is no such case; else the cases that failed.
pub(crate) fn run(args: &Args) -> Result<()> {
    let targets = match args.dut {
        None => Target::ALL.to_vec(),
        Some(dut) => vec![target(dut)],
    };
    let name = args.name.as_deref().unwrap_or_default();
    if named(name).next().is_none() {
        let page = table::PATH;
        return Err(Usage(format!("no case is named like {name}; {page} lists them")).into());
    }
    if targets != [Target::Model] {
        tools::ensure_present(tools::ENGINE)?;
    }
    let around = match args.world {
        Around::Fast => World::Fast,
        Around::Loaded => World::Loaded,
        Around::Hostile => World::Hostile,
    };
    let file = args.report.open()?;
    let found = suite(&targets, name, args.unclaimed, |_| around)?;
    print!("{}\n{}", table::plain(&found), table::summary(&found));
    if args.write {
        put(table::PATH, &table::page(&found))?;
    }
    let failures = found.failures();
    let figures = table::sums(&found).into_iter().flat_map(|(dut, sums)| {
        let dut = report::plain(&dut.replace(' ', ""));
        let names = ["passed", "failed", "not_claimed"].into_iter().zip(sums);
        names.map(move |(what, cases)| Figure::new(format!("{dut}_{what}"), cases as u64, "cases"))
    });
    file.write(&Report::new(failures.is_empty(), 0, figures.collect()))?;
    ensure!(failures.is_empty(), "\n{}", failures.join("\n\n"));
    Ok(())
}
