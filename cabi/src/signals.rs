//! Signals are for the program's own threads.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::thread::{Builder, JoinHandle};

use libc::{SIG_SETMASK, pthread_sigmask, sigfillset, sigset_t};

/// Calls `then`; threads that it starts take none of the program's signals.
pub fn quiet<T>(then: impl FnOnce() -> T) -> T {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::<sigset_t>::uninit());
    // SAFETY: places for sets of signals. A thread starts with the mask of the one that makes it.
    unsafe {
        sigfillset(all.as_mut_ptr());
        pthread_sigmask(SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let done = then();
    // SAFETY: the mask as it was.
    unsafe { pthread_sigmask(SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    done
}

/// Starts a thread of a library.
///
/// # Errors
/// The system's.
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    quiet(|| Builder::new().name(name.into()).spawn(run))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn blocked() -> String {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let mut lines = status.lines();
        lines.find(|l| l.starts_with("SigBlk")).unwrap().to_owned()
    }

    #[test]
    fn a_thread_of_the_library_takes_no_signal() {
        let before = blocked();
        let thread = spawn("quiet", || {
            let blocked = blocked();
            let mask = u64::from_str_radix(blocked.trim_start_matches("SigBlk:").trim(), 16);
            // All but SIGKILL and SIGSTOP, and the two that the C library keeps.
            let kept = [9, 19, 32, 33].map(|signal| 1 << (signal - 1));
            assert_eq!(mask.unwrap() | kept.iter().sum::<u64>(), u64::MAX);
        });
        thread.unwrap().join().unwrap();
        assert_eq!(blocked(), before);
    }
}
