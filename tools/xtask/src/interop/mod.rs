//! `cargo xtask interop`: unmodified verbs programs on our card, against the same programs on something else.
//!
//! Our side: a served card, the golden model or the engine, with the project's libibverbs. The other side: Linux
//! soft-RoCE in a guest. What is run, how and what came of it: docs/interop.md.

mod capture;
mod card;
mod matrix;
mod peer;
mod programs;
mod record;
mod run;
mod table;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};

use crate::report::{self, Figure, Report};
use crate::{Usage, library, tools};

use matrix::{Cell, NOT_POSSIBLE};
pub(crate) use peer::soft_roce;
use peer::{Kind, Peer};
use record::Record;
use run::{Outcome, Place};

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only cells whose name contains each of these, such as `ib_read rtl512 ipv6 loss`.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The other side.
    #[arg(long, value_enum, default_value = "rxe")]
    peer: Kind,
    /// Few cells: each program, side, IP version and MTU, and loss, on the engine.
    #[arg(long)]
    quick: bool,
    /// Print the names of the cells, and run none.
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    library: library::Ready,
    /// Seed of what is lost, with the model as the peer; Linux takes none.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Keep captures and logs of all cells in this folder, one of each cell; without it those of failed cells are kept
    /// in the target folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write what was found into docs/interop.md, beside what earlier runs of this target folder found of other cells.
    #[arg(long, conflicts_with = "list")]
    write: bool,
    #[command(flatten)]
    report: report::Args,
}

/// Runs the task.
///
/// # Errors
/// [`Usage`]: no such cell, a tool is missing; else the cells that failed.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.write && args.peer != Kind::Rxe {
        return Err(Usage("--write is for --peer rxe: the page is of that".into()).into());
    }
    let all = if args.quick {
        matrix::quick()
    } else {
        matrix::all()
    };
    let cells = matrix::named(all, &args.names);
    if cells.is_empty() {
        let text = "no cell has a name with all of that in it; --list shows the names";
        return Err(Usage(text.into()).into());
    }
    if args.list {
        cells.iter().for_each(|cell| println!("{cell}"));
        say_not_possible();
        return Ok(());
    }
    let report = args.report.open()?;
    let programs = [
        tools::IBVERBS_DEV,
        tools::IBVERBS_UTILS,
        tools::PERFTEST,
        tools::RDMACM_UTILS,
    ];
    tools::ensure_present(&[tools::ENGINE, &programs].concat())?;
    let default = tools::target_folder().join("interop");
    let logs = args.out.as_deref().unwrap_or(&default);
    fs::create_dir_all(logs).map_err(|e| {
        let logs = logs.display();
        Usage(format!("cannot make {logs}: {e}; name another folder"))
    })?;
    let folder = tempfile::tempdir().context("no temporary folder can be made")?;
    let library = args.library.folder(folder.path())?;
    programs::compile(folder.path())?;
    let mut peer = new_peer(args, folder.path(), &library)?;
    let place = Place {
        library: &library,
        sockets: folder.path(),
        logs,
    };
    let mut record = match args.write {
        true => Some(Record::load()?),
        false => None,
    };
    let outcomes = run_all(
        &cells,
        &mut *peer,
        &place,
        args.out.is_some(),
        |name, outcome| {
            // Cell by cell: a long run may be broken off.
            let Some(record) = &mut record else {
                return Ok(());
            };
            record.update(name, outcome);
            record.store()
        },
    )?;
    print!("{}", table::table(&outcomes));
    say_not_possible();
    println!("peer: {}", peer.name());
    println!("{}", table::summary(&outcomes));
    let failed = outcomes.iter().filter(|o| o.failure.is_some()).count();
    let left = cells.len() - outcomes.len();
    report.write(&Report::new(
        failed + left == 0,
        args.seed,
        figures(&outcomes),
    ))?;
    ensure!(
        left == 0,
        "{failed} cells failed, {left} were not run: the peer is gone for good"
    );
    ensure!(failed == 0, "{failed} of {} cells failed", outcomes.len());
    Ok(())
}

fn say_not_possible() {
    for (what, why) in NOT_POSSIBLE {
        println!("not possible: {what}: {why}");
    }
}

fn new_peer(args: &Args, folder: &Path, library: &Path) -> Result<Box<dyn Peer>> {
    Ok(match args.peer {
        Kind::Rxe => Box::new(peer::Rxe::new(folder)?),
        Kind::Model => Box::new(peer::Model::new(folder, library, args.seed)?),
    })
}

/// Runs the cells, and gives each to `then` with the name of the peer; unless `keep`, the folders of those that passed are
/// removed.
fn run_all(
    cells: &[Cell],
    peer: &mut dyn Peer,
    place: &Place<'_>,
    keep: bool,
    mut then: impl FnMut(&str, &Outcome) -> Result<()>,
) -> Result<Vec<Outcome>> {
    let style =
        ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}, {elapsed} gone, {eta} left")
            .expect("the template is valid");
    let progress = ProgressBar::new(cells.len() as u64).with_style(style);
    let mut outcomes = vec![];
    for cell in cells {
        progress.set_message(cell.to_string());
        let outcome = run::run(cell, peer, place);
        match &outcome.failure {
            Some(failure) => progress.println(format!("{cell}: {failure}")),
            // What is left in the way does no harm.
            None if !keep => drop(fs::remove_dir_all(&outcome.folder)),
            None => {}
        }
        // What was not run says nothing of the cell.
        if outcome.is_run {
            then(&peer.name(), &outcome)?;
        }
        outcomes.push(outcome);
        progress.inc(1);
        if !peer.is_usable() {
            break;
        }
    }
    progress.finish_and_clear();
    Ok(outcomes)
}

fn figures(outcomes: &[Outcome]) -> Vec<Figure> {
    let count = |is: &dyn Fn(&&Outcome) -> bool| outcomes.iter().filter(is).count() as u64;
    let sum = |of: &dyn Fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    let packets = sum(&|o| o.frames.sent + o.frames.received);
    vec![
        Figure::new("passed", count(&|o| o.failure.is_none()), "cells"),
        Figure::new("failed", count(&|o| o.failure.is_some()), "cells"),
        Figure::new("captured", packets, "packets"),
        Figure::new("wrong", sum(&|o| o.frames.wrong.len() as u64), "packets"),
        Figure::new("lost", sum(&|o| o.lost.unwrap_or_default()), "frames"),
    ]
}
