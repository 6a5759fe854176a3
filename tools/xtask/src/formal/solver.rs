//! Yosys and its model checker on a checked copy of a block.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, bail, ensure};
use ferroce_hdl::emit::Design;

use super::checker::Checker;
use super::proof::Bug;
use super::proofs::COMMON;

/// Solver behind yosys-smtbmc.
const SOLVER: &str = "z3";

/// Seconds for one question; usual are one to thirty.
const LIMIT: &str = "1200";

/// A copy of a block with its checker, read by Yosys, in a directory of its own.
pub(super) struct Model {
    dir: tempfile::TempDir,
    /// Assertions in it.
    pub(super) assertions: usize,
}

/// What a check came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// No violation.
    Holds,
    /// A run from reset that violates an assertion, in this cycle.
    Violated(u32),
    /// No such run in the first cycles, but a state from which one follows.
    NotInductive,
}

/// The source with a bug.
///
/// # Errors
/// What it replaces does not stand there once.
pub(super) fn broken(source: &str, bug: &Bug) -> Result<String> {
    let found = source.matches(bug.from).count();
    ensure!(
        found == 1,
        "the bug \"{}\" replaces `{}`, which stands {found} times in the source: adapt it",
        bug.what,
        bug.from
    );
    Ok(source.replace(bug.from, bug.to))
}

impl Model {
    /// Emitted Verilog, flattened, with the checker's instance.
    ///
    /// # Errors
    /// The bug does not fit the source, or what Yosys says.
    pub(super) fn build(design: &Design, checker: Checker, bug: Option<&Bug>) -> Result<Self> {
        let dir = tempfile::tempdir().context("no temporary directory")?;
        let path = |name| dir.path().join(name);
        let source = design.source();
        let source = match bug {
            None => source,
            Some(bug) => broken(&source, bug)?,
        };
        let top = &design.top;
        fs::write(path("block.v"), source).context("cannot write the block")?;
        // Flat, so that the checker sees what is inside of sub-blocks.
        let script = format!(
            "read_verilog block.v; hierarchy -check -top {top}; proc; flatten; \
             opt_expr -mux_undef; opt_merge; opt_muxtree; opt_reduce; opt_merge; opt_expr; \
             write_verilog -noattr flat.v"
        );
        yosys(dir.path(), &script)?;
        let flat = fs::read_to_string(path("flat.v")).context("the flat block")?;
        let flat = flat.replacen(";\n", &format!(";\n{}", checker.wires()), 1);
        let (body, _) = flat.rsplit_once("endmodule").context("no module")?;
        let checked = format!(
            "`default_nettype none\n{body}{}endmodule\n{}{COMMON}",
            checker.instance(design)?,
            checker.text
        );
        fs::write(path("checked.v"), checked).context("cannot write the copy")?;
        let script = format!(
            "read_verilog -formal checked.v; prep -flatten -top {top}; memory_map; setundef -undriven -anyseq; \
             opt_clean; tee -o stat.txt stat; write_smt2 -wires model.smt2"
        );
        yosys(dir.path(), &script)?;
        let stat = fs::read_to_string(path("stat.txt")).context("the statistics")?;
        let mut counts = stat
            .lines()
            .filter_map(|l| l.trim().strip_prefix("$assert "));
        let assertions = counts
            .next()
            .and_then(|n| n.trim().parse().ok())
            .unwrap_or(0);
        ensure!(assertions > 0, "the checker of {top} has no assertion left");
        Ok(Self { dir, assertions })
    }

    /// Looks for a violation in the first `depth` cycles, and for one behind so many cycles without, from any state.
    ///
    /// # Errors
    /// What the solver says.
    pub(super) fn check(&self, depth: u32) -> Result<Outcome> {
        let log = self.solve(&["-t", &depth.to_string()])?;
        if failed(&log)? {
            let step = log.lines().rev().find_map(|l| {
                let (_, step) = l.split_once("Checking assertions in step ")?;
                step.trim_end_matches('.').parse().ok()
            });
            return Ok(Outcome::Violated(step.context("a failure without a step")?));
        }
        let log = self.solve(&["-i", "-t", &depth.to_string()])?;
        Ok(if failed(&log)? {
            Outcome::NotInductive
        } else {
            Outcome::Holds
        })
    }

    /// Whether all that the checker wants to be reached is reached in `steps` cycles.
    ///
    /// # Errors
    /// What the solver says, and which is not reached.
    pub(super) fn reaches(&self, steps: u32) -> Result<()> {
        let log = self.solve(&["-c", "-t", &steps.to_string()])?;
        if failed(&log)? {
            let missed = log.lines().filter(|l| l.contains("Unreached cover"));
            let missed: Vec<_> = missed.collect();
            bail!("not reached in {steps} cycles: {}", missed.join("; "));
        }
        Ok(())
    }

    /// Copies its files to `folder`.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn keep(&self, folder: &Path) -> Result<()> {
        let failed = || format!("cannot write to {}", folder.display());
        fs::create_dir_all(folder).with_context(failed)?;
        for entry in fs::read_dir(self.dir.path()).with_context(failed)? {
            let entry = entry.with_context(failed)?;
            fs::copy(entry.path(), folder.join(entry.file_name())).with_context(failed)?;
        }
        Ok(())
    }

    fn solve(&self, args: &[&str]) -> Result<String> {
        // Without --unroll Z3 expands definitions inside definitions.
        let mut command = Command::new("timeout");
        command.args([
            LIMIT,
            "yosys-smtbmc",
            "-s",
            SOLVER,
            "--unroll",
            "--noprogress",
        ]);
        command.args(["--dump-vcd", "trace.vcd"]).args(args);
        let output = run(command.arg("model.smt2").current_dir(self.dir.path()))?;
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Ok(text(&output.stdout) + &text(&output.stderr))
    }
}

fn failed(log: &str) -> Result<bool> {
    let status = log.lines().rev().find_map(|l| l.split_once("Status: "));
    match status.map(|(_, status)| status.trim()) {
        Some("PASSED") => Ok(false),
        Some("FAILED") => Ok(true),
        _ => bail!("yosys-smtbmc gave no verdict: {log}"),
    }
}

fn run(command: &mut Command) -> Result<Output> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output();
    output.with_context(|| format!("{program} cannot be started"))
}

fn yosys(dir: &Path, script: &str) -> Result<()> {
    let output = run(Command::new("yosys")
        .args(["-q", "-p", script])
        .current_dir(dir))?;
    let log = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "yosys: {log}");
    Ok(())
}
