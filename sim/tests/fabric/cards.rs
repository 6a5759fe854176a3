//! Cards in a fabric: verbs over switches.

use std::sync::Arc;

use ferroce_hdl::engine::builds::STANDARD;
use ferroce_sim::fabric::flow::Flow;
use ferroce_sim::fabric::flow::card::Make;
use ferroce_sim::fabric::flow::paced::{Config, Control};
use ferroce_sim::fabric::lab::{Results, Setup};
use ferroce_sim::fabric::topology::Topology;
use ferroce_sim::fabric::{Line, MS, US, scenario};
use ferroce_sim::model::Model;
use ferroce_sim::model::congestion::Params;
use ferroce_sim::random::Chance;
use ferroce_sim::rtl::{self, build};
use ferroce_sim::verilator;

fn setup(hosts: usize) -> Setup {
    Setup::new(Topology::star(hosts), Line::ethernet(100, 1000), 20 * MS).with_pfc()
}

fn model() -> Make {
    Arc::new(|memory| Box::new(Model::new(STANDARD, memory)))
}

fn run(setup: &Setup, flows: Vec<Flow>, make: &Make) -> Results {
    run_with(setup, flows, make, &Config::default())
}

fn run_with(setup: &Setup, flows: Vec<Flow>, make: &Make, config: &Config) -> Results {
    let count = flows.len();
    let results = setup.run_cards(&Arc::new(flows), make, config);
    for host in &results.hosts {
        assert_eq!(host.failures, [""; 0]);
    }
    assert!(results.is_conserved());
    for id in 0..count {
        assert!(results.completion(id).is_some(), "flow {id}");
        assert!(results.received(id).finished.is_some());
    }
    results
}

#[test]
fn models_fill_the_port_of_one() {
    let results = run(&setup(5), scenario::incast(4, 1 << 20), &model());
    let last = (0..4).filter_map(|id| results.received(id).finished).max();
    let best = 4 * 1024 * Line::ethernet(100, 1000).frame(1082);
    let last = last.unwrap();
    assert!(
        (best..best * 105 / 100 + 20 * US).contains(&last),
        "{last} ps, {best} at best"
    );
    assert_eq!(results.switches(|switch| switch.dropped), 0);
}

/// Marks slow the senders of an incast down, whether they write or are read: with DCQCN the queue is above the threshold of marks much
/// less.
#[test]
fn models_under_dcqcn_keep_the_queue_short() {
    let controlled = Control::Dcqcn {
        params: Params {
            rpg_min_rate: 1000,
            ..Params::default()
        },
        line: 100_000,
    };
    for reads in [false, true] {
        let marked = |control| {
            let config = Config {
                control,
                reads,
                ..Config::default()
            };
            let results = run_with(&setup(9), scenario::incast(8, 6 << 20), &model(), &config);
            assert_eq!(results.switches(|switch| switch.dropped), 0);
            assert!(results.sent(0).packets >= 6 << 10);
            results.switches(|switch| switch.marked)
        };
        let (free, controlled) = (marked(Control::None), marked(controlled));
        assert!(
            controlled < free / 2,
            "reads: {reads}; {controlled} frames marked, {free} without control"
        );
    }
}

#[test]
fn a_ring_of_models_ends_and_threads_change_nothing() {
    let mut setup = setup(4);
    let flows = || scenario::ring_allreduce(4, 1 << 18);
    let one = run(&setup, flows(), &model());
    setup.threads = 2;
    let two = run(&setup, flows(), &model());
    assert!(format!("{one:?}") == format!("{two:?}"));
}

/// Engines with a wide data path at both ends of an incast; on two threads the same to the bit.
#[test]
fn engines_on_two_threads_do_what_they_do_on_one() {
    let engine = build::model(512, &verilator::Options::default()).expect("it builds");
    let engine = Arc::new(engine);
    let make: Make = Arc::new(move |memory| {
        let options = rtl::Options {
            tx_room: 4,
            ..rtl::Options::default()
        };
        let card = build::engine(&engine, memory, &options);
        Box::new(card.expect("there is memory for an engine"))
    });
    let mut setup = setup(3);
    let flows = || scenario::incast(2, 8 << 10);
    let one = run(&setup, flows(), &make);
    setup.threads = 2;
    let two = run(&setup, flows(), &make);
    assert!(format!("{one:?}") == format!("{two:?}"));
}

/// What a wire loses is sent again, and counts once at its receiver.
#[test]
fn cards_count_what_they_repeat() {
    const BYTES: u64 = 4 << 20;
    let mut setup = setup(2);
    setup.until = 1000 * MS;
    setup.loss = Chance::new(0.002);
    for reads in [false, true] {
        let config = Config {
            reads,
            ..Config::default()
        };
        let results = run_with(&setup, scenario::incast(1, BYTES), &model(), &config);
        assert!(results.lost > 0);
        let sent = results.sent(0);
        assert_eq!(sent.packets - sent.repeated, BYTES >> 10, "{sent:?}");
        let came = results.received(0).series.sum(0, results.now);
        assert_eq!(came.bytes, BYTES);
    }
}
