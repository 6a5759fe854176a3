//! Host memory as the queue sees it, and the source of received beats.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use fastrand::Rng;
use ferroce_sim::bench::Agent;
use ferroce_sim::random::Chance;
use ferroce_sim::verilator::{Dut, Input, Output, Signal};

/// Address of the rings.
pub(crate) const BASE: u64 = 0x7fed_cba9_8000_0000;

/// Memory from [`BASE`] on.
pub(crate) type Memory = Rc<RefCell<Vec<u8>>>;

fn words(bytes: &[u8]) -> Vec<u32> {
    let word = |b: &[u8]| u32::from_le_bytes(b.try_into().expect("whole words"));
    bytes.chunks(4).map(word).collect()
}

/// A burst whose beats are all there.
struct Burst {
    bytes: Vec<(usize, u8)>,
    /// Cycle in which it becomes visible, and the earliest one of its response.
    visible: u64,
    response: u64,
    done: bool,
    refused: bool,
}

/// Takes bursts. They become visible in any order, and are answered in order after that.
pub(crate) struct Writer {
    addr: Output,
    len: Output,
    valid: Output,
    ready: Input,
    data: Output,
    strb: Output,
    last: Output,
    beat_valid: Output,
    beat_ready: Input,
    written: Input,
    refused: Input,
    lanes: u64,
    memory: Memory,
    pub(crate) pause: Chance,
    /// Most cycles until a burst is visible.
    pub(crate) latency: u64,
    /// A burst that memory refuses, counted from the next one.
    pub(crate) refuse: Option<usize>,
    taking: [bool; 2],
    open: Option<(u64, u64)>,
    bytes: Vec<(usize, u8)>,
    bursts: VecDeque<Burst>,
    answered: u16,
    rng: Rng,
    cycle: u64,
}

impl Writer {
    pub(crate) fn new(dut: &Dut, memory: Memory, pause: Chance) -> Self {
        let output = |name: &str| dut.output(name).expect("a write port");
        Self {
            addr: output("write_payload.addr"),
            len: output("write_payload.len"),
            valid: output("write_valid"),
            ready: dut.input("write_ready").expect("a port"),
            data: output("beats_data"),
            strb: output("beats_strb"),
            last: output("beats_last"),
            beat_valid: output("beats_valid"),
            beat_ready: dut.input("beats_ready").expect("a port"),
            written: dut.input("written").expect("a port"),
            refused: dut.input("write_refused").expect("a port"),
            lanes: Signal::from(output("beats_data")).words() as u64 * 4,
            memory,
            pause,
            latency: 80,
            refuse: None,
            taking: [false; 2],
            open: None,
            bytes: Vec::new(),
            bursts: VecDeque::new(),
            answered: 0,
            rng: Rng::with_seed(3),
            cycle: 0,
        }
    }
}

impl Agent for Writer {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        self.taking = [
            self.open.is_none() && !self.pause.hit(rng),
            !self.pause.hit(rng),
        ];
        dut.set(self.ready, self.taking[0].into());
        dut.set(self.beat_ready, self.taking[1].into());
        for burst in &mut self.bursts {
            if !burst.done && burst.visible <= self.cycle {
                burst.done = true;
                let mut memory = self.memory.borrow_mut();
                for &(at, byte) in burst.bytes.iter().filter(|_| !burst.refused) {
                    memory[at] = byte;
                }
            }
        }
        let is_due = |burst: &Burst| burst.done && burst.response <= self.cycle;
        if self.bursts.front().is_some_and(is_due)
            && let Some(burst) = self.bursts.pop_front()
        {
            self.answered = self.answered.wrapping_add(1);
            dut.set(self.refused, burst.refused.into());
        }
        dut.set(self.written, self.answered.into());
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        self.cycle = cycle + 1;
        if dut.is_set(self.beat_valid) && self.taking[1] {
            let Some((addr, left)) = self.open else {
                return Err("a beat without burst".into());
            };
            let mut data = vec![0; Signal::from(self.data).words()];
            dut.read(self.data, &mut data);
            let strb = dut.get(self.strb);
            for lane in 0..self.lanes {
                if strb >> lane & 1 == 1 {
                    let byte = data[lane as usize / 4].to_le_bytes()[lane as usize % 4];
                    self.bytes.push(((addr + lane - BASE) as usize, byte));
                }
            }
            if dut.is_set(self.last) != (left == 1) {
                return Err(format!("`last` with {left} beats to come"));
            }
            self.open = Some((addr + self.lanes, left - 1));
            if left == 1 {
                self.open = None;
                let visible = cycle + self.rng.u64(1..=self.latency);
                self.bursts.push_back(Burst {
                    bytes: std::mem::take(&mut self.bytes),
                    visible,
                    response: visible + self.rng.u64(..=self.latency),
                    done: false,
                    refused: self.refuse == Some(0),
                });
                self.refuse = self.refuse.and_then(|bursts| bursts.checked_sub(1));
            }
        }
        if dut.is_set(self.valid) && self.taking[0] {
            let (addr, beats) = (dut.get(self.addr), dut.get(self.len) + 1);
            let end = addr + beats * self.lanes - 1;
            if addr / 4096 != end / 4096 || addr % self.lanes != 0 {
                return Err(format!("a burst of {beats} beats at {addr:#x}"));
            }
            self.open = Some((addr, beats));
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        (self.open.is_some() || !self.bursts.is_empty()).then(|| "writes are due".into())
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.open = None;
        self.bursts.clear();
        self.answered = 0;
        dut.set(self.written, 0);
        dut.set(self.refused, 0);
        dut.set(self.ready, 0);
        dut.set(self.beat_ready, 0);
    }
}

/// Answers reads, some of them with an error.
pub(crate) struct Reader {
    addr: Output,
    len: Output,
    valid: Output,
    ready: Input,
    data: Input,
    last: Input,
    error: Input,
    beat_valid: Input,
    lanes: u64,
    memory: Memory,
    pub(crate) pause: Chance,
    pub(crate) latency: u64,
    /// Reads of this address and up to here fail.
    pub(crate) unreadable: std::ops::Range<u64>,
    taking: bool,
    /// Next byte, end, and the cycle of the first beat.
    open: Option<(u64, u64, u64)>,
    cycle: u64,
}

impl Reader {
    pub(crate) fn new(dut: &Dut, memory: Memory, pause: Chance) -> Self {
        let input = |name: &str| dut.input(name).expect("a read port");
        let output = |name: &str| dut.output(name).expect("a read port");
        Self {
            addr: output("read_payload.addr"),
            len: output("read_payload.len"),
            valid: output("read_valid"),
            ready: input("read_ready"),
            data: input("beat_data"),
            last: input("beat_last"),
            error: input("beat_error"),
            beat_valid: input("beat_valid"),
            lanes: input("beat_data").width() as u64 / 8,
            memory,
            pause,
            latency: 40,
            unreadable: 0..0,
            taking: false,
            open: None,
            cycle: 0,
        }
    }
}

impl Agent for Reader {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        self.taking = !self.pause.hit(rng);
        dut.set(self.ready, self.taking.into());
        let mut bytes: Vec<u8> = (0..self.lanes).map(|_| rng.u8(..)).collect();
        let now = self
            .open
            .filter(|open| open.2 <= self.cycle && !self.pause.hit(rng));
        dut.set(self.beat_valid, now.is_some().into());
        dut.set(self.last, rng.bool().into());
        dut.set(self.error, rng.bool().into());
        if let Some((at, end, first)) = now {
            let start = at / self.lanes * self.lanes;
            let next = start + self.lanes;
            let failed = self.unreadable.contains(&at);
            if !failed {
                let memory = self.memory.borrow();
                bytes.copy_from_slice(&memory[(start - BASE) as usize..(next - BASE) as usize]);
            }
            dut.set(self.error, failed.into());
            dut.set(self.last, (next >= end).into());
            self.open = (next < end).then_some((next, end, first));
        }
        dut.write(self.data, &words(&bytes));
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        self.cycle = cycle + 1;
        if dut.is_set(self.valid) && self.taking {
            let (addr, len) = (dut.get(self.addr), dut.get(self.len));
            if self.open.is_some() || len == 0 {
                return Err("one read at a time".into());
            }
            self.open = Some((addr, addr + len, cycle + 1 + cycle % self.latency));
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        self.open.map(|_| "a read is due".into())
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.open = None;
        dut.set(self.ready, 0);
        dut.set(self.beat_valid, 0);
    }
}

/// Received beats with their verdict.
pub(crate) struct Raw {
    data: Input,
    valid: Input,
    last: Input,
    not_roce: Input,
    bytes: Input,
    lanes: usize,
    pub(crate) idle: Chance,
    /// Frames, and whether they are for the host.
    pub(crate) queue: VecDeque<(Vec<u8>, bool)>,
    at: usize,
}

impl Raw {
    pub(crate) fn new(dut: &Dut, idle: Chance) -> Self {
        let input = |name: &str| dut.input(name).expect("a port");
        Self {
            data: input("raw_data"),
            valid: input("raw.valid"),
            last: input("raw.last"),
            not_roce: input("raw.not_roce"),
            bytes: input("raw.bytes"),
            lanes: input("raw_data").width() / 8,
            idle,
            queue: VecDeque::new(),
            at: 0,
        }
    }
}

impl Agent for Raw {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        let mut beat: Vec<u8> = (0..self.lanes).map(|_| rng.u8(..)).collect();
        for port in [self.valid, self.last, self.not_roce, self.bytes] {
            dut.set(port, 0);
        }
        if !self.queue.is_empty() && !self.idle.hit(rng) {
            let (frame, take) = &self.queue[0];
            let end = (self.at + self.lanes).min(frame.len());
            let bytes = &frame[self.at..end];
            beat[..bytes.len()].copy_from_slice(bytes);
            let last = end == frame.len();
            dut.set(self.valid, 1);
            dut.set(self.bytes, bytes.len() as u64);
            dut.set(self.last, last.into());
            dut.set(self.not_roce, (last && *take).into());
            self.at = end;
            if last {
                self.queue.pop_front();
                self.at = 0;
            }
        }
        dut.write(self.data, &words(&beat));
    }

    fn observe(&mut self, _: &Dut, _: u64) -> Result<(), String> {
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        (!self.queue.is_empty()).then(|| "frames are to come in".into())
    }

    fn reset(&mut self, dut: &mut Dut) {
        dut.set(self.valid, 0);
        dut.set(self.last, 0);
        dut.set(self.not_roce, 0);
    }
}
