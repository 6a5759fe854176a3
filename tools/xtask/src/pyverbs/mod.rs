//! `cargo xtask pyverbs`: rdma-core's own tests of verbs, in Python, on a served card.

mod card;
mod outcome;
mod page;
mod reasons;
mod session;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::Output;
use crate::simnic::Dut;
use crate::{libibverbs, tools};
use card::ServedCard;
use outcome::{Outcome, Report};
use session::Session;

/// Modules of the suite in which no test may fail: devices, protection domains, memory regions, completion queues, queue
/// pairs, addresses, atomics, events.
const REQUIRED: [&str; 9] = [
    "test_device",
    "test_pd",
    "test_mr",
    "test_cq",
    "test_cqex",
    "test_qp",
    "test_qpex",
    "test_addr",
    "test_atomic",
];
const REQUIRED_EVENTS: &str = "test_cq_events";

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Modules of the suite, such as `test_qp`; all of those that are not of other vendors' cards unless given.
    #[arg(value_name = "MODULE")]
    modules: Vec<String>,
    /// What is served.
    #[arg(long, value_enum, default_value = "rtl512")]
    dut: Dut,
    /// Folder of a libibverbs.so.1 that is ready; unless given it is built.
    #[arg(long, value_name = "DIR")]
    library: Option<PathBuf>,
    /// Seed of what the tests choose by chance.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the page of the result, docs/pyverbs.md.
    #[arg(long, conflicts_with = "modules")]
    write: bool,
}

fn is_required(module: &str) -> bool {
    module == REQUIRED_EVENTS || REQUIRED.contains(&module)
}

/// The longest that a test may take: against hanging only.
fn limit(dut: Dut) -> Duration {
    Duration::from_secs(match dut {
        Dut::Model => 120,
        Dut::Rtl512 | Dut::Rtl64 => 600,
    })
}

fn progress_bar(tests: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}, {elapsed} gone");
    ProgressBar::new(tests as u64).with_style(style.expect("the template is valid"))
}

/// Runs the task.
///
/// # Errors
/// [`Usage`](crate::Usage) if there is no such module; a test failed that may not; the card did what it may not.
pub(crate) fn run(args: &Args) -> Result<()> {
    tools::ensure_present(&[tools::PYVERBS])?;
    let place = tempfile::tempdir().context("no place for temporary files")?;
    let library = match &args.library {
        Some(folder) => folder.clone(),
        None => {
            let folder = place.path().join("lib");
            libibverbs::build(&folder)?;
            folder
        }
    };
    let logs = tools::target_folder().join("pyverbs").join(args.dut.name());
    if logs.exists() {
        fs::remove_dir_all(&logs).with_context(|| format!("cannot empty {}", logs.display()))?;
    }
    fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
    let logs = logs.canonicalize().context("the folder of logs is gone")?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    ctrlc::set_handler(move || stopped.store(true, Ordering::Release))
        .context("cannot watch for signals")?;

    let card = ServedCard::new(&place.path().join("card"), args.dut)?;
    let session = Session::new(place.path(), &library, card.device(), &logs, args.seed)?;
    let tests = session.list(&args.modules)?;
    let bar = progress_bar(tests.len());
    let outcomes = session.run(&tests, limit(args.dut), &stop, |outcome| {
        bar.set_message(outcome.name().to_owned());
        bar.inc(1);
    })?;
    bar.finish_and_clear();
    let faults = card.end()?;
    let report = Report::new(outcomes);
    print!("{}", report.plain());
    if args.write {
        write(&report, args)?;
    }
    ensure!(faults.is_empty(), "the card: {}", faults.join("\nerror: "));
    let failed = report.failed(is_required);
    let logs = logs.display();
    ensure!(
        failed.is_empty(),
        "{} failed; logs are in {logs}",
        names(&failed)
    );
    Ok(())
}

fn names(outcomes: &[&Outcome]) -> String {
    let names: Vec<_> = outcomes.iter().map(|outcome| outcome.name()).collect();
    names.join(", ")
}

fn write(report: &Report, args: &Args) -> Result<()> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut output = Output::create(&Path::new(root).join(page::PATH))?;
    let page = page::page(report, args.dut.name(), is_required);
    let written = output.file().write_all(page.as_bytes());
    written.with_context(|| format!("cannot write {}", page::PATH))?;
    output.finish()
}
