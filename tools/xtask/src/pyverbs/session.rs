//! The suite's processes: one runs tests until it is done, or until a test ends it or hangs; then another one goes on behind
//! that test.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;

use super::outcome::{Outcome, Verdict};
use crate::{Usage, tools};

const PYTHON: &str = "/usr/bin/python3";
const RUNNER: &str = include_str!("runner.py");
/// How often a wait looks whether the user wants an end.
const LOOK: Duration = Duration::from_millis(100);
/// The longest that the suite may take to load: against hanging only.
const LOAD_LIMIT: Duration = Duration::from_secs(300);

/// The longest that a process may take to end once its output is closed.
const END_LIMIT: Duration = Duration::from_secs(10);

/// What the runner tells.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Event {
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

/// A process of the runner, which ends with this value, and with it all that it started.
struct Process {
    child: Child,
    events: Receiver<Result<Event>>,
    /// Its output is closed: it is about to end.
    is_closed: bool,
}

impl Process {
    /// What it tells next; `None` if it has ended, or tells nothing until `deadline`.
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

    /// How it ended, in words: by itself, or now, since it took too long.
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

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for processes that have ended.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// The suite, unpacked, and what its processes are started with.
pub(super) struct Session {
    runner: PathBuf,
    suite: PathBuf,
    library: PathBuf,
    device: String,
    logs: PathBuf,
    seed: u64,
}

impl Session {
    pub(super) fn new(
        place: &Path,
        library: &Path,
        device: String,
        logs: &Path,
        seed: u64,
    ) -> Result<Self> {
        let (runner, suite) = (place.join("runner.py"), place.join("suite"));
        fs::write(&runner, RUNNER).context("cannot write the runner")?;
        fs::create_dir(&suite).context("cannot make a folder for the suite")?;
        Ok(Self {
            runner,
            suite,
            library: library.to_owned(),
            device,
            logs: logs.to_owned(),
            seed,
        })
    }

    /// What processes print that is no report.
    fn output(&self) -> PathBuf {
        self.logs.join("output.log")
    }

    fn start(&self, words: &[&str], input: &str) -> Result<Process> {
        let output = self.output();
        let errors = File::options().create(true).append(true).open(&output);
        let errors = errors.with_context(|| format!("cannot write {}", output.display()))?;
        // That of the system, which has the package, whatever else is on the path.
        let mut child = Command::new(PYTHON)
            .arg(&self.runner)
            .args(words)
            .env("LD_LIBRARY_PATH", &self.library)
            .env("FERROCE_DEVICE", &self.device)
            .env("FERROCE_MAC", "02:00:00:00:00:01")
            .env("FERROCE_IP", "10.0.0.1")
            .env("FERROCE_LOG", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .process_group(0)
            .spawn()
            .with_context(|| format!("{PYTHON} cannot be started"))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take();
        let (tell, events) = channel();
        let process = Process {
            child,
            events,
            is_closed: false,
        };
        thread::spawn(move || {
            for line in stdout
                .into_iter()
                .flat_map(|pipe| BufReader::new(pipe).lines())
            {
                let event = line.map_err(Into::into).and_then(|line| {
                    serde_json::from_str(&line).with_context(|| format!("the runner said: {line}"))
                });
                if tell.send(event).is_err() {
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

    /// Unpacks the suite: the names of the tests of `modules`, or of all.
    ///
    /// # Errors
    /// [`Usage`]: no such module. The suite does not load.
    pub(super) fn list(&self, modules: &[String]) -> Result<Vec<String>> {
        let suite = self.suite.to_string_lossy();
        let mut words = vec!["list", tools::PYVERBS_TESTS, &*suite];
        words.extend(modules.iter().map(String::as_str));
        let mut process = self.start(&words, "")?;
        let deadline = Instant::now() + LOAD_LIMIT;
        let mut tests = Vec::new();
        let never = AtomicBool::new(false);
        loop {
            match process.next(deadline, &never)? {
                Some(Event::Test { test }) => tests.push(test),
                Some(Event::Done) => return Ok(tests),
                Some(Event::Unknown { modules, known }) => {
                    let (modules, known) = (modules.join(", "), known.join(", "));
                    let text = format!("the suite has no {modules}; it has {known}");
                    return Err(Usage(text).into());
                }
                _ => bail!("the suite does not load; see {}", self.output().display()),
            }
        }
    }

    /// Runs `tests`; `each` is told of every one.
    pub(super) fn run(
        &self,
        tests: &[String],
        limit: Duration,
        stop: &AtomicBool,
        mut each: impl FnMut(&Outcome),
    ) -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        while outcomes.len() < tests.len() {
            let before = outcomes.len();
            let input = tests[before..].join("\n");
            let (suite, seed) = (self.suite.to_string_lossy(), self.seed.to_string());
            let mut process = self.start(&["run", &*suite, &seed], &input)?;
            let mut running = Running::default();
            loop {
                let limit = if running.is_started {
                    limit
                } else {
                    LOAD_LIMIT
                };
                let event = process.next(Instant::now() + limit, stop)?;
                let is_lost = event.is_none();
                let is_over = is_lost || matches!(event, Some(Event::End));
                match event {
                    Some(Event::Start) => running = self.begin(),
                    Some(Event::Passed) => running.note(Verdict::Passed),
                    Some(Event::Skipped { text }) => running.note(Verdict::Skipped(text)),
                    Some(Event::Failed { text }) => running.fail(&text),
                    Some(Event::End) => {}
                    None if running.is_started => running.fail(&process.end()),
                    // It is done, or ended between tests.
                    _ => break,
                }
                if let (true, Some(test)) = (is_over, tests.get(outcomes.len())) {
                    let outcome = self.finish(test, std::mem::take(&mut running))?;
                    each(&outcome);
                    outcomes.push(outcome);
                }
                if is_lost {
                    break;
                }
            }
            let output = self.output();
            let output = output.display();
            ensure!(
                outcomes.len() > before,
                "the suite does not run; see {output}"
            );
        }
        Ok(outcomes)
    }

    fn begin(&self) -> Running {
        Running {
            is_started: true,
            output_from: fs::metadata(self.output()).map_or(0, |file| file.len()),
            ..Running::default()
        }
    }

    /// What became of a test; of a failure a file tells, with what was printed meanwhile.
    fn finish(&self, test: &str, running: Running) -> Result<Outcome> {
        let verdict = running.verdict;
        let outcome = Outcome {
            test: test.to_owned(),
            verdict: verdict.unwrap_or(Verdict::Failed("it told no result".into())),
        };
        if let Verdict::Failed(_) = outcome.verdict {
            let output = fs::read(self.output()).unwrap_or_default();
            let printed = output
                .get(running.output_from as usize..)
                .unwrap_or_default();
            let printed = String::from_utf8_lossy(printed);
            let path = self.logs.join(format!("{}.log", outcome.name()));
            let text = format!("{}\nprinted meanwhile:\n{printed}", running.text);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(outcome)
    }
}

/// A test that runs.
#[derive(Default)]
struct Running {
    is_started: bool,
    /// Bytes that had been printed before.
    output_from: u64,
    verdict: Option<Verdict>,
    text: String,
}

impl Running {
    /// A failure stays one, whatever its end says.
    fn note(&mut self, verdict: Verdict) {
        if !matches!(self.verdict, Some(Verdict::Failed(_))) {
            self.verdict = Some(verdict);
        }
    }

    fn fail(&mut self, text: &str) {
        let why = text.trim().lines().last().unwrap_or("no reason");
        self.note(Verdict::Failed(why.to_owned()));
        self.text += text;
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
        let deadline = Instant::now() + LOAD_LIMIT;
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
