//! A directory of files that is written whole or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::Usage;

/// A file that every bundle has: what marks a directory as written by this task.
pub(crate) const MARK: &str = "ferroce.f";

/// Files by their path below the directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundle {
    files: BTreeMap<String, String>,
}

impl Bundle {
    /// Adds a file.
    ///
    /// # Panics
    /// If there is one of this path.
    pub fn add(&mut self, path: impl Into<String>, text: impl Into<String>) {
        let path = path.into();
        let before = self.files.insert(path.clone(), text.into());
        assert!(before.is_none(), "{path} twice");
    }

    /// With what says whose work it is and of which source: the licences, a head of each Verilog file, register BUILD.
    ///
    /// An implicit net is an error within the files, and as before behind them.
    #[must_use]
    pub fn signed(mut self, commit: &str) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let head = format!(
            "// Ferroce {version}, commit {commit}. SPDX-License-Identifier: MIT OR Apache-2.0\n\
             `default_nettype none\n\n"
        );
        let verilog = self
            .files
            .iter_mut()
            .filter(|(p, _)| p.ends_with(".v") && !p.starts_with("examples/"));
        for (_, text) in verilog {
            *text = format!("{head}{text}\n`default_nettype wire\n");
        }
        let build = commit
            .get(..8)
            .filter(|b| u32::from_str_radix(b, 16).is_ok());
        if let (Some(build), Some(top)) = (build, self.files.get_mut("rtl/ferroce.v")) {
            let known = format!("localparam build = 32'h{build};");
            *top = top.replacen("localparam build = 32'd0;", &known, 1);
        }
        self.add("LICENSE-APACHE", include_str!("../../../../LICENSE-APACHE"));
        self.add("LICENSE-MIT", include_str!("../../../../LICENSE-MIT"));
        let paths: BTreeSet<String> = self.files.keys().cloned().collect();
        for (path, text) in &mut self.files {
            if path.ends_with(".md") {
                *text = live_links(text, &paths);
            }
        }
        self
    }

    /// Path and text of every file, in order of path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(p, t)| (p.as_str(), t.as_str()))
    }
}

/// A page without its links to pages that are not in the bundle: their words stay.
fn live_links(page: &str, paths: &BTreeSet<String>) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some(at) = rest.find("](") {
        let (before, behind) = rest.split_at(at);
        let (Some(open), Some(close)) = (before.rfind('['), behind.find(')')) else {
            text += &rest[..at + 2];
            rest = &rest[at + 2..];
            continue;
        };
        let target = &behind[2..close];
        let file = target.split('#').next().unwrap_or_default();
        let is_live = file.is_empty() || file.contains("://") || paths.contains(file);
        match is_live {
            true => text += &rest[..at + close + 1],
            false => {
                text += &before[..open];
                text += &before[open + 1..];
            }
        }
        rest = &behind[close + 1..];
    }
    text + rest
}

/// Where a bundle goes.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    /// A neighbour of `path`, in which the bundle is written; removed when this is dropped.
    work: TempDir,
}

impl Place {
    /// Looks whether a bundle can be written at `path`; with `force` it may take the place of an earlier one.
    ///
    /// # Errors
    /// [`Usage`] if not.
    pub(crate) fn new(path: &Path, force: bool) -> Result<Self> {
        let refuse = |why: String| Usage(format!("cannot write {}: {why}", path.display()));
        if path.exists() {
            let mut entries =
                fs::read_dir(path).map_err(|e| refuse(format!("no directory ({e})")))?;
            let free = entries.next().is_none();
            if !free && !force {
                return Err(refuse("it is not empty; name another or add --force".into()).into());
            }
            if !free && !path.join(MARK).is_file() {
                let why = format!("it was not written by this task (no {MARK}); name another");
                return Err(refuse(why).into());
            }
        }
        // As an absolute path, `out/` and `..` have a parent too.
        let path = std::path::absolute(path).map_err(|e| refuse(e.to_string()))?;
        let parent = path.parent().unwrap_or(Path::new("/"));
        let work = tempfile::Builder::new()
            .prefix(".ferroce-")
            .permissions(Permissions::from_mode(0o777))
            .tempdir_in(parent)
            .map_err(|e| refuse(format!("{e}; its parent has to exist and be writable")))?;
        Ok(Self { path, work })
    }

    /// Writes the bundle.
    ///
    /// # Errors
    /// Those of the file system; what stood there still stands then.
    pub(crate) fn write(&self, bundle: &Bundle) -> Result<()> {
        let (new, old) = (self.work.path().join("new"), self.work.path().join("old"));
        for (path, text) in bundle.files() {
            let path = new.join(path);
            let folder = path.parent().expect("below `new`");
            fs::create_dir_all(folder)
                .and_then(|()| fs::write(&path, text))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        if self.path.exists() {
            fs::rename(&self.path, &old)
                .with_context(|| format!("cannot replace {}", self.path.display()))?;
        }
        if let Err(error) = fs::rename(&new, &self.path) {
            if old.exists() {
                fs::rename(&old, &self.path).context("cannot put back what stood there")?;
            }
            return Err(error).with_context(|| format!("cannot write {}", self.path.display()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(text: &str) -> Bundle {
        let mut bundle = Bundle::default();
        bundle.add(MARK, text);
        bundle.add("rtl/a.v", "module a;");
        bundle
    }

    #[test]
    fn links_that_lead_out_of_a_bundle_are_words() {
        let mut bundle = bundle("");
        let page = "[a](b.md) [`c`](b.md#d) [e](f.md#g) ([h](https://i)) [j](#k)";
        bundle.add("a.md", page);
        bundle.add("b.md", "");
        let bundle = bundle.signed("unknown");
        let text = bundle.files().find(|(path, _)| *path == "a.md").unwrap().1;
        assert_eq!(text, "[a](b.md) [`c`](b.md#d) e ([h](https://i)) [j](#k)");
    }

    #[test]
    fn a_bundle_goes_to_a_new_or_empty_directory() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        for made in [false, true] {
            if made {
                fs::create_dir(&out).unwrap();
            }
            let place = Place::new(&out, false).unwrap();
            place.write(&bundle("rtl/a.v")).unwrap();
            drop(place);
            assert_eq!(fs::read_to_string(out.join(MARK)).unwrap(), "rtl/a.v");
            assert_eq!(
                fs::read_to_string(out.join("rtl/a.v")).unwrap(),
                "module a;"
            );
            assert_eq!(
                fs::read_dir(&dir).unwrap().count(),
                1,
                "no temporary is left"
            );
            fs::remove_dir_all(&out).unwrap();
        }
    }

    #[test]
    fn only_an_earlier_bundle_is_replaced_and_only_by_force() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        Place::new(&out, false)
            .unwrap()
            .write(&bundle("one"))
            .unwrap();
        fs::write(out.join("stale"), "").unwrap();
        assert!(Place::new(&out, false).unwrap_err().is::<Usage>());
        Place::new(&out, true)
            .unwrap()
            .write(&bundle("two"))
            .unwrap();
        assert_eq!(fs::read_to_string(out.join(MARK)).unwrap(), "two");
        assert!(!out.join("stale").exists());

        fs::remove_file(out.join(MARK)).unwrap();
        for force in [false, true] {
            assert!(Place::new(&out, force).unwrap_err().is::<Usage>());
        }
        assert!(out.join("rtl/a.v").exists());
    }

    #[test]
    fn a_place_that_cannot_be_is_a_mistake() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        for path in ["file", "missing/out"] {
            let error = Place::new(&dir.path().join(path), true).unwrap_err();
            assert!(error.is::<Usage>(), "{path}");
        }
    }
}
