//! What a run came to, and how two runs differ.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};

use ferroce_proto::abi::cmd::QpState;
use ferroce_proto::abi::cq::{Cqe, status};
use ferroce_sim::scoreboard::Record;

use super::bench::SIDES;
use super::scenario::{Agreement, Command, Scenario};
use super::tap::{Flow, Flows, Request};

/// Counters that no timing touches, on a wire that harms nothing.
const STEADY: &[&str] = &[
    "rx_bad_frames",
    "rx_icrc_errors",
    "rx_malformed",
    "rx_not_roce",
    "rx_overflow",
    "rx_unknown_qp",
    "remote_errors",
    "retry_exceeded_err",
    "rnr_nak_retry_err",
    "implied_nak_seq_err",
    "rp_cnp_ignored",
    "rx_prio0_pause",
    "rx_prio1_pause",
    "rx_prio2_pause",
    "rx_prio3_pause",
    "rx_prio4_pause",
    "rx_prio5_pause",
    "rx_prio6_pause",
    "rx_prio7_pause",
    "cq_overflows",
    "commands",
    "command_errors",
];

/// Counters of requests that end a queue pair. Each by itself, unless a queue pair meets messages that fail: which of two
/// is counted is a matter of timing then, not how many.
const REFUSALS: &[&str] = &[
    "invalid_request_errors",
    "access_errors",
    "operational_errors",
];

/// Counters that follow from the packets, when those of all connections agree exactly.
const EXACT: &[&str] = &[
    "rx_write_requests",
    "rx_send_requests",
    "rx_read_requests",
    "rx_atomic_requests",
    "rx_qp_state",
    "rx_wrong_transport",
    "rx_pkey_violations",
    "rx_wrong_address",
    "out_of_sequence",
    "duplicate_request",
    "rnr_nak_sent",
    "rx_ghost_acks",
    "packet_seq_err",
    "rnr_nak_received",
    "local_ack_timeout_err",
    "retransmissions",
    "np_ecn_marked_roce_packets",
    "np_cnp_sent",
    "rp_cnp_handled",
];

/// Counters that no run may raise, whatever the wire does.
const NEVER: &[&str] = &["rx_bad_frames", "rx_overflow", "cq_overflows"];

/// What a CQE says.
#[derive(Clone, PartialEq, Eq)]
pub struct Completion {
    /// Completion queue.
    pub cqn: u16,
    /// The entry without its phase; of one that failed what verbs define.
    pub cqe: Cqe,
}

impl Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = &self.cqe;
        write!(
            f,
            "CQ {}: QP {} WQE {} status {} opcode {:#x} {} bytes",
            self.cqn, c.qpn, c.wqe_index, c.status, c.opcode, c.byte_len
        )?;
        let flags = [
            (c.with_imm, "imm"),
            (c.with_inv, "inv"),
            (c.grh, "grh"),
            (c.solicited, "solicited"),
            (c.recv, "recv"),
        ];
        for (_, name) in flags.iter().filter(|(set, _)| *set) {
            write!(f, " {name}")?;
        }
        let rest = (c.imm, c.vendor_err, c.src_qpn, c.pkey);
        write!(f, ", imm, vendor_err, src_qpn, pkey {rest:x?}")
    }
}

impl Completion {
    pub(super) fn new(cqn: u16, cqe: &Cqe) -> Self {
        // The phase depends on how completions of several queue pairs mix.
        let owner = false;
        let cqe = if cqe.status == status::SUCCESS {
            Cqe { owner, ..*cqe }
        } else {
            // All that verbs say of a failure.
            Cqe {
                owner,
                qpn: cqe.qpn,
                wqe_index: cqe.wqe_index,
                status: cqe.status,
                vendor_err: cqe.vendor_err,
                recv: cqe.recv,
                ..Cqe::default()
            }
        };
        Self { cqn, cqe }
    }
}

/// What a run came to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Regions and the memory around them, by name.
    pub memory: BTreeMap<String, Vec<u8>>,
    /// Completions in order, by connection, side and whether they are of the receive queue.
    pub completions: BTreeMap<(usize, usize, bool), Vec<Completion>>,
    /// Packets.
    pub flows: Flows,
    /// State of the queue pairs by connection and side.
    pub states: BTreeMap<(usize, usize), QpState>,
    /// Counters of each side.
    pub counters: [BTreeMap<&'static str, u64>; 2],
    /// Commands and their status.
    pub commands: Vec<(Command, u8)>,
    /// What makes the run a failed one by itself.
    pub failures: Vec<String>,
}

impl Outcome {
    /// In what `actual` differs from this outcome of the same scenario, the gravest first; empty if they agree.
    #[must_use]
    pub fn differences(&self, actual: &Self, scenario: &Scenario) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for (run, outcome) in [("expected", self), ("actual", actual)] {
            found.extend(
                outcome
                    .failures
                    .iter()
                    .map(|what| format!("{run} run: {what}")),
            );
        }
        if !found.is_empty() {
            return found;
        }
        let (expected, other) = (self.record(), actual.record());
        let packets = ferroce_sim::scoreboard::Packets::Not;
        found.extend(
            expected
                .differences(&other, packets)
                .iter()
                .map(ToString::to_string),
        );
        if self.commands != actual.commands {
            found.push(differ("commands", &self.commands, &actual.commands));
        }
        self.compare_flows(actual, scenario, &mut found);
        self.compare_states(actual, scenario, &mut found);
        self.compare_counters(actual, scenario, &mut found);
        found
    }

    /// Memory and completions.
    fn record(&self) -> Record<Completion> {
        let mut record = Record::new();
        for (name, contents) in &self.memory {
            record.memory(name, contents.clone());
        }
        for ((connection, side, recv), queue) in &self.completions {
            let queue_name = if *recv { "receive" } else { "send" };
            let name = format!("#{connection} {:?} {queue_name} queue", SIDES[*side]);
            for completion in queue {
                record.completion(&name, completion.clone());
            }
        }
        record
    }

    fn compare_flows(&self, actual: &Self, scenario: &Scenario, found: &mut Vec<String>) {
        let none = Flow::default();
        let mut keys: Vec<_> = self.flows.keys().chain(actual.flows.keys()).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            let (connection, incarnation, from) = *key;
            let name = format!(
                "#{connection} {:?} (incarnation {incarnation})",
                SIDES[from]
            );
            let (e, a) = (
                self.flows.get(key).unwrap_or(&none),
                actual.flows.get(key).unwrap_or(&none),
            );
            let agreement = scenario.agreement(connection, SIDES[from]);
            for psn in 0..e.requests.len().max(a.requests.len()) as u32 {
                let (e, a) = (e.requests.get(&psn), a.requests.get(&psn));
                let excused = agreement == Agreement::UntilFailure && (e.is_none() || a.is_none());
                if e != a && !excused {
                    let what = Request::difference(e, a);
                    found.push(format!("{name}: packet {psn}{what}"));
                    break;
                }
            }
            if agreement == Agreement::Exact && e.order != a.order {
                found.push(differ(
                    &format!("{name}: order of packets"),
                    &e.order,
                    &a.order,
                ));
            }
            // Answers to the messages of the other side.
            let agreement = scenario.agreement(connection, SIDES[1 - from]);
            let peer = self.flows.get(&(connection, incarnation, 1 - from));
            let first = peer.map_or(0, |peer| peer.first);
            let acks = [e.last_ack(first), a.last_ack(first)];
            if agreement != Agreement::UntilFailure && acks[0] != acks[1] {
                found.push(differ(&format!("{name}: last ACK"), &acks[0], &acks[1]));
            }
            let (mut answers, mut others) = (e.answers(), a.answers());
            if agreement == Agreement::UntilFailure {
                answers.retain(|psn, _| others.contains_key(psn));
                others.retain(|psn, _| answers.contains_key(psn));
            }
            if answers != others {
                let what = format!("{name}: READ and atomic responses");
                found.push(differ(&what, &answers, &others));
            }
            let naks = match agreement {
                Agreement::Exact => (e.naks(), a.naks()),
                _ => (e.fatal_naks(), a.fatal_naks()),
            };
            if naks.0 != naks.1 {
                found.push(differ(&format!("{name}: NAKs"), &naks.0, &naks.1));
            }
        }
    }

    fn compare_states(&self, actual: &Self, scenario: &Scenario, found: &mut Vec<String>) {
        for ((connection, side), e) in &self.states {
            let a = &actual.states[&(*connection, *side)];
            let (mut e, mut a) = (*e, *a);
            if scenario.agreement(*connection, SIDES[*side]) == Agreement::UntilFailure {
                // How far a requester got beyond the packet that failed is a matter of timing.
                (e.sq_psn, a.sq_psn) = (0, 0);
            }
            if scenario.agreement(*connection, SIDES[1 - side]) == Agreement::UntilFailure {
                // A responder in error has no use for them.
                (e.rq_psn, a.rq_psn, e.msn, a.msn) = (0, 0, 0, 0);
            }
            if e != a {
                let name = format!("#{connection} {:?}: state", SIDES[*side]);
                found.push(differ(&name, &e, &a));
            }
        }
    }

    fn compare_counters(&self, actual: &Self, scenario: &Scenario, found: &mut Vec<String>) {
        for side in SIDES {
            let (e, a) = (
                &self.counters[side as usize],
                &actual.counters[side as usize],
            );
            let mut names: Vec<&str> = Vec::new();
            if scenario.is_lossless() {
                names.extend(STEADY);
                let fails = |connection| {
                    scenario.agreement(connection, SIDES[1 - side as usize])
                        == Agreement::UntilFailure
                };
                if (0..scenario.connections.len()).any(fails) {
                    let sum = |of: &BTreeMap<&str, u64>| -> u64 {
                        REFUSALS.iter().map(|name| of[name]).sum()
                    };
                    if sum(e) != sum(a) {
                        found.push(differ(&format!("{side:?}: {REFUSALS:?}"), &sum(e), &sum(a)));
                    }
                } else {
                    names.extend(REFUSALS);
                }
            }
            if scenario.is_exact() {
                names.extend(EXACT);
            }
            for name in names {
                if e[name] != a[name] {
                    found.push(differ(&format!("{side:?}: {name}"), &e[name], &a[name]));
                }
            }
            for (name, run) in NEVER.iter().flat_map(|name| [(name, e), (name, a)]) {
                if run[name] != 0 {
                    found.push(format!("{side:?}: {name} is {}; it must be 0", run[name]));
                }
            }
        }
    }
}

fn differ<T: Debug>(name: &str, expected: &T, actual: &T) -> String {
    format!("{name}:\n  expected {expected:?}\n  found    {actual:?}")
}
