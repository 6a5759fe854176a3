//! `cargo xtask seeded`: defects that were mended, put back into the engine, and the random campaign that finds each.

use std::time::Duration;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use ferroce_system::pool;
use ferroce_tests::seeded::{DEFECTS, Found, engine, find};

use crate::report::{self, Figure, Report};
use crate::tools;

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these, by their names; all without one.
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(DEFECTS.iter().map(|d| d.name)))]
    names: Vec<String>,
    /// Processor time for the campaigns of a defect.
    #[arg(long, value_name = "S", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    #[command(flatten)]
    report: report::Args,
}

/// Runs the task.
///
/// # Errors
/// The engine does not build.
pub(crate) fn run(args: &Args) -> Result<()> {
    let file = args.report.open()?;
    tools::ensure_present(&[tools::VERILATOR, tools::CXX, tools::ZLIB])?;
    let model = engine().map_err(anyhow::Error::msg)?;
    let asked = |name: &str| args.names.is_empty() || args.names.iter().any(|asked| asked == name);
    let chosen: Vec<_> = (1..).zip(DEFECTS).filter(|(_, d)| asked(d.name)).collect();
    println!("| defect | found by | time | what it said |\n|---|---|---|---|");
    let found = pool::each(pool::processors(), chosen, || {
        |(number, defect): (usize, &ferroce_tests::seeded::Defect)| {
            let (found, took) = find(model, number, Duration::from_secs(args.seconds));
            let is_found = found.is_some();
            let (finder, what) = found.map_or_else(
                || ("none".into(), String::new()),
                |Found {
                     campaign,
                     seed,
                     what,
                 }| { (format!("{campaign}, {seed}"), what.replace('\n', " ")) },
            );
            let what: String = what.replace('|', "/").chars().take(160).collect();
            println!(
                "| `{}`: {} | {finder} | {:.0} s | {what} |",
                defect.name,
                defect.what,
                took.as_secs_f64()
            );
            (defect.name, is_found, took)
        }
    });
    let counts = [true, false].map(|is| found.iter().filter(|(_, found, _)| *found == is).count());
    let mut figures = vec![
        Figure::new("found", counts[0] as u64, "defects"),
        Figure::new("not_found", counts[1] as u64, "defects"),
    ];
    for (name, _, took) in found {
        figures.push(Figure::new(format!("{name}_time"), took.as_secs_f64(), "s"));
    }
    file.write(&Report::new(true, 0, figures))
}
