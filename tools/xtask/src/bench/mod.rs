//! `cargo xtask bench`: what the engine does in a cycle.
//!
//! Two Verilated engines on a wire of one beat a cycle, their hosts' rings written by hand, so that no
//! driver is in the way. All figures but the speed of the simulation are exact: cycles of the core clock
//! (4 ns) and payload bytes a cycle. They are compared with `baseline.json`; a worse figure is printed
//! and fails the run.

mod baseline;
mod flood;
mod load;
mod measured;
mod paced;
mod page;
mod probe;
mod rig;
mod scenario;
mod scenarios;
mod side;
mod stages;
mod storm;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use ferroce_sim::verilator;
use indicatif::{ProgressBar, ProgressStyle};

use crate::dut::Engine;
use crate::output::Output;
use crate::report::{self, Figure, Report};
use crate::{Usage, tools};

use baseline::Baseline;
use scenario::{Scenario, Tier};

/// Options of the task.
#[derive(clap::Args)]
pub struct Args {
    /// Fewer scenarios: those of the baseline.
    #[arg(long)]
    quick: bool,
    /// Only the largest build, of 16,384 queue pairs and 65,536 memory regions.
    #[arg(long, conflicts_with = "quick")]
    scale: bool,
    /// Only floods of a million short packets; takes minutes.
    #[arg(long, conflicts_with_all = ["quick", "scale"])]
    storm: bool,
    /// Only scenarios whose name contains this.
    name: Option<String>,
    /// The engine.
    #[arg(long, value_enum, default_value_t)]
    dut: Engine,
    /// Make the figures of this run the baseline, tools/xtask/baseline.json.
    #[arg(long)]
    write: bool,
    /// Seed of the timing of host memory and of losses.
    #[arg(long, value_name = "N", default_value_t = SEED)]
    seed: u64,
    /// Write a page with plots.
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
    #[command(flatten)]
    report: report::Args,
}

/// Seed of the baseline.
const SEED: u64 = 1;
/// Engine of the baseline.
const ENGINE: Engine = Engine::Rtl512;

/// Runs the task.
///
/// # Errors
/// [`Usage`]: a mistake of the caller; else a scenario that failed, or figures worse than the baseline.
pub fn run(args: &Args) -> Result<()> {
    let comparable = args.dut == ENGINE && args.seed == SEED;
    if args.write && !comparable {
        let text = format!("the baseline is of --dut rtl512 --seed {SEED}; leave --write out");
        return Err(Usage(text).into());
    }
    let tiers = match args {
        Args { storm: true, .. } => Tier::Storm..=Tier::Storm,
        Args { scale: true, .. } => Tier::Scale..=Tier::Scale,
        Args { quick: true, .. } => Tier::Gate..=Tier::Quick,
        _ => Tier::Gate..=Tier::Full,
    };
    let scenarios = chosen(args.dut, args.seed, tiers, args.name.as_deref());
    if scenarios.is_empty() {
        let text = "no scenario has a name with that in it; leave the name out to see all";
        return Err(Usage(text.into()).into());
    }
    let file = args.report.open()?;
    let html = args.html.as_deref().map(Output::create).transpose()?;
    tools::ensure_present(tools::ENGINE)?;
    let (mut figures, failures) = measure(&scenarios);
    let engine = scenarios::standard(args.dut.width()).model(&verilator::Options::default())?;
    let seconds = engine.build_time().as_secs_f64();
    figures.push(Figure::new(BUILD_TIME, seconds, "s"));
    let old = Baseline::load()?;
    let (worse, better) = match comparable && !args.write {
        true => old.compare(&figures),
        false => Default::default(),
    };
    let ok = failures.is_empty() && worse.is_empty();
    let result = Report::new(ok, args.seed, figures);
    file.write(&result)?;
    if let Some(html) = html {
        html.finish_with(&page::page(&result)?)?;
    }
    for figure in &result.figures {
        println!("{}", row(figure, comparable.then_some(&old)));
    }
    for line in &better {
        println!("better: {line}");
    }
    if !better.is_empty() {
        println!("make them the baseline: cargo xtask bench --quick --write");
    }
    ensure!(ok, "{}", [failures, worse].concat().join("\nerror: "));
    if args.write {
        old.updated(&result.figures).store()?;
    }
    Ok(())
}

/// A line of the table.
fn row(figure: &Figure, old: Option<&Baseline>) -> String {
    let was = old.and_then(|old| old.of(&figure.name));
    let was = was.map_or_else(String::new, |was| format!("  (baseline {was:.2})"));
    let (name, value, unit) = (&figure.name, figure.value.as_f64(), &figure.unit);
    format!("{name:<58} {value:>12.2} {unit}{was}")
}

fn chosen(
    engine: Engine,
    seed: u64,
    tiers: RangeInclusive<Tier>,
    filter: Option<&str>,
) -> Vec<Scenario> {
    let mut all = scenarios::all(engine.width(), seed);
    all.retain(|scenario| {
        tiers.contains(&scenario.tier) && filter.is_none_or(|part| scenario.name.contains(part))
    });
    all
}

/// Figures of all scenarios, and what went wrong with some of them.
fn measure(scenarios: &[Scenario]) -> (Vec<Figure>, Vec<String>) {
    let progress = progress_bar(scenarios.len() as u64);
    let (mut figures, mut failures) = (Vec::new(), Vec::new());
    let (mut cycles, mut cpu) = (0, 0.0);
    for scenario in scenarios {
        progress.set_message(scenario.name.clone());
        match scenario.run() {
            Ok(found) => {
                cycles += found.cycles;
                cpu += found.cpu;
                figures.extend(found.figures);
            }
            Err(error) => failures.push(format!("{}: {error:#}", scenario.name)),
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    if cpu > 0.0 {
        let rate = cycles as f64 / cpu;
        figures.push(Figure::new(SPEED, rate, "cycles/CPU-s"));
    }
    (figures, failures)
}

/// Speed of the simulation of two cards of 512 bits, host memory and hosts, in the part that a load takes.
const SPEED: &str = "sim_cycles_per_cpu_second";
/// What Verilator and the compiler took for the engine.
const BUILD_TIME: &str = "verilated_engine_build_seconds";
/// Figures of this machine, and so of no baseline.
const OF_THE_MACHINE: [&str; 2] = [SPEED, BUILD_TIME];

fn progress_bar(scenarios: u64) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}, {elapsed} gone, {eta} left")
            .expect("the template is valid");
    ProgressBar::new(scenarios).with_style(style)
}

/// The scenarios of the test: the figures that the project promises. Answers what is worse than the
/// baseline, or failed, in words.
#[must_use]
pub fn gate() -> Vec<String> {
    let (figures, mut failures) = measure(&chosen(ENGINE, SEED, Tier::Gate..=Tier::Gate, None));
    match Baseline::load() {
        Ok(old) => failures.extend(old.compare(&figures).0),
        Err(error) => failures.push(format!("{error:#}")),
    }
    failures
}
