//! Stand-ins for what is around the block: host memory for atomics, the table of memory regions.

use std::collections::{BTreeMap, VecDeque};

use fastrand::Rng;
use ferroce_hdl::bus::dma::MR_LATENCY;
use ferroce_sim::bench::Agent;
use ferroce_sim::verilator::{Dut, Input, Output};

/// Host memory that executes reads and writes when it likes: a read sees what is there at some time between its request
/// and its answer, a write takes effect at some time before its response. Answers of each kind come in order.
pub(crate) struct Memory {
    ports: Ports,
    lanes: u64,
    /// Least and most cycles of an access.
    pub(crate) latency: (u64, u64),
    /// Chance that a request waits in a cycle, in 1/256.
    pub(crate) gaps: u8,
    /// Values of 8 bytes; others are 0.
    pub(crate) values: BTreeMap<u64, u64>,
    /// Addresses from here on cannot be read.
    pub(crate) unmapped: u64,
    /// Addresses from here on cannot be written.
    pub(crate) read_only: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    /// Most accesses under way to one address, and to all.
    pub(crate) most: usize,
    flying: Vec<u64>,
    read_ready: bool,
    write_ready: bool,
    beat_ready: bool,
    now: u64,
    /// Reads: address, cycle in which it looks, value once it did, cycle of the answer.
    under_way: VecDeque<(u64, u64, Option<u64>, u64)>,
    commands: VecDeque<u64>,
    /// Writes: address, value, cycle of effect, cycle of the response.
    pending: VecDeque<(u64, u64, u64, u64)>,
    written: u64,
    /// The last one was refused.
    refused: bool,
    rng: Rng,
}

struct Ports {
    addr: Output,
    len: Output,
    asked: Output,
    ready: Input,
    data: Input,
    last: Input,
    error: Input,
    valid: Input,
    write_addr: Output,
    write_len: Output,
    write: Output,
    write_ready: Input,
    beat_data: Output,
    beat_strb: Output,
    beat: Output,
    beat_ready: Input,
    written: Input,
    refused: Input,
}

impl Memory {
    pub(crate) fn new(dut: &Dut, lanes: usize) -> Self {
        let input = |name: &str| dut.input(name).unwrap();
        let output = |name: &str| dut.output(name).unwrap();
        Self {
            ports: Ports {
                addr: output("read_payload.addr"),
                len: output("read_payload.len"),
                asked: output("read_valid"),
                ready: input("read_ready"),
                data: input("beat_data"),
                last: input("beat_last"),
                error: input("beat_error"),
                valid: input("beat_valid"),
                write_addr: output("write_payload.addr"),
                write_len: output("write_payload.len"),
                write: output("write_valid"),
                write_ready: input("write_ready"),
                beat_data: output("beats_data"),
                beat_strb: output("beats_strb"),
                beat: output("beats_valid"),
                beat_ready: input("beats_ready"),
                written: input("written"),
                refused: input("refused"),
            },
            lanes: lanes as u64,
            latency: (6, 60),
            gaps: 0,
            values: BTreeMap::new(),
            unmapped: u64::MAX,
            read_only: u64::MAX,
            reads: 0,
            writes: 0,
            most: 0,
            flying: Vec::new(),
            read_ready: false,
            write_ready: false,
            beat_ready: false,
            now: 0,
            under_way: VecDeque::new(),
            commands: VecDeque::new(),
            pending: VecDeque::new(),
            written: 0,
            refused: false,
            rng: Rng::with_seed(7),
        }
    }

    fn value(&self, addr: u64) -> u64 {
        self.values.get(&addr).copied().unwrap_or(0)
    }
}

impl Agent for Memory {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        let p = &self.ports;
        self.read_ready = rng.u8(..) >= self.gaps;
        self.write_ready = rng.u8(..) >= self.gaps;
        self.beat_ready = rng.u8(..) >= self.gaps && !self.commands.is_empty();
        dut.set(p.ready, self.read_ready.into());
        dut.set(p.write_ready, self.write_ready.into());
        dut.set(p.beat_ready, self.beat_ready.into());
        dut.set(p.written, self.written & 0xffff);
        dut.set(p.refused, self.refused.into());
        let due = self.under_way.front().filter(|read| read.3 <= self.now);
        dut.set(p.valid, due.is_some().into());
        let mut beat: Vec<u32> = (0..self.lanes / 4).map(|_| rng.u32(..)).collect();
        dut.set(p.last, 1);
        if let Some(&(addr, _, value, _)) = due {
            let value = value.expect("it looked before it answers");
            let word = (addr % self.lanes / 4) as usize;
            beat[word] = value as u32;
            beat[word + 1] = (value >> 32) as u32;
            dut.set(p.error, (addr >= self.unmapped).into());
            self.under_way.pop_front();
        }
        dut.write(p.data, &beat);
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        let p = &self.ports;
        let (min, max) = self.latency;
        if dut.is_set(p.asked) && self.read_ready {
            let addr = dut.get(p.addr);
            if dut.get(p.len) != 8 || !addr.is_multiple_of(8) {
                return Err(format!("read of {} bytes at {addr:#x}", dut.get(p.len)));
            }
            if self.flying.contains(&addr) || self.under_way.iter().any(|read| read.0 == addr) {
                return Err(format!(
                    "{addr:#x} is read while an atomic of it is under way"
                ));
            }
            let before = self.under_way.back().map_or(0, |read| read.3);
            let answer = (cycle + self.rng.u64(min..=max)).max(before + 1);
            let look = self.rng.u64(cycle..answer);
            self.under_way.push_back((addr, look, None, answer));
            self.reads += 1;
        }
        if dut.is_set(p.write) && self.write_ready {
            if dut.get(p.write_len) != 0 {
                return Err("an atomic writes one beat".into());
            }
            self.commands.push_back(dut.get(p.write_addr));
            self.flying.push(dut.get(p.write_addr));
        }
        if dut.is_set(p.beat) && self.beat_ready {
            let addr = self
                .commands
                .pop_front()
                .expect("beats are taken behind commands");
            let lane = addr % self.lanes;
            if dut.get(p.beat_strb) != 0xff << lane {
                return Err(format!("strobes {:#x} at {addr:#x}", dut.get(p.beat_strb)));
            }
            let mut beat = vec![0; (self.lanes / 4) as usize];
            dut.read(p.beat_data, &mut beat);
            let word = (lane / 4) as usize;
            let value = u64::from(beat[word]) | u64::from(beat[word + 1]) << 32;
            let before = self.pending.back().map_or(0, |write| write.3);
            let response = (cycle + self.rng.u64(min..=max)).max(before + 1);
            let effect = self.rng.u64(cycle..response);
            self.pending.push_back((addr, value, effect, response));
            self.writes += 1;
        }
        self.most = self.most.max(self.under_way.len() + self.pending.len());
        for i in 0..self.under_way.len() {
            let (addr, look, value, _) = self.under_way[i];
            if value.is_none() && look <= cycle {
                self.under_way[i].2 = Some(self.value(addr));
            }
        }
        for &(addr, value, effect, _) in &self.pending {
            if effect == cycle && addr < self.read_only {
                self.values.insert(addr, value);
            }
        }
        // a response a cycle
        if self.pending.front().is_some_and(|write| write.3 <= cycle) {
            let (addr, ..) = self.pending.pop_front().expect("just seen");
            let at = self.flying.iter().position(|&flying| flying == addr);
            self.flying.swap_remove(at.expect("it is under way"));
            self.written += 1;
            self.refused = addr >= self.read_only;
        }
        self.now = cycle + 1;
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        let left = self.under_way.len() + self.pending.len() + self.commands.len();
        (left > 0).then(|| "atomics are under way".into())
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.under_way.clear();
        self.commands.clear();
        self.pending.clear();
        self.flying.clear();
        self.written = 0;
        dut.set(self.ports.valid, 0);
        dut.set(self.ports.written, 0);
        dut.set(self.ports.refused, 0);
    }
}

/// A memory region.
#[derive(Clone, Copy)]
pub(crate) struct Region {
    pub(crate) key: u32,
    pub(crate) pd: u32,
    pub(crate) base: u64,
    pub(crate) last: u64,
    pub(crate) read: bool,
    pub(crate) atomic: bool,
}

/// The table of memory regions.
pub(crate) struct Regions {
    fields: [Output; 5],
    valid: Output,
    ok: Input,
    done: Input,
    pub(crate) list: Vec<Region>,
    answers: VecDeque<(u64, bool)>,
    now: u64,
}

impl Regions {
    pub(crate) fn new(dut: &Dut) -> Self {
        Self {
            fields: ["key", "pd", "addr", "len", "right"]
                .map(|field| dut.output(&format!("mr_request.{field}")).unwrap()),
            valid: dut.output("mr_valid").unwrap(),
            ok: dut.input("mr_ok").unwrap(),
            done: dut.input("mr_done").unwrap(),
            list: Vec::new(),
            answers: VecDeque::new(),
            now: 0,
        }
    }
}

impl Agent for Regions {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        let due = self.answers.front().filter(|answer| answer.0 == self.now);
        dut.set(self.done, due.is_some().into());
        dut.set(self.ok, due.map_or(rng.bool(), |answer| answer.1).into());
        if due.is_some() {
            self.answers.pop_front();
        }
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        self.now = cycle + 1;
        if !dut.is_set(self.valid) {
            return Ok(());
        }
        let [key, pd, addr, len, right] = self.fields.map(|field| dut.get(field));
        let ok = len == 0
            || self.list.iter().any(|region| {
                u64::from(region.key) == key
                    && u64::from(region.pd) == pd
                    && region.base <= addr
                    && addr + (len - 1) <= region.last
                    && match right {
                        3 => region.read,
                        4 => region.atomic,
                        _ => false,
                    }
            });
        self.answers.push_back((cycle + MR_LATENCY as u64, ok));
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        (!self.answers.is_empty()).then(|| "checks are under way".into())
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.answers.clear();
        dut.set(self.done, 0);
    }
}
