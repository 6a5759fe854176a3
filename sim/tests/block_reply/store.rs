//! Stand-in for `gather`: room for payload, and its reads.

use std::collections::VecDeque;

use fastrand::Rng;
use ferroce_sim::bench::Agent;
use ferroce_sim::verilator::{Dut, Input, Output};

/// The store of payload: says when there is room, and reads what it is asked for. It looks that no payload waits long
/// between its check, with which room is taken, and its read.
pub(crate) struct Store {
    room: Input,
    reserve: [Output; 3],
    give_back: [Output; 3],
    asked: Output,
    taken: Input,
    piece: [Output; 2],
    read: Input,
    counts: [Output; 4],
    /// Chance that there is room in a cycle, in 1/256.
    pub(crate) roomy: u8,
    /// Cycles that payload may take from its check to `gather`; what is asked of it may wait longer.
    pub(crate) patience: u64,
    /// Payload that was checked: cycle, lane, bytes.
    checked: VecDeque<(u64, u64, u64)>,
    /// Cycles in which reads are answered.
    reads: VecDeque<u64>,
    pub(crate) latency: u64,
    now: u64,
    /// Reads begun, reads over, atomics begun, atomics over.
    pub(crate) accesses: [u64; 4],
}

impl Store {
    pub(crate) fn new(dut: &Dut) -> Self {
        let ports = |name: &str| {
            ["valid", "payload.lane", "payload.plen"]
                .map(|field| dut.output(&format!("{name}.{field}")).unwrap())
        };
        let output = |name: &str| dut.output(name).unwrap();
        Self {
            room: dut.input("payload_room").unwrap(),
            reserve: ports("reserve"),
            give_back: ports("give_back"),
            asked: output("gather_valid"),
            taken: dut.input("gather_ready").unwrap(),
            piece: ["gather_payload.lane", "gather_payload.len"].map(output),
            read: dut.input("payload_read").unwrap(),
            counts: ["reads_begun", "reads_over", "atomics_begun", "atomics_over"]
                .map(|name| output(&format!("accesses.{name}"))),
            roomy: 255,
            patience: u64::MAX,
            checked: VecDeque::new(),
            reads: VecDeque::new(),
            latency: 40,
            now: 0,
            accesses: [0; 4],
        }
    }
}

impl Agent for Store {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        dut.set(self.room, (rng.u8(..) <= self.roomy).into());
        let due = self.reads.front().is_some_and(|&read| read <= self.now);
        dut.set(self.read, due.into());
        if due {
            self.reads.pop_front();
        }
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        self.now = cycle + 1;
        self.accesses = self.counts.map(|count| dut.get(count));
        let [valid, lane, plen] = self.give_back;
        let back = dut.is_set(valid).then(|| [dut.get(lane), dut.get(plen)]);
        let asked = dut.is_set(self.asked) && dut.is_set(self.taken);
        let asked = asked.then(|| self.piece.map(|port| dut.get(port)));
        if asked.is_some() {
            self.reads.push_back(cycle + self.latency);
        }
        for [lane, plen] in [asked, back].into_iter().flatten() {
            let at = self
                .checked
                .iter()
                .position(|&(_, of, bytes)| (of, bytes) == (lane, plen));
            let at = at.ok_or(format!("{plen} bytes have no room"))?;
            self.checked.remove(at);
        }
        let [valid, lane, plen] = self.reserve;
        if dut.is_set(valid) {
            self.checked
                .push_back((cycle, dut.get(lane), dut.get(plen)));
        }
        match self.checked.front() {
            Some(first) if cycle - first.0 > self.patience => {
                Err(format!("{} bytes were checked and are not read", first.2))
            }
            _ => Ok(()),
        }
    }

    fn pending(&self) -> Option<String> {
        (!self.checked.is_empty()).then(|| "payload was checked".into())
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.checked.clear();
        self.reads.clear();
        dut.set(self.read, 0);
    }
}
