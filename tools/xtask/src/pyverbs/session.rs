//! The suite's processes: one runs tests until it is done, or until a test ends it or hangs; then another one goes on behind
//! that test.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::guest::Guest;
use super::outcome::{Outcome, TestResult};
use super::process::{Event, Process, Run};
use crate::{Usage, tools};

pub(super) const PYTHON: &str = "/usr/bin/python3";
const RUNNER: &str = include_str!("runner.py");
/// The longest that the suite may take to load: against hanging only.
const LOAD_LIMIT: Duration = Duration::from_secs(300);

/// What the tests run on.
pub(super) enum Device {
    /// A served card, by the name by which the driver opens it.
    Card(String),
    /// Linux soft-RoCE in a guest.
    Rxe,
}

/// The suite, unpacked, and what its processes are started with.
pub(super) struct Session {
    runner: PathBuf,
    suite: PathBuf,
    library: PathBuf,
    device: Device,
    logs: PathBuf,
    seed: u64,
}

impl Session {
    pub(super) fn new(
        place: &Path,
        library: &Path,
        device: Device,
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

    fn command(&self, words: &[&str]) -> Result<Command> {
        let output = self.output();
        let errors = File::options().create(true).append(true).open(&output);
        let errors = errors.with_context(|| format!("cannot write {}", output.display()))?;
        // That of the system, which has the package, whatever else is on the path.
        let mut command = Command::new(PYTHON);
        command
            .arg(&self.runner)
            .args(words)
            .env("LD_LIBRARY_PATH", &self.library)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stderr(errors);
        Ok(command)
    }

    /// Runs `tests`, unless one ends it.
    fn start(&self, tests: &[String]) -> Result<Box<dyn Run>> {
        let seed = self.seed.to_string();
        let device = match &self.device {
            Device::Card(device) => device,
            Device::Rxe => {
                let guest = Guest::start(RUNNER, &self.suite, tests, &seed, self.output())?;
                return Ok(Box::new(guest));
            }
        };
        let mut command =
            self.command(&["run", &self.suite.to_string_lossy(), &seed, "ferroce0"])?;
        command
            .env("FERROCE_DEVICE", device)
            .env("FERROCE_MAC", "02:00:00:00:00:01")
            .env("FERROCE_IP", "10.0.0.1")
            .env("FERROCE_LOG", "1");
        Ok(Box::new(Process::start(&mut command, &tests.join("\n"))?))
    }

    /// Unpacks the suite: the names of the tests of `modules`, or of all.
    ///
    /// # Errors
    /// [`Usage`]: no such module. The suite does not load.
    pub(super) fn list(&self, modules: &[String]) -> Result<Vec<String>> {
        let suite = self.suite.to_string_lossy();
        let mut words = vec!["list", tools::PYVERBS_TESTS, &*suite];
        words.extend(modules.iter().map(String::as_str));
        let mut process = Process::start(&mut self.command(&words)?, "")?;
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

    /// Runs `tests`, and calls `each` with every result.
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
            let mut process = self.start(&tests[before..])?;
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
                    Some(Event::Passed) => running.note(TestResult::Passed),
                    Some(Event::Skipped { text }) => running.note(TestResult::Skipped(text)),
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
        let result = running.result;
        let outcome = Outcome {
            test: test.to_owned(),
            result: result.unwrap_or(TestResult::Failed("it told no result".into())),
        };
        if let TestResult::Failed(_) = outcome.result {
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
    result: Option<TestResult>,
    text: String,
}

impl Running {
    /// A failure stays one, whatever its end says.
    fn note(&mut self, result: TestResult) {
        if !matches!(self.result, Some(TestResult::Failed(_))) {
            self.result = Some(result);
        }
    }

    fn fail(&mut self, text: &str) {
        let why = text.trim().lines().last().unwrap_or("no reason");
        self.note(TestResult::Failed(why.to_owned()));
        self.text += text;
    }
}
