//! Host memory and the memory region table, as the requester sees them.

use std::collections::{BTreeMap, VecDeque};

use ferroce_sim::bench::Agent;
use ferroce_sim::verilator::Dut;

/// Answers the reads of WQEs, all or none of a cycle, `latency` cycles later.
pub(super) struct Memory {
    latency: u64,
    /// What stands at an address once it was read.
    pub(super) then: BTreeMap<u64, [u8; 64]>,
    pub(super) words: BTreeMap<u64, [u8; 64]>,
    queue: VecDeque<(u64, [u8; 64], bool)>,
    /// Slots read so far.
    pub(super) read: u64,
    cycle: u64,
}

impl Memory {
    pub(super) fn new(latency: u64) -> Self {
        Self {
            latency,
            then: BTreeMap::new(),
            words: BTreeMap::new(),
            queue: VecDeque::new(),
            read: 0,
            cycle: 0,
        }
    }

    pub(super) fn read(&mut self, addr: u64, len: u64) {
        self.read += len / 64;
        for i in 0..len / 64 {
            let bytes = self
                .words
                .get(&(addr + 64 * i))
                .copied()
                .unwrap_or([0xee; 64]);
            self.queue
                .push_back((self.cycle + self.latency, bytes, i + 1 == len / 64));
            if let Some(then) = self.then.remove(&(addr + 64 * i)) {
                self.words.insert(addr + 64 * i, then);
            }
        }
    }
}

impl Agent for Memory {
    fn drive(&mut self, dut: &mut Dut, _: &mut fastrand::Rng) {
        let valid = dut.input("beat_valid").unwrap();
        dut.set(valid, 0);
        if self
            .queue
            .front()
            .is_some_and(|(due, ..)| *due <= self.cycle)
        {
            let (_, bytes, last) = self.queue.pop_front().unwrap();
            let words: Vec<u32> = bytes
                .chunks(4)
                .map(|c| u32::from_le_bytes(c.try_into().unwrap()))
                .collect();
            dut.set(valid, 1);
            dut.write(dut.input("beat_data").unwrap(), &words);
            dut.set(dut.input("beat_last").unwrap(), last.into());
            dut.set(dut.input("beat_error").unwrap(), 0);
        }
        self.cycle += 1;
    }
    fn observe(&mut self, _: &Dut, _: u64) -> Result<(), String> {
        Ok(())
    }
    fn pending(&self) -> Option<String> {
        (!self.queue.is_empty()).then(|| "reads not answered".into())
    }
    fn reset(&mut self, dut: &mut Dut) {
        dut.set(dut.input("beat_valid").unwrap(), 0);
    }
}

/// Answers memory region checks: yes, unless the key is [`Regions::BAD_KEY`] or the regions are deregistered.
#[derive(Default)]
pub(super) struct Regions {
    pub(super) gone: bool,
    pipe: VecDeque<Option<bool>>,
}

impl Regions {
    pub(super) const BAD_KEY: u64 = 0xbad;
}

impl Agent for Regions {
    fn drive(&mut self, dut: &mut Dut, _: &mut fastrand::Rng) {
        let answer = if self.pipe.len() == 4 {
            self.pipe.pop_front().unwrap()
        } else {
            None
        };
        dut.set(dut.input("mr_done").unwrap(), answer.is_some().into());
        dut.set(dut.input("mr_ok").unwrap(), answer.unwrap_or(false).into());
    }
    fn observe(&mut self, dut: &Dut, _: u64) -> Result<(), String> {
        let asked = dut.is_set(dut.output("mr_valid").unwrap());
        let field = |name| dut.get(dut.output(name).unwrap());
        let good = !self.gone && field("mr_request.key") != Self::BAD_KEY;
        let ok = field("mr_request.len") == 0 || good;
        self.pipe.push_back(asked.then_some(ok));
        Ok(())
    }
    fn pending(&self) -> Option<String> {
        None
    }
    fn reset(&mut self, dut: &mut Dut) {
        dut.set(dut.input("mr_done").unwrap(), 0);
    }
}
