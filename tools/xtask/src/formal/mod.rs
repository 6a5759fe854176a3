//! `cargo xtask formal`: proofs of blocks on their emitted Verilog, by Yosys and an open solver.

mod checker;
mod page;
mod proof;
mod proofs;
mod solver;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, ensure};
use ferroce_system::pool;

use crate::output::put;
use crate::report::{self, Figure, Report};
use crate::{Usage, tools};

use proof::{Bug, Proof};
use proofs::PROOFS;
use solver::{Model, Outcome};

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only proofs whose name contains this.
    name: Option<String>,
    /// Do not show that each proof fails when its block is broken.
    #[arg(long)]
    no_bugs: bool,
    /// Leave the Verilog, the model and the trace of a violation in this directory, by proof.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write the page of the proofs, docs/formal.md, and prove nothing.
    #[arg(long, conflicts_with_all = ["name", "no_bugs", "out", "report"])]
    write: bool,
    #[command(flatten)]
    report: report::Args,
}

/// Runs the task.
///
/// # Errors
/// [`Usage`] if there is no such proof; else the proofs that failed, and the bugs that were not found.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.write {
        return put(page::PATH, &page::page());
    }
    let name = args.name.as_deref().unwrap_or_default();
    let proofs: Vec<_> = PROOFS.iter().filter(|p| p.name.contains(name)).collect();
    if proofs.is_empty() {
        let names: Vec<_> = PROOFS.iter().map(|p| p.name).collect();
        let names = names.join(", ");
        return Err(Usage(format!("no proof is named like {name}; there are {names}")).into());
    }
    let file = args.report.open()?;
    tools::ensure_present(&[tools::YOSYS, tools::Z3])?;
    println!(
        "{}",
        row("proof", "method", "assertions", "seconds", "result")
    );
    let failures = all(&proofs, !args.no_bugs, args.out.as_deref());
    let figures = vec![
        Figure::new("proofs", proofs.len() as u64, "proofs"),
        Figure::new("failed", failures.len() as u64, "proofs and bugs"),
    ];
    file.write(&Report::new(failures.is_empty(), 0, figures))?;
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

fn row(name: &str, method: &str, assertions: &str, seconds: &str, result: &str) -> String {
    format!("{name:<12} {method:<12} {assertions:>10} {seconds:>8}  {result}")
}

/// Makes the proofs, and with `broken` shows that they fail for their bugs, on all processors; what went wrong.
fn all(proofs: &[&Proof], broken: bool, keep: Option<&Path>) -> Vec<String> {
    let jobs = proofs.iter().flat_map(|&proof| {
        let bugs = proof.bugs.iter().filter(|_| broken).map(Some);
        std::iter::once(None)
            .chain(bugs)
            .map(move |bug| (proof, bug))
    });
    let failures = pool::each(pool::processors(), jobs, || {
        |(proof, bug): (&Proof, _)| {
            let done = bug.map_or_else(|| prove(proof, keep), |bug| refute(proof, bug));
            let error = done.err()?;
            Some(format!("{}: {error:#}", proof.name))
        }
    });
    failures.into_iter().flatten().collect()
}

/// A line of the table, and the error if there is one.
fn say(proof: &Proof, method: &str, model: &Model, start: Instant, result: &str) {
    let seconds = format!("{:.1}", start.elapsed().as_secs_f64());
    let assertions = model.assertions.to_string();
    println!("{}", row(proof.name, method, &assertions, &seconds, result));
}

fn prove(proof: &Proof, keep: Option<&Path>) -> Result<()> {
    let start = Instant::now();
    let model = Model::build(&(proof.block)(), proof.checker, None)?;
    let outcome = model.check(proof.depth).and_then(|outcome| {
        ensure!(outcome == Outcome::Holds, "{outcome}");
        model.reaches(proof.reach)
    });
    if let Some(folder) = keep {
        model.keep(&folder.join(proof.name))?;
    }
    let result = outcome
        .as_ref()
        .map_or_else(ToString::to_string, |()| "proven".into());
    say(
        proof,
        &format!("induction {}", proof.depth),
        &model,
        start,
        &result,
    );
    outcome
}

fn refute(proof: &Proof, bug: &Bug) -> Result<()> {
    let start = Instant::now();
    let model = Model::build(&(proof.block)(), proof.checker, Some(bug))?;
    let outcome = model.check(proof.depth)?;
    let result = format!("{outcome}: {}", bug.what);
    say(proof, "broken", &model, start, &result);
    ensure!(outcome != Outcome::Holds, "holds although {}", bug.what);
    Ok(())
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Holds => write!(f, "proven"),
            Outcome::Violated(step) => write!(f, "violated in cycle {step}"),
            Outcome::NotInductive => write!(f, "not inductive"),
        }
    }
}

#[cfg(test)]
mod tests {
    use ferroce_system::or_skip;
    use ferroce_system::packages::{YOSYS, Z3, check_present};

    use super::*;

    /// Whether the tools are there; in CI they have to be.
    fn equipped() -> bool {
        or_skip(check_present(&[YOSYS, Z3])).is_some()
    }

    /// Proofs that take minutes, with all bugs, are slow.
    const LONG: [&str; 3] = ["retire", "dma_read", "sq_ring"];

    #[test]
    fn short_proofs_hold() {
        prove(|name| !LONG.contains(&name), false);
    }

    #[test]
    #[ignore = "takes minutes"]
    fn the_proofs_hold_and_fail_for_every_bug() {
        prove(|_| true, true);
    }

    fn prove(chosen: impl Fn(&str) -> bool, broken: bool) {
        if !equipped() {
            return;
        }
        for proof in PROOFS {
            assert!(
                !proof.bugs.is_empty(),
                "{}: no bug shows that it can fail",
                proof.name
            );
        }
        let proofs: Vec<_> = PROOFS.iter().filter(|proof| chosen(proof.name)).collect();
        let failures = all(&proofs, broken, None);
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }

    /// Without a solver, so that a name that changed is found in seconds.
    #[test]
    fn every_bug_is_one_of_its_block() {
        for proof in PROOFS {
            let source = (proof.block)().source();
            for bug in proof.bugs {
                if let Err(error) = solver::broken(&source, bug) {
                    panic!("{}: {error}", proof.name);
                }
            }
        }
    }

    #[test]
    fn a_checker_that_checks_nothing_is_refused() {
        if !equipped() {
            return;
        }
        let checker = checker::Checker {
            text: "module empty (\n    input clk\n);\nendmodule\n",
        };
        let error = Model::build(&(PROOFS[0].block)(), checker, None)
            .err()
            .unwrap();
        assert!(error.to_string().contains("no assertion"), "{error:#}");
    }

    #[test]
    fn a_name_that_is_not_there_is_an_error() {
        if !equipped() {
            return;
        }
        let checker = checker::Checker {
            text: "module stray (\n    input clk,\n    input gone_q\n);\n    always @* assert (!gone_q);\nendmodule\n",
        };
        let error = Model::build(&(PROOFS[0].block)(), checker, None)
            .err()
            .unwrap();
        assert!(format!("{error:#}").contains("gone_q"), "{error:#}");
    }

    #[test]
    fn the_page_is_current() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let page = std::fs::read_to_string(root.join(page::PATH)).unwrap();
        assert!(page == page::page(), "run cargo xtask formal --write");
    }
}
