//! Messages on a stream socket.
//!
//! The header is read by itself: file descriptors belong to the message whose first byte they came with.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use thiserror::Error;

use crate::header::Header;
use crate::message::Message;
use crate::{MAX_FDS, ProtocolError};

/// Nothing more comes over this stream.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The other side ended it.
    #[error("the other side closed the connection")]
    Closed,
    /// It ended inside a message.
    #[error("the other side closed the connection inside a message")]
    Truncated,
    /// What came is not the protocol.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The system refused.
    #[error("the socket failed")]
    Io(#[from] io::Error),
}

/// Whether to wait for what is not there yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// No.
    Never,
    /// Until it comes, or the timeout of the socket has passed.
    Forever,
}

/// Puts messages together.
#[derive(Debug, Default)]
pub struct Receiver {
    header: [u8; Header::BYTES],
    /// Bytes of the header that are here.
    have: usize,
    /// Once the header is complete: it, and the body so far.
    body: Option<(Header, Vec<u8>, usize)>,
    fds: Vec<OwnedFd>,
}

impl Receiver {
    /// Nothing received yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The next message; `None` if it is not here yet and `wait` is [`Wait::Never`].
    ///
    /// # Errors
    /// [`StreamError`]: the stream ended, or broke the protocol so that no later message can be found.
    pub fn receive(
        &mut self,
        socket: impl AsFd,
        wait: Wait,
    ) -> Result<Option<Message>, StreamError> {
        let socket = socket.as_fd();
        while self.have < Header::BYTES {
            let (bytes, fds) = match with_fds(socket, &mut self.header[self.have..], wait) {
                Err(e) if e.kind() == ErrorKind::WouldBlock && wait == Wait::Never => {
                    return Ok(None);
                }
                received => received?,
            };
            if bytes == 0 {
                return Err(if self.have == 0 {
                    StreamError::Closed
                } else {
                    StreamError::Truncated
                });
            }
            self.have += bytes;
            self.fds.extend(fds.ok_or(ProtocolError::Fds)?);
            if self.fds.len() > MAX_FDS {
                return Err(ProtocolError::Fds.into());
            }
        }
        if self.body.is_none() {
            let header = Header::parse(&self.header)?;
            let body = vec![0; header.size as usize - Header::BYTES];
            self.body = Some((header, body, 0));
        }
        let Some((_, body, filled)) = &mut self.body else {
            return Ok(None);
        };
        while *filled < body.len() {
            let flags = flags(wait);
            match rustix::net::recv(socket, &mut body[*filled..], flags) {
                Ok((_, 0)) => return Err(StreamError::Truncated),
                Ok((_, bytes)) => *filled += bytes,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) if wait == Wait::Never => return Ok(None),
                Err(e) => return Err(io::Error::from(e).into()),
            }
        }
        self.have = 0;
        let fds = std::mem::take(&mut self.fds);
        Ok(self
            .body
            .take()
            .map(|(header, body, _)| Message { header, body, fds }))
    }
}

fn flags(wait: Wait) -> RecvFlags {
    match wait {
        Wait::Never => RecvFlags::DONTWAIT,
        Wait::Forever => RecvFlags::empty(),
    }
}

/// Reads bytes and the file descriptors that came with them; no descriptors if there were too many.
fn with_fds(
    socket: BorrowedFd<'_>,
    to: &mut [u8],
    wait: Wait,
) -> io::Result<(usize, Option<Vec<OwnedFd>>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = flags(wait) | RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        match recvmsg(socket, &mut [IoSliceMut::new(to)], &mut control, flags) {
            Err(rustix::io::Errno::INTR) => {}
            received => break received?,
        }
    };
    let fds = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    let whole = !received.flags.contains(ReturnFlags::CTRUNC);
    Ok((received.bytes, whole.then_some(fds)))
}

/// Sends a whole message, waiting as long as that takes.
///
/// # Errors
/// The other side is gone, more than [`MAX_FDS`] descriptors, or the timeout of the socket has passed.
pub fn send(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut sent = 0;
    while sent < bytes.len() {
        let fds = if sent == 0 { fds } else { &[] };
        match some(socket.as_fd(), &bytes[sent..], fds, SendFlags::NOSIGNAL) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            done => sent += done?,
        }
    }
    Ok(())
}

fn some(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::new(ErrorKind::InvalidInput, ProtocolError::Fds));
    }
    Ok(sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut control,
        flags,
    )?)
}

/// Messages that wait for room in the socket, oldest first.
#[derive(Debug, Default)]
pub struct Outbox {
    waiting: VecDeque<Vec<u8>>,
    /// Bytes of the first one that left.
    sent: usize,
    bytes: usize,
}

impl Outbox {
    /// Nothing waits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message.
    pub fn push(&mut self, message: Vec<u8>) {
        self.bytes += message.len();
        self.waiting.push_back(message);
    }

    /// Bytes of the messages that have not left whole.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sends what there is room for; each message in a call of its own, so that its header is not torn.
    ///
    /// # Errors
    /// The other side is gone.
    pub fn flush(&mut self, socket: impl AsFd) -> io::Result<()> {
        while let Some(message) = self.waiting.front() {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match some(socket.as_fd(), &message[self.sent..], &[], flags) {
                Ok(bytes) => self.sent += bytes,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            }
            if self.sent == message.len() {
                self.sent = 0;
                self.bytes -= message.len();
                self.waiting.pop_front();
            }
        }
        Ok(())
    }
}
