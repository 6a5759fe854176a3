//! A link to a peer: messages in order, and the time up to which all have come.

use std::collections::VecDeque;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::slots::{Message, SLOTS, Slots};

/// Type of a message: nothing but its time.
const SYNC: u8 = 0x00;
/// Type of a message: the peer ends.
const TERMINATE: u8 = 0x01;

/// A connected peer.
pub(super) struct Link {
    socket: UnixStream,
    slots: Slots,
    is_sync: bool,
    is_over: bool,
    latency: u64,
    next_in: usize,
    next_out: usize,
    /// Everything that arrives before this time has been taken.
    peer_time: u64,
    /// When something was sent last.
    synced: Option<u64>,
    /// What has no slot yet.
    outbox: VecDeque<Message>,
}

impl Link {
    pub(super) fn new(socket: UnixStream, slots: Slots, is_sync: bool, latency: u64) -> Self {
        Self {
            socket,
            slots,
            is_sync,
            is_over: false,
            latency,
            next_in: 0,
            next_out: 0,
            peer_time: 0,
            synced: None,
            outbox: VecDeque::new(),
        }
    }

    /// Time follows the peer's.
    pub(super) fn is_sync(&self) -> bool {
        self.is_sync && !self.is_over
    }

    /// The peer ended.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// A peer that closed its end is over when all that it sent has been taken.
    pub(super) fn check(&mut self) {
        let hung_up = PollFlags::RDHUP | PollFlags::HUP;
        let mut fds = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        let polled = poll(&mut fds, Some(&Timespec::default()));
        let is_gone = polled.is_ok() && fds[0].revents().intersects(hung_up);
        self.is_over |= is_gone && self.slots.peek(self.next_in, |_, _| 0).is_none();
    }

    /// Time that may not be passed: before it more may arrive.
    pub(super) fn horizon(&self) -> u64 {
        if self.is_sync() {
            self.peer_time
        } else {
            u64::MAX
        }
    }

    /// When the peer is due the time.
    pub(super) fn sync_at(&self) -> u64 {
        match self.synced {
            _ if !self.is_sync() => u64::MAX,
            None => 0,
            Some(synced) => synced.saturating_add(self.latency),
        }
    }

    /// The next message of the upper protocol that has arrived at `now`. `bytes` tells its data, by type and head.
    pub(super) fn receive(
        &mut self,
        now: u64,
        bytes: impl Fn(u8, &[u8]) -> usize,
    ) -> Option<Message> {
        while !self.is_over {
            let message = self.slots.peek(self.next_in, &bytes)?;
            self.peer_time = message.time;
            if self.is_sync && message.time > now {
                return None;
            }
            self.slots.give_back(self.next_in);
            self.next_in = (self.next_in + 1) % SLOTS;
            match message.kind {
                SYNC => {}
                TERMINATE => self.is_over = true,
                _ => return Some(message),
            }
        }
        None
    }

    /// Sends a message at `now`.
    pub(super) fn send(&mut self, now: u64, kind: u8, head: &[u8], data: Vec<u8>) {
        if self.is_over {
            return;
        }
        let mut message = Message {
            time: now.saturating_add(self.latency),
            kind,
            head: [0; 48],
            data,
        };
        message.head[..head.len()].copy_from_slice(head);
        self.synced = Some(now);
        self.outbox.push_back(message);
    }

    /// Tells the peer the time, if that is due.
    pub(super) fn keep_time(&mut self, now: u64) {
        if self.sync_at() <= now {
            self.send(now, SYNC, &[], Vec::new());
        }
    }

    /// Fills the slots that are free; true when nothing is left.
    pub(super) fn flush(&mut self) -> bool {
        if self.is_over {
            self.outbox.clear();
        }
        while let Some(message) = self.outbox.front()
            && self.slots.put(self.next_out, message)
        {
            self.next_out = (self.next_out + 1) % SLOTS;
            self.outbox.pop_front();
        }
        self.outbox.is_empty()
    }

    /// Says that the card ends.
    pub(super) fn terminate(&mut self, now: u64) {
        self.send(now, TERMINATE, &[], Vec::new());
        self.flush();
    }
}
