//! Programs that run side by side, each with its output in one piece.

use std::cmp::Reverse;
use std::io::{IsTerminal, PipeReader, Read, Write, pipe, stderr, stdout};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ferroce_system::pool;
use indicatif::{ProgressBar, ProgressStyle};

/// A program and the name it is shown under.
pub(super) struct Job {
    pub(super) name: String,
    pub(super) command: Command,
}

/// How one ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// The name it is shown under.
    pub(super) name: String,
    /// It ended with 0.
    pub(super) success: bool,
    /// What it wrote on both of its outputs.
    pub(super) text: String,
    /// How long it took.
    pub(super) time: Duration,
}

/// How many run at a time: one test of a binary often waits for another or for a tool, and each has threads of its own.
fn parallelism() -> usize {
    pool::processors().div_ceil(2) + 1
}

/// Runs all of them in their order, several at a time, also when some fail. What one writes is printed when it has ended.
///
/// # Errors
/// One that cannot be started.
pub(super) fn all(jobs: Vec<Job>) -> Result<Vec<Ended>> {
    let bar = bar(jobs.len() as u64);
    let ended: Result<Vec<_>> = pool::try_each(parallelism(), jobs, || {
        |mut job: Job| {
            let name = &job.name;
            if bar.is_hidden() {
                eprintln!("started {name}");
            }
            let start = Instant::now();
            let (status, mut log) = run(&mut job.command).with_context(|| name.clone())?;
            // A program that ends by a signal says nothing of it itself.
            if status.code().is_none() {
                log.extend(format!("{name} ended by {status}\n").bytes());
            }
            let time = start.elapsed();
            bar.suspend(|| {
                // Whole lines of one program: the lock is held. A closed output has no reader.
                let mut out = stdout().lock();
                let _ = writeln!(out, "\n     Running {name}");
                let _ = out.write_all(&log).and_then(|()| out.flush());
            });
            bar.inc(1);
            Ok(Ended {
                name: job.name,
                success: status.success(),
                text: String::from_utf8_lossy(&log).into_owned(),
                time,
            })
        }
    });
    bar.finish_and_clear();
    ended
}

/// A line for each of the `most` that took longest.
pub(super) fn slowest(ended: &[Ended], most: usize) -> String {
    let mut longest: Vec<_> = ended.iter().collect();
    longest.sort_by_key(|ended| Reverse(ended.time));
    let line = |ended: &&Ended| format!("{:>8.1} s  {}\n", ended.time.as_secs_f64(), ended.name);
    longest.iter().take(most).map(line).collect()
}

/// How it ended, and what it said on both of its outputs.
fn run(command: &mut Command) -> Result<(ExitStatus, Vec<u8>)> {
    let (mut reader, writer): (PipeReader, _) = pipe()?;
    command.stdin(Stdio::null());
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn().context("it cannot be started")?;
    // Else our own ends of the pipe keep it open.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut log = Vec::new();
    reader.read_to_end(&mut log)?;
    Ok((child.wait()?, log))
}

fn bar(jobs: u64) -> ProgressBar {
    if !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(
        "{bar:40} {pos}/{len} test binaries, {elapsed} elapsed, {eta} remaining",
    )
    .expect("the template is constant");
    let bar = ProgressBar::new(jobs).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(name: &str, script: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job {
            name: name.into(),
            command,
        }
    }

    #[test]
    fn what_a_program_says_on_both_outputs_comes_in_order() {
        let mut job = shell("a", "echo one; echo two >&2; echo three; exit 3");
        let (status, log) = run(&mut job.command).unwrap();
        assert_eq!(status.code(), Some(3));
        assert_eq!(log, b"one\ntwo\nthree\n");
    }

    #[test]
    fn all_run_although_some_fail() {
        let folder = tempfile::tempdir().unwrap();
        let mark = |n: u32| folder.path().join(n.to_string());
        let script = |n: u32| format!("touch {}; exit {}", mark(n).display(), n % 2);
        let jobs = (0..8).map(|n| shell(&n.to_string(), &script(n)));
        let ended = all(jobs.collect()).unwrap();
        let failed = ended.into_iter().filter(|ended| !ended.success);
        let mut failed: Vec<_> = failed.map(|ended| ended.name).collect();
        failed.sort();
        assert_eq!(failed, ["1", "3", "5", "7"]);
        assert!((0..8).all(|n| mark(n).exists()));
    }

    #[test]
    fn a_signal_is_named() {
        let ended = all(vec![shell("a", "kill -SEGV $$")]).unwrap();
        assert!(!ended[0].success);
        assert!(
            ended[0].text.starts_with("a ended by signal: 11"),
            "{}",
            ended[0].text
        );
    }

    #[test]
    fn those_that_took_longest_come_first() {
        let ended = |name: &str, secs| Ended {
            name: name.into(),
            success: true,
            text: String::new(),
            time: Duration::from_secs(secs),
        };
        let ended = [ended("a", 1), ended("b", 120), ended("c", 7)];
        assert_eq!(slowest(&ended, 2), "   120.0 s  b\n     7.0 s  c\n");
    }

    #[test]
    fn one_that_cannot_start_is_an_error_that_names_it() {
        let mut job = shell("b", "");
        job.command = Command::new("/no/such/program");
        let error = all(vec![job]).unwrap_err();
        assert!(
            format!("{error:#}").starts_with("b: it cannot be started"),
            "{error:#}"
        );
    }
}
