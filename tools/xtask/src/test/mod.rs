//! `cargo xtask test`: formatting, lints and pages of rustdoc, then all tests of the workspace, several binaries at a time.

pub(crate) mod binaries;
mod junit;
mod needs;
mod run;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::output::Output;
use crate::report::{self, Figure, Report};
use crate::tools;

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only tests whose name contains this; only the tools that these need are asked for.
    #[arg(value_name = "NAME")]
    filter: Option<String>,
    /// Also the tests that take long.
    #[arg(long)]
    slow: bool,
    /// Write the result of each test as JUnit XML.
    #[arg(long, value_name = "FILE.xml")]
    junit: Option<PathBuf>,
    #[command(flatten)]
    report: report::Args,
}

/// Runs the task.
pub(crate) fn run(args: &Args) -> Result<()> {
    let junit = args.junit.as_deref().map(Output::create).transpose()?;
    let file = args.report.open()?;
    // Without a filter all is needed: it is asked for before anything is built.
    if args.filter.is_none() {
        tools::ensure_present(&needs::all())?;
    }
    check_format()?;
    let mut binaries = binaries::build()?;
    if args.filter.is_some() {
        binaries = binaries::matching(binaries, args)?;
        tools::ensure_present(&needs::of(&binaries))?;
    }
    let mut jobs: Vec<_> = binaries
        .into_iter()
        .map(|binary| binary.job(args))
        .collect();
    jobs.push(binaries::examples_in_docs(args));
    if args.filter.is_none() {
        check_lints()?;
        check_pages()?;
    }
    let ended = run::all(jobs)?;
    if let Some(mut junit) = junit {
        junit::write(junit.file(), &ended).context("cannot write the results")?;
        junit.finish()?;
    }
    eprint!("{}", run::slowest(&ended, 15));
    let failed = ended.iter().filter(|ended| !ended.success);
    let failed: Vec<_> = failed.map(|ended| ended.name.as_str()).collect();
    let mut figures = vec![
        Figure::new("passed", (ended.len() - failed.len()) as u64, "binaries"),
        Figure::new("failed", failed.len() as u64, "binaries"),
    ];
    for ended in &ended {
        let seconds = ended.time.as_secs_f64();
        let name = report::plain(&ended.name);
        figures.push(Figure::new(format!("{name}_time"), seconds, "s"));
    }
    file.write(&Report::new(failed.is_empty(), 0, figures))?;
    ensure!(
        failed.is_empty(),
        "these have tests that failed: {}",
        failed.join(", ")
    );
    Ok(())
}

/// Runs `program` of a component of the toolchain as a command of cargo. Without it that is skipped, in CI refused.
fn check(component: &str, program: &str, args: &[&str], advice: &str) -> Result<()> {
    if !tools::has_component(program) {
        let missing = format!("{component} is not installed: rustup component add {component}");
        ensure!(std::env::var_os("CI").is_none(), "{missing}");
        eprintln!("skipped cargo {}: {missing}", args[0]);
        return Ok(());
    }
    let status = tools::cargo().args(args).status();
    let status = status.context("cargo cannot be started")?;
    ensure!(status.success(), "{advice}");
    Ok(())
}

fn check_format() -> Result<()> {
    let args = ["fmt", "--all", "--check"];
    check(
        "rustfmt",
        "rustfmt",
        &args,
        "the format is not rustfmt's: cargo fmt --all",
    )
}

fn check_lints() -> Result<()> {
    let args = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ];
    check(
        "clippy",
        "cargo-clippy",
        &args,
        "cargo clippy --workspace --all-targets has findings",
    )
}

/// The pages of rustdoc: no link of them leads nowhere.
fn check_pages() -> Result<()> {
    let args = [
        "doc",
        "-p",
        "ferroce-driver",
        "-p",
        "ferroce-cm",
        "-p",
        "ferroce-proto",
        "--no-deps",
        "--quiet",
    ];
    let mut cargo = tools::cargo();
    let status = cargo.args(args).env("RUSTDOCFLAGS", "-D warnings").status();
    ensure!(
        status.context("cargo cannot be started")?.success(),
        "RUSTDOCFLAGS='-D warnings' cargo doc of a crate for users has findings"
    );
    Ok(())
}
