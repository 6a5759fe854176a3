//! What a fabric keeps whatever runs on it.

use ferroce_sim::fabric::flow::paced::{Config, Control};
use ferroce_sim::fabric::lab::{Results, Setup};
use ferroce_sim::fabric::routes::Spread;
use ferroce_sim::fabric::topology::Topology;
use ferroce_sim::fabric::{Line, MS, US, scenario};
use ferroce_sim::model::congestion::{Params, SwiftParams};
use ferroce_sim::random::Chance;

use super::{dcqcn, run};

fn line() -> Line {
    Line::ethernet(100, 1000)
}

fn star(hosts: usize) -> Setup {
    Setup::new(Topology::star(hosts), line(), 100 * MS)
}

fn swift() -> Config {
    let params = SwiftParams {
        log_packet: 10,
        ..SwiftParams::default()
    };
    Config {
        control: Control::Swift(params),
        ..Config::default()
    }
}

fn all_arrived(results: &Results, flows: usize) {
    for id in 0..flows {
        assert!(
            results.completion(id).is_some(),
            "flow {id}: {:?}",
            results.sent(id)
        );
        assert!(results.received(id).finished.is_some());
    }
}

#[test]
fn a_flow_alone_takes_what_its_bytes_take() {
    let results = run(&star(2), scenario::incast(1, 1 << 20), &Config::default());
    all_arrived(&results, 1);
    let us = results.completion(0).unwrap() / US;
    // 1024 packets of 1106 bytes, 4 us there and back, a frame stored
    assert!((94..=96).contains(&us), "{us}");
}

#[test]
fn without_pfc_a_small_buffer_drops_and_all_arrives() {
    let mut setup = star(9);
    setup.switch.buffer.shared = 400_000;
    setup.switch.red = [None; 8];
    let results = run(&setup, scenario::incast(8, 1 << 20), &Config::default());
    all_arrived(&results, 8);
    assert!(results.switches(|switch| switch.dropped) > 0);
    assert!((0..8).any(|id| results.sent(id).repeated > 0));
}

#[test]
fn with_pfc_nothing_is_dropped_and_order_is_kept() {
    let mut setup = star(9).with_pfc();
    setup.switch.buffer.shared = 400_000;
    let results = run(&setup, scenario::incast(8, 1 << 20), &Config::default());
    all_arrived(&results, 8);
    assert_eq!(results.switches(|switch| switch.dropped), 0);
    assert!(results.switches(|switch| switch.pauses) > 0);
    for id in 0..8 {
        assert_eq!(
            (results.sent(id).repeated, results.sent(id).timeouts),
            (0, 0)
        );
    }
    // The bottleneck never ran dry: 8 MiB and their headers at line rate, and the start.
    let last = (0..8)
        .filter_map(|id| results.received(id).finished)
        .max()
        .unwrap();
    let best = 8 * 1024 * line().frame(1082);
    assert!(last < best + 10 * US, "{last} ps, {best} is the least");
}

#[test]
fn a_headroom_that_is_too_small_drops() {
    let mut setup = star(9).with_pfc();
    setup.switch.buffer.shared = 400_000;
    setup.switch.buffer.pfc.as_mut().unwrap().headroom = 4000;
    let results = run(&setup, scenario::incast(8, 1 << 20), &Config::default());
    assert!(results.switches(|switch| switch.dropped) > 0);
}

#[test]
fn what_is_cut_is_asked_for_at_once() {
    let mut setup = star(9);
    setup.switch.buffer.shared = 400_000;
    // Half of what is free is left for what is cut.
    setup.switch.buffer.lossy_shift = 1;
    setup.switch.red = [None; 8];
    let config = Config {
        window: 32 << 10,
        ..Config::default()
    };
    let flows = || scenario::incast(8, 256 << 10);
    let timeouts = |results: &Results| (0..8).map(|id| results.sent(id).timeouts).sum::<u64>();
    let dropping = run(&setup, flows(), &config);
    assert!(timeouts(&dropping) > 0);
    setup.switch.trim = true;
    let results = run(&setup, flows(), &config);
    all_arrived(&results, 8);
    assert!(results.switches(|switch| switch.trimmed) > 0);
    assert_eq!(timeouts(&results), 0);
}

#[test]
fn one_way_keeps_order_and_all_ways_do_not() {
    let mut setup = Setup::new(Topology::fat_tree(4), line(), 100 * MS);
    let flows = || scenario::permutation(16, 1 << 20, 5);
    let results = run(&setup, flows(), &Config::default());
    all_arrived(&results, 16);
    assert!((0..16).all(|id| results.sent(id).repeated == 0));
    setup.spread = Spread::Spray;
    let results = run(&setup, flows(), &Config::default());
    all_arrived(&results, 16);
    assert!((0..16).any(|id| results.sent(id).repeated > 0), "go-back-N");
}

#[test]
fn a_wire_that_loses_is_overcome() {
    let mut setup = Setup::new(Topology::leaf_spine(2, 4, 2), line(), 1000 * MS);
    setup.loss = Chance::new(0.001);
    let results = run(&setup, scenario::all_to_all(8, 100_000), &Config::default());
    all_arrived(&results, 56);
    assert!(results.lost > 0);
}

/// 16 packets take longer than the timer runs.
#[test]
fn a_slow_flow_is_acknowledged_in_time() {
    let config = Config {
        control: Control::Dcqcn {
            params: Params::default(),
            line: 20,
        },
        ..Config::default()
    };
    let results = run(&star(2), scenario::incast(1, 64 << 10), &config);
    all_arrived(&results, 1);
    let sent = results.sent(0);
    assert_eq!((sent.timeouts, sent.repeated), (0, 0));
}

#[test]
fn collectives_end() {
    for flows in [
        scenario::ring_allreduce(8, 1 << 20),
        scenario::tree_allreduce(7, 1 << 17),
    ] {
        let count = flows.len();
        let results = run(&star(8), flows, &Config::default());
        all_arrived(&results, count);
    }
}

#[test]
fn any_number_of_threads_gives_the_same_to_the_bit() {
    let mut setup = Setup::new(Topology::fat_tree(4), line(), 3 * MS).with_pfc();
    setup.spread = Spread::Spray;
    setup.loss = Chance::new(1e-4);
    setup.switch.buffer.shared = 300_000;
    let config = Config {
        control: dcqcn(Params::default()),
        ..Config::default()
    };
    let flows = || scenario::mix(scenario::HADOOP, 16, 100_000, 0.8, MS, 4);
    let mut seen = [1, 2, 3].map(|threads| {
        setup.threads = threads;
        format!("{:?}", run(&setup, flows(), &config))
    });
    assert!(seen[0].len() > 10_000);
    assert!(seen[0] == seen[1] && seen[0] == seen[2]);
    setup.seed = 2;
    seen[1] = format!("{:?}", run(&setup, flows(), &config));
    assert!(seen[0] != seen[1], "another seed is another run");
}

#[test]
fn swift_holds_an_incast_near_its_target_delay() {
    let config = swift();
    let mut setup = star(9);
    setup.switch.window.from = 2 * MS;
    let results = run(&setup, scenario::incast(8, 8 << 20), &config);
    all_arrived(&results, 8);
    assert_eq!(results.switches(|switch| switch.dropped), 0);
    // the port is never idle: 65536 packets of 1106 bytes
    let last = (0..8).map(|id| results.completion(id).unwrap() / US).max();
    assert!((5796..5900).contains(&last.unwrap()), "{last:?}");
    // a target of 28 us for windows of an eighth, of which 4 us are wires: 300 kB
    let trace = &results.switches[0].traces[8];
    assert!((200e3..320e3).contains(&trace.mean()), "{}", trace.mean());
    assert!(trace.peak() < 400_000, "{}", trace.peak());
}

#[test]
fn swift_takes_what_is_lost_for_congestion_and_all_arrives() {
    let config = swift();
    let mut setup = star(9);
    // less than a packet of each flow fits beside the target delay
    setup.switch.buffer.shared = 40_000;
    setup.loss = Chance::new(0.001);
    let results = run(&setup, scenario::incast(8, 1 << 20), &config);
    all_arrived(&results, 8);
    assert!(results.switches(|switch| switch.dropped) > 0);
    let timeouts: u64 = (0..8).map(|id| results.sent(id).timeouts).sum();
    assert!(timeouts > 0);
    for id in 0..8 {
        let sum = results.sent(id).series.sum(0, results.now);
        assert!(sum.decreases > 0, "flow {id}");
    }
}
