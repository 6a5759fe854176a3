//! Event file descriptors (`eventfd(2)`): how a backend tells of interrupts.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};

/// A new one, not readable; reading it never blocks, and it is closed on `exec`.
///
/// # Errors
/// The system refuses, as at the limit of open files.
pub fn create() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Makes it readable.
///
/// # Errors
/// It is not an eventfd.
pub fn raise(fd: impl AsFd) -> io::Result<()> {
    match write(fd, &1u64.to_ne_bytes()) {
        // The count is at its end: it is readable.
        Ok(_) | Err(Errno::AGAIN) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Makes it readable: there is an event to take.
pub(crate) fn signal(fd: impl AsFd) {
    if let Err(e) = raise(fd) {
        tracing::error!("cannot signal an event: {e}");
    }
}

/// Makes it not readable; whether it was. Does not wait if the eventfd does not block.
pub fn clear(fd: impl AsFd) -> bool {
    read(fd, &mut [0; 8]).is_ok()
}

/// Waits until it is readable, for `timeout_ns` of the system's time at most; whether it is.
pub fn wait(fd: impl AsFd, timeout_ns: u64) -> bool {
    let limit = Duration::from_nanos(timeout_ns);
    let start = Instant::now();
    loop {
        let left = limit.saturating_sub(start.elapsed());
        let left = Timespec::try_from(left).ok();
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        match poll(&mut fds, left.as_ref()) {
            Err(Errno::INTR) => continue,
            Ok(1..) => return fds[0].revents().contains(PollFlags::IN),
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readable_from_raise_to_clear() {
        let fd = create().unwrap();
        assert!(!wait(&fd, 0) && !clear(&fd));
        let other = fd.try_clone().unwrap();
        raise(&fd).unwrap();
        raise(&other).unwrap();
        assert!(wait(&fd, u64::MAX) && wait(&other, 0));
        assert!(clear(&other), "it was readable");
        assert!(!wait(&fd, 1_000_000) && !clear(&fd));
    }
}
