//! Files that a task writes: whole or not at all.

use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::NamedTempFile;

use crate::Usage;

/// A file that appears under its name when it is complete.
///
/// Until then it is a temporary neighbour, which is removed when this is dropped.
#[derive(Debug)]
pub struct Output {
    file: NamedTempFile,
    path: PathBuf,
}

impl Output {
    /// Starts a file; what stands at `path` stays until [`finish`](Self::finish).
    ///
    /// # Errors
    /// [`Usage`] if no file can be written there.
    pub fn create(path: &Path) -> Result<Self> {
        let refuse = |why: &dyn std::fmt::Display| {
            let path = path.display();
            Usage(format!(
                "cannot write {path}: {why}; name a file in a directory that exists and is writable"
            ))
        };
        if path.is_dir() {
            return Err(refuse(&"it is a directory").into());
        }
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let file = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory)
            .map_err(|e| refuse(&e))?;
        Ok(Self {
            file,
            path: path.to_owned(),
        })
    }

    /// The file as it is written.
    pub fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Its path while it is written, for programs that open it by name.
    #[must_use]
    pub fn temporary(&self) -> &Path {
        self.file.path()
    }

    /// Writes `text`, and [`finish`](Self::finish)es.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn finish_with(mut self, text: &str) -> Result<()> {
        let written = self.file().write_all(text.as_bytes());
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        self.finish()
    }

    /// Gives the file its name, in one step; a file that stood there is replaced.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn finish(self) -> Result<()> {
        self.file
            .persist(&self.path)
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        Ok(())
    }
}

/// Writes a file of the project, `path` from its root, whole or not at all; folders are made.
///
/// # Errors
/// [`Usage`] if no file can be written there; those of the file system.
pub fn put(path: &str, text: &str) -> Result<()> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let path = root.join(path);
    let folder = path.parent().context("a file is in a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    write(&path, text)
}

/// Writes a file, whole or not at all.
///
/// # Errors
/// [`Usage`] if no file can be written there; those of the file system.
pub fn write(path: &Path, text: &str) -> Result<()> {
    Output::create(path)?.finish_with(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_appears_when_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        fs::write(&path, "before").unwrap();
        let mut output = Output::create(&path).unwrap();
        output.file().write_all(b"after").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        output.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");

        drop(Output::create(&path).unwrap());
        assert_eq!(
            fs::read_dir(&dir).unwrap().count(),
            1,
            "the temporary is removed"
        );
    }

    #[test]
    fn a_place_where_nothing_can_be_written_is_a_mistake() {
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path().to_owned(), dir.path().join("missing/out")] {
            assert!(Output::create(&path).unwrap_err().is::<Usage>(), "{path:?}");
        }
    }
}
