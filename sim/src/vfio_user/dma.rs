//! Memory of the client, as the card reaches it: by messages, or where the client shares it and that is wanted, at once.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;

use ferroce_vfio_user::Errno;
use ferroce_vfio_user::header::{Command, Kind};
use ferroce_vfio_user::message::{self, Message, Request, exactly};
use ferroce_vfio_user::payload::{Dma as Range, DmaMap};

use super::windows::{self, Windows};
use crate::remote::{Answer, Refused, RemoteMemory, Ticket};

/// A message that was sent and not answered.
struct Asked {
    ticket: Ticket,
    command: Command,
    len: usize,
}

#[derive(Default)]
struct State {
    windows: Windows,
    /// Windows with a file are reached through it.
    uses_shared: bool,
    /// There is a client, and it let the card reach memory.
    is_open: bool,
    next_ticket: u64,
    next_id: u16,
    asked: HashMap<u16, Asked>,
    answers: HashMap<Ticket, Answer>,
    /// Messages with their ID.
    to_send: VecDeque<(u16, Vec<u8>)>,
}

/// DMA of a served card.
#[derive(Default)]
pub struct Dma(RefCell<State>);

impl Dma {
    /// Without a client. With `uses_shared` memory that the client shares is reached directly.
    #[must_use]
    pub fn new(uses_shared: bool) -> Self {
        if uses_shared {
            windows::raise_limit();
        }
        Self(RefCell::new(State {
            uses_shared,
            ..State::default()
        }))
    }

    /// Accesses are made from now on; else all are refused at once.
    pub fn open(&self, is_open: bool) {
        self.0.borrow_mut().is_open = is_open;
    }

    /// The client is gone: what it mapped is, and what it did not answer is refused.
    pub fn disconnect(&self) {
        let mut state = self.0.borrow_mut();
        state.is_open = false;
        state.windows.clear();
        state.to_send.clear();
        let asked = std::mem::take(&mut state.asked);
        let refused = asked
            .into_values()
            .map(|asked| (asked.ticket, Err(Refused)));
        state.answers.extend(refused);
    }

    /// The card is reset: it does nothing more of what it had begun, as far as that was not sent.
    pub fn reset(&self) {
        let state = &mut *self.0.borrow_mut();
        for (id, _) in state.to_send.drain(..) {
            state.asked.remove(&id);
        }
    }

    /// Maps a range; the file counts if shared memory is used.
    ///
    /// # Errors
    /// See `Windows::map`.
    pub fn map(&self, map: &DmaMap, file: Option<OwnedFd>) -> Result<(), Errno> {
        let mut state = self.0.borrow_mut();
        let file = file.filter(|_| state.uses_shared);
        state.windows.map(map, file)
    }

    /// Unmaps what lies in a range; the bytes that were mapped.
    ///
    /// # Errors
    /// See `Windows::unmap`.
    pub fn unmap(&self, address: u64, size: u64) -> Result<u64, Errno> {
        self.0.borrow_mut().windows.unmap(address, size)
    }

    /// Unmaps everything; the bytes that were mapped.
    pub fn unmap_all(&self) -> u64 {
        self.0.borrow_mut().windows.clear()
    }

    /// The next message to the client.
    pub fn to_send(&self) -> Option<Vec<u8>> {
        let next = self.0.borrow_mut().to_send.pop_front();
        next.map(|(_, message)| message)
    }

    /// Accesses wait for the client.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.0.borrow().asked.is_empty()
    }

    /// The last access that was started.
    #[must_use]
    pub fn last(&self) -> Ticket {
        Ticket(self.0.borrow().next_ticket)
    }

    /// Whether all writes up to that access are made: software notified now sees their data.
    #[must_use]
    pub fn has_written(&self, last: Ticket) -> bool {
        let state = self.0.borrow();
        let mut open = state.open_writes();
        open.all(|asked| asked.ticket.0 > last.0)
    }

    /// Takes a reply of the client.
    ///
    /// # Errors
    /// What is wrong with it; the access, if it belongs to one, is refused then.
    pub fn reply(&self, reply: &Message) -> Result<(), String> {
        let mut state = self.0.borrow_mut();
        let id = reply.header.id;
        let Some(asked) = state.asked.remove(&id) else {
            return Err(format!("reply {id} to nothing that was asked"));
        };
        let answer = asked.answer(reply);
        let is_wanted = asked.ticket != FORGOTTEN;
        if is_wanted {
            let kept = answer.clone().unwrap_or(Err(Refused));
            state.answers.insert(asked.ticket, kept);
        }
        answer.map(drop)
    }
}

/// The ticket of an access whose answer is not wanted any more.
const FORGOTTEN: Ticket = Ticket(0);

impl Asked {
    /// What a reply says.
    fn answer(&self, reply: &Message) -> Result<Answer, String> {
        if reply.header.command != self.command as u16 {
            let (found, expected) = (reply.header.command, self.command);
            return Err(format!(
                "a reply to command {found}; to {expected:?} is expected"
            ));
        }
        if reply.header.kind != (Kind::Reply { error: None }) {
            return Ok(Err(Refused));
        }
        if self.command == Command::DmaWrite {
            return Ok(Ok(Vec::new()));
        }
        let (_, data) = Range::parse(&reply.body).map_err(|e| e.to_string())?;
        let data = exactly(data, self.len as u64).map_err(|e| e.to_string())?;
        Ok(Ok(data))
    }
}

impl State {
    fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }

    fn answered(&mut self, answer: Answer) -> Ticket {
        let ticket = self.ticket();
        self.answers.insert(ticket, answer);
        ticket
    }

    /// Writes that the client did not answer.
    fn open_writes(&self) -> impl Iterator<Item = &Asked> {
        let writes = |asked: &&Asked| asked.command == Command::DmaWrite;
        self.asked.values().filter(writes)
    }

    /// Shared memory may be reached at once: on PCIe no access passes a write that was made before it.
    fn is_direct(&self) -> bool {
        self.uses_shared && self.open_writes().next().is_none()
    }

    fn ask(&mut self, request: &Request, len: usize) -> Ticket {
        let ticket = self.ticket();
        while self.asked.contains_key(&self.next_id) {
            self.next_id = self.next_id.wrapping_add(1);
        }
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        let command = request.command();
        let asked = Asked {
            ticket,
            command,
            len,
        };
        self.asked.insert(id, asked);
        let message = message::request(id, request, false);
        self.to_send.push_back((id, message));
        ticket
    }
}

impl RemoteMemory for Dma {
    fn start_read(&self, addr: u64, len: usize) -> Ticket {
        let mut state = self.0.borrow_mut();
        if !state.is_open {
            return state.answered(Err(Refused));
        }
        if state.is_direct() {
            let mut data = vec![0; len];
            if state.windows.read(addr, &mut data).is_some() {
                return state.answered(Ok(data));
            }
        }
        let range = Range {
            address: addr,
            count: len as u64,
        };
        state.ask(&Request::DmaRead(range), len)
    }

    fn start_write(&self, addr: u64, data: &[u8]) -> Ticket {
        let mut state = self.0.borrow_mut();
        if !state.is_open {
            return state.answered(Err(Refused));
        }
        if state.is_direct() && state.windows.write(addr, data).is_some() {
            return state.answered(Ok(Vec::new()));
        }
        let range = Range {
            address: addr,
            count: data.len() as u64,
        };
        state.ask(&Request::DmaWrite(range, data.to_vec()), data.len())
    }

    fn take(&self, ticket: Ticket) -> Option<Answer> {
        self.0.borrow_mut().answers.remove(&ticket)
    }

    fn discard(&self, ticket: Ticket) {
        let mut state = self.0.borrow_mut();
        state.answers.remove(&ticket);
        let asked = state.asked.values_mut().find(|a| a.ticket == ticket);
        if let Some(asked) = asked {
            asked.ticket = FORGOTTEN;
        }
    }
}

#[cfg(test)]
mod tests {
    use ferroce_vfio_user::payload::dma::{READ, WRITE};
    use ferroce_vfio_user::stream::{Receiver, Wait, send};
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    /// The next message, which the card sends.
    fn sent(dma: &Dma) -> Option<Message> {
        let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        send(&near, &dma.to_send()?, &[]).unwrap();
        Receiver::new().receive(&far, Wait::Forever).unwrap()
    }

    /// The client's reply to a write.
    fn done(mut message: Message) -> Message {
        message.header.kind = Kind::Reply { error: None };
        message.body.truncate(Range::BYTES);
        message
    }

    #[test]
    fn what_was_written_is_known_to_be() {
        let dma = Dma::new(false);
        dma.open(true);
        let none = dma.last();
        let first = dma.start_write(0x1000, &[1; 8]);
        dma.start_read(0x2000, 8);
        let last = dma.last();
        let later = dma.start_write(0x3000, &[2; 8]);
        assert!(dma.has_written(none) && !dma.has_written(last));
        let [one, _, three] = [(); 3].map(|()| sent(&dma).unwrap());
        dma.reply(&done(three)).unwrap();
        assert!(!dma.has_written(last));
        dma.reply(&done(one)).unwrap();
        assert!(dma.has_written(last), "the read does not count");
        assert_eq!(dma.take(first), Some(Ok(Vec::new())));
        assert_eq!(dma.take(later), Some(Ok(Vec::new())));
    }

    #[test]
    fn shared_memory_does_not_pass_a_message() {
        let dma = Dma::new(true);
        dma.open(true);
        let file = memfd_create("shared", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 4096).unwrap();
        let shared = DmaMap {
            argsz: 32,
            flags: READ | WRITE,
            offset: 0,
            address: 0x10_000,
            size: 4096,
        };
        dma.map(&shared, Some(file)).unwrap();
        let at_once = dma.start_write(0x10_000, &[1; 8]);
        assert_eq!(dma.take(at_once), Some(Ok(Vec::new())));
        dma.start_write(0x5000, &[2; 8]);
        let payload = sent(&dma).unwrap();
        let entry = dma.start_write(0x10_000, &[3; 8]);
        let read = dma.start_read(0x10_000, 8);
        assert_eq!((dma.take(entry), dma.take(read)), (None, None));
        let [entry, _] = [(); 2].map(|()| sent(&dma).unwrap());
        dma.reply(&done(payload)).unwrap();
        dma.reply(&done(entry)).unwrap();
        let read = dma.start_read(0x10_000, 8);
        assert_eq!(dma.take(read), Some(Ok(vec![1; 8])), "at once again");
    }

    #[test]
    fn after_a_reset_nothing_more_is_asked() {
        let dma = Dma::new(false);
        dma.open(true);
        dma.start_write(0x1000, &[1; 8]);
        let under_way = sent(&dma).unwrap();
        dma.start_write(0x2000, &[2; 8]);
        dma.reset();
        assert!(sent(&dma).is_none() && dma.is_waiting());
        dma.reply(&done(under_way)).unwrap();
        assert!(!dma.is_waiting());
    }

    #[test]
    fn without_a_client_all_is_refused() {
        let dma = Dma::new(false);
        dma.open(true);
        let asked = dma.start_read(0x1000, 8);
        dma.disconnect();
        assert_eq!(dma.take(asked), Some(Err(Refused)));
        let late = dma.start_write(0x1000, &[1; 8]);
        assert_eq!(dma.take(late), Some(Err(Refused)));
        assert!(dma.to_send().is_none());
    }
}
