//! `cargo xtask synth`: what the engine and its blocks take, and how deep their logic is, by Yosys for UltraScale+; what a
//! board's chip makes of it.

mod board;
mod frame;
mod names;
mod netlist;
mod page;
mod paths;
mod record;
mod yosys;

use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use ferroce_hdl::emit::{Module, block_of};
use ferroce_hdl::engine::builds::{self, STANDARD};
use ferroce_proto::abi::regs::Params;

use crate::dut::Engine;
use crate::emit::Build;
use crate::output::put;
use crate::report::{self, Figure, Report};
use crate::{Usage, tools};

use board::{Board, WHOLE};
use page::{HEADS, columns};
use record::{Costs, Record};
use yosys::Job;

pub use netlist::{Cost, cost};

/// The page, below the root of the repository.
const PAGE: &str = "docs/resources.md";

/// Blocks of the table, by the name without the sizes. Together they are nearly all of the engine. Those that take long
/// to map come first, so that they run side by side with all others.
const BLOCKS: [&str; 32] = [
    "tx_back",
    "rx_front",
    "send_queues",
    "reply_queue",
    "command",
    "exceptions",
    "gather",
    "scatter",
    "responder",
    "host_port",
    "rq_fetch",
    "cq_write",
    "eq_write",
    "track",
    "rx_check",
    "ack_hold",
    "write_faults",
    "mr_table",
    "notify",
    "round_trip",
    "reaction_point",
    "class_port",
    "class_entry",
    "passage",
    "class_gate",
    "host_gate",
    "send",
    "qp_events",
    "csr",
    "stats",
    "drain",
    "restart",
];

/// Blocks of the quick form: what takes little time to map, `scatter` with the deepest logic among it.
const QUICK: [&str; 6] = ["scatter", "rx_check", "csr", "stats", "drain", "restart"];

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these blocks: modules of the engine, with or without the sizes in their names.
    #[arg(value_name = "NAME", conflicts_with = "quick")]
    names: Vec<String>,
    /// Only the whole engines.
    #[arg(long, conflicts_with_all = ["names", "dut", "quick", "board"])]
    engine: bool,
    /// The engine that the blocks are of.
    #[arg(long, value_enum, default_value_t, conflicts_with_all = ["write", "quick"])]
    dut: Engine,
    /// Only some of the blocks, in a few minutes; the tests do the same.
    #[arg(long, conflicts_with = "write")]
    quick: bool,
    /// Place and route the build of this board instead, and its blocks, each by itself; takes an hour. With NAME: only that
    /// one, or `ferroce`, the whole.
    #[arg(long, value_enum, value_name = "NAME", conflicts_with_all = ["dut", "quick"])]
    board: Option<Board>,
    /// Seeds of the placer of --board; the middle one of their results counts.
    #[arg(long, default_value_t = 3, value_name = "N", requires = "board", value_parser = clap::value_parser!(u32).range(1..))]
    seeds: u32,
    /// Keep the figures as the baseline, tools/xtask/resources.json, and write the page made from it, docs/resources.md. With
    /// NAME: those of a block of the page.
    #[arg(long)]
    write: bool,
    /// Measure nothing; only write the page from the baseline.
    #[arg(long, conflicts_with_all = ["names", "engine", "dut", "quick", "board", "write", "report"])]
    page: bool,
    #[command(flatten)]
    report: report::Args,
}

/// Runs the task.
///
/// # Errors
/// [`Usage`] if there is no such block; what Yosys says; what is worse than the baseline.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.page {
        return write_page(&Record::load()?);
    }
    tools::ensure_present(&[tools::YOSYS])?;
    let whole = args.board.map(|_| WHOLE);
    let known = |name: &str| BLOCKS.contains(&name) || Some(name) == whole;
    let unknown = args.names.iter().find(|name| !known(name));
    if let (true, Some(name)) = (args.write, unknown) {
        let known: Vec<_> = whole.into_iter().chain(BLOCKS).collect();
        let known = known.join(", ");
        return Err(Usage(format!("{name}: the page has {known}")).into());
    }
    if let Some(board) = args.board {
        return run_board(board, args);
    }
    let file = args.report.open()?;
    println!("{}", line("block", HEADS.map(str::to_owned)));
    let (mut figures, mut worse) = (vec![], vec![]);
    if !args.engine {
        let design = modules(args.dut.width())?;
        let jobs = match &args.names[..] {
            [] => blocks(&design, args.quick)?,
            asked => asked
                .iter()
                .map(|name| job(&design, name))
                .collect::<Result<_>>()?,
        };
        let baseline = match args.dut {
            Engine::Rtl512 => Record::load()?.blocks,
            Engine::Rtl64 => Costs::new(),
        };
        let (costs, found) = mapped(jobs, &baseline)?;
        worse.extend(found);
        figures.extend(costs.iter().flat_map(of_cost));
        if args.write {
            keep(|record| record.blocks.extend(costs))?;
        }
    }
    if args.names.is_empty() && !args.quick {
        let (costs, found) = mapped(engines()?, &Record::load()?.engines)?;
        worse.extend(found);
        figures.extend(costs.iter().flat_map(of_cost));
        if args.write {
            keep(|record| record.engines.extend(costs))?;
        }
    }
    file.write(&Report::new(worse.is_empty() || args.write, 0, figures))?;
    if args.write {
        worse.iter().for_each(|line| eprintln!("warning: {line}"));
        return Ok(());
    }
    ensure!(
        worse.is_empty(),
        "{}\nif that is meant to be: cargo xtask synth --write",
        worse.join("\n")
    );
    Ok(())
}

/// What a module takes.
fn of_cost((name, cost): (&String, &Cost)) -> Vec<Figure> {
    let name = report::plain(name);
    vec![
        Figure::new(format!("{name}_lut"), cost.lut, "LUTs"),
        Figure::new(format!("{name}_packed"), cost.packed, "LUTs"),
        Figure::new(format!("{name}_ff"), cost.ff, "flip-flops"),
        Figure::new(format!("{name}_bram36"), cost.bram36, "block RAMs"),
        Figure::new(format!("{name}_uram"), cost.uram, "UltraRAMs"),
        Figure::new(format!("{name}_lutram"), cost.lutram, "LUTs"),
        Figure::new(format!("{name}_levels"), u64::from(cost.levels), "levels"),
    ]
}

/// Changes the baseline, as it stands when the figures are there, and writes the page of it.
fn keep(change: impl FnOnce(&mut Record)) -> Result<()> {
    let mut record = Record::load()?;
    change(&mut record);
    record.tool = yosys::version()?;
    record.store()?;
    write_page(&record)
}

/// The quick form as a test: what is worse than the baseline.
///
/// # Errors
/// What Yosys says.
pub fn gate() -> Result<Vec<String>> {
    let design = modules(512)?;
    let (_, worse) = mapped(blocks(&design, true)?, &Record::load()?.blocks)?;
    Ok(worse)
}

/// Maps modules: what each takes, and what is worse than before.
fn mapped(jobs: Vec<Job>, before: &Costs) -> Result<(Costs, Vec<String>)> {
    let costs = yosys::run(&jobs, show)?;
    let costs: Costs = jobs.into_iter().map(|job| job.name).zip(costs).collect();
    let worse = costs
        .iter()
        .flat_map(|(name, cost)| record::worse(name, cost, before.get(name)));
    let worse = worse.collect();
    Ok((costs, worse))
}

/// The whole engines.
fn engines() -> Result<Vec<Job>> {
    let of = |width, log_qp| Build {
        width,
        tables: Params { log_qp, ..STANDARD },
    };
    let builds = [of(512, 9), of(64, STANDARD.log_qp)];
    let job = |build: Build| {
        let modules = build.modules()?;
        let top = &modules.last().context("no module")?.name;
        Ok(Job::new(&build.words(), &modules, top))
    };
    builds.into_iter().map(job).collect()
}

/// Places and routes what `args` ask for, and keeps the figures of each module when it is done.
fn run_board(board: Board, args: &Args) -> Result<()> {
    let asked = args.names.iter().map(String::as_str);
    let names: Vec<_> = match args.names.is_empty() {
        true => [WHOLE].into_iter().chain(BLOCKS).collect(),
        false => asked.collect(),
    };
    let file = args.report.open()?;
    let figures = Mutex::new(vec![]);
    let routed = board.route(&names, args.seeds, |routed| {
        let mut figures = figures.lock().unwrap_or_else(PoisonError::into_inner);
        for placed in routed.whole.iter().chain(&routed.parts) {
            println!("{}", page::placed(placed));
            if let Some(fmax) = placed.median() {
                let name = report::plain(&format!("{}_{}", placed.name, placed.part));
                figures.push(Figure::new(format!("{name}_fmax"), fmax, "MHz"));
            }
        }
        if !args.write {
            return Ok(());
        }
        keep(|record| {
            let kept = record.boards.entry(board.name().into()).or_default();
            *kept = std::mem::take(kept).with(routed);
        })
    });
    let figures = figures.into_inner().unwrap_or_else(PoisonError::into_inner);
    file.write(&Report::new(routed.is_ok(), 0, figures))?;
    routed
}

fn write_page(record: &Record) -> Result<()> {
    put(PAGE, &page::page(record))
}

/// The modules of the standard build; children before parents.
fn modules(width: usize) -> Result<Vec<Module>> {
    Ok(builds::verilog(width).map_err(anyhow::Error::msg)?.modules)
}

fn blocks(design: &[Module], quick: bool) -> Result<Vec<Job>> {
    let list = if quick { &QUICK[..] } else { &BLOCKS };
    list.iter().map(|name| job(design, name)).collect()
}

/// What maps the module that `name` means.
fn job(design: &[Module], name: &str) -> Result<Job> {
    let top = module(design, name)?;
    Ok(Job::new(name, design, top))
}

/// The module that `name` means.
fn module<'a>(modules: &'a [Module], name: &str) -> Result<&'a str> {
    let names = || modules.iter().map(|m| m.name.as_str());
    if let Some(exact) = names().find(|n| block_of(n) == name) {
        return Ok(exact);
    }
    // What follows the name is sizes, not the name of another block.
    let sized = |n: &&str| {
        let rest = block_of(n)
            .strip_prefix(name)
            .and_then(|r| r.strip_prefix('_'));
        let first = rest.and_then(|r| r.split('_').next());
        first.is_some_and(|part| part.bytes().any(|b| b.is_ascii_digit()))
    };
    let found: Vec<_> = names().filter(sized).collect();
    let text = match found[..] {
        [one] => return Ok(one),
        [] => {
            format!("{name}: no such module; the README of cargo xtask emit --out DIR lists them")
        }
        _ => {
            let found: Vec<_> = found.into_iter().map(block_of).collect();
            format!("{name}: which of {}?", found.join(", "))
        }
    };
    Err(Usage(text).into())
}

fn show(job: &Job, cost: &Cost) {
    let path = cost.paths.first();
    let path = path.map_or(String::new(), |p| format!("{} to {}", p.from, p.to));
    println!("{}  {path}", line(&job.name, columns(cost)));
}

fn line(name: &str, columns: [String; HEADS.len()]) -> String {
    columns
        .iter()
        .fold(format!("{name:<32}"), |text, c| format!("{text} {c:>7}"))
}

#[cfg(test)]
mod tests {
    use ferroce_hdl::engine::builds::WIDTHS;
    use ferroce_system::or_skip;
    use ferroce_system::packages::{YOSYS, check_present};

    use super::*;

    #[test]
    fn names_mean_modules_with_their_sizes() {
        for width in WIDTHS {
            let modules = modules(width).unwrap();
            let module = |name| module(&modules, name);
            for name in BLOCKS {
                module(name).unwrap();
            }
            assert!(module("scatter").unwrap().starts_with("ferroce_scatter_"));
            assert_eq!(module("scatter_walk").unwrap(), "ferroce_scatter_walk");
            for (name, part) in [("asic", "no such"), ("arbiter", "arbiter_2")] {
                let error = module(name).unwrap_err();
                assert!(error.is::<Usage>() && error.to_string().contains(part));
            }
        }
    }

    #[test]
    fn the_quick_form_has_a_baseline() {
        let record = Record::load().unwrap();
        for name in QUICK {
            assert!(BLOCKS.contains(&name), "{name}");
            assert!(record.blocks.contains_key(name), "{name}");
        }
    }

    #[test]
    fn a_block_is_mapped_and_measured() {
        if or_skip(check_present(&[YOSYS])).is_none() {
            return;
        }
        let design = modules(64).unwrap();
        let jobs = ["restart", "split"].map(|name| job(&design, name).unwrap());
        assert!(jobs[0].source.lines().count() < 1000, "only what is below");
        for cost in yosys::run(&jobs, show).unwrap() {
            assert!(cost.lut > 0 && cost.ff > 0, "{cost:?}");
            assert!((1..=8).contains(&cost.levels), "{cost:?}");
            let path = &cost.paths[0];
            assert!(path.levels == cost.levels && path.from != path.to);
        }
    }
}
