//! Events on their way to the program, with a descriptor that is readable while there are some.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Mutex;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::{read, write};

use crate::errno::Errno;
use crate::handle::lock;

/// Events in order. The descriptor counts them, and changes with them under their lock; the program may make it not block,
/// and waits for it as it likes.
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
        let mut events = lock(&self.events);
        events.push_back(event);
        // It fails only if 2^64 events wait.
        let _ = write(&self.fd, &1u64.to_ne_bytes());
    }

    /// The oldest event; waits for one unless the program made the descriptor not block.
    pub fn take(&self) -> Result<T, Errno> {
        loop {
            let mut events = lock(&self.events);
            if let Some(event) = events.pop_front() {
                self.uncount(1);
                return Ok(event);
            }
            drop(events);
            if fcntl_getfl(&self.fd)?.contains(OFlags::NONBLOCK) {
                return Err(Errno::AGAIN);
            }
            // Another thread may be faster.
            poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], None)?;
        }
    }

    /// Takes out the events that `is_meant` picks.
    pub fn take_out(&self, is_meant: impl Fn(&T) -> bool) -> Vec<T> {
        let mut events = lock(&self.events);
        let (out, left): (VecDeque<_>, _) = events.drain(..).partition(is_meant);
        *events = left;
        self.uncount(out.len());
        drop(events);
        Vec::from(out)
    }

    /// Forgets the events that `is_meant` picks.
    pub fn discard(&self, is_meant: impl Fn(&T) -> bool) {
        drop(self.take_out(is_meant));
    }

    /// The descriptor counts so many fewer events, which were taken out under the lock: it does not block.
    fn uncount(&self, events: usize) {
        for _ in 0..events {
            let _ = read(&self.fd, &mut [0; 8]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::BorrowedFd;
    use std::sync::Arc;
    use std::thread;

    use rustix::event::Timespec;
    use rustix::fs::fcntl_setfl;

    use super::*;

    fn is_readable<T>(mailbox: &Mailbox<T>) -> bool {
        // SAFETY: it is open as long as the mailbox.
        let fd = unsafe { BorrowedFd::borrow_raw(mailbox.fd()) };
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).unwrap() == 1
    }

    #[test]
    fn what_is_taken_out_is_not_reported() {
        let mailbox = Mailbox::new().unwrap();
        (0..4).for_each(|event| mailbox.put(event));
        mailbox.discard(|event| event % 2 == 0);
        assert_eq!(mailbox.take(), Ok(1));
        assert_eq!(mailbox.take_out(|_| true), [3]);
        assert!(!is_readable(&mailbox));
        fcntl_setfl(&mailbox.fd, OFlags::NONBLOCK).unwrap();
        assert_eq!(mailbox.take(), Err(Errno::AGAIN));
    }

    #[test]
    fn the_waiting_thread_gets_the_next() {
        let mailbox = Arc::new(Mailbox::new().unwrap());
        let other = mailbox.clone();
        let waits = thread::spawn(move || other.take());
        mailbox.put(7);
        assert_eq!(waits.join().unwrap(), Ok(7));
        assert!(!is_readable(&mailbox));
    }
}
