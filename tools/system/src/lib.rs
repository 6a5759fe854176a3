//! What tasks and tests need of the system they run on: Debian packages, its processors, and a place
//! for what takes long to make.

#![forbid(unsafe_code)]

pub mod cache;
pub mod link;
pub mod packages;
pub mod pool;
pub mod process;

pub use cache::{Cache, CacheError};
pub use packages::{PackageError, Tool, ensure_present};

/// Whether this is a run of CI, where nothing may be skipped.
#[must_use]
pub fn in_ci() -> bool {
    std::env::var_os("CI").is_some()
}

/// What a test needs, or `None` with the reason printed where it cannot be had.
///
/// # Panics
/// In CI, if it cannot be had: there a test that is skipped has failed.
pub fn or_skip<T, E: std::fmt::Display>(needed: Result<T, E>) -> Option<T> {
    match needed {
        Ok(value) => Some(value),
        Err(e) if in_ci() => panic!("nothing is skipped where CI is set: {e}"),
        Err(e) => {
            println!("skipped: {e}");
            None
        }
    }
}
