//! A run of the suite: what it tells.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;

/// How often a wait looks whether the user wants an end.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// The longest that a process may take to end once its output is closed.
const END_LIMIT: Duration = Duration::from_secs(10);

/// What the runner tells.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(super) enum Event {
    Test {
        test: String,
    },
    Unknown {
        modules: Vec<String>,
        known: Vec<String>,
    },
    Start,
    Passed,
    Failed {
        text: String,
    },
    Skipped {
        text: String,
    },
    End,
    Done,
}

/// A runner at work. It ends with this value, and with it all that it started.
pub(super) trait Run {
    /// What it tells next; `None` if it has ended, or tells nothing until `deadline`.
    ///
    /// # Errors
    /// The user wants an end; what it tells is not understood.
    fn next(&mut self, deadline: Instant, stop: &AtomicBool) -> Result<Option<Event>>;

    /// How it ended, in words: by itself, or now, since it took too long.
    fn end(&mut self) -> String;
}

/// A process of this machine.
pub(super) struct Process {
    child: Child,
    events: Receiver<Result<Event>>,
    /// Its output is closed: it is about to end.
    is_closed: bool,
}

impl Run for Process {
    fn next(&mut self, deadline: Instant, stop: &AtomicBool) -> Result<Option<Event>> {
        loop {
            ensure!(!stop.load(Ordering::Acquire), "interrupted");
            match self.events.recv_timeout(LOOK) {
                Ok(event) => return event.map(Some),
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(error) => {
                    self.is_closed = error == RecvTimeoutError::Disconnected;
                    return Ok(None);
                }
            }
        }
    }

    fn end(&mut self) -> String {
        let deadline = Instant::now() + END_LIMIT;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return format!("the process ended ({status})"),
                Ok(None) if self.is_closed && Instant::now() < deadline => thread::sleep(LOOK),
                _ => return "it took too long".into(),
            }
        }
    }
}

impl Process {
    /// Starts `command`, and gives it `input` to read.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(command: &mut Command, input: &str) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .with_context(|| format!("{} cannot be started", command.get_program().display()))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take();
        let (sender, events) = channel();
        let process = Self {
            child,
            events,
            is_closed: false,
        };
        thread::spawn(move || {
            for line in stdout
                .into_iter()
                .flat_map(|pipe| BufReader::new(pipe).lines())
            {
                let event = line.map_err(Into::into).and_then(|line| parsed(&line));
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        if let Some(mut stdin) = stdin {
            // One that has ended does not read; that is seen by what it tells.
            let _ = stdin.write_all(input.as_bytes());
        }
        Ok(process)
    }
}

/// The event that a line tells.
///
/// # Errors
/// It tells none.
pub(super) fn parsed(line: &str) -> Result<Event> {
    serde_json::from_str(line).with_context(|| format!("the runner said: {line}"))
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for processes that have ended.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_process_is_waited_for() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 0.3; exit 7"]).process_group(0);
        let (_, events) = channel();
        let mut process = Process {
            child: shell.spawn().unwrap(),
            events,
            is_closed: false,
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        let event = process.next(deadline, &AtomicBool::new(false)).unwrap();
        assert!(event.is_none());
        assert_eq!(process.end(), "the process ended (exit status: 7)");
    }

    #[test]
    fn one_that_hangs_is_ended() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 600"]).process_group(0);
        let (_tell, events) = channel();
        let mut process = Process {
            child: shell.spawn().unwrap(),
            events,
            is_closed: false,
        };
        let event = process.next(Instant::now(), &AtomicBool::new(false));
        assert!(event.unwrap().is_none());
        assert_eq!(process.end(), "it took too long");
    }
}
