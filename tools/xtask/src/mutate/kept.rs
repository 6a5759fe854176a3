//! The outcome of each mutant in a file, so that a run that was stopped goes on.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use ferroce_tests::mutation::Finder;
use serde_json::from_str;

use crate::Usage;

/// What is known of mutants from an earlier run, and the file, if there is one.
#[derive(Default)]
pub(super) struct Kept {
    known: BTreeMap<usize, Option<Finder>>,
    file: Option<Mutex<File>>,
}

impl Kept {
    /// Of the file at `path`, which begins with `run`, what the run is of.
    ///
    /// # Errors
    /// [`Usage`] if the file is of another run; what the system says.
    pub(super) fn open(path: &Path, run: &str) -> Result<Self> {
        let name = || format!("cannot use {}", path.display());
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        let mut file = options.open(path).with_context(name)?;
        let mut text = String::new();
        file.read_to_string(&mut text).with_context(name)?;
        let mut lines = text.lines();
        match lines.next() {
            None => writeln!(file, "{run}").with_context(name)?,
            Some(of) if of == run => {}
            Some(of) => {
                let path = path.display();
                let what =
                    format!("{path} is of another run ({of}, this one is {run}): name a new file");
                return Err(Usage(what).into());
            }
        }
        // a line that a run was stopped in is not whole
        let known = lines.filter_map(|line| from_str(line).ok()).collect();
        Ok(Self {
            known,
            file: Some(Mutex::new(file)),
        })
    }

    /// What found a mutant, if it was tried.
    pub(super) fn of(&self, number: usize) -> Option<Option<Finder>> {
        self.known.get(&number).cloned()
    }

    /// Adds a mutant that was tried.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn add(&self, number: usize, found: &Option<Finder>) -> Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let line = serde_json::to_string(&(number, found)).context("an outcome")?;
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(file, "{line}").context("the file of --resume")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_with_what_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept");
        let case = Some(Finder::case("ack"));
        let kept = Kept::open(&path, "seed 1").unwrap();
        assert_eq!(kept.of(3), None);
        kept.add(3, &case).unwrap();
        kept.add(4, &None).unwrap();
        drop(kept);
        // stopped amid a line
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        write!(file, "[5,nu").unwrap();
        let kept = Kept::open(&path, "seed 1").unwrap();
        assert_eq!(
            (kept.of(3), kept.of(4), kept.of(5)),
            (Some(case), Some(None), None)
        );
        let other = Kept::open(&path, "seed 2")
            .err()
            .expect("it is of another run");
        assert!(other.is::<Usage>(), "{other}");
        assert!(Kept::open(folder.path(), "seed 1").is_err());
    }
}
