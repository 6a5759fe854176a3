//! A stand-in for `dma_read` and the memory behind it: one client, answers in order.

use std::collections::VecDeque;

use fastrand::Rng;
use ferroce_sim::bench::Agent;
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::{Dut, Input, Output};

use super::common::{byte_at, words};

/// Addresses from here on cannot be read.
pub(crate) const UNMAPPED: u64 = 0xffff_0000_0000_0000;

/// Answers the requests of a client at the ports `request` and `beats`.
pub(crate) struct Reader {
    addr: Output,
    len: Output,
    asked: Output,
    ready: Input,
    data: Input,
    last: Input,
    error: Input,
    valid: Input,
    lanes: u64,
    /// Cycles from a request to its first beat.
    latency: u64,
    /// Chance of a gap before a request is taken or a beat comes, in 1/256.
    gaps: u8,
    ready_now: bool,
    /// Beats come in even cycles alone, or in odd ones.
    odd: Option<bool>,
    now: u64,
    /// Beats to come: earliest cycle, address, last.
    beats: VecDeque<(u64, u64, bool)>,
    pub(crate) last_beat: u64,
    pub(crate) first_request: Option<u64>,
}

impl Reader {
    /// Client `number`; answers `latency` cycles (at least 1) after a request.
    pub(crate) fn new(
        dut: &Dut,
        number: usize,
        lanes: usize,
        latency: u64,
        pauses: Pauses,
    ) -> Self {
        let input = |name: &str| dut.input(name).unwrap();
        let output = |name: &str| dut.output(name).unwrap();
        let request = |name: &str| format!("request_{number}_{name}");
        let beats = |name: &str| format!("beats_{number}_{name}");
        Self {
            addr: output(&request("payload.addr")),
            len: output(&request("payload.len")),
            asked: output(&request("valid")),
            ready: input(&request("ready")),
            data: input(&beats("data")),
            last: input(&beats("last")),
            error: input(&beats("error")),
            valid: input(&beats("valid")),
            lanes: lanes as u64,
            latency: latency.max(1),
            gaps: if pauses == Pauses::NONE { 0 } else { 80 },
            ready_now: false,
            odd: None,
            now: 0,
            beats: VecDeque::new(),
            last_beat: 0,
            first_request: None,
        }
    }

    /// Leaves every other cycle to another client.
    pub(crate) fn take_turns(&mut self, odd: bool) {
        self.odd = Some(odd);
    }
}

impl Agent for Reader {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        self.ready_now = rng.u8(..) >= self.gaps;
        dut.set(self.ready, self.ready_now.into());
        let due = self.beats.front().filter(|beat| beat.0 <= self.now);
        let due = due.filter(|_| self.odd.is_none_or(|odd| odd == (self.now % 2 == 1)));
        let due = due.filter(|_| rng.u8(..) >= self.gaps).copied();
        dut.set(self.valid, due.is_some().into());
        let (addr, last) = due.map_or((rng.u64(..), rng.bool()), |(_, addr, last)| (addr, last));
        let bytes: Vec<_> = (0..self.lanes)
            .map(|i| byte_at(addr.wrapping_add(i)))
            .collect();
        dut.write(self.data, &words(&bytes));
        dut.set(self.last, last.into());
        dut.set(self.error, (addr >= UNMAPPED).into());
        if due.is_some() {
            self.beats.pop_front();
        }
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        if dut.is_set(self.valid) {
            self.last_beat = cycle;
        }
        self.now = cycle + 1;
        if dut.is_set(self.asked) {
            self.first_request.get_or_insert(cycle);
        }
        if dut.is_set(self.asked) && self.ready_now {
            let (addr, end) = (dut.get(self.addr), dut.get(self.addr) + dut.get(self.len));
            let mut at = addr & !(self.lanes - 1);
            while at < end {
                let next = at + self.lanes;
                self.beats
                    .push_back((cycle + self.latency, at, next >= end));
                at = next;
            }
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        (!self.beats.is_empty()).then(|| "reads are under way".into())
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.beats.clear();
        dut.set(self.valid, 0);
        dut.set(self.ready, 0);
    }
}
