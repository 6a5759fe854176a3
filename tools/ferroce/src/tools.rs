//! Tools of the system that the tasks need.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use ferroce_system::PackageError;
pub use ferroce_system::packages::{
    CXX, ENGINE, IBVERBS_DEV, IBVERBS_PROVIDERS, IBVERBS_UTILS, IPROUTE, IVERILOG, MAKE, PERFTEST,
    PYVERBS, PYVERBS_TESTS, RDMACM_DEV, RDMACM_UTILS, STRACE, TSHARK, Tool, YOSYS, Z3,
};

use crate::Usage;

/// Makes virtual environments of Python.
const VENV: Tool = Tool::new("python3-venv", || {
    let mut python = Command::new("python3");
    let status = python.args(["-c", "import ensurepip, venv"]);
    let status = status.stderr(Stdio::null()).status();
    status.is_ok_and(|s| s.success())
});

/// Whether a program of a component of the toolchain is there.
pub fn has_component(program: &str) -> bool {
    ferroce_system::packages::runs(program)
}

/// Sees to it that all `tools` are there: as root installs what is missing, else names the one command that does.
pub fn ensure_present(tools: &[Tool]) -> Result<()> {
    ferroce_system::ensure_present(tools).map_err(|e| match e {
        PackageError::Missing { .. } => Usage(e.to_string()).into(),
        e => e.into(),
    })
}

/// The cargo that runs this, else that of the path.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Where cargo builds.
pub fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target")).to_owned(),
        PathBuf::from,
    )
}

/// The folder of the programs of these Python packages, pinned as `name==version`. They are installed on the first use, into
/// a virtual environment of their own below the target folder.
///
/// # Errors
/// [`Usage`] if Python is missing; what pip says.
pub fn wheels(name: &str, packages: &[&str]) -> Result<PathBuf> {
    ensure_present(&[VENV])?;
    let folder = target_folder().join("tools").join(name);
    let (programs, complete) = (folder.join("bin"), folder.join("packages"));
    let list = packages.join("\n");
    if fs::read_to_string(&complete).is_ok_and(|text| text == list) {
        return Ok(programs);
    }
    let run = |command: &mut Command| {
        let status = command.stdout(Stdio::null()).status();
        let status = status.with_context(|| format!("{command:?} cannot be started"))?;
        ensure!(status.success(), "{command:?} failed ({status})");
        Ok(())
    };
    eprintln!("installing {}", packages.join(", "));
    run(Command::new("python3")
        .args(["-m", "venv", "--clear"])
        .arg(&folder))?;
    run(Command::new(programs.join("pip"))
        .args(["install", "--quiet", "--disable-pip-version-check"])
        .args(packages))?;
    fs::write(&complete, list).with_context(|| format!("cannot write {}", complete.display()))?;
    Ok(programs)
}
