//! Accesses to the registers, in order, and their answers.

use std::collections::VecDeque;

use crate::card::READ_TIMEOUT;
use crate::nic::Nic;

/// An access that the card has not received.
enum Access<T> {
    Write(u64, u32),
    Read(T, Range),
}

/// Bytes of BAR 0 that are read.
#[derive(Clone, Copy)]
struct Range {
    offset: u64,
    count: u32,
}

/// A read that is under way.
struct Reading<T> {
    tag: T,
    range: Range,
    data: Vec<u8>,
    /// Calls of [`Registers::step`] since the word under way was asked for.
    waited: u64,
}

/// Accesses of the host to BAR 0. Writes were answered when they came; a read is when the card has, with the tag that it
/// came with.
pub(crate) struct Registers<T> {
    queue: VecDeque<Access<T>>,
    reading: Option<Reading<T>>,
    /// A read was given up, and its answer has not come: until then registers read as all ones.
    has_no_answer: bool,
}

impl<T> Default for Registers<T> {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            reading: None,
            has_no_answer: false,
        }
    }
}

impl<T> Registers<T> {
    /// A write of whole 32-bit registers; false if it is anything else.
    #[must_use]
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> bool {
        let is_whole = offset.is_multiple_of(4) && data.len().is_multiple_of(4);
        if is_whole {
            let words = (offset..).step_by(4).zip(data.chunks_exact(4));
            let writes = words.map(|(at, word)| {
                let word = word.first_chunk().copied().unwrap_or_default();
                Access::Write(at, u32::from_le_bytes(word))
            });
            self.queue.extend(writes);
        }
        is_whole
    }

    /// A read, which [`step`](Self::step) answers.
    pub(crate) fn read(&mut self, tag: T, offset: u64, count: u32) {
        self.queue
            .push_back(Access::Read(tag, Range { offset, count }));
    }

    /// The card has nothing more to hear or to answer.
    #[must_use]
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.reading.is_none()
    }

    /// Hands over what the card can take, and gives the next read that is complete. To be called between the steps of
    /// the card; it waits [`READ_TIMEOUT`] calls for a register.
    pub(crate) fn step(&mut self, nic: &mut dyn Nic) -> Option<(T, Vec<u8>)> {
        if self.has_no_answer && nic.take_read32().is_some() {
            self.has_no_answer = false;
        }
        loop {
            if let Some(reading) = &mut self.reading {
                let value = match nic.take_read32().filter(|_| !self.has_no_answer) {
                    Some(value) => value,
                    None if self.has_no_answer || reading.waited >= READ_TIMEOUT => {
                        self.has_no_answer = true;
                        u32::MAX
                    }
                    None => {
                        reading.waited += 1;
                        return None;
                    }
                };
                reading.data.extend(value.to_le_bytes());
                if reading.wants().is_none() {
                    return self.reading.take().map(Reading::answer);
                }
                self.ask(nic);
                continue;
            }
            match self.queue.pop_front()? {
                Access::Write(offset, value) => nic.write32(offset, value),
                Access::Read(tag, range) => {
                    self.reading = Some(Reading {
                        tag,
                        range,
                        data: Vec::new(),
                        waited: 0,
                    });
                    self.ask(nic);
                }
            }
        }
    }

    /// Starts reading the next word of the read under way.
    fn ask(&mut self, nic: &mut dyn Nic) {
        if let Some(reading) = &mut self.reading {
            reading.waited = 0;
            if let Some(offset) = reading.wants().filter(|_| !self.has_no_answer) {
                nic.start_read32(offset);
            }
        }
    }

    /// The card is reset or gone: reads are answered by all ones, writes go nowhere.
    pub(crate) fn reset(&mut self) -> Vec<(T, Vec<u8>)> {
        self.has_no_answer = false;
        let reading = self.reading.take().map(|r| (r.tag, r.range));
        let queued = self.queue.drain(..).filter_map(|access| match access {
            Access::Read(tag, range) => Some((tag, range)),
            Access::Write(..) => None,
        });
        let all = reading.into_iter().chain(queued);
        all.map(|(tag, range)| (tag, vec![0xff; range.count as usize]))
            .collect()
    }
}

impl<T> Reading<T> {
    /// Offset of the register that is still to be read.
    fn wants(&self) -> Option<u64> {
        let Range { offset, count } = self.range;
        let at = (offset & !3) + self.data.len() as u64;
        (at < offset + u64::from(count)).then_some(at)
    }

    fn answer(self) -> (T, Vec<u8>) {
        let skip = (self.range.offset & 3) as usize;
        let data = &self.data[skip..skip + self.range.count as usize];
        (self.tag, data.to_vec())
    }
}
