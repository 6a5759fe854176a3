//! `cargo xtask pyverbs`: rdma-core's own tests of verbs, in Python, on a served card.

mod guest;
mod outcome;
mod page;
mod process;
mod reasons;
mod session;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use ferroce_sim::vfio_user::served::Served;
use indicatif::{ProgressBar, ProgressStyle};

use crate::card;
use crate::dut::Dut;
use crate::output::put;
use crate::report::{self, Figure};
use crate::{library, tools};
use outcome::{Outcome, Report};
use session::{Device, Session};

/// Modules of the suite in which no test may fail: devices, protection domains, memory regions, completion queues, queue
/// pairs, addresses, atomics, events.
const REQUIRED: [&str; 10] = [
    "test_device",
    "test_pd",
    "test_mr",
    "test_cq",
    "test_cqex",
    "test_qp",
    "test_qpex",
    "test_addr",
    "test_atomic",
    "test_cq_events",
];

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Modules of the suite, such as `test_qp`; all of those that are not of other vendors' cards unless given.
    #[arg(value_name = "MODULE")]
    modules: Vec<String>,
    /// What is served; rtl512 unless given.
    #[arg(long, value_enum)]
    dut: Option<Dut>,
    /// Run them on Linux soft-RoCE in a guest instead, to compare.
    #[arg(long, conflicts_with = "dut")]
    rxe: bool,
    #[command(flatten)]
    library: library::Ready,
    /// Seed of what the tests choose by chance.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Run them on each card and on soft-RoCE, and write the page of the results, docs/pyverbs.md.
    #[arg(long, conflicts_with_all = ["modules", "dut", "rxe"])]
    write: bool,
    #[command(flatten)]
    report: report::Args,
}

fn is_required(module: &str) -> bool {
    REQUIRED.contains(&module)
}

/// The longest that a test may take: against hanging only.
const LIMIT: Duration = Duration::from_secs(600);

fn progress_bar(tests: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}, {elapsed} gone");
    ProgressBar::new(tests as u64).with_style(style.expect("the template is valid"))
}

/// Runs the task.
///
/// # Errors
/// [`Usage`](crate::Usage) if there is no such module; a test failed that may not; the card did what it may not.
pub(crate) fn run(args: &Args) -> Result<()> {
    let file = args.report.open()?;
    tools::ensure_present(&[tools::PYVERBS])?;
    let place = tempfile::tempdir().context("no place for temporary files")?;
    let library = args.library.folder(place.path())?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    ctrlc::set_handler(move || stopped.store(true, Ordering::Release))
        .context("cannot watch for signals")?;

    let duts = match args.write {
        true => vec![Dut::Model, Dut::Rtl512, Dut::Rtl64],
        false if args.rxe => vec![],
        false => vec![args.dut.unwrap_or(Dut::Rtl512)],
    };
    let mut reports = Vec::new();
    let mut failures = Vec::new();
    for dut in duts {
        let (report, faults) = on(dut, args, &library, &stop)?;
        let name = dut.name();
        print!("{name}\n{}", report.plain());
        failures.extend(faults.into_iter().map(|fault| format!("{name}: {fault}")));
        let failed = report.failed(is_required);
        if !failed.is_empty() {
            let logs = logs(name);
            let logs = logs.canonicalize().unwrap_or(logs);
            let (logs, failed) = (logs.display(), names(&failed));
            failures.push(format!("{name}: {failed} failed; logs are in {logs}"));
        }
        reports.push((name, report));
    }
    if args.rxe || args.write {
        // What fails there is not ours.
        let report = session(page::RXE, Device::Rxe, args, &library, &stop)?;
        print!("{}\n{}", page::RXE, report.plain());
        reports.push((page::RXE, report));
    }
    if args.write {
        write(&reports)?;
    }
    let figures = reports.iter().flat_map(|(name, found)| {
        let name = report::plain(name);
        let names = ["passed", "failed", "skipped"]
            .into_iter()
            .zip(found.sums());
        names.map(move |(what, tests)| Figure::new(format!("{name}_{what}"), tests as u64, "tests"))
    });
    let done = report::Report::new(failures.is_empty(), args.seed, figures.collect());
    file.write(&done)?;
    ensure!(failures.is_empty(), "{}", failures.join("\nerror: "));
    Ok(())
}

/// Where the logs of a run on the device of this name stand.
fn logs(name: &str) -> PathBuf {
    tools::target_folder().join("pyverbs").join(name)
}

/// Runs the tests on a card: what became of them, and what the card did that it may not.
fn on(dut: Dut, args: &Args, library: &Path, stop: &AtomicBool) -> Result<(Report, Vec<String>)> {
    let place = tempfile::tempdir().context("no place for temporary files")?;
    let socket = place.path().join("card");
    // No cable: its queue pairs talk to each other.
    let serve = card::Args::new(&socket, dut);
    let card = Served::start(move || serve.server())?;
    let device = Device::Card(format!("unix:{}", socket.display()));
    let report = session(dut.name(), device, args, library, stop)?;
    Ok((report, card.end()?))
}

/// Runs the tests on a device.
fn session(
    name: &str,
    device: Device,
    args: &Args,
    library: &Path,
    stop: &AtomicBool,
) -> Result<Report> {
    let logs = logs(name);
    if logs.exists() {
        fs::remove_dir_all(&logs).with_context(|| format!("cannot empty {}", logs.display()))?;
    }
    fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
    let place = tempfile::tempdir().context("no place for temporary files")?;
    let session = Session::new(place.path(), library, device, &logs, args.seed)?;
    let tests = session.list(&args.modules)?;
    let bar = progress_bar(tests.len());
    let outcomes = session.run(&tests, LIMIT, stop, |outcome| {
        bar.set_message(outcome.name().to_owned());
        bar.inc(1);
    })?;
    bar.finish_and_clear();
    Ok(Report::new(outcomes))
}

fn names(outcomes: &[&Outcome]) -> String {
    let names: Vec<_> = outcomes.iter().map(|outcome| outcome.name()).collect();
    names.join(", ")
}

fn write(reports: &[(&str, Report)]) -> Result<()> {
    put(page::PATH, &page::page(reports, is_required))
}
