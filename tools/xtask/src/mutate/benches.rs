//! Mutants in the benches of blocks, each test a process of its own.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail};
use ferroce_system::pool;
use ferroce_tests::mutation::Finder;
use indicatif::ProgressBar;
use tempfile::TempDir;

use crate::test::binaries::{self, Binary};

/// Seconds of a processor after which a test with a mutant would not end.
const LIFE: &str = "300";

/// Tests that a mutant meets: a cell stands in nearly all designs.
const MOST: usize = 80;

/// A test and the mutants that its design has.
struct Test {
    binary: usize,
    name: String,
    has: BTreeSet<usize>,
    /// Mutants that it found.
    finds: AtomicU32,
}

/// The tests of blocks.
pub(super) struct Benches {
    binaries: Vec<Binary>,
    tests: Vec<Test>,
    folder: TempDir,
}

impl Benches {
    /// Builds them, and runs each without a mutant to see which it has. `listed` are the mutants.
    ///
    /// # Errors
    /// What does not compile; a test that fails without a mutant.
    pub(super) fn build(listed: &str) -> Result<Self> {
        let mut binaries = binaries::build()?;
        binaries.retain(|binary| binary.name().starts_with("block_"));
        let mut benches = Self {
            binaries,
            tests: vec![],
            folder: TempDir::new().context("no temporary folder")?,
        };
        fs::write(benches.list(), listed).context("no temporary file")?;
        let mut all = Vec::new();
        for (number, binary) in benches.binaries.iter().enumerate() {
            all.extend(binary.tests()?.into_iter().map(|name| (number, name)));
        }
        let bar = super::bar(all.len() as u64, "tests");
        let threads = pool::processors();
        let tests = pool::try_each(threads, all.into_iter().enumerate(), || {
            |(at, (binary, name))| benches.met(at, binary, name, &bar)
        });
        bar.finish_and_clear();
        benches.tests = tests?
            .into_iter()
            .filter(|test| !test.has.is_empty())
            .collect();
        Ok(benches)
    }

    fn list(&self) -> PathBuf {
        self.folder.path().join("mutants")
    }

    /// A run of a test.
    fn command(&self, binary: usize, name: &str) -> Command {
        let mut command = self.binaries[binary].alone(name, LIFE);
        command.env("FERROCE_MUTANTS", self.list());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// A test with what its design has.
    fn met(&self, at: usize, binary: usize, name: String, bar: &ProgressBar) -> Result<Test> {
        let met = self.folder.path().join(format!("met-{at}"));
        let mut command = self.command(binary, &name);
        command.env("FERROCE_MUTANTS_MET", &met);
        let status = command.status().context("a test cannot be started")?;
        bar.inc(1);
        if !status.success() {
            let bench = self.binaries[binary].name();
            bail!("{bench} {name} fails without a mutant ({status})");
        }
        let has = fs::read_to_string(met).unwrap_or_default();
        let has = has.lines().map(str::parse).collect::<Result<_, _>>()?;
        Ok(Test {
            binary,
            name,
            has,
            finds: AtomicU32::new(0),
        })
    }

    /// The test that fails with the mutant of this number, from 1; `None` if none does.
    ///
    /// # Errors
    /// A test that cannot be started.
    pub(super) fn finder(&self, number: usize) -> Result<Option<Finder>> {
        let has = |test: &&Test| test.has.contains(&number);
        let mut tests: Vec<_> = self.tests.iter().filter(has).collect();
        // a design with few of the mutants is small, so it is the block's own
        tests.sort_by_key(|test| test.has.len());
        tests.truncate(MOST);
        tests.sort_by_key(|test| Reverse(test.finds.load(Ordering::Relaxed)));
        for test in tests {
            let mut command = self.command(test.binary, &test.name);
            command.env("FERROCE_MUTANT", number.to_string());
            let status = command.status().context("a test cannot be started")?;
            if !status.success() {
                test.finds.fetch_add(1, Ordering::Relaxed);
                let bench = self.binaries[test.binary].name();
                let name = format!("{bench} {}", test.name);
                return Ok(Some(Finder::new("benches of blocks", name)));
            }
        }
        Ok(None)
    }
}
