//! `cargo xtask fabric`: many hosts on one Ethernet.

mod figures;
mod plan;
mod plot;

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
    /// Each frame takes a way of its own.
    #[arg(long)]
    spray: bool,
    /// Switches cut what finds no room to its headers.
    #[arg(long)]
    trim: bool,
    /// KiB of buffer of a switch.
    #[arg(long, default_value_t = 32768, value_parser = clap::value_parser!(u64).range(16..=1_048_576))]
    buffer: u64,
    /// Share of the frames that every wire loses, such as 1% or 0.01.
    #[arg(long, value_name = "SHARE", default_value_t)]
    loss: Share,
    /// Percent of the line rate of all hosts that the payload of a storage mix asks for.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=90))]
    load: u32,
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

#[cfg(test)]
mod tests {
    use clap::Parser;
    use ferroce_sim::fabric::US;

    use super::*;
    use crate::Usage;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parse(text: &str) -> Args {
        Line::parse_from(["fabric"].into_iter().chain(text.split_whitespace())).args
    }

    #[test]
    fn what_does_not_go_together_is_a_mistake_in_one_line() {
        for (text, part) in [
            ("incast --hosts 1024", "1 to 1023"),
            ("permutation --hosts 1", "2 to 1023"),
            ("incast --hosts 0", "1 to 1023"),
            ("incast --bytes 0", "--bytes"),
            ("s2 --hosts 4", "--hosts"),
            ("s2 --rate 25", "--rate"),
            ("s4 --dut model", "without end"),
            ("incast --dut rtl512 --cc paper", "--cc"),
            ("incast --dut model --cc swift --read", "--read"),
            ("all-to-all --hosts 17 --dut model", "272 flows"),
            ("hadoop --bytes 5", "--bytes"),
            ("hadoop --time 19", "20 us"),
            ("incast --read", "--dut"),
            ("s4 --beside run.csv", "--svg"),
            ("ring --hosts 4 --read --dut model", "--read"),
            ("victim --hosts 1023 --topology fat-tree", "do not fit"),
        ] {
            let error = plan::plan(&parse(text)).err().expect(text);
            let line = error.to_string();
            assert!(
                error.is::<Usage>() && line.contains(part) && !line.contains('\n'),
                "{line}"
            );
        }
    }

    fn figures_of(text: &str) -> (impl Fn(&str) -> Option<f64>, Vec<String>) {
        let plan = plan::plan(&parse(text)).unwrap();
        let results = plan.setup.run_paced(&plan.flows, &plan.config);
        let (figures, wrong) = figures::figures(&plan, &results);
        let value = move |name: &str| {
            let figure = figures.iter().find(|figure| figure.name == name)?;
            Some(figure.value.as_f64())
        };
        (value, wrong)
    }

    #[test]
    fn figures_are_of_flows_while_they_go_on() {
        // the second flow comes when the run ends
        let (alone, _) = figures_of("s2 --time 10000");
        assert_eq!(alone("fairness_jain"), Some(1.0));
        // the senders have the line until the switch stops them
        let (start, _) = figures_of("s4 --time 200 --pfc");
        assert!(start("bottleneck_utilisation").unwrap() <= 100.0);
        // the victim alone arrives
        let (late, wrong) = figures_of("victim --hosts 7 --time 1000");
        assert!(late("goodput").unwrap() <= 200.0 && late("fairness_jain").is_none());
        assert!(wrong[0].contains("7 of 8 flows") && wrong[0].contains("--time"));
        // a flow has a packet and an ACK, and each two wires
        let (lossy, _) = figures_of("all-to-all --hosts 16 --bytes 500 --loss 10%");
        assert!((15.0..23.0).contains(&lossy("loss").unwrap()));
        // goodput and queues of a mix are of the time in which flows come
        let mix = plan::plan(&parse("hadoop --time 1000 --cc dcqcn")).unwrap();
        assert_eq!(mix.window, (240 * US, 1000 * US));
        // other scenarios may end before their queues count
        assert!(plan::plan(&parse("incast --cc dcqcn --time 1000")).is_ok());
    }

    #[test]
    fn a_run_has_its_figures_and_a_page() {
        let args = parse("incast --hosts 4 --bytes 200000 --cc dcqcn --pfc --threads 1");
        let plan = plan::plan(&args).unwrap();
        let results = plan.setup.run_paced(&plan.flows, &plan.config);
        let (figures, wrong) = figures::figures(&plan, &results);
        assert_eq!(wrong, [""; 0]);
        let of = |name: &str| {
            let found = figures.iter().find(|figure| figure.name == name);
            found.expect(name).value.as_f64()
        };
        // 782 frames of 1106 bytes into one port
        assert!((69.0..77.0).contains(&of("last_received")), "{figures:?}");
        assert!(of("slowdown_p50") > 1.0 && of("dropped") == 0.0);
        assert!(of("queue_peak") > 400.0);
        let queue = plot::queue(&plan, &results, None);
        let page = plot::page(&plan, &results, queue, &Report::new(true, 1, figures)).unwrap();
        assert_eq!(page.matches("<svg").count(), 3);
    }

    #[test]
    fn a_recorded_run_is_drawn_beside() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.csv");
        std::fs::write(&file, "t_us,marks,q0_mean_B\n20,1,5000\n40,2,7000\n\n").unwrap();
        let line = plot::recorded(&file).unwrap();
        assert_eq!(line.points, [(0.02, 5.0), (0.04, 7.0)]);
        for text in [
            "t_us,marks\n20,1\n",
            "t_us,q0_mean_B\n20,x\n",
            "t_us,q0_mean_B\n20,inf\n",
            "",
        ] {
            std::fs::write(&file, text).unwrap();
            let error = plot::recorded(&file).err().expect(text);
            assert!(
                error.is::<Usage>() && error.to_string().contains("run.csv"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_run_that_ends_before_the_means_begin_has_a_peak_alone() {
        let run = |cc: &str| {
            let text = "incast --hosts 4 --bytes 200000 --topology fat-tree --threads 1";
            let plan = plan::plan(&parse(&format!("{text} --cc {cc}"))).unwrap();
            let results = plan.setup.run_paced(&plan.flows, &plan.config);
            let (figures, wrong) = figures::figures(&plan, &results);
            assert_eq!(wrong, [""; 0]);
            let left_out = figures::left_out(&plan, &results);
            let of = |name: &str| {
                let found = figures.iter().find(|figure| figure.name == name);
                found.map(|figure| figure.value.as_f64())
            };
            let names = ["bottleneck_switch", "bottleneck_port", "queue_peak"];
            (names.map(of), ["queue_mean", "queue_p99"].map(of), left_out)
        };
        let (place, means, left_out) = run("none");
        assert!(means[0] > Some(100.0) && means[1] > means[0], "{means:?}");
        assert_eq!(left_out, None);
        let (short, means, left_out) = run("dcqcn");
        assert_eq!(means, [None; 2]);
        assert!(left_out.unwrap().contains("from 2000 us on"));
        assert_eq!(short[..2], place[..2], "the port with the queue");
        assert!(short[2] > Some(100.0), "{short:?}");
    }
}
