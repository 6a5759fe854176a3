//! The connection of a client.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use ferroce_vfio_user::message::Message;
use ferroce_vfio_user::stream::{Outbox, Receiver, StreamError, Wait};
use rustix::event::PollFlags;

/// Bytes of replies that wait for a client that does not read them, before the server stops reading from it until it does.
const MAX_WAITING: usize = 4 << 20;

/// A client.
pub(super) struct Client {
    socket: UnixStream,
    receiver: Receiver,
    outbox: Outbox,
    /// The version is agreed.
    pub(super) has_agreed: bool,
}

impl Client {
    pub(super) fn new(socket: UnixStream) -> Self {
        Self {
            socket,
            receiver: Receiver::new(),
            outbox: Outbox::new(),
            has_agreed: false,
        }
    }

    /// The next message that is here.
    pub(super) fn receive(&mut self) -> Result<Option<Message>, StreamError> {
        if self.outbox.bytes() > MAX_WAITING {
            return Ok(None);
        }
        self.receiver.receive(&self.socket, Wait::Never)
    }

    /// Sends a message as soon as there is room.
    pub(super) fn send(&mut self, message: Vec<u8>) {
        self.outbox.push(message);
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.outbox.flush(&self.socket)
    }

    /// Messages wait for room.
    pub(super) fn is_late(&self) -> bool {
        self.outbox.bytes() > 0
    }

    /// Its other end is closed; what it sent before may still be here.
    pub(super) fn has_hung_up(&self) -> bool {
        super::is_now(&self.socket, PollFlags::HUP)
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
