//! Events on their way to the program, with a descriptor that is readable while there are some.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Mutex;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};

use crate::errno::Errno;
use crate::handle::lock;

/// Events in order. The descriptor counts them; the program may make it not block, and waits for it as it likes.
pub struct Mailbox<T> {
    fd: OwnedFd,
    events: Mutex<VecDeque<T>>,
}

impl<T> Mailbox<T> {
    /// An empty one; an error if the process has too many descriptors.
    ///
    /// # Errors
    /// The system's.
    pub fn new() -> Result<Self, Errno> {
        Ok(Self {
            fd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE)?,
            events: Mutex::default(),
        })
    }

    /// The descriptor.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Adds an event.
    pub fn put(&self, event: T) {
        lock(&self.events).push_back(event);
        // It fails only if 2^64 events wait.
        let _ = write(&self.fd, &1u64.to_ne_bytes());
    }

    /// The oldest event; waits for one unless the program made the descriptor not block.
    pub fn take(&self) -> Result<T, Errno> {
        loop {
            read(&self.fd, &mut [0; 8])?;
            // Events of objects that are gone were taken out, and left their count.
            if let Some(event) = lock(&self.events).pop_front() {
                return Ok(event);
            }
        }
    }

    /// Takes out the events that `is_meant` picks.
    pub fn take_out(&self, is_meant: impl Fn(&T) -> bool) -> Vec<T> {
        let mut events = lock(&self.events);
        let (out, left): (VecDeque<_>, _) = events.drain(..).partition(is_meant);
        *events = left;
        drop(events);
        Vec::from(out)
    }

    /// Forgets the events that `is_meant` picks.
    pub fn forget(&self, is_meant: impl Fn(&T) -> bool) {
        lock(&self.events).retain(|event| !is_meant(event));
    }
}
