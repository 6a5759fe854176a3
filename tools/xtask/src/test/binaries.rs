//! What cargo builds for the tests.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::Args;
use super::run::Job;
use crate::tools;

/// Those that take longest, which start first so that none of them is left over at the end.
const LONG: [&str; 14] = [
    "differential",
    "interop",
    "conformance",
    "xtask",
    "card",
    "emit",
    "reopen",
    "paused_class",
    "synth",
    "replay",
    "engine",
    "demo",
    "boot",
    "edu",
];

/// A binary with tests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Binary {
    name: String,
    executable: PathBuf,
    /// Folder of its package, in which it runs.
    package: PathBuf,
}

/// What is read of a message of cargo: an artifact with `profile.test` is a binary with tests.
#[derive(Deserialize)]
struct Message {
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

impl Binary {
    /// The binary a message of cargo tells of, if it does.
    fn of(line: &str) -> Result<Option<Self>> {
        let message: Message = serde_json::from_str(line)?;
        let parts = (message.target, message.executable, message.manifest_path);
        let (Some(target), Some(executable), Some(manifest)) = parts else {
            return Ok(None);
        };
        if !message.profile.is_some_and(|profile| profile.test) {
            return Ok(None);
        }
        let package = manifest.parent().unwrap_or(Path::new("/")).to_owned();
        Ok(Some(Self {
            name: target.name,
            executable,
            package,
        }))
    }

    /// Where it stands in the order of starting.
    fn rank(&self) -> usize {
        let rank = LONG.iter().position(|&name| name == self.name);
        rank.unwrap_or(LONG.len())
    }

    /// Its name, and the folder of its package from the root of the repository.
    pub(super) fn place(&self) -> (&str, &Path) {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let root = root.canonicalize().unwrap_or_default();
        let package = self.package.strip_prefix(root).unwrap_or(&self.package);
        (&self.name, package)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// `program` in the environment that `cargo test` gives.
    fn started(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("CARGO_MANIFEST_DIR", &self.package);
        command.current_dir(&self.package);
        command
    }

    /// The program with the filter.
    fn command(&self, args: &Args) -> Command {
        let mut command = self.started(&self.executable);
        command.args(&args.filter);
        command
    }

    /// The program with one of its tests, which ends when it has had a processor for `seconds`.
    pub(crate) fn alone(&self, test: &str, seconds: &str) -> Command {
        let mut command = self.started("sh");
        let script = r#"ulimit -t "$1" && exec "$0" --exact "$2""#;
        command.args(["-c", script]).arg(&self.executable);
        command.args([seconds, test]);
        command
    }

    /// Its tests, but for those that are ignored.
    ///
    /// # Errors
    /// It does not list them.
    pub(crate) fn tests(&self) -> Result<Vec<String>> {
        let list = |flags| self.listed(self.started(&self.executable), flags);
        let ignored = list(&["--ignored"])?;
        let mut tests = list(&[])?;
        tests.retain(|test| !ignored.contains(test));
        Ok(tests)
    }

    /// What a command of it lists.
    fn listed(&self, mut command: Command, flags: &[&str]) -> Result<Vec<String>> {
        let output = command.args(["--list", "--format", "terse"]).args(flags);
        let output = output.output().with_context(|| self.name.clone())?;
        ensure!(
            output.status.success(),
            "{} does not list its tests",
            self.name
        );
        let text = String::from_utf8_lossy(&output.stdout);
        let tests = text.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(tests.map(str::to_owned).collect())
    }

    /// Whether it has a test that would run.
    fn matches(&self, args: &Args) -> Result<bool> {
        let listed = |flags: &[&str]| self.listed(self.command(args), flags);
        let ignored = if args.slow {
            0
        } else {
            listed(&["--ignored"])?.len()
        };
        Ok(listed(&[])?.len() > ignored)
    }

    /// Its run.
    pub(super) fn job(self, args: &Args) -> Job {
        let mut command = self.command(args);
        if args.slow {
            command.arg("--include-ignored");
        }
        Job {
            name: self.name,
            command,
        }
    }
}

/// Builds all binaries with tests, those that take long first.
///
/// # Errors
/// What does not compile, which cargo has printed.
pub(crate) fn build() -> Result<Vec<Binary>> {
    let mut cargo = tools::cargo();
    cargo.args(["test", "--workspace", "--no-run"]);
    cargo.arg("--message-format=json-render-diagnostics");
    let child = cargo.stdout(Stdio::piped()).spawn();
    let mut child = child.context("cargo cannot be started")?;
    let messages = BufReader::new(child.stdout.take().context("no messages of cargo")?);
    let mut binaries = Vec::new();
    for line in messages.lines() {
        let line = line.context("messages of cargo")?;
        binaries.extend(Binary::of(&line).with_context(|| format!("a message of cargo: {line}"))?);
    }
    let status = child.wait()?;
    ensure!(status.success(), "the tests do not build ({status})");
    ensure!(!binaries.is_empty(), "cargo names no binary with tests");
    binaries.sort_by_key(Binary::rank);
    Ok(binaries)
}

/// Those that have a test that the filter names.
///
/// # Errors
/// One that cannot be started.
pub(super) fn matching(binaries: Vec<Binary>, args: &Args) -> Result<Vec<Binary>> {
    let mut found = Vec::new();
    for binary in binaries {
        if binary.matches(args)? {
            found.push(binary);
        }
    }
    Ok(found)
}

/// The examples in the documentation.
pub(super) fn examples_in_docs(args: &Args) -> Job {
    let mut command = tools::cargo();
    let words = ["test", "--workspace", "--doc", "--quiet"].map(OsString::from);
    command.args(
        words
            .into_iter()
            .chain(args.filter.as_ref().map(OsString::from)),
    );
    Job {
        name: "examples in the documentation".into(),
        command,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARTIFACT: &str = r#"{"reason":"compiler-artifact","manifest_path":"/w/sim/Cargo.toml","target":{"kind":["test"],"name":"link"},"profile":{"opt_level":"1","test":TEST},"executable":EXE}"#;

    fn of(test: &str, executable: &str) -> Option<Binary> {
        Binary::of(&ARTIFACT.replace("TEST", test).replace("EXE", executable)).unwrap()
    }

    #[test]
    fn an_artifact_of_the_test_profile_is_a_binary_in_the_folder_of_its_package() {
        let binary = Binary {
            name: "link".into(),
            executable: "/t/link-1".into(),
            package: "/w/sim".into(),
        };
        assert_eq!(of("true", r#""/t/link-1""#), Some(binary));
        assert_eq!(of("false", r#""/t/link-1""#), None);
        assert_eq!(of("true", "null"), None);
        let end = r#"{"reason":"build-finished","success":true}"#;
        assert_eq!(Binary::of(end).unwrap(), None);
        assert!(Binary::of("no message").is_err());
    }

    #[test]
    fn its_run_takes_the_filter_and_what_is_slow() {
        let args = Args {
            filter: Some("many".into()),
            slow: true,
            junit: None,
            report: Default::default(),
        };
        let job = of("true", r#""/t/link-1""#).unwrap().job(&args);
        let words: Vec<_> = job.command.get_args().collect();
        assert_eq!(words, ["many", "--include-ignored"]);
        assert_eq!(job.command.get_current_dir(), Some(Path::new("/w/sim")));
    }

    #[test]
    fn what_takes_long_starts_first() {
        let mut binary = of("true", r#""/t/link-1""#).unwrap();
        let late = binary.rank();
        binary.name = LONG[1].into();
        assert!(binary.rank() == 1 && late > 1);
    }
}
