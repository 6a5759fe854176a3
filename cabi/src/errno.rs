//! How a function tells its C caller that it failed.

use std::ffi::c_int;
use std::io::Write;
use std::ptr;

pub use rustix::io::Errno;

/// Set to see on standard error what an error number cannot tell.
const LOG_VARIABLE: &str = "FERROCE_LOG";

/// Whether it is asked for what an error number cannot tell.
#[must_use]
pub fn is_explained() -> bool {
    std::env::var_os(LOG_VARIABLE).is_some()
}

/// Prints a line on standard error, in the name of a library. A write error is ignored.
pub fn say(library: &str, line: &str) {
    let _ = writeln!(std::io::stderr(), "{library}: {line}");
}

/// Sets `errno` of this thread.
fn set(errno: Errno) {
    // SAFETY: the place of this thread's own `errno`.
    unsafe { *libc::__errno_location() = errno.raw_os_error() };
}

/// 0, or the error itself.
pub fn status(result: Result<(), Errno>) -> c_int {
    result.map_or_else(
        |errno| {
            set(errno);
            errno.raw_os_error()
        },
        |()| 0,
    )
}

/// The value, or -1 and `errno`.
pub fn or_minus_one(result: Result<c_int, Errno>) -> c_int {
    result.unwrap_or_else(|errno| {
        set(errno);
        -1
    })
}

/// The pointer, or null and `errno`.
pub fn or_null<T>(result: Result<*mut T, Errno>) -> *mut T {
    result.unwrap_or_else(|errno| {
        set(errno);
        ptr::null_mut()
    })
}
