//! Neighbours of `scatter`: the memory region table and `dma_write`.

use std::collections::VecDeque;
use std::rc::Rc;

use fastrand::Rng;
use ferroce_hdl::bus::axi::burst_bytes;
use ferroce_hdl::bus::dma::MR_LATENCY;
use ferroce_proto::abi::mr::{MrCtx, Right};
use ferroce_sim::bench::Agent;
use ferroce_sim::memory::{HostMemory, Ranges};
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::{Dut, Input, Output};

use super::super::common::bytes;
use super::model::{allowed, invalidate};

/// Watches `owner`: each placement with payload, when its last burst is handed over.
pub(super) struct Owners {
    port: Output,
    room: Input,
    /// As packed: queue pair, READ data, incarnation, unreliable, bursts up to its end.
    pub(super) expected: VecDeque<u64>,
}

impl Owners {
    pub(super) fn new(dut: &Dut) -> Self {
        Self {
            port: dut.output("owner").unwrap(),
            room: dut.input("room").unwrap(),
            expected: VecDeque::new(),
        }
    }
}

impl Agent for Owners {
    fn drive(&mut self, dut: &mut Dut, _rng: &mut Rng) {
        dut.set(self.room, 1);
    }

    fn observe(&mut self, dut: &Dut, _cycle: u64) -> Result<(), String> {
        let seen = dut.get(self.port);
        if seen >> 36 == 0 {
            return Ok(());
        }
        let (seen, expected) = (seen & ((1 << 36) - 1), self.expected.pop_front());
        match expected == Some(seen) {
            true => Ok(()),
            false => Err(format!("owner {seen:#x}, expected {expected:x?}")),
        }
    }

    fn pending(&self) -> Option<String> {
        let owner = self.expected.front()?;
        Some(format!("the owner {owner:#x}"))
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.expected.clear();
        dut.set(self.room, 1);
    }
}

/// Answers region checks at the ports `mr` and invalidates keys at the ports `inv`.
pub(super) struct Regions {
    request: [Output; 5],
    valid: Output,
    ok: Input,
    done: Input,
    table: Vec<MrCtx>,
    /// Cycle and answer.
    answers: VecDeque<(u64, bool)>,
    now: u64,
    inv_request: [Output; 2],
    inv_valid: Output,
    inv_ok: Input,
    inv_done: Input,
    /// Cycle and answer.
    invalidation: Option<(u64, bool)>,
}

impl Regions {
    pub(super) fn new(dut: &Dut, table: Vec<MrCtx>) -> Self {
        let field = |f: &str| dut.output(&format!("mr_request.{f}")).unwrap();
        Self {
            request: ["key", "pd", "addr", "len", "right"].map(field),
            valid: dut.output("mr_valid").unwrap(),
            ok: dut.input("mr_ok").unwrap(),
            done: dut.input("mr_done").unwrap(),
            table,
            answers: VecDeque::new(),
            now: 0,
            inv_request: ["key", "pd"].map(|f| dut.output(&format!("inv_request.{f}")).unwrap()),
            inv_valid: dut.output("inv_valid").unwrap(),
            inv_ok: dut.input("inv_ok").unwrap(),
            inv_done: dut.input("inv_done").unwrap(),
            invalidation: None,
        }
    }
}

impl Agent for Regions {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        let due = self
            .answers
            .front()
            .filter(|answer| answer.0 <= self.now)
            .copied();
        if due.is_some() {
            self.answers.pop_front();
        }
        dut.set(self.done, due.is_some().into());
        dut.set(self.ok, due.map_or(rng.bool(), |(_, ok)| ok).into());
        let due = self
            .invalidation
            .filter(|&(cycle, _)| cycle <= self.now && rng.bool());
        if due.is_some() {
            self.invalidation = None;
        }
        dut.set(self.inv_done, due.is_some().into());
        dut.set(self.inv_ok, due.map_or(rng.bool(), |(_, ok)| ok).into());
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        self.now = cycle + 1;
        if dut.is_set(self.valid) {
            let [key, pd, addr, len, right] = self.request.map(|f| dut.get(f));
            let remote = right == Right::RemoteWrite as u64;
            if !remote && right != Right::LocalWrite as u64 {
                return Err(format!("right {right} asked for"));
            }
            let ok = allowed(&self.table, key as u32, pd as u32, addr, len, remote);
            self.answers.push_back((cycle + MR_LATENCY as u64, ok));
        }
        if dut.is_set(self.inv_valid) {
            if self.invalidation.is_some() {
                return Err("a key to invalidate before the answer to the last".into());
            }
            let [key, pd] = self.inv_request.map(|f| dut.get(f) as u32);
            let ok = invalidate(&mut self.table, key, pd);
            self.invalidation = Some((cycle + 5, ok));
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        None
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.answers.clear();
        self.invalidation = None;
        dut.set(self.done, 0);
        dut.set(self.inv_done, 0);
    }
}

/// Takes write bursts at the ports `command` and `beats` and puts them into memory.
pub(super) struct Writer {
    addr: Output,
    length: Output,
    asked: Output,
    grant: Input,
    data: Output,
    strb: Output,
    last: Output,
    offered: Output,
    ready: Input,
    memory: Rc<Ranges>,
    lanes: u64,
    gaps: u8,
    ready_now: (bool, bool),
    /// Bursts that were granted: next byte, beats left.
    bursts: VecDeque<(u64, u64)>,
    pub(super) commands: Vec<u64>,
    pub(super) beats: Vec<u64>,
    pub(super) ended: u64,
}

impl Writer {
    pub(super) fn new(dut: &Dut, memory: Rc<Ranges>, lanes: usize, pauses: Pauses) -> Self {
        let output = |name: &str| dut.output(name).unwrap();
        Self {
            addr: output("command_payload.addr"),
            length: output("command_payload.len"),
            asked: output("command_valid"),
            grant: dut.input("command_ready").unwrap(),
            data: output("beats_data"),
            strb: output("beats_strb"),
            last: output("beats_last"),
            offered: output("beats_valid"),
            ready: dut.input("beats_ready").unwrap(),
            memory,
            lanes: lanes as u64,
            gaps: if pauses == Pauses::NONE { 0 } else { 80 },
            ready_now: (false, false),
            bursts: VecDeque::new(),
            commands: vec![],
            beats: vec![],
            ended: 0,
        }
    }

    fn beat(&mut self, data: &[u8], strb: u64, last: bool) -> Result<(), String> {
        let (at, left) = self
            .bursts
            .front_mut()
            .ok_or("a beat before its command was granted")?;
        let lane = *at % self.lanes;
        let bytes = u64::from(strb.count_ones());
        let run = if bytes == 64 {
            u64::MAX
        } else {
            ((1 << bytes) - 1) << lane
        };
        if bytes == 0 || strb != run {
            return Err(format!("strobes {strb:#x} for bytes from {at:#x} on"));
        }
        let data = &data[lane as usize..][..bytes as usize];
        self.memory
            .write(*at, data)
            .map_err(|fault| fault.to_string())?;
        *at += bytes;
        *left -= 1;
        if last != (*left == 0) || (*left > 0 && *at % self.lanes != 0) {
            return Err(format!(
                "last is {last} with {left} beats to come, at {at:#x}"
            ));
        }
        if last {
            self.bursts.pop_front();
            self.ended += 1;
        }
        Ok(())
    }
}

impl Agent for Writer {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        // As `dma_write` does: beats only of bursts that were granted.
        let grant = rng.u8(..) >= self.gaps && self.bursts.len() < 3;
        self.ready_now = (grant, rng.u8(..) >= self.gaps && !self.bursts.is_empty());
        dut.set(self.grant, self.ready_now.0.into());
        dut.set(self.ready, self.ready_now.1.into());
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        if dut.is_set(self.offered) && self.ready_now.1 {
            let mut words = vec![0; self.lanes as usize / 4];
            dut.read(self.data, &mut words);
            self.beats.push(cycle);
            self.beat(&bytes(&words), dut.get(self.strb), dut.is_set(self.last))?;
        }
        if dut.is_set(self.asked) && self.ready_now.0 {
            let (addr, beats) = (dut.get(self.addr), dut.get(self.length) + 1);
            let window = burst_bytes(self.lanes as usize) as u64;
            let first = addr & !(self.lanes - 1);
            if first / window != (first + (beats - 1) * self.lanes) / window {
                return Err(format!("a burst of {beats} beats at {addr:#x}"));
            }
            self.commands.push(cycle);
            self.bursts.push_back((addr, beats));
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        let left = self.bursts.len();
        (left > 0).then(|| format!("{left} bursts have not ended"))
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.bursts.clear();
        dut.set(self.grant, 0);
        dut.set(self.ready, 0);
    }
}
