//! The end of a server.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};

/// Ends a [`Server`](super::Server) from another thread or a signal handler.
#[derive(Clone, Debug)]
pub struct Stop {
    is_set: Arc<AtomicBool>,
    event: Arc<OwnedFd>,
}

impl Stop {
    /// Not set.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            is_set: Arc::default(),
            event: Arc::new(event),
        })
    }

    /// The server ends after its turn.
    pub fn set(&self) {
        self.is_set.store(true, Ordering::Release);
        // Its counter is not full, and if it were it would be readable.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Readable once it is set.
    pub(crate) fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
