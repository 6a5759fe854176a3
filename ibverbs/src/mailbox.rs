//! Events on their way to the program, with a descriptor that is readable while there are some.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Mutex;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};

use crate::errno::Errno;
use crate::handle::lock;

/// Events in order. The descriptor counts them; the program may make it not block, and waits for it as it likes.
pub(crate) struct Mailbox<T> {
    fd: OwnedFd,
    events: Mutex<VecDeque<T>>,
}

impl<T> Mailbox<T> {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self {
            fd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE)?,
            events: Mutex::default(),
        })
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    pub(crate) fn put(&self, event: T) {
        lock(&self.events).push_back(event);
        // It fails only if 2^64 events wait.
        let _ = write(&self.fd, &1u64.to_ne_bytes());
    }

    /// The oldest event; waits for one unless the program made the descriptor not block.
    pub(crate) fn take(&self) -> Result<T, Errno> {
        loop {
            read(&self.fd, &mut [0; 8])?;
            // Events of objects that are gone were taken out, and left their count.
            if let Some(event) = lock(&self.events).pop_front() {
                return Ok(event);
            }
        }
    }

    /// Forgets the events that `is_meant` picks.
    pub(crate) fn forget(&self, is_meant: impl Fn(&T) -> bool) {
        lock(&self.events).retain(|event| !is_meant(event));
    }
}
