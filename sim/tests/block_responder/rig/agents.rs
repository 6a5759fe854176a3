//! Neighbours of the responder: the memory region table, commands that ask, counters.

use std::collections::{BTreeMap, VecDeque};

use fastrand::Rng;
use ferroce_sim::bench::Agent;
use ferroce_sim::verilator::{Dut, Input, Output};

use crate::reference::{Packet, wants};

/// Cycles from a request to its answer in the memory region table.
const MR_CYCLES: usize = 4;

/// Whether the region table of the test allows an access; most are allowed.
fn allowed(rkey: u32, pd: u32, addr: u64, len: u32, right: u64) -> bool {
    let mix = (u64::from(rkey) << 32 | u64::from(pd))
        ^ addr.rotate_left(17)
        ^ u64::from(len)
        ^ right.rotate_right(9);
    len == 0 || mix.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61 != 0
}

/// Whether it allows what a packet asks for.
pub(crate) fn rkey_ok(packet: &Packet, pd: u32) -> bool {
    wants(packet).is_none_or(|(len, right)| allowed(packet.rkey, pd, packet.ext, len, right))
}

/// The check port of the memory region table.
pub(super) struct Regions {
    request: [Output; 5],
    valid: Output,
    ok: Input,
    done: Input,
    answers: VecDeque<Option<bool>>,
}

impl Regions {
    pub(super) fn new(dut: &Dut) -> Self {
        let output = |name: &str| dut.output(name).expect("the check port");
        let fields = ["key", "pd", "addr", "len", "right"];
        Self {
            request: fields.map(|field| output(&format!("check_request.{field}"))),
            valid: output("check_valid"),
            ok: dut.input("check_ok").expect("the check port"),
            done: dut.input("check_done").expect("the check port"),
            answers: VecDeque::from([None; MR_CYCLES]),
        }
    }
}

impl Agent for Regions {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        let answer = self.answers.pop_front().expect("filled every cycle");
        dut.set(self.done, answer.is_some().into());
        dut.set(self.ok, answer.unwrap_or(rng.bool()).into());
    }

    fn observe(&mut self, dut: &Dut, _: u64) -> Result<(), String> {
        let [key, pd, addr, len, right] = self.request.map(|field| dut.get(field));
        let allowed_now = allowed(key as u32, pd as u32, addr, len as u32, right);
        self.answers
            .push_back(dut.is_set(self.valid).then_some(allowed_now));
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        None
    }

    fn reset(&mut self, _: &mut Dut) {}
}

/// Counters by name.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

/// Answers to commands, and counters.
pub(super) struct Watch {
    query_valid: Output,
    query: [Output; 4],
    pub(super) answers: VecDeque<[u64; 4]>,
    counters: Vec<(&'static str, Output)>,
    pub(super) counts: Counts,
}

pub(super) const COUNTERS: [&str; 16] = [
    "rx_unknown_qp",
    "rx_qp_state",
    "rx_wrong_transport",
    "rx_pkey_violations",
    "rx_wrong_address",
    "rx_qkey_violations",
    "rx_read_requests",
    "rx_atomic_requests",
    "rx_write_requests",
    "rx_send_requests",
    "out_of_sequence",
    "duplicate_request",
    "rnr_nak_sent",
    "invalid_request_errors",
    "access_errors",
    "operational_errors",
];

impl Watch {
    pub(super) fn new(dut: &Dut) -> Self {
        let output = |name: String| dut.output(&name).expect("an output of the responder");
        let fields = ["rq_state", "rq_psn", "msn", "rq_index"];
        Self {
            query_valid: output("query_valid".into()),
            query: fields.map(|field| output(format!("query.{field}"))),
            answers: VecDeque::new(),
            counters: COUNTERS
                .iter()
                .map(|name| (*name, output(format!("counts.{name}"))))
                .collect(),
            counts: Counts::new(),
        }
    }
}

impl Agent for Watch {
    fn drive(&mut self, _: &mut Dut, _: &mut Rng) {}

    fn observe(&mut self, dut: &Dut, _: u64) -> Result<(), String> {
        if dut.is_set(self.query_valid) {
            self.answers
                .push_back(self.query.map(|field| dut.get(field)));
        }
        for (name, output) in &self.counters {
            *self.counts.entry(name).or_default() += dut.get(*output);
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        None
    }

    fn reset(&mut self, _: &mut Dut) {}
}
