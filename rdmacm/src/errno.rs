//! How a function tells that it failed: all of rdma_cma.h set `errno` and return -1 or null.

use ferroce_cabi::errno::is_explained;
pub(crate) use ferroce_cabi::errno::{Errno, or_minus_one, or_null};

/// Prints a line that helps to find an error, if `FERROCE_LOG` is set.
pub(crate) fn log(line: &str) {
    if is_explained() {
        say(line);
    }
}

/// Says what a mistake in the environment is.
pub(crate) fn say(line: &str) {
    ferroce_cabi::errno::say("librdmacm", line);
}
