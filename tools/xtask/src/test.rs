//! `cargo xtask test`: formatting, then all tests of the workspace.

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

fn cargo(args: &[&str]) -> Result<()> {
    let status = tools::cargo()
        .args(args)
        .status()
        .context("cargo cannot be started")?;
    ensure!(
        status.success(),
        "cargo {} failed ({status})",
        args.join(" ")
    );
    Ok(())
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
        tools::IBVERBS_DEV,
        tools::PERFTEST,
    ];
    tools::ensure_present(&[&tools, ferroce_guest::TOOLS].concat())?;
    if tools::has_rustfmt() {
        cargo(&["fmt", "--all", "--check"])?;
    } else {
        ensure!(
            std::env::var_os("CI").is_none(),
            "rustfmt is missing: run rustup component add rustfmt"
        );
        eprintln!(
            "skipped the format check: rustfmt is not installed (rustup component add rustfmt)"
        );
    }
    let mut words = vec!["test", "--workspace"];
    words.extend(args.filter.as_deref());
    if args.slow {
        words.extend(["--", "--include-ignored"]);
    }
    cargo(&words)
}
