//! The fabric beside recorded simulations of others: their scenarios, their rules of DCQCN, within the spread of their seeds.
//!
//! The limits are those of `docs/fabric.md`. The card's own reaction point has a coarser alpha and differs; the page says by how much.

use ferroce_sim::fabric::flow::paced::Control;
use ferroce_sim::fabric::flow::reaction::RecordedParams;
use ferroce_sim::fabric::lab::{Results, Setup, jain};
use ferroce_sim::fabric::{MS, Time};
use ferroce_sim::model::congestion::Params;

use super::{dcqcn, run};

/// What a run came to from `from` on.
#[derive(Debug)]
struct Figures {
    gbps: Vec<f64>,
    decreases: f64,
    increases: f64,
    cnps: f64,
    mean: f64,
    p99: u64,
    peak: u64,
}

fn recorded(number: usize, control: Control, from: Time, until: Time) -> (Figures, Results) {
    let (setup, flows, config) = Setup::recorded(number, control, from, until);
    let (count, port) = (flows.len(), flows[0].dst);
    let results = run(&setup, flows, &config);
    let seconds = (until - from) as f64 / 1e12;
    let sums = (0..count).map(|id| results.sent(id).series.sum(from, until));
    let sums: Vec<_> = sums.collect();
    let rate = |what: fn(&ferroce_sim::fabric::flow::Tick) -> u32| {
        f64::from(sums.iter().map(what).sum::<u32>()) / seconds
    };
    let trace = &results.switches[0].traces[port];
    let figures = Figures {
        gbps: sums
            .iter()
            .map(|sum| sum.bytes as f64 * 8e-9 / seconds)
            .collect(),
        decreases: rate(|tick| tick.decreases),
        increases: rate(|tick| tick.increases),
        cnps: rate(|tick| tick.cnps),
        mean: trace.mean(),
        p99: trace.quantile(0.99),
        peak: trace.peak(),
    };
    assert_eq!(results.switches(|switch| switch.dropped + switch.pauses), 0);
    (figures, results)
}

const VENDOR: Control = Control::Recorded(RecordedParams::VENDOR);

#[test]
fn one_flow_has_the_line() {
    let (figures, _) = recorded(1, VENDOR, 0, 2 * MS);
    assert!(figures.gbps[0] > 100.5, "{figures:?}");
    assert_eq!(figures.cnps, 0.0);
}

#[test]
fn two_flows_share() {
    let (figures, _) = recorded(2, VENDOR, 20 * MS, 30 * MS);
    assert!(
        figures.gbps.iter().all(|rate| (46.0..54.0).contains(rate)),
        "{figures:?}"
    );
    assert!(jain(&figures.gbps) >= 0.99);
    assert!(figures.gbps.iter().sum::<f64>() > 97.0);
    assert!(
        (150e3..300e3).contains(&figures.mean) && figures.p99 <= 650_000,
        "{figures:?}"
    );
    assert!(
        (11_200.0..20_800.0).contains(&figures.decreases),
        "{figures:?}"
    );
    assert!(
        (4_700.0..5_720.0).contains(&figures.increases),
        "{figures:?}"
    );
}

#[test]
fn sixteen_flows_share() {
    let (figures, _) = recorded(4, VENDOR, 10 * MS, 20 * MS);
    assert!(jain(&figures.gbps) >= 0.96, "{figures:?}");
    assert!(figures.gbps.iter().sum::<f64>() > 98.0, "{figures:?}");
    assert!(
        (290e3..460e3).contains(&figures.mean) && figures.p99 <= 900_000,
        "{figures:?}"
    );
    assert!((153e3..256e3).contains(&figures.decreases), "{figures:?}");
    assert!((161e3..269e3).contains(&figures.cnps), "{figures:?}");
    assert!(
        (3_800_000..8_500_000).contains(&figures.peak),
        "{figures:?}"
    );
}

/// The victim shares the switch alone. This one is of the card's rules.
#[test]
fn a_victim_keeps_its_rate() {
    let control = dcqcn(Params::default());
    let (figures, results) = recorded(5, control, MS, 4 * MS);
    assert!(figures.gbps[8] > 100.5, "{figures:?}");
    assert!(results.sent(0).series.sum(0, 4 * MS).decreases > 0);
}
