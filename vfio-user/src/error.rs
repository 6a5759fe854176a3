//! Errors of malformed messages.

use thiserror::Error;

/// A message that breaks the protocol.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The size in the header cannot be.
    #[error("a message of {size} bytes; {least} to {most} are expected", least = crate::MIN_MESSAGE, most = crate::MAX_MESSAGE)]
    Size {
        /// Size in the header.
        size: u32,
    },
    /// The type bits of the flags are neither command nor reply.
    #[error("flags {flags:#x} are neither a command (0) nor a reply (1)")]
    Type {
        /// Flags in the header.
        flags: u32,
    },
    /// A command that is not spoken here.
    #[error("command {0} is not known here")]
    Command(u16),
    /// The payload is shorter than its fixed part.
    #[error("{what} of {found} bytes; at least {expected} are expected")]
    Short {
        /// Which payload.
        what: &'static str,
        /// Bytes found.
        found: usize,
        /// Bytes of the fixed part.
        expected: usize,
    },
    /// The data is not as long as the payload says.
    #[error("{found} bytes of data where the message says {expected}")]
    Data {
        /// Bytes found.
        found: usize,
        /// Bytes that the message announces.
        expected: u64,
    },
    /// The data of a transfer would be longer than agreed.
    #[error("a transfer of {count} bytes; at most {most} are expected", most = crate::MAX_TRANSFER)]
    Transfer {
        /// Bytes asked for.
        count: u64,
    },
    /// The version's JSON is not valid.
    #[error("the capabilities are not valid JSON of the known form: {0}")]
    Json(String),
    /// Version data without its NUL, or with more behind it.
    #[error("the capabilities do not end with one NUL byte")]
    Unterminated,
    /// More file descriptors than are taken.
    #[error("more than {most} file descriptors with one message", most = crate::MAX_FDS)]
    Fds,
}
