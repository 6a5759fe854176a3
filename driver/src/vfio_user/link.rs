//! The connection: calls from any thread, and one thread that takes what comes.

use std::collections::HashMap;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use ferroce_vfio_user::header::Kind;
use ferroce_vfio_user::message::{self, Message, Request};
use ferroce_vfio_user::payload::{Dma, Region};
use ferroce_vfio_user::stream::{Receiver, StreamError, Wait, send};
use ferroce_vfio_user::{Errno, ProtocolError};

use super::VfioUserError;
use super::memory::Memory;
use crate::eventfd;
use crate::host::lock;

/// Longest wait for a reply, or for room in the socket. A last resort: a running server answers far sooner.
const LIMIT: Duration = Duration::from_secs(60);

/// Replies that are awaited, and those that came.
type Calls = HashMap<u16, Option<Message>>;

/// A connection to a card.
pub(super) struct Link {
    socket: UnixStream,
    /// The process that has it: a child of `fork` shares the socket, and has no thread that takes what comes.
    process: u32,
    /// The message ID used last. The holder of the lock may send.
    sender: Mutex<u16>,
    calls: Mutex<Calls>,
    answered: Condvar,
    memory: Mutex<Memory>,
    is_lost: AtomicBool,
    /// Becomes readable when the connection is lost.
    lost: OwnedFd,
}

impl Link {
    pub(super) fn connect(path: &Path) -> Result<Self, VfioUserError> {
        let connect = |source| VfioUserError::Connect {
            path: path.to_owned(),
            source,
        };
        let socket = UnixStream::connect(path).map_err(connect)?;
        socket.set_write_timeout(Some(LIMIT)).map_err(connect)?;
        let lost = eventfd::create().map_err(VfioUserError::Thread)?;
        Ok(Self {
            socket,
            process: std::process::id(),
            sender: Mutex::new(0),
            calls: Mutex::default(),
            answered: Condvar::new(),
            memory: Mutex::default(),
            is_lost: AtomicBool::new(false),
            lost,
        })
    }

    /// The memory that the card may reach. It reaches none of it while this is held.
    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        lock(&self.memory)
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Readable once the connection is lost.
    pub(super) fn lost(&self) -> BorrowedFd<'_> {
        self.lost.as_fd()
    }

    fn is_own(&self) -> bool {
        self.process == std::process::id()
    }

    /// Ends the connection: calls under way fail, and [`serve`](Self::serve) returns.
    pub(super) fn close(&self) {
        self.is_lost.store(true, Ordering::Release);
        if self.is_own() {
            // It fails only if the other end was faster.
            let _ = self.socket.shutdown(Shutdown::Both);
        }
        // An eventfd takes its first 1 always.
        let _ = eventfd::raise(&self.lost);
        drop(lock(&self.calls));
        self.answered.notify_all();
    }

    /// Asks and waits for the answer.
    pub(super) fn call(
        &self,
        request: &Request,
        fds: &[BorrowedFd<'_>],
    ) -> Result<Message, VfioUserError> {
        let id = self.send(request, fds, false)?;
        let end = Instant::now() + LIMIT;
        let mut calls = lock(&self.calls);
        loop {
            if let Some(Some(reply)) = calls.get_mut(&id).map(Option::take) {
                calls.remove(&id);
                return checked(request, reply);
            }
            let left = end.saturating_duration_since(Instant::now());
            if self.is_lost() || left.is_zero() {
                calls.remove(&id);
                drop(calls);
                self.close();
                return Err(VfioUserError::Lost);
            }
            let waited = self.answered.wait_timeout(calls, left);
            calls = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }

    /// Tells without waiting for an answer.
    pub(super) fn post(&self, request: &Request) -> Result<(), VfioUserError> {
        self.send(request, &[], true).map(drop)
    }

    /// Reads 4 bytes of a region.
    pub(super) fn read32(&self, region: u32, offset: u64) -> Result<u32, VfioUserError> {
        let at = Region {
            offset,
            region,
            count: 4,
        };
        let reply = self.call(&Request::RegionRead(at), &[])?;
        let (_, data) = Region::parse(&reply.body)?;
        let data = data.try_into().map_err(|_| ProtocolError::Data {
            found: data.len(),
            expected: 4,
        })?;
        Ok(u32::from_le_bytes(data))
    }

    fn send(
        &self,
        request: &Request,
        fds: &[BorrowedFd<'_>],
        no_reply: bool,
    ) -> Result<u16, VfioUserError> {
        if self.is_lost() || !self.is_own() {
            return Err(VfioUserError::Lost);
        }
        let mut last = lock(&self.sender);
        *last = last.wrapping_add(1);
        let id = *last;
        if !no_reply {
            lock(&self.calls).insert(id, None);
        }
        let bytes = message::request(id, request, no_reply);
        if let Err(error) = send(&self.socket, &bytes, fds) {
            tracing::debug!("nothing more can be sent to the card: {error}");
            drop(last);
            lock(&self.calls).remove(&id);
            self.close();
            return Err(VfioUserError::Lost);
        }
        Ok(id)
    }

    /// Takes what comes until the connection ends: hands replies to their waiters, and reads and writes memory for the
    /// card.
    pub(super) fn serve(&self) {
        let mut receiver = Receiver::new();
        loop {
            let message = match receiver.receive(&self.socket, Wait::Forever) {
                Ok(Some(message)) => message,
                Ok(None) => continue,
                Err(StreamError::Closed) => break,
                Err(error) => {
                    if !self.is_lost() {
                        tracing::error!("the connection to the card is given up: {error}");
                    }
                    break;
                }
            };
            match message.header.kind {
                Kind::Reply { .. } => {
                    if let Some(slot) = lock(&self.calls).get_mut(&message.header.id) {
                        *slot = Some(message);
                    }
                    self.answered.notify_all();
                }
                Kind::Command { no_reply } => {
                    // Whoever rang a doorbell had the lock: what it wrote before is seen.
                    let _one = lock(&self.sender);
                    let reply = self.access(&message);
                    if !no_reply && send(&self.socket, &reply, &[]).is_err() {
                        break;
                    }
                }
            }
        }
        self.close();
    }

    /// Carries out an access of the card; the reply to it.
    fn access(&self, message: &Message) -> Vec<u8> {
        let header = &message.header;
        let dma = match Request::parse(message) {
            Ok(Request::DmaRead(dma)) => {
                let mut data = vec![0; dma.count as usize];
                if self.memory().read(dma.address, &mut data) {
                    return message::reply(header, |to| {
                        dma.emit(to);
                        to.extend_from_slice(&data);
                    });
                }
                dma
            }
            Ok(Request::DmaWrite(dma, data)) => {
                if self.memory().write(dma.address, &data) {
                    return message::reply(header, |to| dma.emit(to));
                }
                dma
            }
            Ok(_) => return message::failure(header, Errno::NOTSUP),
            Err(error) => {
                tracing::error!("the card sent a malformed request: {error}");
                return message::failure(header, Errno::INVAL);
            }
        };
        let Dma { address, count } = dma;
        tracing::warn!("the card reached for {count} bytes at {address:#x}, which are not mapped");
        message::failure(header, Errno::FAULT)
    }
}

/// The reply, unless it is a refusal.
fn checked(request: &Request, reply: Message) -> Result<Message, VfioUserError> {
    let Kind::Reply { error: Some(errno) } = reply.header.kind else {
        return Ok(reply);
    };
    Err(VfioUserError::Refused {
        command: name(request),
        source: std::io::Error::from_raw_os_error(errno as i32),
    })
}

/// What a request asks for, in words.
fn name(request: &Request) -> &'static str {
    match request {
        Request::Version(_) => "the version",
        Request::DmaMap(_) => "mapping memory",
        Request::DmaUnmap(_) => "unmapping memory",
        Request::SetIrqs(..) => "attaching an interrupt",
        Request::RegionRead(_) => "reading a region",
        Request::RegionWrite(..) => "writing a region",
        Request::DeviceReset => "a reset",
        _ => "telling about itself",
    }
}
