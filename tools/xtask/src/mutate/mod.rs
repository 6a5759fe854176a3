//! `cargo xtask mutate`: breaks the emitted Verilog of the engine in many ways and shows what the tests do not notice.

mod benches;
mod kept;
mod proof;
mod record;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use fastrand::Rng;
use ferroce_hdl::emit::Design;
use ferroce_hdl::engine::builds;
use ferroce_sim::mutation::benches::listed;
use ferroce_sim::mutation::sites::{self, Mutant};
use ferroce_system::pool;
use ferroce_tests::mutation::{Engines, Finder};
use indicatif::{ProgressBar, ProgressStyle};

use self::benches::Benches;
use self::kept::Kept;
use self::record::{EQUAL, RECORD, Record, Tally, filled};
use crate::dut::Engine;
use crate::report::{self, Figure, Report};
use crate::{Usage, tools};

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these blocks, by their names without sizes.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// How many mutants, chosen at random.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u16).range(1..), value_name = "N")]
    sample: u16,
    /// Of the choice.
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// The engine.
    #[arg(long, value_enum, default_value = "rtl64")]
    dut: Engine,
    /// Processor time for the random campaigns of a mutant that nothing else found.
    #[arg(long, value_name = "S", default_value_t = 120)]
    seconds: u64,
    /// Only the benches of blocks, without conformance cases and random campaigns of the whole engine.
    #[arg(long, conflicts_with = "write")]
    benches: bool,
    /// Add what found each mutant to this file, and do not try again those that are there from an earlier run.
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Only those that were not found the last time, in the same sample; with --write the outcome stays for the others.
    #[arg(long, conflicts_with_all = ["names", "sample", "seed", "dut"])]
    survivors: bool,
    /// Keep the outcome, tools/xtask/mutants.json, and write the page of it, docs/mutation.md.
    #[arg(long, conflicts_with = "names")]
    write: bool,
    /// Try nothing; only write the page from the outcome that was kept.
    #[arg(long, conflicts_with_all = ["names", "sample", "seed", "dut", "write", "survivors", "report"])]
    page: bool,
    #[command(flatten)]
    report: report::Args,
}

/// Runs the task.
///
/// # Errors
/// [`Usage`] if there is no such block; an engine or a bench that does not build or fails without a mutant; survivors
/// without an explanation.
pub(crate) fn run(args: &Args) -> Result<()> {
    let old = Record::load()?;
    if args.page {
        return old.store_page();
    }
    let (width, seed, sample) = match args.survivors {
        true => (old.width, old.seed, old.totals().tried as usize),
        false => (args.dut.width(), args.seed, args.sample.into()),
    };
    let file = args.report.open()?;
    tools::ensure_present(&[tools::ENGINE, &[tools::YOSYS]].concat())?;
    let design = builds::verilog(width).map_err(anyhow::Error::msg)?;
    let asked: Vec<_> = args.names.iter().map(String::as_str).collect();
    let all = sites::mutants(&design.source(), &asked);
    if all.is_empty() {
        return Err(Usage(format!("no logic in {}", asked.join(", "))).into());
    }
    let mut chosen = Rng::with_seed(seed).choose_multiple(all.iter().cloned(), sample);
    chosen.sort_by_key(|mutant| mutant.line);
    if args.survivors {
        chosen.retain(|mutant| old.survivor(mutant).is_some());
        let there = |s: &record::Survivor| chosen.iter().any(|mutant| s.is(mutant));
        ensure!(
            all.len() == old.possible && old.survivors.iter().all(there),
            "the survivors of {RECORD} are of other Verilog: run without --survivors"
        );
    }
    let text = listed(&all, &chosen);
    let mut hash = DefaultHasher::new();
    text.hash(&mut hash);
    let (tried, possible) = (chosen.len(), all.len());
    let run = format!("{tried} of {possible} mutants, {:016x}", hash.finish());
    let kept = args.resume.as_deref().map(|path| Kept::open(path, &run));
    let kept = kept.transpose()?.unwrap_or_default();
    let found = try_all(args, &design, &chosen, &text, &kept)?;
    let empty = Record {
        width,
        seed,
        possible: all.len(),
        ..Record::default()
    };
    let mut record = filled(empty, &chosen, &found, &old);
    if args.survivors {
        record = old.with(record);
    }
    println!("{}", table(&record));
    if args.write {
        record.store()?;
    }
    let Tally {
        tried,
        found,
        equal,
    } = record.totals();
    let counts = [("tried", tried), ("found", found), ("equal", equal)];
    let figure = |(name, count): (&str, u32)| Figure::new(name, u64::from(count), "mutants");
    let figures = counts.into_iter().map(figure).collect();
    let open = record.survivors.iter().filter(|s| s.why.is_empty()).count();
    file.write(&Report::new(open == 0, seed, figures))?;
    ensure!(
        open == 0,
        "{open} survivors are not explained: test what they break, or say in {RECORD} why nothing can be seen of them"
    );
    Ok(())
}

/// What finds each mutant: the benches of blocks first, which are fast.
fn try_all(
    args: &Args,
    design: &Design,
    mutants: &[Mutant],
    listed: &str,
    kept: &Kept,
) -> Result<Vec<Option<Finder>>> {
    let benches = Benches::build(listed)?;
    let time = Duration::from_secs(args.seconds);
    let engines = (!args.benches).then(|| Engines::build(design, mutants, time));
    let engines = engines.transpose()?;
    let source = design.source();
    let is_equal = |number: usize| match number.checked_sub(1) {
        Some(mutant) => proof::is_equal(&source, &mutants[mutant]),
        None => Ok(false),
    };
    let bar = bar(mutants.len() as u64, "mutants");
    let finder = |number: usize| -> Result<_> {
        let found = match kept.of(number) {
            Some(found) => found,
            None => {
                let mut found = benches.finder(number)?;
                if found.is_none() && is_equal(number)? {
                    found = Some(Finder::new(EQUAL, "Yosys"));
                }
                if let (None, Some(engines)) = (&found, &engines) {
                    found = engines.finder(number);
                }
                kept.add(number, &found)?;
                found
            }
        };
        // without a mutant
        let Some(mutant) = number.checked_sub(1) else {
            let what = |by: &Finder| format!("the engine without a mutant fails: {}", by.name);
            let error = found.as_ref().map(|by| anyhow!(what(by)));
            return error.map_or(Ok(None), Err);
        };
        bar.inc(1);
        if found.is_none() {
            let mutant = &mutants[mutant];
            let (module, was, mutated) = (&mutant.module, &mutant.was, &mutant.mutated);
            bar.suspend(|| println!("{number} {module}: not found\n    {was}\n    {mutated}"));
        }
        Ok(found)
    };
    let found = pool::try_each(pool::processors(), 0..=mutants.len(), || &finder);
    bar.finish_and_clear();
    let mut found = found?;
    found.remove(0);
    Ok(found)
}

fn table(record: &Record) -> String {
    let row = |name: &str,
               Tally {
                   tried,
                   found,
                   equal,
               }| { format!("{name:<32} {tried:>6} {found:>6} {equal:>6}\n") };
    let mut text = format!(
        "{:<32} {:>6} {:>6} {:>6}\n",
        "block", "tried", "found", "equal"
    );
    text.extend(record.blocks.iter().map(|(name, &tally)| row(name, tally)));
    text + &row("all", record.totals())
}

fn bar(of: u64, what: &str) -> ProgressBar {
    let style = format!("{{bar:40}} {{pos}}/{{len}} {what}, {{elapsed}} gone, {{eta}} left");
    let style = ProgressStyle::with_template(&style).expect("the template is constant");
    let bar = ProgressBar::new(of).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}
