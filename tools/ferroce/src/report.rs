//! Reports for machines: `--report FILE.json` of every task, in one form.
//!
//! ```json
//! {
//!   "ok": true,
//!   "command": ["cargo", "xtask", "demo", "--qps", "64"],
//!   "seed": 1,
//!   "figures": [{"name": "cycles", "value": 66913, "unit": "cycles"}]
//! }
//! ```

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::output::Output;

/// What a task did and measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Whether everything was as it should be; the exit code is 0 then.
    pub ok: bool,
    /// The command line that repeats the run.
    pub command: Vec<String>,
    /// Seed of everything random in the run.
    pub seed: u64,
    /// What was measured, in the order of the text that the task prints.
    pub figures: Vec<Figure>,
}

/// Something measured or counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Name: lower case with underscores, unique in the report.
    pub name: String,
    /// How much.
    pub value: Value,
    /// Unit in words (`bytes`, `cycles`, `ns`, `Gb/s`), or what is counted (`packets`).
    pub unit: String,
}

impl Figure {
    /// `value` `unit` of `name`.
    pub fn new(name: impl Into<String>, value: impl Into<Value>, unit: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
            unit: unit.into(),
        }
    }
}

/// `name` as the name of a [`Figure`] has it.
#[must_use]
pub fn plain(name: &str) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_lowercase(),
        false => '_',
    };
    name.chars().map(plain).collect()
}

impl fmt::Display for Figure {
    /// A line of the table that a task prints.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, unit) = (self.name.replace('_', " "), &self.unit);
        match self.value {
            Value::Count(count) => write!(f, "{name:<24} {count:>12}    {unit}"),
            Value::Measure(measure) => write!(f, "{name:<24} {measure:>15.2} {unit}"),
        }
    }
}

/// Value of a [`Figure`], a number in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Exact.
    Count(u64),
    /// Rounded.
    Measure(f64),
}

impl Value {
    /// The number.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Count(count) => count as f64,
            Self::Measure(measure) => measure,
        }
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for Value {
    /// # Panics
    /// If it is not finite: JSON has no such number.
    fn from(measure: f64) -> Self {
        assert!(measure.is_finite(), "a figure of {measure}");
        Self::Measure(measure)
    }
}

impl Report {
    /// A report on the running command.
    #[must_use]
    pub fn new(ok: bool, seed: u64, figures: Vec<Figure>) -> Self {
        let program = std::env::current_exe().unwrap_or_default();
        let words: &[&str] = match program.file_stem().is_some_and(|name| name == "ferroce") {
            true => &["ferroce"],
            false => &["cargo", "xtask"],
        };
        let words = words.iter().map(|&word| word.to_owned());
        let command = words.chain(std::env::args().skip(1)).collect();
        Self {
            ok,
            command,
            seed,
            figures,
        }
    }
}

/// The option of a task that reports.
#[derive(Clone, Debug, Default, clap::Args)]
// clap names groups by the type, and the task's options are `Args` too.
#[group(skip)]
pub struct Args {
    /// Write a report in JSON, also when the task fails.
    #[arg(long, value_name = "FILE.json")]
    report: Option<PathBuf>,
}

impl Args {
    /// Starts the file that was asked for. A task calls this before its work, so that a path that
    /// cannot be written is known at once.
    ///
    /// # Errors
    /// [`Usage`](crate::Usage) if it cannot be written.
    pub fn open(&self) -> Result<ReportFile> {
        let output = self.report.as_deref().map(Output::create).transpose()?;
        Ok(ReportFile { output })
    }
}

/// Where the report goes, if anywhere.
#[derive(Debug)]
#[must_use = "nothing is written before `write`"]
pub struct ReportFile {
    output: Option<Output>,
}

impl ReportFile {
    /// Writes the report.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(self, report: &Report) -> Result<()> {
        let Some(output) = self.output else {
            return Ok(());
        };
        let mut text = serde_json::to_string_pretty(report).context("report")?;
        text.push('\n');
        output.finish_with(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_the_documented_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.json");
        let report = Report {
            ok: false,
            command: vec!["cargo".into(), "xtask".into()],
            seed: u64::MAX,
            figures: vec![
                Figure::new("cycles", 7, "cycles"),
                Figure::new("goodput", 2.5, "Gb/s"),
            ],
        };
        let args = Args {
            report: Some(path.clone()),
        };
        args.open().unwrap().write(&report).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
        let expected = serde_json::json!({
            "ok": false,
            "command": ["cargo", "xtask"],
            "seed": u64::MAX,
            "figures": [
                {"name": "cycles", "value": 7, "unit": "cycles"},
                {"name": "goodput", "value": 2.5, "unit": "Gb/s"},
            ],
        });
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            expected
        );
    }
}
