//! Runs a list of commands on all cores, with progress on a terminal.

use std::io::{IsTerminal, stderr};
use std::process::{Command, Output};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ferroce_system::pool;
use indicatif::{ProgressBar, ProgressStyle};

use super::Error;
use super::tools::run;

/// A command and the name it is shown under.
pub(super) struct Job {
    pub(super) name: String,
    pub(super) command: Command,
}

/// Jobs that may run now, in this whole process: several builds share the cores.
struct Slots {
    free: Mutex<Option<usize>>,
    freed: Condvar,
}

static SLOTS: Slots = Slots {
    free: Mutex::new(None),
    freed: Condvar::new(),
};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Slots {
    /// Runs `work` when a slot is free.
    fn with<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut free = lock(&self.free);
        while *free.get_or_insert_with(pool::processors) == 0 {
            free = self
                .freed
                .wait(free)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *free = free.map(|n| n - 1);
        drop(free);
        let done = work();
        let mut free = lock(&self.free);
        *free = free.map(|n| n + 1);
        self.freed.notify_one();
        done
    }
}

/// Progress of one build on standard error: a bar on a terminal, else one line at its start.
pub(super) struct Progress {
    top: String,
    bar: ProgressBar,
}

impl Progress {
    /// Announces the build of module `top`.
    pub(super) fn start(top: &str) -> Self {
        let bar = if stderr().is_terminal() {
            let template = "{spinner} building model `{prefix}` {wide_bar} {pos}/{len} {elapsed}";
            let style = ProgressStyle::with_template(template).expect("the template is constant");
            let bar = ProgressBar::new(1)
                .with_style(style)
                .with_prefix(top.to_owned());
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        } else {
            eprintln!("building model `{top}`");
            ProgressBar::hidden()
        };
        Self {
            top: top.to_owned(),
            bar,
        }
    }

    /// Runs all `jobs`; starts no more of them after a failure, and returns the first one.
    pub(super) fn run(&self, jobs: Vec<Job>) -> Result<(), Error> {
        self.bar.inc_length(jobs.len() as u64);
        let threads = pool::processors().min(jobs.len());
        pool::try_each(threads, jobs, || {
            |job| SLOTS.with(|| self.run_one(job)).map(|()| self.bar.inc(1))
        })
        .map(drop)
    }

    fn run_one(&self, mut job: Job) -> Result<(), Error> {
        let output = run(&mut job.command, "g++")?;
        if output.status.success() {
            return Ok(());
        }
        let log = log(&output);
        if log.contains("zlib.h") {
            return Err(Error::Missing {
                what: "zlib.h".into(),
                package: "zlib1g-dev",
            });
        }
        Err(Error::Compile {
            top: self.top.clone(),
            unit: job.name,
            log,
        })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// What a command wrote, errors first.
pub(super) fn log(output: &Output) -> String {
    let mut text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stdout));
    text.trim_end().to_owned()
}
