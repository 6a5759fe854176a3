//! Mistakes of the caller.

use std::fmt;

/// A mistake of the caller, as opposed to a failure of the task: exit code 2.
///
/// One line that says what is wrong and what to do. A task that returns it has written nothing.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}
