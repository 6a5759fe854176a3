//! Programs of the host and the shared libraries they need.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::GuestError;
use crate::command::run;

/// The file that a shell would run for `program`; the superuser's folders count too.
pub(crate) fn find(program: &Path) -> Result<PathBuf, GuestError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let found = if program.components().count() > 1 {
        Some(program.to_owned())
    } else {
        folders.map(|f| f.join(program)).find(|p| p.is_file())
    };
    found
        .filter(|p| p.is_file())
        .ok_or_else(|| GuestError::NoProgram {
            program: program.display().to_string(),
        })
}

/// Shared libraries of the executable or library `file`, and the loader; none if it is static.
pub(crate) fn needed(file: &Path) -> Result<Vec<PathBuf>, GuestError> {
    // What is not dynamic is no error here, and ldd has no other way to say so.
    let text = run(Command::new("ldd").arg(file)).unwrap_or_default();
    if let Some(line) = text.lines().find(|l| l.contains("not found")) {
        return Err(GuestError::NoProgram {
            program: format!("{}: {}", file.display(), line.trim()),
        });
    }
    let path = |line: &str| {
        line.split_whitespace()
            .find(|w| w.starts_with('/'))
            .map(PathBuf::from)
    };
    Ok(text.lines().filter_map(path).collect())
}
