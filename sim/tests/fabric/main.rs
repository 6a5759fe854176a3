//! Many hosts on one Ethernet.

mod cards;
mod recorded;
mod rules;

use std::sync::Arc;

use ferroce_sim::fabric::flow::Flow;
use ferroce_sim::fabric::flow::paced::{Config, Control};
use ferroce_sim::fabric::lab::{Results, Setup};
use ferroce_sim::model::congestion::Params;

/// Runs flows between hosts without cards.
fn run(setup: &Setup, flows: Vec<Flow>, config: &Config) -> Results {
    let results = setup.run_paced(&Arc::new(flows), config);
    assert!(results.is_conserved(), "{results:?}");
    results
}

fn dcqcn(params: Params) -> Control {
    Control::Dcqcn {
        params,
        line: 100_000,
    }
}
