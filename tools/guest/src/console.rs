//! What a guest prints, read as it comes.

use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Default)]
struct State {
    text: Vec<u8>,
    /// Nothing more will come.
    closed: bool,
}

/// Text that a thread collects and others wait for.
#[derive(Clone, Default)]
pub(crate) struct Console(Arc<(Mutex<State>, Condvar)>);

/// Why a marker was not found.
pub(crate) enum Miss {
    Late,
    Closed,
}

impl Console {
    /// Collects `input` to its end, in a thread of its own.
    pub(crate) fn collect(mut input: impl Read + Send + 'static) -> Self {
        let console = Self::default();
        let shared = console.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = input.read(&mut buffer) {
                shared.state().text.extend_from_slice(&buffer[..n]);
                shared.0.1.notify_all();
            }
            shared.state().closed = true;
            shared.0.1.notify_all();
        });
        console
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All text so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.state().text).into_owned()
    }

    /// Waits for a whole line that holds `marker` at or behind byte `from`; answers the line and where it ends.
    pub(crate) fn wait(
        &self,
        marker: &str,
        from: usize,
        limit: Duration,
    ) -> Result<(String, usize), Miss> {
        let start = Instant::now();
        let mut state = self.state();
        loop {
            if let Some(found) = line(&state.text, marker, from) {
                return Ok(found);
            }
            if state.closed {
                return Err(Miss::Closed);
            }
            let left = limit.checked_sub(start.elapsed()).ok_or(Miss::Late)?;
            state = self
                .0
                .1
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Waits until nothing more can come.
    pub(crate) fn wait_closed(&self, limit: Duration) -> bool {
        let open = |state: &mut State| !state.closed;
        let (_state, timeout) = self
            .0
            .1
            .wait_timeout_while(self.state(), limit, open)
            .unwrap_or_else(PoisonError::into_inner);
        !timeout.timed_out()
    }
}

fn line(text: &[u8], marker: &str, from: usize) -> Option<(String, usize)> {
    let mut start = from;
    loop {
        let length = text[start..].iter().position(|&b| b == b'\n')?;
        let line = String::from_utf8_lossy(&text[start..start + length]);
        start += length + 1;
        if line.contains(marker) {
            return Some((line.trim_end().to_owned(), start));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn lines_are_found_once_and_whole() {
        let console = Console::collect(&b"ready 1\nx ready 2\nready 3"[..]);
        let Ok((line, at)) = console.wait("ready", 0, LONG) else {
            panic!("line 1")
        };
        assert_eq!(line, "ready 1");
        let Ok((line, at)) = console.wait("ready", at, LONG) else {
            panic!("line 2")
        };
        assert_eq!(line, "x ready 2");
        assert!(matches!(console.wait("ready", at, LONG), Err(Miss::Closed)));
    }

    #[test]
    fn a_wait_is_bounded() {
        let (_open, input) =
            std::os::unix::net::UnixStream::pair().unwrap_or_else(|e| panic!("{e}"));
        let console = Console::collect(input);
        let waited = console.wait("ready", 0, Duration::from_millis(10));
        assert!(matches!(waited, Err(Miss::Late)));
    }
}
