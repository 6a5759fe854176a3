//! `dma_read` and the consumer records behind it, as `cq_write` sees them.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use fastrand::Rng;
use ferroce_sim::bench::Agent;
use ferroce_sim::random::{Chance, Delay};
use ferroce_sim::verilator::{Dut, Input, Output};

/// Consumer records by address.
pub(crate) type Records = Rc<RefCell<HashMap<u64, u32>>>;

/// A read that was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) addr: u64,
    /// Cycle in which the read was taken.
    pub(crate) asked: u64,
    /// What it said; `None` if it failed.
    pub(crate) value: Option<u32>,
}

struct Read {
    addr: u64,
    asked: u64,
    due: u64,
    /// What memory held at the start, if that is what the answer tells.
    early: Option<u32>,
}

/// Answers reads of consumer records, the value being any that was there meanwhile.
pub(crate) struct Recorder {
    addr: Output,
    len: Output,
    asked: Output,
    ready: Input,
    data: Input,
    last: Input,
    error: Input,
    valid: Input,
    lanes: u64,
    records: Records,
    pub(crate) latency: Delay,
    pub(crate) failure: Chance,
    ready_now: bool,
    cycle: u64,
    under_way: Option<Read>,
    /// Reads answered, for the bench to take.
    pub(crate) looks: VecDeque<Look>,
}

impl Recorder {
    pub(crate) fn new(dut: &Dut, records: Records) -> Self {
        let input = |name: &str| dut.input(name).expect("a read port");
        let output = |name: &str| dut.output(name).expect("a read port");
        Self {
            addr: output("read_payload.addr"),
            len: output("read_payload.len"),
            asked: output("read_valid"),
            ready: input("read_ready"),
            data: input("beat_data"),
            last: input("beat_last"),
            error: input("beat_error"),
            valid: input("beat_valid"),
            lanes: input("beat_data").width() as u64 / 8,
            records,
            latency: Delay::between(5, 60),
            failure: Chance::NEVER,
            ready_now: false,
            cycle: 0,
            under_way: None,
            looks: VecDeque::new(),
        }
    }

    /// A read was taken and is not answered.
    pub(crate) fn is_reading(&self) -> bool {
        self.under_way.is_some()
    }
}

impl Agent for Recorder {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        self.ready_now = rng.u8(..) < 200;
        dut.set(self.ready, self.ready_now.into());
        let mut words: Vec<u32> = (0..self.lanes / 4).map(|_| rng.u32(..)).collect();
        let due = self.under_way.take_if(|read| read.due <= self.cycle);
        dut.set(self.valid, due.is_some().into());
        dut.set(self.last, (due.is_some() || rng.bool()).into());
        dut.set(self.error, rng.bool().into());
        if let Some(read) = due {
            let failed = self.failure.hit(rng);
            let value = read.early.unwrap_or(self.records.borrow()[&read.addr]);
            words[(read.addr % self.lanes / 4) as usize] = if failed { rng.u32(..) } else { value };
            dut.set(self.error, failed.into());
            self.looks.push_back(Look {
                addr: read.addr,
                asked: read.asked,
                value: (!failed).then_some(value),
            });
        }
        dut.write(self.data, &words);
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        self.cycle = cycle + 1;
        if dut.is_set(self.asked) && self.ready_now {
            let (addr, len) = (dut.get(self.addr), dut.get(self.len));
            if self.under_way.is_some() || len != 4 {
                return Err(format!("read of {len} bytes, expected 4 and one at a time"));
            }
            let Some(&value) = self.records.borrow().get(&addr) else {
                return Err(format!("{addr:#x} is no consumer record"));
            };
            let mut rng = Rng::with_seed(cycle);
            self.under_way = Some(Read {
                addr,
                asked: cycle,
                due: cycle + self.latency.draw(&mut rng),
                early: rng.bool().then_some(value),
            });
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        self.under_way.as_ref().map(|_| "a read is due".into())
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.under_way = None;
        dut.set(self.valid, 0);
        dut.set(self.ready, 0);
    }
}
