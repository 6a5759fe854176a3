//! What can go wrong between Verilog text and a running model.

use std::path::PathBuf;

use super::spec::Direction;

/// Failure to build, load or use a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program or header that the build needs is not installed.
    #[error(
        "`{what}` was not found; it is needed to simulate Verilog. On Debian or Ubuntu: \
         apt install {package}"
    )]
    Missing {
        /// Program, as called, or header.
        what: String,
        /// Debian package that brings it.
        package: &'static str,
    },
    /// The installed Verilator is not one the harness works with.
    #[error(
        "{found} was found, but Verilator 5.006 or a later 5.x is needed. Debian 12 has it: \
         apt install verilator; or name another one in $VERILATOR"
    )]
    Version {
        /// What the installed program says of itself.
        found: String,
    },
    /// Verilator rejected the source.
    #[error("Verilator rejected module `{top}`:\n{log}")]
    Verilate {
        /// Top module.
        top: String,
        /// Verilator's messages; line numbers are those of [`Spec::source`](super::Spec::source).
        log: String,
    },
    /// The C++ compiler or the linker failed.
    #[error("C++ compilation of module `{top}` failed at {unit}:\n{log}")]
    Compile {
        /// Top module.
        top: String,
        /// File being compiled.
        unit: String,
        /// The compiler's messages.
        log: String,
    },
    /// The port list given is not the one of the Verilog module.
    #[error("port list of `{top}` does not match its Verilog: {what}")]
    PortMismatch {
        /// Top module.
        top: String,
        /// The port, what the list says and what the Verilog says.
        what: String,
    },
    /// No such port or field.
    #[error("`{top}` has no {kind} `{name}`; {}", near_text(.near))]
    NoSignal {
        /// Top module.
        top: String,
        /// "input", "output" or "signal".
        kind: &'static str,
        /// Name asked for.
        name: String,
        /// Names of that kind that look alike, best first.
        near: Vec<String>,
    },
    /// The port exists, in the other direction.
    #[error("`{name}` of `{top}` is an {is}, not an {}", is.opposite())]
    WrongDirection {
        /// Top module.
        top: String,
        /// Name asked for.
        name: String,
        /// What it is.
        is: Direction,
    },
    /// The model was built without what is asked of it.
    #[error("`{top}` was built without {what}: set `Options::{option}` when building")]
    NotBuiltIn {
        /// Top module.
        top: String,
        /// "tracing" or "coverage".
        what: &'static str,
        /// The option to set.
        option: &'static str,
    },
    /// The model stopped: `$finish`, `$stop`, `$fatal` or a combinational loop that does not settle.
    #[error("model `{top}` stopped: {what}")]
    Stopped {
        /// Top module.
        top: String,
        /// Verilator's message with source line.
        what: String,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// "create", "write", ...
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The shared object could not be loaded.
    #[error("cannot load {}: {source}; remove its directory to have it built again", path.display())]
    Load {
        /// The shared object.
        path: PathBuf,
        /// Cause.
        source: libloading::Error,
    },
}

impl Error {
    /// Wraps an I/O error with what was being done to which path; for `map_err`.
    pub(super) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

impl From<ferroce_system::CacheError> for Error {
    fn from(e: ferroce_system::CacheError) -> Self {
        Self::Io {
            action: e.action,
            path: e.path,
            source: e.source,
        }
    }
}

fn near_text(near: &[String]) -> String {
    if near.is_empty() {
        "it has none of that kind".into()
    } else {
        format!("nearest names: {}", near.join(", "))
    }
}
