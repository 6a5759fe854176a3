//! `cargo xtask conformance`: the conformance suite, its table, and the page of it in `docs`.

use anyhow::{Result, ensure};
use clap::ValueEnum;
use ferroce_tests::conformance::run::{Target, suite};
use ferroce_tests::conformance::table;
use ferroce_tests::world::World;

use crate::output::put;
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
}

/// The device under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dut {
    /// The golden model.
    Model,
    /// The emitted Verilog with a data path of 512 bits.
    Rtl512,
    /// The emitted Verilog with a data path of 64 bits.
    Rtl64,
}

impl Dut {
    /// As the suite has it.
    pub(crate) const fn target(self) -> Target {
        match self {
            Self::Model => Target::Model,
            Self::Rtl512 => Target::Rtl(512),
            Self::Rtl64 => Target::Rtl(64),
        }
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
        Some(dut) => vec![dut.target()],
    };
    if targets != [Target::Model] {
        tools::ensure_present(&[tools::VERILATOR, tools::CXX, tools::ZLIB])?;
    }
    let name = args.name.as_deref().unwrap_or_default();
    let around = match args.world {
        Around::Fast => World::Fast,
        Around::Loaded => World::Loaded,
        Around::Hostile => World::Hostile,
    };
    let report = suite(&targets, name, args.unclaimed, |_| around)?;
    if report.rows.is_empty() {
        let page = table::PATH;
        return Err(Usage(format!("no case is named like {name}; {page} lists them")).into());
    }
    print!("{}\n{}", table::plain(&report), table::summary(&report));
    if args.write {
        put(table::PATH, &table::page(&report))?;
    }
    let failures = report.failures();
    ensure!(failures.is_empty(), "\n{}", failures.join("\n\n"));
    Ok(())
}
