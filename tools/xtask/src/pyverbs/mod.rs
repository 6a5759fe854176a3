//! `cargo xtask pyverbs`: rdma-core's own tests of verbs, in Python, on a served card.

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
use ferroce_sim::vfio_user::served::Served;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::Output;
use crate::simnic::{self, Dut};
use crate::{libibverbs, tools};
use outcome::{Outcome, Report};
use session::Session;

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
    #[command(flatten)]
    library: libibverbs::Ready,
    /// Seed of what the tests choose by chance.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Run them on each card, and write the page of the results, docs/pyverbs.md.
    #[arg(long, conflicts_with_all = ["modules", "dut"])]
    write: bool,
}

fn is_required(module: &str) -> bool {
    REQUIRED.contains(&module)
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
    let library = args.library.folder(place.path())?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    ctrlc::set_handler(move || stopped.store(true, Ordering::Release))
        .context("cannot watch for signals")?;

    let duts = match args.write {
        true => vec![Dut::Model, Dut::Rtl512, Dut::Rtl64],
        false => vec![args.dut.unwrap_or(Dut::Rtl512)],
    };
    let mut reports = Vec::new();
    let mut failures = Vec::new();
    for dut in duts {
        let (report, faults) = on(dut, args, &library, &stop)?;
        print!("{dut:?}\n{}", report.plain());
        failures.extend(faults.into_iter().map(|fault| format!("{dut:?}: {fault}")));
        let failed = report.failed(is_required);
        if !failed.is_empty() {
            let logs = logs(dut);
            let logs = logs.canonicalize().unwrap_or(logs);
            let logs = logs.display();
            failures.push(format!(
                "{dut:?}: {} failed; logs are in {logs}",
                names(&failed)
            ));
        }
        reports.push((dut.name(), report));
    }
    if args.write {
        write(&reports)?;
    }
    ensure!(failures.is_empty(), "{}", failures.join("\nerror: "));
    Ok(())
}

/// Where the logs of a run on `dut` stand.
fn logs(dut: Dut) -> PathBuf {
    tools::target_folder().join("pyverbs").join(dut.name())
}

/// Runs the tests on a card: what became of them, and what the card did that it may not.
fn on(dut: Dut, args: &Args, library: &Path, stop: &AtomicBool) -> Result<(Report, Vec<String>)> {
    let logs = logs(dut);
    if logs.exists() {
        fs::remove_dir_all(&logs).with_context(|| format!("cannot empty {}", logs.display()))?;
    }
    fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
    let place = tempfile::tempdir().context("no place for temporary files")?;
    let socket = place.path().join("card");
    // No cable: its queue pairs talk to each other.
    let serve = simnic::Args::new(&socket, dut);
    let card = Served::start(move || serve.server())?;
    let device = format!("unix:{}", socket.display());
    let session = Session::new(place.path(), library, device, &logs, args.seed)?;
    let tests = session.list(&args.modules)?;
    let bar = progress_bar(tests.len());
    let outcomes = session.run(&tests, limit(dut), stop, |outcome| {
        bar.set_message(outcome.name().to_owned());
        bar.inc(1);
    })?;
    bar.finish_and_clear();
    Ok((Report::new(outcomes), card.end()?))
}

fn names(outcomes: &[&Outcome]) -> String {
    let names: Vec<_> = outcomes.iter().map(|outcome| outcome.name()).collect();
    names.join(", ")
}

fn write(reports: &[(&str, Report)]) -> Result<()> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut output = Output::create(&Path::new(root).join(page::PATH))?;
    let page = page::page(reports, is_required);
    let written = output.file().write_all(page.as_bytes());
    written.with_context(|| format!("cannot write {}", page::PATH))?;
    output.finish()
}
