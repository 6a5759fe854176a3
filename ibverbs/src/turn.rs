//! A part of an object that is taken for the length of several calls.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use crate::errno::Errno;
use crate::handle::lock;

struct State<T> {
    /// The thread that started the turn. Any thread may go on with it and end it.
    owner: Option<ThreadId>,
    value: T,
}

/// A value for one at a time, from [`start`](Self::start) to [`end`](Self::end).
pub(crate) struct Turn<T> {
    state: Mutex<State<T>>,
    free: Condvar,
}

impl<T> Turn<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            state: Mutex::new(State { owner: None, value }),
            free: Condvar::new(),
        }
    }

    /// Waits until no other thread holds the turn; whether the turn is new to this one.
    pub(crate) fn start(&self) -> bool {
        let own = thread::current().id();
        let mut state = lock(&self.state);
        while state.owner.is_some_and(|owner| owner != own) {
            state = self
                .free
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.owner.replace(own).is_none()
    }

    /// Calls `then` with the value; `EINVAL` if no turn was started.
    pub(crate) fn with<R>(&self, then: impl FnOnce(&mut T) -> R) -> Result<R, Errno> {
        let mut state = lock(&self.state);
        match state.owner {
            Some(_) => Ok(then(&mut state.value)),
            None => Err(Errno::INVAL),
        }
    }

    /// Ends the turn, if one was started.
    pub(crate) fn end(&self) {
        lock(&self.state).owner = None;
        self.free.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn another_thread_goes_on_and_ends() {
        let turn = Turn::new(0);
        assert!(turn.start());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(turn.with(|value| *value = 7), Ok(()));
                turn.end();
            });
        });
        assert!(turn.start(), "the turn is free");
        assert_eq!(turn.with(|value| *value), Ok(7));
    }

    #[test]
    fn one_thread_at_a_time() {
        let turn = Arc::new(Turn::new(0));
        assert_eq!(turn.with(|_| ()), Err(Errno::INVAL));
        assert!(turn.start());
        let other = turn.clone();
        let thread = thread::spawn(move || {
            assert!(other.start());
            let seen = other.with(|value| *value);
            other.end();
            seen
        });
        assert!(!turn.start(), "the turn is not new");
        turn.with(|value| *value = 7).unwrap();
        turn.end();
        assert_eq!(thread.join().unwrap(), Ok(7));
        assert_eq!(turn.with(|_| ()), Err(Errno::INVAL));
    }
}
