//! `cargo xtask soak`: endurance, round by round, until time is up; in one round of five classes are paused.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use ferroce_system::pool;
use ferroce_tests::paused;
use ferroce_tests::soak::{self, Soaked};
use indicatif::{ProgressBar, ProgressStyle};

use crate::conformance::target;
use crate::dut::Dut;
use crate::report::{self, Figure, Report};

/// Cycles of traffic of a round.
const CYCLES: u64 = 100_000;

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How long, in hours: 0.1 is six minutes.
    #[arg(long, value_name = "H", value_parser = hours)]
    hours: Duration,
    /// The device under test.
    #[arg(long, value_enum, default_value = "model")]
    dut: Dut,
    /// Seed of the first round, the next has the next one: what a campaign ended at.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    report: report::Args,
}

fn hours(text: &str) -> Result<Duration, String> {
    let hours: f64 = text
        .parse()
        .map_err(|_| "a number of hours is expected".to_owned())?;
    match Duration::try_from_secs_f64(hours * 3600.0) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err("more than 0 hours are expected".into()),
    }
}

/// Runs the task.
///
/// # Errors
/// What broke first.
pub(crate) fn run(args: &Args) -> Result<()> {
    let file = args.report.open()?;
    args.dut.ensure_buildable()?;
    let target = target(args.dut);
    let style = ProgressStyle::with_template("{bar:40} {elapsed_precise} {msg}")?;
    let bar = ProgressBar::new(args.hours.as_secs().max(1)).with_style(style);
    let (start, sum) = (Instant::now(), Mutex::new(Soaked::default()));
    let seeds = (args.seed..).take_while(|_| start.elapsed() < args.hours);
    let rounds = pool::try_each(pool::processors(), seeds, || {
        |seed| {
            let round = match seed.is_multiple_of(5) {
                true => paused::round,
                false => soak::round,
            };
            let soaked = round(target, CYCLES, seed)?;
            let mut sum = sum
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            *sum += soaked;
            bar.set_position(start.elapsed().as_secs());
            bar.set_message(format!("{} messages, seed {seed}", sum.messages));
            Ok::<_, String>(())
        }
    });
    bar.finish_and_clear();
    let sum = sum.into_inner().ok().context("a round broke off")?;
    file.write(&Report::new(rounds.is_ok(), args.seed, figures(&sum)))?;
    if let Err(what) = rounds {
        bail!("{what}");
    }
    println!(
        "{}: {} rounds, {} cycles: {} queue pairs opened, {} messages, {} bytes compared, {} datagrams lost by the wire, {} processes died, {} connections gave up, {} cards reset, {} cycles for a command at most\ngoes on with --seed {}",
        target.name(),
        sum.rounds,
        sum.cycles,
        sum.incarnations,
        sum.messages,
        sum.bytes,
        sum.lost,
        sum.deaths,
        sum.gave_up,
        sum.resets,
        sum.slowest,
        args.seed + sum.rounds
    );
    Ok(())
}

fn figures(sum: &Soaked) -> Vec<Figure> {
    vec![
        Figure::new("rounds", sum.rounds, "rounds"),
        Figure::new("cycles", sum.cycles, "cycles"),
        Figure::new("opened", sum.incarnations, "queue pairs"),
        Figure::new("messages", sum.messages, "messages"),
        Figure::new("compared", sum.bytes, "bytes"),
        Figure::new("lost", sum.lost, "datagrams"),
        Figure::new("deaths", sum.deaths, "processes"),
        Figure::new("gave_up", sum.gave_up, "connections"),
        Figure::new("resets", sum.resets, "cards"),
        Figure::new("slowest_command", sum.slowest, "cycles"),
    ]
}
