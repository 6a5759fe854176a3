//! `cargo xtask seeded`: defects that were mended, put back into the engine, and what finds each: the random campaigns, or the
//! conformance case that was made for it.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::builder::PossibleValuesParser;
use ferroce_sim::verilator::Model;
use ferroce_system::pool;
use ferroce_tests::conformance::run::{Outcome, Target};
use ferroce_tests::seeded::{
    CAMPAIGNS, Campaign, Defect, Found, case_of, defects, engine, find, target,
};

use crate::report::{self, Figure, Report};
use crate::tools;

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these, by their names; all without one.
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(defects().map(|d| d.name)))]
    names: Vec<String>,
    /// Processor time for the campaigns of a defect.
    #[arg(long, value_name = "S", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Only this campaign, which may be given more than once; all without one.
    #[arg(long, value_name = "CAMPAIGN", value_parser = PossibleValuesParser::new(CAMPAIGNS.map(|c| c.name)))]
    campaign: Vec<String>,
    /// Run the conformance case of each defect instead, in each world.
    #[arg(long, conflicts_with_all = ["campaign", "report"])]
    cases: bool,
    /// Run the campaigns on the golden model and on the engine without a defect: they find nothing.
    #[arg(long, conflicts_with_all = ["names", "cases", "report"])]
    sound: bool,
    #[command(flatten)]
    report: report::Args,
}

/// A defect and its number in the engine.
type Numbered = (usize, &'static Defect);

/// Runs the task.
///
/// # Errors
/// The engine does not build; a case passes with its defect; the campaigns find something without one.
pub(crate) fn run(args: &Args) -> Result<()> {
    let file = args.report.open()?;
    tools::ensure_present(tools::ENGINE)?;
    let model = engine().map_err(anyhow::Error::msg)?;
    let time = Duration::from_secs(args.seconds);
    let is_asked = |asked: &[String], name| asked.is_empty() || asked.iter().any(|it| it == name);
    let chosen: Vec<Numbered> = (1..)
        .zip(defects())
        .filter(|(_, d)| is_asked(&args.names, d.name))
        .collect();
    let campaigns: Vec<&Campaign> = CAMPAIGNS
        .iter()
        .filter(|c| is_asked(&args.campaign, c.name))
        .collect();
    match args {
        Args { sound: true, .. } => sound(model, &campaigns, time),
        Args { cases: true, .. } => cases(model, chosen),
        _ => file.write(&Report::new(
            true,
            0,
            put_back(model, chosen, &campaigns, time),
        )),
    }
}

/// The campaigns without a defect.
fn sound(model: &'static Model, campaigns: &[&Campaign], time: Duration) -> Result<()> {
    let targets = [
        ("golden model", Target::Model),
        ("engine", target(model, 0)),
    ];
    let found = pool::each(pool::processors(), targets, || {
        |(name, target)| {
            let (found, took) = find(target, campaigns, time);
            let (finder, what) = row(found);
            println!("{name}: {finder}, {:.0} s {what}", took.as_secs_f64());
            finder != NONE
        }
    });
    ensure!(!found.contains(&true), "there is no defect to find");
    Ok(())
}

/// The conformance case of each defect.
fn cases(model: &'static Model, chosen: Vec<Numbered>) -> Result<()> {
    println!("| defect | case | fast | loaded | hostile |\n|---|---|---|---|---|");
    let mut blind = Vec::new();
    for (number, defect) in chosen {
        let outcomes = case_of(defect, target(model, number)).map_err(anyhow::Error::msg)?;
        let Some(outcomes) = outcomes else { continue };
        let fails = outcomes.map(|outcome| match outcome {
            Outcome::Failed(_) => "found",
            Outcome::Passed | Outcome::NotClaimed => "passes",
        });
        if !fails.contains(&"found") {
            blind.push(defect.name);
        }
        let case = defect.case.unwrap_or_default();
        println!("| `{}` | `{case}` | {} |", defect.name, fails.join(" | "));
    }
    let blind = blind.join(", ");
    ensure!(blind.is_empty(), "the case passes with {blind}");
    Ok(())
}

/// The campaigns against each defect, and how long each took.
fn put_back(
    model: &'static Model,
    chosen: Vec<Numbered>,
    campaigns: &[&Campaign],
    time: Duration,
) -> Vec<Figure> {
    println!("| defect | found by | time | what it said |\n|---|---|---|---|");
    let found = pool::each(pool::processors(), chosen, || {
        |(number, defect): Numbered| {
            let (found, took) = find(target(model, number), campaigns, time);
            let is_found = found.is_some();
            let (finder, what) = row(found);
            println!(
                "| `{}`: {} | {finder} | {:.0} s | {what} |",
                defect.name,
                defect.what,
                took.as_secs_f64()
            );
            (defect.name, is_found, took)
        }
    });
    let count = |is: bool| found.iter().filter(|(_, found, _)| *found == is).count() as u64;
    let mut figures = vec![
        Figure::new("found", count(true), "defects"),
        Figure::new("not_found", count(false), "defects"),
    ];
    for (name, _, took) in found {
        figures.push(Figure::new(format!("{name}_time"), took.as_secs_f64(), "s"));
    }
    figures
}

const NONE: &str = "none";

/// The campaign that found something, and what it found.
fn row(found: Option<Found>) -> (String, String) {
    let Some(found) = found else {
        return (NONE.into(), String::new());
    };
    let what = found.what.replace(['\n', '|'], " ");
    let what = what.chars().take(260).collect();
    (format!("{}, {}", found.campaign, found.seed), what)
}
