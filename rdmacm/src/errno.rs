//! How a function tells that it failed: all of rdma_cma.h set `errno` and return -1 or null.

use std::error::Error;

pub(crate) use ferroce_cabi::errno::{Errno, or_minus_one, or_null};

/// Set to see more on standard error.
const LOG_VARIABLE: &str = "FERROCE_LOG";

/// Says what is of use to who looks for a mistake, if that is asked for.
pub(crate) fn log(line: &str) {
    if std::env::var_os(LOG_VARIABLE).is_some() {
        eprintln!("librdmacm: {line}");
    }
}

/// Says what a mistake in the environment is.
pub(crate) fn say(error: &dyn Error) {
    eprintln!("librdmacm: {error}");
}
