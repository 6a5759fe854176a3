//! Both ends of a ready/valid stream `X_payload`, `X_valid`, `X_ready`.

use std::collections::VecDeque;
use std::sync::Arc;

use fastrand::Rng;

use super::Agent;
use super::item::{Item, Layout};
use super::log::Log;
use crate::random::{Pauses, Pausing};
use crate::verilator::{Dut, Error, Input, Output};

/// Drives a stream into the device. Offers the next item unless it pauses, and holds it until it is
/// taken; while it offers nothing, the payload is random.
#[derive(Debug)]
pub struct StreamSource {
    name: String,
    layout: Arc<Layout>,
    payload: Vec<Input>,
    valid: Input,
    ready: Output,
    queue: VecDeque<Item>,
    offered: bool,
    noise: Item,
    pausing: Pausing,
    sent: u64,
    last_sent: Option<u64>,
}

impl StreamSource {
    /// The source of stream `name`, that is of the ports `name_payload` and so on.
    ///
    /// # Errors
    /// A port that is not there.
    pub fn new(dut: &Dut, name: &str, pauses: Pauses) -> Result<Self, Error> {
        Self::with_ports(dut, name, &["payload"], ["valid", "ready"], pauses)
    }

    /// The source of a stream whose ports are `name`, `_` and the suffixes given.
    pub fn with_ports(
        dut: &Dut,
        name: &str,
        payload: &[&str],
        [valid, ready]: [&str; 2],
        pauses: Pauses,
    ) -> Result<Self, Error> {
        let names: Vec<_> = payload
            .iter()
            .map(|suffix| format!("{name}_{suffix}"))
            .collect();
        let layout = Layout::new(dut, name, &names)?;
        let payload = names.iter().map(|name| dut.input(name));
        Ok(Self {
            name: name.into(),
            payload: payload.collect::<Result<_, _>>()?,
            valid: dut.input(&format!("{name}_{valid}"))?,
            ready: dut.output(&format!("{name}_{ready}"))?,
            queue: VecDeque::new(),
            offered: false,
            noise: Item::zero(&layout),
            layout,
            pausing: Pausing::new(pauses),
            sent: 0,
            last_sent: None,
        })
    }

    /// An item of this stream with all bits 0.
    pub fn item(&self) -> Item {
        Item::zero(&self.layout)
    }

    /// Queues an item.
    ///
    /// # Panics
    /// If it is an item of a stream with other fields.
    pub fn push(&mut self, item: Item) {
        assert!(
            item.has_fields_of(&self.layout),
            "{item:?} does not have the fields of `{}`",
            self.name
        );
        self.queue.push_back(item);
    }

    /// Items that were taken.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Cycle in which the latest one was taken.
    pub fn last_sent(&self) -> Option<u64> {
        self.last_sent
    }
}

impl Agent for StreamSource {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        if self.offered {
            return;
        }
        let next = self.queue.front().filter(|_| !self.pausing.now(rng));
        self.offered = next.is_some();
        dut.set(self.valid, u64::from(self.offered));
        match next {
            Some(item) => item.put(dut, &self.payload),
            None => {
                self.noise.fill(|| rng.u32(..));
                self.noise.put(dut, &self.payload);
            }
        }
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        if self.offered && dut.is_set(self.ready) {
            self.queue.pop_front();
            self.offered = false;
            self.sent += 1;
            self.last_sent = Some(cycle);
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        let left = self.queue.len();
        (left > 0).then(|| format!("`{}` has {left} more to send", self.name))
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.offered = false;
        dut.set(self.valid, 0);
    }
}

/// Takes a stream from the device, unless it pauses, and checks that an item once offered stays
/// until it is taken.
#[derive(Debug)]
pub struct StreamSink {
    name: String,
    layout: Arc<Layout>,
    valid: Output,
    ready: Input,
    ready_now: bool,
    /// Offered in the last cycle and not taken.
    held: Option<Item>,
    seen: Item,
    pausing: Pausing,
    log: Log<Item>,
}

impl StreamSink {
    /// The sink of stream `name`, that is of the ports `name_payload` and so on.
    ///
    /// # Errors
    /// A port that is not there.
    pub fn new(dut: &Dut, name: &str, pauses: Pauses) -> Result<Self, Error> {
        Self::with_ports(dut, name, &["payload"], ["valid", "ready"], pauses)
    }

    /// The sink of a stream whose ports are `name`, `_` and the suffixes given.
    pub fn with_ports(
        dut: &Dut,
        name: &str,
        payload: &[&str],
        [valid, ready]: [&str; 2],
        pauses: Pauses,
    ) -> Result<Self, Error> {
        let names: Vec<_> = payload
            .iter()
            .map(|suffix| format!("{name}_{suffix}"))
            .collect();
        for name in &names {
            dut.output(name)?;
        }
        let layout = Layout::new(dut, name, &names)?;
        Ok(Self {
            name: name.into(),
            valid: dut.output(&format!("{name}_{valid}"))?,
            ready: dut.input(&format!("{name}_{ready}"))?,
            ready_now: false,
            held: None,
            seen: Item::zero(&layout),
            layout,
            pausing: Pausing::new(pauses),
            log: Log::new(name),
        })
    }

    /// An item of this stream with all bits 0.
    pub fn item(&self) -> Item {
        Item::zero(&self.layout)
    }

    /// The next item not yet expected must be `item`. From the first call on, any other item is
    /// a failure.
    pub fn expect(&mut self, item: Item) {
        self.log.expect(item);
    }

    /// The oldest item that arrived while none was expected, with its cycle.
    pub fn pop(&mut self) -> Option<(u64, Item)> {
        self.log.pop()
    }

    /// Items that arrived.
    pub fn count(&self) -> u64 {
        self.log.count()
    }

    /// Checks the cycle; the item that was taken in it, if one was.
    pub(super) fn transfer(&mut self, dut: &Dut) -> Result<Option<Item>, String> {
        let name = &self.name;
        if !dut.is_set(self.valid) {
            return match self.held.take() {
                Some(_) => Err(format!("`{name}` withdrew an item before it was taken")),
                None => Ok(None),
            };
        }
        self.seen.take(dut);
        if let Some(held) = self.held.take()
            && held != self.seen
        {
            let seen = &self.seen;
            return Err(format!(
                "`{name}` changed an item before it was taken\n  from {held:?}\n  to   {seen:?}"
            ));
        }
        let item = self.seen.clone();
        if self.ready_now {
            return Ok(Some(item));
        }
        self.held = Some(item);
        Ok(None)
    }
}

impl Agent for StreamSink {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        self.ready_now = !self.pausing.now(rng);
        dut.set(self.ready, u64::from(self.ready_now));
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        match self.transfer(dut)? {
            Some(item) => self.log.arrive(cycle, item),
            None => Ok(()),
        }
    }

    fn pending(&self) -> Option<String> {
        self.log.pending()
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.held = None;
        self.ready_now = false;
        dut.set(self.ready, 0);
    }
}
