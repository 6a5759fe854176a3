//! What the scenarios reach: a generator that forgets a case would not fail by itself.

use std::collections::BTreeSet;

use ferroce_proto::abi::cq::status::*;
use ferroce_sim::testhost::Side;
use ferroce_tests::differential::generate::{Class, scenario};
use ferroce_tests::differential::outcome::Outcome;
use ferroce_tests::differential::run::run;
use ferroce_tests::differential::scenario::{Agreement, Scenario};

use crate::model::{FEATURES, PARAMS, model};

/// Counters, but those of pauses, that no scenario for the engine's features raises on a wire without loss.
const UNREACHED: [&str; 13] = [
    "rx_exceptions",
    "rx_exception_drops",
    "tx_exceptions",
    "rx_bad_frames",
    "rx_overflow",
    "rx_qkey_violations",
    "implied_nak_seq_err",
    "cq_overflows",
    "packet_seq_err",
    "np_ecn_marked_roce_packets",
    "np_cnp_sent",
    "rp_cnp_ignored",
    "rp_swift_lost",
];

#[derive(Default)]
struct Reached {
    /// Status by kind of queue: receive or send.
    statuses: BTreeSet<(bool, u8)>,
    counters: BTreeSet<&'static str>,
    agreements: [usize; 3],
    /// Answers of commands.
    commands: BTreeSet<u8>,
    completions: usize,
    packets: usize,
}

impl Reached {
    fn add(&mut self, scenario: &Scenario, outcome: &Outcome) {
        assert_eq!(outcome.failures, [""; 0], "seed {}", scenario.seed);
        for ((_, _, recv), queue) in &outcome.completions {
            self.completions += queue.len();
            self.statuses
                .extend(queue.iter().map(|c| (*recv, c.cqe.status)));
        }
        let counters = outcome.counters.iter().flatten();
        self.counters
            .extend(counters.filter(|(_, n)| **n > 0).map(|(name, _)| name));
        for connection in 0..scenario.connections.len() {
            for side in [Side::A, Side::B] {
                self.agreements[match scenario.agreement(connection, side) {
                    Agreement::Exact => 0,
                    Agreement::Contents => 1,
                    Agreement::UntilFailure => 2,
                }] += 1;
            }
        }
        self.commands
            .extend(outcome.commands.iter().map(|(_, status)| *status));
        self.packets += outcome
            .flows
            .values()
            .map(|flow| flow.order.len())
            .sum::<usize>();
    }
}

fn reach(class: Class, seeds: u64) -> Reached {
    let mut reached = Reached::default();
    let card = model();
    for seed in 1..=seeds {
        let scenario = scenario(seed, class, FEATURES);
        reached.add(&scenario, &run(&scenario, &PARAMS, [&card, &card]));
    }
    reached
}

#[test]
fn lossless_scenarios_reach_every_result() {
    let reached = reach(Class::Lossless, 400);
    let expected = [
        (false, SUCCESS),
        (false, LOC_LEN_ERR),
        (false, LOC_QP_OP_ERR),
        (false, LOC_PROT_ERR),
        (false, WR_FLUSH_ERR),
        (false, REM_INV_REQ_ERR),
        (false, REM_ACCESS_ERR),
        (false, REM_OP_ERR),
        (false, RETRY_EXC_ERR),
        (false, RNR_RETRY_EXC_ERR),
        (true, SUCCESS),
        (true, LOC_LEN_ERR),
        (true, LOC_QP_OP_ERR),
        (true, LOC_PROT_ERR),
        (true, WR_FLUSH_ERR),
    ];
    assert_eq!(reached.statuses, BTreeSet::from(expected));
    let counters: BTreeSet<_> = ferroce_proto::abi::regs::STATS
        .iter()
        .copied()
        .filter(|name| !UNREACHED.contains(name) && !name.contains("_pause"))
        .collect();
    assert_eq!(reached.counters, counters);
    assert_eq!(reached.commands, BTreeSet::from([1, 2, 3, 4]));
    let [exact, contents, until_failure] = reached.agreements;
    assert!(
        exact > 500 && contents > 50 && until_failure > 200,
        "{:?}",
        reached.agreements
    );
    assert!(
        reached.completions > 3500 && reached.packets > 3500,
        "{} completions, {} packets",
        reached.completions,
        reached.packets
    );
}

#[test]
fn lossy_scenarios_reach_retries() {
    let reached = reach(Class::Lossy, 200);
    for name in [
        "packet_seq_err",
        "local_ack_timeout_err",
        "duplicate_request",
        "rx_icrc_errors",
        "implied_nak_seq_err",
    ] {
        assert!(reached.counters.contains(name), "{name}");
    }
    for status in [SUCCESS, LOC_PROT_ERR, WR_FLUSH_ERR, RNR_RETRY_EXC_ERR] {
        assert!(reached.statuses.contains(&(false, status)), "{status}");
    }
    assert!(
        !reached.statuses.contains(&(false, RETRY_EXC_ERR)),
        "retries are enough"
    );
}
