//! A scenario of the bench, and the figures it gives.

use anyhow::Result;

use super::ENGINE;
use super::flood;
use super::load::Load;
use super::measured::Measured;
use super::paced;
use super::rig::Setup;
use super::stages;
use super::storm::Storm;
use crate::report::Figure;

/// Stages of a message on its way, from the doorbell to the completion but for the wire.
pub(super) const STAGES: [&str; 8] = [
    "stage_doorbell_to_wqe_read",
    "stage_wqe_read",
    "stage_wqe_to_payload_read",
    "stage_payload_read",
    "stage_payload_to_wire",
    "wire_to_axi",
    "axi_to_ack",
    "ack_to_cqe",
];

/// Share of the goodput that go-back-N keeps when a share of the requests is lost, (1-p)/(1-p+pW): W packets of MTU 1024
/// are in flight in a round trip, 17 cycles each.
pub(super) fn go_back_n(loss: f64) -> f64 {
    const IN_FLIGHT: f64 = 60.0;
    (1.0 - loss) / (1.0 - loss + loss * IN_FLIGHT)
}

/// Seeds of a mean.
const SEEDS: u64 = 5;

/// How a figure is read.
pub(super) const GOODPUT: &str = "bytes/cycle";
pub(super) const CYCLES: &str = "cycles";

/// When a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    /// Always, also in the test.
    Gate,
    /// With `--quick`.
    Quick,
    /// In the whole bench.
    Full,
    /// With `--scale`, and nothing else then: the largest build.
    Scale,
    /// With `--storm`, and nothing else then: a million packets each.
    Storm,
}

/// What a scenario measures.
pub(super) enum What {
    Load(Load, Setup, Shown),
    /// Likewise, the mean over [`SEEDS`] from that of the setup on: losses, and which atomics wait for each other, are chance.
    Mean(Load, Setup, Shown),
    /// Over so many queue pairs.
    Acks(Setup, u64),
    Tiny(Setup),
    Storm(Storm, Setup),
    /// All queue pairs with rates of their own.
    Paced(Setup),
    Single(Setup, bool),
    /// Block by block.
    Stages(Setup),
}

/// Which figures of a load are reported.
#[derive(Clone, Copy)]
pub(super) enum Shown {
    Goodput,
    /// Of all requesters together.
    Total,
    /// The same, and of the slowest.
    Shares,
    CyclesPerMessage,
    /// Goodput and what it took to get over losses.
    Loss,
}

/// Something to measure.
pub(super) struct Scenario {
    /// Start of its figures' names.
    pub(super) name: String,
    pub(super) tier: Tier,
    pub(super) what: What,
}

/// What a scenario gave.
pub(super) struct Found {
    pub(super) figures: Vec<Figure>,
    /// Cycles of two engines of the baseline in the part that a load takes, and their CPU time in s.
    pub(super) cycles: u64,
    pub(super) cpu: f64,
}

impl Found {
    fn of(figures: Vec<Figure>) -> Self {
        Self {
            figures,
            cycles: 0,
            cpu: 0.0,
        }
    }

    fn of_load(figures: Vec<Figure>, load: &Load, setup: &Setup, runs: &[Measured]) -> Self {
        let is_pair = load.traffic.hosts() == 2 && setup.build.width == ENGINE.width();
        let counted = if is_pair { runs } else { &[] };
        Self {
            figures,
            cycles: counted.iter().map(|run| run.run).sum(),
            cpu: counted.iter().map(|run| run.cpu).sum(),
        }
    }
}

impl Scenario {
    /// Runs it.
    pub(super) fn run(&self) -> Result<Found> {
        let name = &self.name;
        match &self.what {
            What::Load(load, setup, shown) => {
                let measured = load.run(setup)?;
                let figures = figures_of(name, &measured, *shown);
                Ok(Found::of_load(figures, load, setup, &[measured]))
            }
            What::Mean(load, setup, shown) => {
                let seeds = setup.seed..setup.seed + SEEDS;
                let runs = seeds.map(|seed| load.run(&Setup { seed, ..*setup }));
                let runs = runs.collect::<Result<Vec<_>>>()?;
                let figures = figures_of(name, &Measured::mean(&runs), *shown);
                Ok(Found::of_load(figures, load, setup, &runs))
            }
            What::Acks(setup, qps) => Ok(flooded(name, "ack", flood::acks(setup, *qps)?)),
            What::Storm(storm, setup) => Ok(flooded(name, "packet", storm.run(setup)?)),
            What::Tiny(setup) => Ok(flooded(name, "packet", flood::tiny(setup)?)),
            What::Paced(setup) => {
                let paced = paced::run(setup)?;
                let percent = |what: &str, value| Figure::new(format!("{name}_{what}"), value, "%");
                Ok(Found::of(vec![
                    percent("worst_difference", paced.worst),
                    percent("sum", paced.sum),
                ]))
            }
            What::Single(setup, inline) => {
                let single = flood::single(setup, *inline, None)?;
                let suffix = if *inline { "_inline" } else { "" };
                let figure = |what: &str, cycles: u64| {
                    Figure::new(format!("{what}{suffix}_cycles"), cycles, CYCLES)
                };
                let stages = STAGES.iter().zip(single.stages);
                let mut figures = vec![figure("doorbell_to_wire", single.doorbell_to_wire)];
                figures.extend(stages.map(|(name, cycles)| figure(name, cycles)));
                figures.push(figure("doorbell_to_completion", single.round_trip));
                Ok(Found::of(figures))
            }
            What::Stages(setup) => {
                let stages = stages::of_a_write(setup)?.into_iter();
                let figures = stages.map(|(stage, cycles)| {
                    Figure::new(format!("block_{stage}_cycles"), cycles, CYCLES)
                });
                Ok(Found::of(figures.collect()))
            }
        }
    }
}

fn flooded(name: &str, packet: &str, flood: flood::Flood) -> Found {
    let figures = vec![
        Figure::new(format!("{name}_cycles_per_{packet}"), flood.cycles, CYCLES),
        Figure::new(format!("{name}_dropped"), flood.dropped, "packets"),
    ];
    Found::of(figures)
}

fn goodput(name: &str, value: f64) -> Figure {
    Figure::new(format!("{name}_goodput_bytes_per_cycle"), value, GOODPUT)
}

fn figures_of(name: &str, measured: &Measured, shown: Shown) -> Vec<Figure> {
    let goodput = || goodput(name, measured.goodput);
    let total = || {
        let name = format!("{name}_total_goodput_bytes_per_cycle");
        Figure::new(name, measured.total, GOODPUT)
    };
    match shown {
        Shown::Goodput => vec![goodput()],
        Shown::Total => vec![total()],
        Shown::Shares => {
            let slowest = format!("{name}_slowest_goodput_bytes_per_cycle");
            vec![total(), Figure::new(slowest, measured.goodput, GOODPUT)]
        }
        Shown::CyclesPerMessage => {
            let cycles = measured.cycles as f64 / measured.messages as f64;
            let name = format!("{name}_cycles_per_message");
            vec![Figure::new(name, cycles, CYCLES)]
        }
        Shown::Loss => {
            let count = |what: &str, value: u64| {
                Figure::new(format!("{name}_{what}"), value, what.to_owned())
            };
            vec![
                goodput(),
                count("retransmissions", measured.retransmissions),
                count("timeouts", measured.timeouts),
            ]
        }
    }
}
