//! Calls that a connection does not take.

use std::fmt;

/// The call does not fit the state of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongState;

impl fmt::Display for WrongState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the call does not fit the state of the connection, or there is no such connection",
        )
    }
}

impl std::error::Error for WrongState {}
