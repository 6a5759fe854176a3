//! What can go wrong between a script and its exit status.

use std::path::PathBuf;
use std::time::Duration;

use ferroce_system::{CacheError, PackageError};
use thiserror::Error;

/// A guest could not be made, started, or did not do what was waited for.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GuestError {
    /// A tool is missing.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The cache of kernels and QEMUs.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A command of the host failed.
    #[error("`{command}` failed ({status}): {message}")]
    Command {
        /// Program and arguments.
        command: String,
        /// Exit status, or why it did not start.
        status: String,
        /// What it said last.
        message: String,
    },
    /// No kernel package is known.
    #[error("apt knows no kernel package behind linux-image-amd64: run apt-get update")]
    NoKernel,
    /// Debian's archive is not among the sources of apt.
    #[error("apt has no source of Debian bookworm, beside which a later QEMU could be found")]
    NoMirror,
    /// The kernel has no such module.
    #[error("the kernel {kernel} has no module {module}")]
    NoModule {
        /// Kernel version.
        kernel: String,
        /// Name asked for.
        module: String,
    },
    /// A program for the guest is not on the host.
    #[error("`{program}` is not on the host's PATH: install the package that has it")]
    NoProgram {
        /// As asked for.
        program: String,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// "read", "write", ...
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The guest did not do in time what was waited for.
    #[error("the guest did not print {marker:?} within {limit:?}\n{logs}")]
    Late {
        /// Text waited for.
        marker: String,
        /// The limit.
        limit: Duration,
        /// Console and kernel messages so far.
        logs: String,
    },
    /// The guest or QEMU ended before the script did.
    #[error("the guest ended ({status}) before it printed {marker:?}\n{logs}")]
    Ended {
        /// Text waited for.
        marker: String,
        /// Exit status of QEMU.
        status: String,
        /// Console and kernel messages, and what QEMU said.
        logs: String,
    },
}

impl GuestError {
    /// For `map_err` on file access.
    pub(crate) fn io(
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
