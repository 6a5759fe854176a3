//! The golden model over memory that answers later.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use ferroce_proto::abi::regs::Params;

use super::{Answer, Refused, RemoteMemory, Ticket};
use crate::memory::{Fault, FaultKind, HostMemory, Trouble};
use crate::model::Model;
use crate::nic::Nic;

/// Writes that memory has not answered; with more the model waits.
const MAX_WRITES: usize = 256;

/// The accesses of one step, as far as its reads are answered.
#[derive(Default)]
struct Record {
    /// Its reads, in order: address, bytes, answer.
    answers: Vec<(u64, usize, Answer)>,
    /// Answers that the step was given this time.
    used: usize,
    /// Its writes before the first read without an answer.
    writes: Vec<(u64, Vec<u8>)>,
    /// The first read without an answer: address and bytes. What the step does behind it counts for nothing.
    missing: Option<(u64, usize)>,
    /// Registers are read from a copy that has more writes than the step under way: what it reads besides is of no
    /// consequence, but must not look like a failed access.
    is_copy: bool,
}

/// The memory that the model sees: what is on record.
#[derive(Default)]
struct Recorded(RefCell<Record>);

impl Recorded {
    /// Begins a try of the step.
    fn rewind(&self) {
        let mut record = self.0.borrow_mut();
        record.used = 0;
        record.writes.clear();
        record.missing = None;
    }

    fn clear(&self) {
        *self.0.borrow_mut() = Record::default();
    }
}

impl HostMemory for Recorded {
    fn read(&self, addr: u64, data: &mut [u8]) -> Result<(), Fault> {
        let (len, kind) = (data.len(), FaultKind::Read);
        if len == 0 {
            return Ok(());
        }
        let refused = Fault {
            addr,
            len,
            kind,
            gone: false,
        };
        let record = &mut *self.0.borrow_mut();
        let known = record.answers.get(record.used);
        if record.is_copy && known.is_none_or(|(start, bytes, _)| (*start, *bytes) != (addr, len)) {
            data.fill(0);
            return Ok(());
        }
        let Some((_, _, answer)) = known else {
            record.missing.get_or_insert((addr, len));
            return Err(refused);
        };
        record.used += 1;
        data.copy_from_slice(answer.as_ref().map_err(|Refused| refused)?);
        Ok(())
    }

    /// As a posted write of PCIe: a refusal shows later, and only in STATUS.
    fn write(&self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        let record = &mut *self.0.borrow_mut();
        if record.missing.is_none() && !data.is_empty() {
            record.writes.push((addr, data.to_vec()));
        }
        Ok(())
    }

    fn trouble(&self, _: u64, _: FaultKind) -> Trouble {
        Trouble::None
    }

    fn mapped(&self, _: u64, len: usize) -> usize {
        len
    }

    /// A refused access is no fault of the run here: the host may name what it likes.
    fn faults(&self) -> Vec<Fault> {
        Vec::new()
    }
}

/// What the world did while a step was under way.
enum Input {
    Write(u64, u32),
    Read(u64),
    Frame(Vec<u8>),
}

/// The golden model over a [`RemoteMemory`].
///
/// A step takes as many calls of [`step`](Nic::step) as the answers of its accesses take to come; meanwhile
/// [`is_waiting`](Self::is_waiting), and time stands still. Registers answer nevertheless, as they were before the step
/// with what was written since: the server of the memory may be waiting for that answer.
pub struct RemoteModel {
    model: Model,
    remote: Rc<dyn RemoteMemory>,
    memory: Rc<Recorded>,
    /// The read under way: address, bytes.
    ticket: Option<(Ticket, u64, usize)>,
    /// Writes of the step under way that were started.
    started: usize,
    /// Writes that were not answered.
    writes: VecDeque<Ticket>,
    /// What came since the step under way began, in order.
    inputs: Vec<Input>,
    /// The read under way was answered before its step was done.
    is_answered: bool,
}

impl RemoteModel {
    /// A model after reset, whose DMA reaches `remote`.
    #[must_use]
    pub fn new(params: Params, remote: Rc<dyn RemoteMemory>) -> Self {
        let memory = Rc::new(Recorded::default());
        Self {
            model: Model::new(params, memory.clone()),
            remote,
            memory,
            ticket: None,
            started: 0,
            writes: VecDeque::new(),
            inputs: Vec::new(),
            is_answered: false,
        }
    }

    /// A step waits for an answer of memory.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.ticket.is_some() || self.writes.len() >= MAX_WRITES
    }

    /// A step was tried and is not kept yet: what comes now comes behind it.
    fn is_under_way(&self) -> bool {
        self.ticket.is_some() || self.started > 0 || !self.memory.0.borrow().answers.is_empty()
    }

    /// Takes the answers of writes.
    fn collect(&mut self) {
        let (remote, mut failed) = (&self.remote, false);
        self.writes.retain(|&ticket| {
            let answer = remote.take(ticket);
            failed |= answer == Some(Err(Refused));
            answer.is_none()
        });
        if failed {
            self.model.fail_dma();
        }
    }

    /// Tries the step with the answers there are; keeps it if none is missing. Its writes are made once, in their order
    /// among its reads, and otherwise when it is kept: software that sees them reads the registers as they are after the step.
    fn attempt(&mut self) {
        self.memory.rewind();
        let mut next = self.model.clone();
        next.step();
        let mut record = self.memory.0.borrow_mut();
        let missing = record.missing.take();
        if missing.is_none() {
            self.model = next;
        }
        for (addr, data) in &record.writes[self.started..] {
            self.writes.push_back(self.remote.start_write(*addr, data));
        }
        self.started = record.writes.len();
        drop(record);
        if let Some((addr, len)) = missing {
            self.ticket = Some((self.remote.start_read(addr, len), addr, len));
            return;
        }
        self.started = 0;
        self.memory.clear();
        if std::mem::take(&mut self.is_answered) {
            self.model.take_read32();
        }
        for input in std::mem::take(&mut self.inputs) {
            apply(&mut self.model, &input);
        }
    }

    /// Answer of a read while a step is under way: what a copy of before says that hears everything up to the read.
    fn answer_early(&mut self) -> Option<u32> {
        let read = self.inputs.iter().position(|i| matches!(i, Input::Read(_)));
        let open = self.model.is_read_open() && !self.is_answered;
        if !open && read.is_none() {
            return None;
        }
        self.memory.rewind();
        self.memory.0.borrow_mut().is_copy = true;
        let mut copy = self.model.clone();
        if !open {
            if self.is_answered {
                // Its own answer of the read before is in the way.
                copy.step();
                copy.take_read32();
            }
            let until = read.map_or(0, |read| read + 1);
            self.inputs[..until]
                .iter()
                .for_each(|i| apply(&mut copy, i));
        }
        copy.step();
        self.memory.rewind();
        self.memory.0.borrow_mut().is_copy = false;
        let answer = copy.take_read32();
        match read {
            Some(read) if !open => drop(self.inputs.remove(read)),
            _ => self.is_answered = true,
        }
        answer
    }
}

fn apply(model: &mut Model, input: &Input) {
    match input {
        Input::Write(offset, value) => model.write32(*offset, *value),
        Input::Read(offset) => model.start_read32(*offset),
        Input::Frame(frame) => model.receive(frame),
    }
}

impl RemoteModel {
    fn input(&mut self, input: Input) {
        if self.is_under_way() {
            self.inputs.push(input);
        } else {
            apply(&mut self.model, &input);
        }
    }
}

impl Nic for RemoteModel {
    fn write32(&mut self, offset: u64, value: u32) {
        self.input(Input::Write(offset, value));
    }

    fn start_read32(&mut self, offset: u64) {
        self.input(Input::Read(offset));
    }

    fn take_read32(&mut self) -> Option<u32> {
        if self.is_under_way() {
            return self.answer_early();
        }
        self.model.take_read32()
    }

    fn step(&mut self) {
        self.collect();
        if let Some((ticket, addr, len)) = self.ticket {
            let Some(answer) = self.remote.take(ticket) else {
                return;
            };
            let mut record = self.memory.0.borrow_mut();
            record.answers.push((addr, len, answer));
            drop(record);
            self.ticket = None;
        }
        if !self.is_waiting() {
            self.attempt();
        }
    }

    fn now(&self) -> u64 {
        self.model.now()
    }

    fn receive(&mut self, frame: &[u8]) {
        self.input(Input::Frame(frame.to_vec()));
    }

    fn transmit(&mut self) -> Option<Vec<u8>> {
        self.model.transmit()
    }

    fn interrupt(&mut self) -> Option<u16> {
        self.model.interrupt()
    }

    fn reset(&mut self) {
        let read = self.ticket.take().map(|(ticket, ..)| ticket);
        let under_way = self.writes.drain(..).chain(read);
        under_way.for_each(|ticket| self.remote.discard(ticket));
        self.started = 0;
        self.memory.clear();
        self.inputs.clear();
        self.is_answered = false;
        self.model.reset();
    }

    fn ports_are_idle(&self) -> bool {
        self.idle_until().is_some()
    }

    fn idle_until(&self) -> Option<u64> {
        if self.is_waiting() {
            return None;
        }
        self.model.idle_until()
    }

    fn run_until(&mut self, cycle: u64) {
        self.collect();
        while self.now() < cycle && !self.is_waiting() {
            match self.idle_until() {
                Some(end) if !self.is_under_way() => self.model.run_until(cycle.min(end)),
                _ => self.step(),
            }
        }
    }
}
