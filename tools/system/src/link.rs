//! A shared library made of a static one, with versions of its symbols.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use thiserror::Error;

/// What the Rust standard library needs of the system.
const LIBRARIES: [&str; 5] = ["-lgcc_s", "-lpthread", "-ldl", "-lm", "-lc"];

/// The library could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LinkError {
    /// A file could not be written, or the linker not be started.
    #[error("cannot {action}")]
    System {
        /// What was to be done.
        action: String,
        /// Answer of the system.
        #[source]
        source: std::io::Error,
    },
    /// The linker failed.
    #[error("cc failed to link {library}: {output}")]
    Linker {
        /// The library.
        library: String,
        /// What it said.
        output: String,
    },
}

/// The static library of a crate that cargo built with the running test: the newest of its name beside the program.
///
/// # Errors
/// There is none, or the folder cannot be read.
pub fn archive(crate_name: &str) -> std::io::Result<PathBuf> {
    let program = env::current_exe()?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    let start = format!("lib{crate_name}");
    let mut newest = None;
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(&start) && name.ends_with(".a") {
            newest = newest.max(Some((path.metadata()?.modified()?, path)));
        }
    }
    newest.map(|(_, path)| path).ok_or_else(|| {
        let text = format!("no {start}.a in {}", folder.display());
        std::io::Error::new(std::io::ErrorKind::NotFound, text)
    })
}

/// Links `archive` into the shared library `soname` in `folder`, by a version script: symbols that it does not name are
/// hidden, and code that nothing needs is left out.
///
/// # Errors
/// [`LinkError`]: `cc` is missing, or does not like what it is given.
pub fn shared(
    archive: &Path,
    version_script: &str,
    soname: &str,
    folder: &Path,
) -> Result<(), LinkError> {
    shared_with(archive, version_script, soname, folder, &[])
}

/// As [`shared`], of a library that needs the libraries `others` of the same folder.
///
/// # Errors
/// As of [`shared`].
pub fn shared_with(
    archive: &Path,
    version_script: &str,
    soname: &str,
    folder: &Path,
    others: &[&str],
) -> Result<(), LinkError> {
    let failed = |action: String| move |source| LinkError::System { action, source };
    fs::create_dir_all(folder).map_err(failed(format!("make {}", folder.display())))?;
    let script = folder.join(format!("{soname}.map"));
    let library = folder.join(soname);
    fs::write(&script, version_script).map_err(failed(format!("write {}", script.display())))?;
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-o"]).arg(&library);
    cc.arg(format!("-Wl,-soname,{soname}"));
    cc.arg(format!("-Wl,--version-script={}", script.display()));
    // Threads of the library run as long as the process: `dlclose` keeps their code.
    cc.args(["-Wl,--gc-sections", "-Wl,-z,defs", "-Wl,-z,nodelete"]);
    cc.arg("-Wl,--whole-archive");
    cc.arg(archive).arg("-Wl,--no-whole-archive");
    cc.arg("-L").arg(folder);
    cc.args(others.iter().map(|other| format!("-l:{other}")));
    cc.args(LIBRARIES);
    let output = cc.output().map_err(failed("start cc".into()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(LinkError::Linker {
        library: library.display().to_string(),
        output: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}
