//! Events on their way to the program, with a descriptor that is readable while there are some.

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, OnceLock};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};

use crate::errno::Errno;
use crate::handle::{Acks, lock};

/// Events in order. The descriptor has a byte for each, which comes and goes with it under their lock; the program may make
/// it not block, and waits for it as it likes.
///
/// It is a socket: a wait that peeks takes no byte from others, and ends by signals and by `pthread_cancel` as a `read` does.
pub struct Mailbox<T> {
    fd: OwnedFd,
    /// The other end, where bytes are put.
    write_end: OwnedFd,
    waiting: Mutex<Waiting<T>>,
}

struct Waiting<T> {
    events: VecDeque<T>,
    /// Bytes in the socket: as many as events, but as many as it takes.
    bytes: usize,
}

impl<T> Mailbox<T> {
    /// An empty one; an error if the process has too many descriptors.
    ///
    /// # Errors
    /// The system's.
    pub fn new() -> Result<Self, Errno> {
        let (fd, write_end) = pair()?;
        Ok(Self {
            fd,
            write_end,
            waiting: Mutex::new(Waiting {
                events: VecDeque::new(),
                bytes: 0,
            }),
        })
    }

    /// The descriptor.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Adds an event.
    pub fn put(&self, event: T) {
        self.add(&mut lock(&self.waiting), event);
    }

    /// Adds an event of the object of `acks`, unless that ends.
    pub fn put_of(&self, acks: &Acks, event: T) {
        let mut waiting = lock(&self.waiting);
        if !acks.is_over() {
            self.add(&mut waiting, event);
        }
    }

    fn add(&self, waiting: &mut Waiting<T>, event: T) {
        waiting.events.push_back(event);
        // A socket that is full is readable.
        let sent = send(
            &self.write_end,
            &[0],
            SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
        );
        waiting.bytes += usize::from(sent.is_ok());
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
            // No point of cancellation: callers have something to drop.
            recv(&self.fd, &mut [0], RecvFlags::PEEK)?;
        }
    }

    /// What `then` makes of the oldest event, as above; `None` if there is none.
    pub fn try_take_with<R>(&self, mut then: impl FnMut(T) -> Option<R>) -> Option<R> {
        let mut waiting = lock(&self.waiting);
        while let Some(event) = waiting.events.pop_front() {
            self.settle(&mut waiting);
            if let Some(made) = then(event) {
                return Some(made);
            }
        }
        None
    }

    /// Takes out the events that `is_meant` picks.
    pub fn take_out(&self, is_meant: impl Fn(&T) -> bool) -> Vec<T> {
        self.pick(&mut lock(&self.waiting), is_meant).into()
    }

    fn pick(&self, waiting: &mut Waiting<T>, is_meant: impl Fn(&T) -> bool) -> VecDeque<T> {
        let (out, left): (VecDeque<_>, _) = waiting.events.drain(..).partition(is_meant);
        waiting.events = left;
        self.settle(waiting);
        out
    }

    /// The object of `acks` ends: its events, which `is_meant` picks, are forgotten and no more are put; those that the program
    /// has are waited for.
    pub fn end(&self, acks: &Acks, is_meant: impl Fn(&T) -> bool) {
        let mut waiting = lock(&self.waiting);
        acks.end();
        let forgotten = self.pick(&mut waiting, is_meant);
        drop(waiting);
        drop(forgotten);
        acks.wait();
    }

    /// The socket has no more bytes than there are events.
    fn settle(&self, waiting: &mut Waiting<T>) {
        let mut place = [0; 64];
        while waiting.bytes > waiting.events.len() {
            let more = place.len().min(waiting.bytes - waiting.events.len());
            match recv(&self.fd, &mut place[..more], RecvFlags::DONTWAIT) {
                Ok((taken, _)) if taken > 0 => waiting.bytes -= taken,
                // The program has closed the descriptor.
                _ => break,
            }
        }
    }
}

unsafe extern "C-unwind" {
    /// The C library's: `pthread_cancel` ends a thread that waits in it.
    #[link_name = "recv"]
    fn recv_or_end(fd: c_int, buf: *mut c_void, len: usize, flags: c_int) -> isize;
}

/// Waits for a byte and leaves it there: 1, 0 if none will come, or less and `errno`.
fn peek(fd: RawFd) -> isize {
    let mut place = 0u8;
    // SAFETY: a place for a byte. A program that closes the descriptor meanwhile gets an error.
    unsafe { recv_or_end(fd, (&raw mut place).cast(), 1, libc::MSG_PEEK) }
}

/// A descriptor that nothing ever comes to.
fn never() -> Result<RawFd, Errno> {
    static NEVER: OnceLock<Result<(OwnedFd, OwnedFd), Errno>> = OnceLock::new();
    match NEVER.get_or_init(pair) {
        Ok((fd, _)) => Ok(fd.as_raw_fd()),
        Err(errno) => Err(*errno),
    }
}

fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    socketpair(family, kind, SocketFlags::CLOEXEC, None)
}

/// Repeats `attempt` until it took an event. It names the descriptor of the mailbox to wait for while there is none; a
/// thread may be cancelled there, when nothing is left to drop: `attempt` is `Copy`.
///
/// # Errors
/// Of `attempt`; `EAGAIN`, and the system's.
pub fn until_taken(attempt: impl Fn() -> Result<Option<RawFd>, Errno> + Copy) -> Result<(), Errno> {
    while let Some(fd) = attempt()? {
        let mut peeked = peek(fd);
        if peeked == 0 {
            // The mailbox is gone, which a `read` that has begun does not notice; nor do programs expect it to.
            peeked = peek(never()?);
        }
        if peeked < 0 {
            // SAFETY: the place of this thread's own `errno`.
            return Err(Errno::from_raw_os_error(unsafe {
                *libc::__errno_location()
            }));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::fd::BorrowedFd;
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

    /// More than the socket takes.
    #[test]
    fn it_is_readable_until_the_last_is_taken() {
        let mailbox = Mailbox::new().unwrap();
        fcntl_setfl(&mailbox.fd, OFlags::NONBLOCK).unwrap();
        (0..10_000).for_each(|event| mailbox.put(event));
        for event in 0..10_000 {
            assert!(is_readable(&mailbox));
            assert_eq!(mailbox.take(), Ok(event));
        }
        assert!(!is_readable(&mailbox));
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
