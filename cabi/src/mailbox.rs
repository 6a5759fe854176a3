//! Events on their way to the program, with a descriptor that is readable while there are some.

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Mutex;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, retry_on_intr, write};

use crate::errno::Errno;
use crate::handle::{Acks, lock};

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
        self.add(&mut lock(&self.events), event);
    }

    /// Adds an event of the object of `acks`, unless that ends.
    pub fn put_of(&self, acks: &Acks, event: T) {
        let mut events = lock(&self.events);
        if !acks.is_over() {
            self.add(&mut events, event);
        }
    }

    fn add(&self, events: &mut VecDeque<T>, event: T) {
        events.push_back(event);
        count(&self.fd);
    }

    /// The oldest event; waits for one unless the program made the descriptor not block.
    ///
    /// # Errors
    /// `EAGAIN`, and the system's.
    pub fn take(&self) -> Result<T, Errno> {
        self.take_with(Some)
    }

    /// What `then` makes of the oldest event, and drops the event if that is nothing; waits as [`take`](Self::take) does.
    /// `then` has the lock: whoever takes out events finds this one here, or what `then` did with it.
    ///
    /// # Errors
    /// As of [`take`](Self::take).
    pub fn take_with<R>(&self, mut then: impl FnMut(T) -> Option<R>) -> Result<R, Errno> {
        loop {
            if let Some(made) = self.try_take_with(&mut then) {
                return Ok(made);
            }
            // Another thread may be faster. The kernel goes on after a signal, as its handler says.
            read(&self.fd, &mut [0; 8])?;
            count(&self.fd);
        }
    }

    /// What `then` makes of the oldest event, as above; `None` if there is none.
    pub fn try_take_with<R>(&self, mut then: impl FnMut(T) -> Option<R>) -> Option<R> {
        let mut events = lock(&self.events);
        while let Some(event) = events.pop_front() {
            self.uncount(1);
            if let Some(made) = then(event) {
                return Some(made);
            }
        }
        None
    }

    /// Takes out the events that `is_meant` picks.
    pub fn take_out(&self, is_meant: impl Fn(&T) -> bool) -> Vec<T> {
        self.pick(&mut lock(&self.events), is_meant).into()
    }

    fn pick(&self, events: &mut VecDeque<T>, is_meant: impl Fn(&T) -> bool) -> VecDeque<T> {
        let (out, left): (VecDeque<_>, _) = events.drain(..).partition(is_meant);
        *events = left;
        self.uncount(out.len());
        out
    }

    /// The object of `acks` ends: its events, which `is_meant` picks, are forgotten and no more are put; those that the program
    /// has are waited for.
    pub fn end(&self, acks: &Acks, is_meant: impl Fn(&T) -> bool) {
        let mut events = lock(&self.events);
        acks.end();
        let forgotten = self.pick(&mut events, is_meant);
        drop(events);
        drop(forgotten);
        acks.wait();
    }

    /// The descriptor counts so many fewer events, which were taken out under the lock: it does not block for longer than
    /// a thread that waited has the count.
    fn uncount(&self, events: usize) {
        for _ in 0..events {
            let _ = retry_on_intr(|| read(&self.fd, &mut [0; 8]));
        }
    }
}

/// An event more. It fails only if 2^64 events wait.
fn count(fd: impl AsFd) {
    let _ = write(fd, &1u64.to_ne_bytes());
}

unsafe extern "C-unwind" {
    /// The C library's: `pthread_cancel` ends a thread that waits in it.
    #[link_name = "read"]
    fn read_or_end(fd: c_int, buf: *mut c_void, len: usize) -> isize;
}

/// Repeats `attempt` until it took an event. It names the descriptor of the mailbox to wait for while there is none; a
/// thread may be cancelled there, when nothing is left to drop: `attempt` is `Copy`.
///
/// # Errors
/// Of `attempt`; `EAGAIN`, and the system's.
pub fn until_taken(attempt: impl Fn() -> Result<Option<RawFd>, Errno> + Copy) -> Result<(), Errno> {
    while let Some(fd) = attempt()? {
        let mut value = 0u64;
        // SAFETY: a place for 8 bytes. A program that closes the descriptor meanwhile gets an error.
        let read = unsafe { read_or_end(fd, (&raw mut value).cast(), size_of::<u64>()) };
        if read < 0 {
            // SAFETY: the place of this thread's own `errno`.
            return Err(Errno::from_raw_os_error(unsafe {
                *libc::__errno_location()
            }));
        }
        // SAFETY: as above.
        count(unsafe { BorrowedFd::borrow_raw(fd) });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};
    use std::thread;
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::{OFlags, fcntl_setfl};

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
        let (even, odd) = (Acks::default(), Acks::default());
        mailbox.end(&even, |event| event % 2 == 0);
        assert_eq!(mailbox.take(), Ok(1));
        // The thread of a card had found the object before it ended.
        mailbox.put_of(&even, 4);
        mailbox.put_of(&odd, 3);
        assert_eq!(mailbox.take(), Ok(3));
        assert_eq!(mailbox.take_out(|_| true), [3]);
        assert!(!is_readable(&mailbox));
        fcntl_setfl(&mailbox.fd, OFlags::NONBLOCK).unwrap();
        assert_eq!(mailbox.take(), Err(Errno::AGAIN));
    }

    /// Whoever destroys an object of which another thread has an event in hand waits for its acknowledgement.
    #[test]
    fn an_event_in_hand_is_waited_for() {
        let (mailbox, acks) = (Mailbox::new().unwrap(), Acks::default());
        let is_over = AtomicBool::new(false);
        let ((is_in_hand, wait_in_hand), (go, wait_go)) = (mpsc::channel(), mpsc::channel());
        mailbox.put(7);
        thread::scope(|scope| {
            let (mailbox, acks, is_over) = (&mailbox, &acks, &is_over);
            let takes = scope.spawn(move || {
                mailbox.take_with(|event| {
                    is_in_hand.send(()).unwrap();
                    wait_go.recv().unwrap();
                    acks.taken();
                    Some(event)
                })
            });
            wait_in_hand.recv().unwrap();
            scope.spawn(|| {
                mailbox.end(acks, |_| true);
                is_over.store(true, Ordering::Relaxed);
            });
            let is_held = || {
                thread::sleep(Duration::from_millis(50));
                !is_over.load(Ordering::Relaxed)
            };
            let before = is_held();
            go.send(()).unwrap();
            assert_eq!(takes.join().unwrap(), Ok(7));
            let after = is_held();
            acks.acknowledge(1);
            assert!(before && after);
        });
        assert!(is_over.load(Ordering::Relaxed));
    }

    #[test]
    fn what_nothing_is_made_of_is_dropped() {
        let mailbox = Mailbox::new().unwrap();
        (0..4).for_each(|event| mailbox.put(event));
        assert_eq!(
            mailbox.take_with(|event| (event == 2).then_some("two")),
            Ok("two")
        );
        assert_eq!(mailbox.take(), Ok(3));
        assert!(!is_readable(&mailbox));
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
