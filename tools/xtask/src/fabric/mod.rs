//! `cargo xtask fabric`: many hosts on one Ethernet.

mod figures;
mod plan;
mod plot;
#[cfg(test)]
mod tests;

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, ensure};
use clap::ValueEnum;
use ferroce_hdl::engine::builds::STANDARD;
use ferroce_sim::fabric::flow::card::Make;
use ferroce_sim::model::Model;
use ferroce_sim::rtl::{self, build};
use ferroce_sim::verilator;

use crate::demo::Share;
use crate::output::Output;
use crate::report::{self, Report};
use crate::tools;

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What is sent.
    #[arg(value_enum)]
    scenario: Scenario,
    /// Hosts that send into one (incast, victim), or hosts in all; s1 to s5 have their own. 16 when not given.
    #[arg(long)]
    hosts: Option<usize>,
    /// Bytes of a flow, of a pair, or of what is reduced; 2,000,000 when not given.
    #[arg(long)]
    bytes: Option<u64>,
    /// The wires between hosts and switches.
    #[arg(long, value_enum, default_value = "star")]
    topology: Shape,
    /// Gb/s of every wire.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=800))]
    rate: u32,
    /// Nanoseconds of every wire.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    delay: u64,
    /// Each flow starts up to so many nanoseconds late, at random; else the lowest port wins where all come at once.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=100_000_000))]
    stagger: u64,
    /// Congestion control of the flows.
    #[arg(long, value_enum, default_value = "none")]
    cc: Control,
    /// Least microseconds between two CNPs of a flow; 4 when not given, 0 in s1 to s5.
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=100_000))]
    cnp: Option<u64>,
    /// The class of data is lossless; in s1 to s5 it is.
    #[arg(long)]
    pfc: bool,
    /// A flow has one way, by the hash of its five-tuple; the default.
    #[arg(long, conflicts_with = "spray")]
    ecmp: bool,
    /// Each frame takes a way of its own; a star has one way.
    #[arg(long)]
    spray: bool,
    /// Switches cut what finds no room to its headers.
    #[arg(long)]
    trim: bool,
    /// KiB of buffer of a switch; the headroom of `--pfc` comes on top.
    #[arg(long, default_value_t = 32768, value_parser = clap::value_parser!(u64).range(16..=1_048_576))]
    buffer: u64,
    /// Share of the frames that every wire loses, such as 1% or 0.01.
    #[arg(long, value_name = "SHARE", default_value_t)]
    loss: Share,
    /// Percent of the line rate of all hosts that the payload of a storage mix asks for; 50 when not given.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=90))]
    load: Option<u32>,
    /// Microseconds after which the run ends, or that a storage mix takes new flows for.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    time: Option<u64>,
    /// What hangs on the wires: paced flows without a card, or cards with verbs.
    #[arg(long, value_enum, default_value = "paced")]
    dut: Dut,
    /// Cards: the receivers fetch by RDMA READ; else the senders write.
    #[arg(long)]
    read: bool,
    /// Threads; the result does not depend on it. All processors when not given.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: Option<u32>,
    /// Seed of all that is random.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=u64::from(u32::MAX)))]
    seed: u64,
    /// Write a page with plots.
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
    /// Write the plot of the bottleneck's queue.
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// Draw the queue of a recorded run too: a table with columns t_us and q0_mean_B.
    #[arg(long, value_name = "FILE.csv")]
    beside: Option<PathBuf>,
    #[command(flatten)]
    report: report::Args,
}

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Scenario {
    /// All into one port, at once.
    Incast,
    /// Incast, and a flow that shares switches with it, not the port.
    Victim,
    /// Each host to one other.
    Permutation,
    /// Each host to each other.
    AllToAll,
    /// All-reduce in a ring.
    Ring,
    /// All-reduce in a binary tree.
    Tree,
    /// Flows of web search, at random times.
    WebSearch,
    /// Flows of Hadoop, at random times.
    Hadoop,
    /// Recorded scenario: one flow.
    S1,
    /// Recorded scenario: two flows, the second 10 ms later.
    S2,
    /// Recorded scenario: four flows come and go.
    S3,
    /// Recorded scenario: incast of 16.
    S4,
    /// Recorded scenario: incast of 8, and a victim.
    S5,
}

impl Scenario {
    /// Number of a recorded scenario.
    const fn recorded(self) -> Option<usize> {
        match self {
            Self::S1 => Some(1),
            Self::S2 => Some(2),
            Self::S3 => Some(3),
            Self::S4 => Some(4),
            Self::S5 => Some(5),
            _ => None,
        }
    }
}

/// The wires between hosts and switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// One switch.
    Star,
    /// Leaves of 8 hosts, 4 spines: twice as much below as above.
    LeafSpine,
    /// The smallest fat-tree that has room.
    FatTree,
}

/// Congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Control {
    /// None.
    None,
    /// DCQCN, the card's golden reaction point with its defaults.
    Dcqcn,
    /// The same with a larger step, as recorded simulations set it: g 4/1024, 20 and 200 Mb/s, at least 1 Gb/s, by time alone.
    DcqcnVendor,
    /// DCQCN by the rules of recorded simulations, in floating point: preset of the maker.
    Vendor,
    /// The same: preset of the paper.
    Paper,
    /// The same: defaults of mlx5, at least 100 Mb/s.
    Stock,
    /// Swift, by round-trip times, with its defaults; a packet is that of the flows. Cards have it for what they write.
    Swift,
}

/// What hangs on the wires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Dut {
    /// Paced flows without a card.
    Paced,
    /// Cards: the golden model.
    Model,
    /// Cards: the engine with a data path of 64 bits.
    Rtl64,
    /// Cards: the engine with a data path of 512 bits.
    Rtl512,
}

impl Dut {
    /// A maker of cards.
    fn make(self, seed: u64) -> Result<Option<Make>> {
        let width = match self {
            Self::Paced => return Ok(None),
            Self::Model => {
                let make: Make = Arc::new(|memory| Box::new(Model::new(STANDARD, memory)));
                return Ok(Some(make));
            }
            Self::Rtl64 => 64,
            Self::Rtl512 => 512,
        };
        tools::ensure_present(tools::ENGINE)?;
        let engine = build::model(width, &verilator::Options::default())?;
        Ok(Some(Arc::new(move |memory| {
            let options = rtl::Options {
                seed,
                ..rtl::Options::default()
            };
            let card = build::engine(&engine, memory, &options);
            Box::new(card.expect("there is memory for an engine"))
        })))
    }
}

/// Runs the task.
///
/// # Errors
/// [`Usage`](crate::Usage): parameters that do not go together; a flow that did not arrive.
pub(crate) fn run(args: &Args) -> Result<()> {
    let plan = plan::plan(args)?;
    let file = args.report.open()?;
    let beside = args.beside.as_deref().map(plot::recorded).transpose()?;
    let html = args.html.as_deref().map(Output::create).transpose()?;
    let svg = args.svg.as_deref().map(Output::create).transpose()?;
    let results = match args.dut.make(args.seed)? {
        None => plan.setup.run_paced(&plan.flows, &plan.config),
        Some(make) => plan.setup.run_cards(&plan.flows, &make, &plan.config),
    };
    let (figures, wrong) = figures::figures(&plan, &results);
    let report = Report::new(wrong.is_empty(), args.seed, figures);
    file.write(&report)?;
    let queue = plot::queue(&plan, &results, beside);
    if let Some(svg) = svg {
        svg.finish_with(&plot::svg(&queue)?)?;
    }
    if let Some(html) = html {
        html.finish_with(&plot::page(&plan, &results, queue, &report)?)?;
    }
    // last, as a reader may close the pipe before the end
    let left_out = figures::left_out(&plan, &results);
    let lines = report.figures.iter().map(ToString::to_string);
    let mut out = std::io::stdout().lock();
    for line in lines.chain(left_out) {
        if writeln!(out, "{line}").is_err() {
            break;
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    Ok(())
}
