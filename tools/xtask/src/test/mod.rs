//! `cargo xtask test`: formatting, then all tests of the workspace, several binaries at a time.

mod binaries;
mod run;

use anyhow::{Context, Result, ensure};

use crate::tools;

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only tests whose name contains this.
    filter: Option<String>,
    /// Also the tests that take long.
    #[arg(long)]
    slow: bool,
}

/// Runs the task.
pub(crate) fn run(args: &Args) -> Result<()> {
    let tools = [
        tools::VERILATOR,
        tools::CXX,
        tools::ZLIB,
        tools::YOSYS,
        tools::Z3,
        tools::TSHARK,
        tools::STRACE,
        tools::IPROUTE,
        tools::IBVERBS_UTILS,
        tools::IBVERBS_PROVIDERS,
        tools::IBVERBS_DEV,
        tools::PERFTEST,
        tools::PYVERBS,
        tools::RDMACM_UTILS,
        tools::RDMACM_DEV,
    ];
    tools::ensure_present(&[&tools, ferroce_guest::TOOLS].concat())?;
    check_format()?;
    let mut jobs: Vec<_> = binaries::build()?
        .into_iter()
        .map(|binary| binary.job(args))
        .collect();
    jobs.push(binaries::examples_in_docs(args));
    let failed = run::all(jobs)?;
    ensure!(
        failed.is_empty(),
        "these have tests that failed: {}",
        failed.join(", ")
    );
    Ok(())
}

fn check_format() -> Result<()> {
    if !tools::has_rustfmt() {
        ensure!(
            std::env::var_os("CI").is_none(),
            "rustfmt is missing: run rustup component add rustfmt"
        );
        eprintln!(
            "skipped the format check: rustfmt is not installed (rustup component add rustfmt)"
        );
        return Ok(());
    }
    let status = tools::cargo().args(["fmt", "--all", "--check"]).status();
    let status = status.context("cargo cannot be started")?;
    ensure!(
        status.success(),
        "the format is not rustfmt's: cargo fmt --all"
    );
    Ok(())
}
