//! A barrier that a thread that panics does not leave others at.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct State {
    waiting: usize,
    round: u64,
    broken: bool,
}

/// Where threads wait for each other.
pub(super) struct Meeting {
    threads: usize,
    state: Mutex<State>,
    changed: Condvar,
}

impl Meeting {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            threads,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Waits for all threads.
    ///
    /// # Panics
    /// If another of them did.
    pub(super) fn wait(&self) {
        let mut state = self.lock();
        state.waiting += 1;
        if state.waiting == self.threads {
            state.waiting = 0;
            state.round += 1;
            self.changed.notify_all();
            return;
        }
        let round = state.round;
        while state.round == round && !state.broken {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let broken = state.broken;
        drop(state);
        assert!(!broken, "another thread of the fabric failed");
    }

    /// Releases the waiting threads if this thread panics while the returned value exists.
    pub(super) fn guard(&self) -> impl Drop {
        Guard(self)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Guard<'a>(&'a Meeting);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().broken = true;
            self.0.changed.notify_all();
        }
    }
}
