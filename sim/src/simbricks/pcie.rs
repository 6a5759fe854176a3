//! The bus: memory of the host, as the card reaches it, and what the host asks of the card.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};

use super::slots::{HEADER, Message, SLOT};
use crate::remote::{Answer, RemoteMemory, Ticket};

/// Types of messages to the host.
mod to_host {
    pub(super) const READ: u8 = 0x40;
    pub(super) const WRITE: u8 = 0x41;
    pub(super) const INTERRUPT: u8 = 0x42;
    pub(super) const READ_DONE: u8 = 0x43;
    pub(super) const WRITE_DONE: u8 = 0x44;
}

/// Types of messages of the host.
mod to_card {
    pub(super) const READ: u8 = 0x60;
    pub(super) const WRITE: u8 = 0x61;
    pub(super) const READ_DONE: u8 = 0x62;
    pub(super) const WRITE_DONE: u8 = 0x63;
    pub(super) const CONTROL: u8 = 0x64;
    pub(super) const WRITE_POSTED: u8 = 0x65;
}

/// An interrupt is one of MSI-X.
const MSIX: u8 = 3;
/// No access of the card crosses a multiple of this many bytes, as on PCIe.
const PAGE: u64 = 4096;

/// A message to the host.
pub(super) struct ToHost {
    pub kind: u8,
    pub head: Vec<u8>,
    pub data: Vec<u8>,
}

impl ToHost {
    pub(super) fn interrupt(vector: u16) -> Self {
        let [low, high] = vector.to_le_bytes();
        Self {
            kind: to_host::INTERRUPT,
            head: vec![low, high, MSIX],
            data: Vec::new(),
        }
    }

    /// What a read of the host brought.
    pub(super) fn read_done(id: u64, data: Vec<u8>) -> Self {
        Self {
            kind: to_host::READ_DONE,
            head: id.to_le_bytes().to_vec(),
            data,
        }
    }

    pub(super) fn write_done(id: u64) -> Self {
        Self {
            kind: to_host::WRITE_DONE,
            head: id.to_le_bytes().to_vec(),
            data: Vec::new(),
        }
    }
}

/// What the host asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    Read {
        id: u64,
        bar: u8,
        offset: u64,
        len: u16,
    },
    Write {
        /// Of one that is to be answered.
        id: Option<u64>,
        bar: u8,
        offset: u64,
        data: Vec<u8>,
    },
}

/// A part of an access that was sent and not answered.
struct Piece {
    ticket: Ticket,
    /// Where it begins in the access.
    at: usize,
    len: usize,
    is_write: bool,
}

/// An access, the parts that are missing, and what was read.
struct Access {
    missing: usize,
    data: Vec<u8>,
}

#[derive(Default)]
struct State {
    tickets: u64,
    ids: u64,
    pieces: HashMap<u64, Piece>,
    accesses: HashMap<Ticket, Access>,
    to_send: VecDeque<ToHost>,
}

/// Memory of a simulated host.
#[derive(Default)]
pub struct Bus(RefCell<State>);

impl Bus {
    /// Nothing is under way.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The next access for the host.
    pub(super) fn to_send(&self) -> Option<ToHost> {
        self.0.borrow_mut().to_send.pop_front()
    }

    /// The last access that was started.
    pub(super) fn last(&self) -> Ticket {
        Ticket(self.0.borrow().tickets)
    }

    /// Whether all writes up to that access are made: software notified now sees their data.
    pub(super) fn has_written(&self, last: Ticket) -> bool {
        let state = self.0.borrow();
        let mut open = state.pieces.values().filter(|piece| piece.is_write);
        open.all(|piece| piece.ticket.0 > last.0)
    }

    /// Bytes of data behind a message's header.
    pub(super) fn bytes(&self, kind: u8, head: &[u8]) -> usize {
        match kind {
            to_card::WRITE | to_card::WRITE_POSTED => len(head).into(),
            to_card::READ_DONE => {
                let state = self.0.borrow();
                state.pieces.get(&id(head)).map_or(0, |piece| piece.len)
            }
            _ => 0,
        }
    }

    /// Takes a message of the host: what it asks, if it asks something.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn take_message(&self, message: Message) -> Result<Option<Request>, String> {
        let Message {
            kind, head, data, ..
        } = message;
        let (id, bar, offset, len) = (id(&head), head[18], word(&head, 8), len(&head));
        if matches!(kind, to_card::READ | to_card::WRITE | to_card::WRITE_POSTED)
            && !(1..=SLOT - HEADER).contains(&len.into())
        {
            return Err(format!("an access of {len} bytes"));
        }
        Ok(match kind {
            to_card::READ => Some(Request::Read {
                id,
                bar,
                offset,
                len,
            }),
            to_card::WRITE | to_card::WRITE_POSTED => Some(Request::Write {
                id: (kind == to_card::WRITE).then_some(id),
                bar,
                offset,
                data,
            }),
            to_card::READ_DONE => self.done(id, false, &data).map(|()| None)?,
            to_card::WRITE_DONE => self.done(id, true, &data).map(|()| None)?,
            // The host has the table of vectors, and knows which are on.
            to_card::CONTROL => None,
            _ => return Err(format!("a PCIe message of type {kind:#04x}")),
        })
    }

    fn done(&self, id: u64, is_write: bool, data: &[u8]) -> Result<(), String> {
        let state = &mut *self.0.borrow_mut();
        let piece = state.pieces.remove(&id).filter(|p| p.is_write == is_write);
        let piece = piece.ok_or_else(|| format!("an answer to access {id}, which is not open"))?;
        // One that was discarded is none any more.
        if let Some(access) = state.accesses.get_mut(&piece.ticket) {
            access.missing -= 1;
            if !is_write {
                access.data[piece.at..][..piece.len].copy_from_slice(data);
            }
        }
        Ok(())
    }

    /// Starts an access, in parts that do not cross a page.
    fn start(&self, addr: u64, len: usize, written: Option<&[u8]>) -> Ticket {
        let state = &mut *self.0.borrow_mut();
        state.tickets += 1;
        let ticket = Ticket(state.tickets);
        let (mut at, mut missing) = (0, 0);
        while at < len {
            let start = addr.wrapping_add(at as u64);
            let part = (len - at).min((PAGE - start % PAGE) as usize);
            state.ids += 1;
            let mut head = state.ids.to_le_bytes().to_vec();
            head.extend(start.to_le_bytes());
            head.extend((part as u16).to_le_bytes());
            let piece = Piece {
                ticket,
                at,
                len: part,
                is_write: written.is_some(),
            };
            state.pieces.insert(state.ids, piece);
            let (kind, data) = match written {
                Some(data) => (to_host::WRITE, data[at..at + part].to_vec()),
                None => (to_host::READ, Vec::new()),
            };
            state.to_send.push_back(ToHost { kind, head, data });
            at += part;
            missing += 1;
        }
        let data = vec![0; if written.is_some() { 0 } else { len }];
        state.accesses.insert(ticket, Access { missing, data });
        ticket
    }
}

impl RemoteMemory for Bus {
    fn start_read(&self, addr: u64, len: usize) -> Ticket {
        self.start(addr, len, None)
    }

    fn start_write(&self, addr: u64, data: &[u8]) -> Ticket {
        self.start(addr, data.len(), Some(data))
    }

    /// The protocol has no refusal: what the host has not, it reads as it likes.
    fn take(&self, ticket: Ticket) -> Option<Answer> {
        let state = &mut *self.0.borrow_mut();
        state.accesses.get(&ticket).filter(|a| a.missing == 0)?;
        state.accesses.remove(&ticket).map(|access| Ok(access.data))
    }

    fn discard(&self, ticket: Ticket) {
        self.0.borrow_mut().accesses.remove(&ticket);
    }
}

fn word(head: &[u8], at: usize) -> u64 {
    let bytes = head[at..].first_chunk().copied().unwrap_or_default();
    u64::from_le_bytes(bytes)
}

/// The number of the access.
fn id(head: &[u8]) -> u64 {
    word(head, 0)
}

/// Its bytes.
fn len(head: &[u8]) -> u16 {
    u16::from_le_bytes([head[16], head[17]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(kind: u8, id: u64, data: &[u8]) -> Message {
        let mut head = [0; 48];
        head[..8].copy_from_slice(&id.to_le_bytes());
        Message {
            time: 0,
            kind,
            head,
            data: data.to_vec(),
        }
    }

    #[test]
    fn accesses_are_cut_at_pages_and_put_together_in_any_order() {
        let bus = Bus::new();
        let read = bus.start_read(0x1ffe, 5);
        let parts: Vec<_> = std::iter::from_fn(|| bus.to_send()).collect();
        let heads: Vec<_> = parts
            .iter()
            .map(|p| (word(&p.head, 8), len(&p.head)))
            .collect();
        assert_eq!(heads, [(0x1ffe, 2), (0x2000, 3)]);
        assert_eq!(bus.bytes(to_card::READ_DONE, &parts[1].head), 3);
        bus.take_message(answer(to_card::READ_DONE, 2, &[3, 4, 5]))
            .unwrap();
        assert_eq!(bus.take(read), None);
        bus.take_message(answer(to_card::READ_DONE, 1, &[1, 2]))
            .unwrap();
        assert_eq!(bus.take(read), Some(Ok(vec![1, 2, 3, 4, 5])));
        assert_eq!(bus.take(read), None, "once");
    }

    #[test]
    fn an_interrupt_waits_for_the_writes_before_it() {
        let bus = Bus::new();
        bus.start_write(0x1000, &[1]);
        let last = bus.last();
        bus.start_write(0x1000, &[2]);
        assert!(!bus.has_written(last));
        bus.take_message(answer(to_card::WRITE_DONE, 1, &[]))
            .unwrap();
        assert!(bus.has_written(last) && !bus.has_written(bus.last()));
    }

    #[test]
    fn what_the_host_may_not_say_is_refused() {
        let bus = Bus::new();
        bus.start_write(0x1000, &[1]);
        for (kind, id) in [(to_card::READ_DONE, 1), (to_card::WRITE_DONE, 7), (0x7f, 0)] {
            assert!(
                bus.take_message(answer(kind, id, &[])).is_err(),
                "{kind:#x}"
            );
        }
        assert!(
            bus.take_message(answer(to_card::READ, 0, &[])).is_err(),
            "0 bytes"
        );
    }
}
