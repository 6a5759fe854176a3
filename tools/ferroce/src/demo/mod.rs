//! `cargo xtask demo`: a file from host to host by RDMA, through two engines and a wire.
//!
//! On both hosts the driver's verbs run over a simulated card. The sender measures the latency of
//! small messages; the file moves into memory that the receiver registered, by the operation and over the
//! transport asked for, shared among the queue pairs; when all of it is done the sender announces length and
//! SHA-256 by SEND on a queue pair of its own. The receiver compares with its own memory. Meanwhile every rule of the ports and every frame is checked.
//!
//! Figures count cycles of the core clock, 4 ns each.

mod counting;
pub(crate) mod dut;
mod figures;
mod options;
mod pair;
mod ping;
mod transfer;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow};
use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest, Sha256};

use crate::Usage;
use crate::output::Output;
use crate::report::{self, Figure, Report};

pub use options::{Op, Options, Share, Transport};

use pair::Pair;
use transfer::plan::Plan;

/// Bytes of it that atomics move, 8 at a time.
const ATOMIC_BYTES: usize = 32 << 10;
/// Differences that are printed.
const LISTED: usize = 10;

/// Options of the task.
#[derive(clap::Args)]
pub struct Args {
    /// File to send; unless given 4 MiB of text, numbers in words.
    #[arg(long)]
    file: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
    /// Capture all frames at both ports, with simulated time, for Wireshark.
    #[arg(long, value_name = "FILE.pcapng")]
    pcap: Option<PathBuf>,
    /// Write the waveform of the sender's engine.
    #[arg(long, value_name = "FILE.fst")]
    wave: Option<PathBuf>,
    #[command(flatten)]
    report: report::Args,
}

/// A run to be done.
pub struct Job<'a> {
    /// How.
    pub options: &'a Options,
    /// What to send.
    pub file: &'a [u8],
    /// Where frames are captured.
    pub pcap: Option<File>,
    /// Where the waveform of the sender's engine goes.
    pub wave: Option<&'a Path>,
    /// Ends the run when set.
    pub interrupt: &'a AtomicBool,
    /// Is advanced by the bytes that arrived.
    pub progress: &'a ProgressBar,
}

/// What a run showed.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What was wrong, in words; the file arrived intact and all rules were kept if there is nothing.
    pub failures: Vec<String>,
    /// What was measured, as far as the run got.
    pub figures: Vec<Figure>,
    /// Messages that an unreliable transport did not bring, and all there were.
    pub missing: (u64, u64),
}

/// Does a run.
///
/// # Errors
/// [`Usage`]: it cannot be done with these options. Whatever goes wrong later is in the [`Outcome`].
pub fn demo(job: &Job<'_>) -> Result<Outcome> {
    dut::check(job.options, job.wave.is_some())?;
    let mut outcome = Outcome::default();
    let plan = Plan::new(job.file.len(), job.options)?;
    match Pair::open(job, &plan) {
        Ok(mut pair) => {
            let result = script(&mut pair, job, &plan, &mut outcome);
            outcome.figures.extend(figures::traffic(&pair));
            outcome.failures = pair.close(result);
        }
        Err(error) if error.is::<Usage>() => return Err(error),
        Err(error) => outcome.failures.push(format!("{error:#}")),
    }
    Ok(outcome)
}

fn script(pair: &mut Pair<'_>, job: &Job<'_>, plan: &Plan, outcome: &mut Outcome) -> Result<()> {
    outcome.figures.extend(figures::latency(&ping::ping(pair)?));
    let moved = transfer::transfer(pair, job.file, plan, job.options, job.progress)?;
    outcome.missing = (moved.missing, moved.messages);
    let bytes = job.file.len() as u64;
    outcome.figures.extend(figures::goodput(bytes, &moved));
    Ok(())
}

/// Runs the task.
///
/// # Errors
/// [`Usage`]: a mistake of the caller; else what was wrong with the run.
pub fn run(args: &Args) -> Result<()> {
    let options = &args.options;
    let (name, file) = match &args.file {
        Some(path) => (path.display().to_string(), read(path)?),
        None => {
            let mut file = counting::text();
            if options.op == Op::Atomic {
                file.truncate(ATOMIC_BYTES);
            }
            (counting::NAME.into(), file)
        }
    };
    dut::check(options, args.wave.is_some())?;
    let report = args.report.open()?;
    let mut pcap = args.pcap.as_deref().map(Output::create).transpose()?;
    let wave = args.wave.as_deref().map(Output::create).transpose()?;
    options.dut.ensure_buildable()?;
    let digest = transfer::hex(&Sha256::digest(&file));
    println!("{options}");
    println!("{name}: {} bytes, SHA-256 {digest}", file.len());

    let progress = progress_bar(file.len() as u64);
    let capture = pcap
        .as_mut()
        .map(|pcap| pcap.file().try_clone())
        .transpose();
    let outcome = demo(&Job {
        options,
        file: &file,
        pcap: capture.context("cannot write the capture")?,
        wave: wave.as_ref().map(Output::temporary),
        interrupt: interrupt()?,
        progress: &progress,
    })?;
    progress.finish_and_clear();

    for output in pcap.into_iter().chain(wave) {
        output.finish()?;
    }
    let ok = outcome.failures.is_empty();
    let result = Report::new(ok, options.seed, outcome.figures);
    report.write(&result)?;
    for figure in &result.figures {
        println!("{figure}");
    }
    if !ok {
        return Err(error_of(&outcome.failures));
    }
    match outcome.missing {
        (0, _) => println!("the file is intact: SHA-256 {digest} on the other side"),
        (missing, all) => println!(
            "{missing} of {all} messages did not arrive, which {} does not promise; the others are intact",
            options.transport
        ),
    }
    Ok(())
}

/// The file to send.
fn read(path: &Path) -> Result<Vec<u8>> {
    let refuse = |why: &dyn std::fmt::Display| {
        let path = path.display();
        Usage(format!(
            "cannot send {path}: {why}; name a file with --file"
        ))
    };
    let meta = fs::metadata(path).map_err(|e| refuse(&e))?;
    if !meta.is_file() {
        return Err(refuse(&"it is not a regular file").into());
    }
    Ok(fs::read(path).map_err(|e| refuse(&e))?)
}

/// Failures as an error of a line each.
fn error_of(failures: &[String]) -> anyhow::Error {
    let mut text = failures[..failures.len().min(LISTED)].join("\nerror: ");
    if failures.len() > LISTED {
        text += &format!("\nerror: and {} more", failures.len() - LISTED);
    }
    anyhow!(text)
}

fn progress_bar(bytes: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{bar:40} {bytes}/{total_bytes} of the file, {elapsed} gone, {eta} left",
    )
    .expect("the template is valid");
    ProgressBar::new(bytes).with_style(style)
}

/// The flag that Ctrl-C sets: the run ends in order, with its report. A second Ctrl-C ends it at once.
fn interrupt() -> Result<&'static AtomicBool> {
    static INTERRUPT: AtomicBool = AtomicBool::new(false);
    ctrlc::set_handler(|| {
        if INTERRUPT.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .context("cannot watch for Ctrl-C")?;
    Ok(&INTERRUPT)
}
