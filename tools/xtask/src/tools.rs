//! Tools of the system that the tasks need.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::Usage;

/// A tool or library: how to see that it is there, and the Debian package that has it.
pub(crate) struct Tool {
    present: fn() -> bool,
    package: &'static str,
}

/// Simulates the emitted Verilog.
pub(crate) const VERILATOR: Tool = Tool {
    present: || runs("verilator"),
    package: "verilator",
};
/// Compiles what Verilator writes.
pub(crate) const CXX: Tool = Tool {
    present: || runs("g++"),
    package: "g++",
};
/// Compresses waveforms.
pub(crate) const ZLIB: Tool = Tool {
    present: || Path::new("/usr/include/zlib.h").exists(),
    package: "zlib1g-dev",
};
/// Reads the emitted Verilog as a synthesis tool does.
pub(crate) const YOSYS: Tool = Tool {
    present: || runs("yosys"),
    package: "yosys",
};
/// Reads the captures that the simulation writes.
pub(crate) const TSHARK: Tool = Tool {
    present: || runs("tshark"),
    package: "tshark",
};

fn runs(program: &str) -> bool {
    let status = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|s| s.success())
}

/// Whether the formatter of the toolchain is there.
pub(crate) fn has_rustfmt() -> bool {
    runs("rustfmt")
}

fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|o| o.stdout == b"0\n")
}

fn apt(args: &[&str]) -> Result<()> {
    let status = Command::new("apt-get")
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null())
        .status()
        .context("apt-get cannot be started: these tasks install their tools on Debian 12 only")?;
    ensure!(
        status.success(),
        "apt-get {} failed ({status})",
        args.join(" ")
    );
    Ok(())
}

/// Sees to it that all `tools` are there: as root installs what is missing, else names the one command that does.
pub(crate) fn ensure_present(tools: &[Tool]) -> Result<()> {
    let missing: Vec<_> = tools
        .iter()
        .filter(|t| !(t.present)())
        .map(|t| t.package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let install = format!(
        "apt-get install -y --no-install-recommends {}",
        missing.join(" ")
    );
    if !is_root() {
        return Err(Usage(format!(
            "missing: {}; run: sudo {install}",
            missing.join(", ")
        ))
        .into());
    }
    eprintln!("installing {}", missing.join(", "));
    apt(&["update", "-qq"])?;
    apt(&[
        &["install", "-y", "-qq", "--no-install-recommends"],
        &missing[..],
    ]
    .concat())?;
    for tool in tools {
        ensure!(
            (tool.present)(),
            "{} is still missing after: {install}",
            tool.package
        );
    }
    Ok(())
}
