//! `cargo xtask fuzz`: readers of strangers' bytes under libFuzzer, which keeps each input that reaches new code.
//!
//! The programs stand in `fuzz/`, a workspace of its own: it is built with flags that count coverage, by stable Rust.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use ferroce_sim::pcap;
use indicatif::{ProgressBar, ProgressStyle};

use crate::report::{self, Figure, Report};
use crate::tools;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Counters of edges and comparisons, as libFuzzer reads them.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// A program of `fuzz/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    /// RoCEv2 frames: what is read and written again is the same.
    Frame,
    /// Frames that are no RoCE, as the driver reads them.
    Neighbour,
    /// Messages of vfio-user.
    Message,
    /// Two connection managers and a stranger.
    Manager,
}

impl Target {
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Bytes of an input at most.
    fn longest(self) -> usize {
        match self {
            Self::Frame | Self::Neighbour | Self::Message => 512,
            Self::Manager => 2000,
        }
    }
}

/// When it ends.
#[derive(Clone, Copy)]
enum Limit {
    Time(Duration),
    #[cfg(test)]
    Runs(u64),
}

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these programs.
    #[arg(value_enum, value_name = "NAME")]
    targets: Vec<Target>,
    /// How long for each, in seconds.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Of the changes. What was kept before is where they begin.
    #[arg(long, default_value_t = 1)]
    seed: u32,
    /// Only this input, which was found before.
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    #[command(flatten)]
    report: report::Args,
}

/// Runs the task.
///
/// # Errors
/// The first input that breaks a promise.
pub(crate) fn run(args: &Args) -> Result<()> {
    let targets = match &args.targets[..] {
        [] => Target::value_variants(),
        named => named,
    };
    if let Some(input) = &args.input {
        let is_one = targets.len() == 1 && input.is_file();
        ensure!(
            is_one,
            crate::Usage("--input: a file, and the NAME of its program".into())
        );
    }
    let file = args.report.open()?;
    tools::ensure_present(&[tools::CXX])?;
    let programs = build()?;
    let mut figures = vec![];
    for &target in targets {
        let fuzzing = Fuzzing::new(target, &programs, args.seed)?;
        if let Some(input) = &args.input {
            fuzzing.once(input)?;
            continue;
        }
        let limit = Limit::Time(Duration::from_secs(args.seconds));
        let fuzzed = fuzzing.run(limit);
        if fuzzed.is_err() {
            file.write(&Report::new(false, args.seed.into(), figures))?;
            return fuzzed.map(drop);
        }
        let Fuzzed { runs, edges } = fuzzed?;
        let name = target.name();
        println!("{name}: {runs} inputs, {edges} edges of its code reached");
        figures.push(Figure::new(format!("{name}_inputs"), runs, "inputs"));
        figures.push(Figure::new(format!("{name}_edges"), edges, "edges"));
    }
    file.write(&Report::new(true, args.seed.into(), figures))
}

/// Builds all programs; the folder of them.
fn build() -> Result<PathBuf> {
    let rustc = Command::new("rustc").arg("-vV").output();
    let text = String::from_utf8(rustc.context("rustc cannot be started")?.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc does not say what it runs on")?;
    let folder = tools::target_folder().join("fuzz");
    let manifest = Path::new(ROOT).join("fuzz/Cargo.toml");
    // With a target named, the flags are not those of build scripts.
    let status = tools::cargo()
        .args([
            "build",
            "--release",
            "--quiet",
            "--locked",
            "--target",
            host,
        ])
        .arg("--manifest-path")
        .arg(manifest)
        .arg("--target-dir")
        .arg(&folder)
        .env("RUSTFLAGS", FLAGS)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status();
    let status = status.context("cargo cannot be started")?;
    ensure!(status.success(), "the programs of fuzz/ do not compile");
    Ok(folder.join(host).join("release"))
}

/// A program with its inputs.
struct Fuzzing {
    target: Target,
    program: PathBuf,
    seed: u32,
    /// Inputs that are kept, and those to begin with.
    corpora: Vec<PathBuf>,
    found: PathBuf,
}

/// What was tried.
struct Fuzzed {
    runs: u64,
    edges: u64,
}

impl Fuzzing {
    fn new(target: Target, programs: &Path, seed: u32) -> Result<Self> {
        let name = target.name();
        let inputs = tools::target_folder().join("fuzz/inputs");
        let (kept, found) = (inputs.join(&name), inputs.join("found"));
        let mut corpora = vec![kept];
        if matches!(target, Target::Frame | Target::Neighbour) {
            corpora.push(captured(&inputs.join("captured"))?);
        }
        for folder in corpora.iter().chain([&found]) {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
        }
        Ok(Self {
            target,
            program: programs.join(name),
            seed,
            corpora,
            found,
        })
    }

    /// Gives it one input.
    fn once(&self, input: &Path) -> Result<()> {
        let status = Command::new(&self.program).arg(input).status();
        let status = status.context("the program cannot be started")?;
        ensure!(status.success(), "{} breaks a promise", input.display());
        Ok(())
    }

    fn run(&self, limit: Limit) -> Result<Fuzzed> {
        let (bound, seconds) = match limit {
            Limit::Time(time) => (
                format!("-max_total_time={}", time.as_secs()),
                time.as_secs(),
            ),
            #[cfg(test)]
            Limit::Runs(runs) => (format!("-runs={runs}"), 0),
        };
        let prefix = self.found.join(self.target.name());
        let mut child = Command::new(&self.program)
            .args([bound, format!("-seed={}", self.seed)])
            .arg(format!("-max_len={}", self.target.longest()))
            .arg(format!("-artifact_prefix={}-", prefix.display()))
            .args(["-len_control=0", "-print_final_stats=1"])
            .args(&self.corpora)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("the program cannot be started")?;
        let style = ProgressStyle::with_template("{bar:40} {elapsed_precise} {msg}")?;
        let bar = ProgressBar::new(seconds.max(1)).with_style(style);
        bar.set_message(self.target.name());
        let (start, mut lines) = (Instant::now(), vec![]);
        let stderr = child.stderr.take().context("its output is piped")?;
        for line in BufReader::new(stderr).split(b'\n') {
            bar.set_position(start.elapsed().as_secs());
            lines.push(String::from_utf8_lossy(&line?).into_owned());
        }
        bar.finish_and_clear();
        if !child.wait()?.success() {
            bail!("{}", self.broken(&lines));
        }
        Ok(Fuzzed {
            runs: number(&lines, "stat::number_of_executed_units:")
                .context("the count of inputs")?,
            edges: number(&lines, " cov: ").context("the count of edges")?,
        })
    }

    /// What went wrong, and how to see it again.
    fn broken(&self, lines: &[String]) -> String {
        let name = self.target.name();
        let rest_of = |word: &str| {
            let mut found = lines.iter().filter_map(|line| line.split_once(word));
            found.next().map(|(_, rest)| rest.to_owned())
        };
        let panic = lines.iter().position(|line| line.contains("panicked at"));
        let what = panic.map_or_else(
            || lines.to_vec(),
            |at| lines[at..].iter().take(2).cloned().collect(),
        );
        match rest_of("Test unit written to ") {
            Some(path) => format!(
                "{name}: {}\nagain: cargo xtask fuzz {name} --input {path}",
                what.join(" ")
            ),
            None => format!("{name}: {}", what.join("\n")),
        }
    }
}

/// The number behind the last `word`.
fn number(lines: &[String], word: &str) -> Option<u64> {
    let found = lines.iter().rev().find_map(|line| line.split_once(word));
    found?.1.split_whitespace().next()?.parse().ok()
}

/// The frames of the captures of the tests, a file each.
fn captured(folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for file in fs::read_dir(Path::new(ROOT).join("tests/captures"))? {
        let path = file?.path();
        if path.extension().is_none_or(|end| end != "pcap") {
            continue;
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        for (at, packet) in pcap::read(&path)?.packets.iter().enumerate().take(40) {
            fs::write(folder.join(format!("{stem}-{at}")), &packet.data)?;
        }
    }
    Ok(folder.to_owned())
}

#[cfg(test)]
mod tests {
    use ferroce_system::or_skip;
    use ferroce_system::packages::check_present;

    use super::*;

    #[test]
    fn thousands_of_inputs_break_no_promise() {
        if or_skip(check_present(&[tools::CXX])).is_none() {
            return;
        }
        let programs = build().unwrap();
        for &target in Target::value_variants() {
            let fuzzing = Fuzzing::new(target, &programs, 1).unwrap();
            let fuzzed = fuzzing.run(Limit::Runs(5_000)).unwrap();
            // All that is kept is run at first.
            assert!(fuzzed.runs >= 5_000 && fuzzed.edges > 25);
        }
    }
}
