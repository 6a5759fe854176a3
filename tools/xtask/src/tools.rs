//! Tools of the system that the tasks need.

use anyhow::Result;
use ferroce_system::PackageError;
pub(crate) use ferroce_system::packages::{CXX, STRACE, TSHARK, Tool, VERILATOR, YOSYS, ZLIB};

use crate::Usage;

/// Whether the formatter of the toolchain is there.
pub(crate) fn has_rustfmt() -> bool {
    ferroce_system::packages::runs("rustfmt")
}

/// Sees to it that all `tools` are there: as root installs what is missing, else names the one command that does.
pub(crate) fn ensure_present(tools: &[Tool]) -> Result<()> {
    ferroce_system::ensure_present(tools).map_err(|e| match e {
        PackageError::Missing { .. } => Usage(e.to_string()).into(),
        e => e.into(),
    })
}
