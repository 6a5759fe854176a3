//! How a function tells its caller that it failed.

use std::error::Error;

use ferroce_cabi::errno::is_explained;
pub(crate) use ferroce_cabi::errno::{Errno, or_minus_one, or_null, status};

use ferroce_driver::{
    AhError, BackendError, BuildError, CqError, EventError, ModifyError, MrError, MwError,
    PostCause, PostError, ResolveError, SrqError,
};

/// Says on standard error what an error number cannot, if that is asked for.
pub(crate) fn explain(error: &dyn Error) {
    if is_explained() {
        say(error);
    }
}

/// Says a line.
pub(crate) fn say_line(line: &str) {
    ferroce_cabi::errno::say("libibverbs", line);
}

/// Says what happened, with its causes, in a line.
pub(crate) fn say(error: &dyn Error) {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line = format!("{line}: {error}");
        cause = error.source();
    }
    say_line(&line);
}

/// The number that stands for an error of the driver.
pub(crate) trait ToErrno: Error + Sized + 'static {
    /// As the manual pages name it.
    fn number(&self) -> Errno;

    /// The number; if `FERROCE_LOG` is set, prints the whole error too.
    fn errno(self) -> Errno {
        explain(&self);
        self.number()
    }
}

impl ToErrno for BackendError {
    fn number(&self) -> Errno {
        match self {
            Self::Fault { .. } | Self::ReadOnly { .. } => Errno::FAULT,
            Self::System { source, .. } | Self::Interrupt { source, .. } => {
                Errno::from_io_error(source).unwrap_or(Errno::IO)
            }
            _ => Errno::NOMEM,
        }
    }
}

impl ToErrno for MrError {
    fn number(&self) -> Errno {
        match self {
            Self::Length { .. } | Self::Access(_) | Self::OtherContext => Errno::INVAL,
            Self::Unmapped { .. } => Errno::FAULT,
            Self::Full { .. } => Errno::NOMEM,
            Self::Memory(e) => e.number(),
            _ => Errno::IO,
        }
    }
}

impl ToErrno for MwError {
    fn number(&self) -> Errno {
        match self {
            Self::Unsupported => Errno::OPNOTSUPP,
            Self::Full { .. } => Errno::NOMEM,
            Self::Post(e) => e.number(),
            _ => Errno::IO,
        }
    }
}

impl ToErrno for CqError {
    fn number(&self) -> Errno {
        match self {
            Self::Entries { .. }
            | Self::Waiting { .. }
            | Self::OtherContext
            | Self::NoChannel { .. } => Errno::INVAL,
            Self::Unsupported => Errno::OPNOTSUPP,
            Self::Full { .. } => Errno::NOMEM,
            Self::Memory(e) => e.number(),
            _ => Errno::IO,
        }
    }
}

impl ToErrno for EventError {
    fn number(&self) -> Errno {
        match self {
            Self::Unsupported | Self::NoInterrupts => Errno::OPNOTSUPP,
            Self::InUse => Errno::BUSY,
            Self::Full { .. } => Errno::NOMEM,
            Self::Limit { .. } => Errno::INVAL,
            Self::Backend(e) => e.number(),
            _ => Errno::IO,
        }
    }
}

impl ToErrno for BuildError {
    fn number(&self) -> Errno {
        match self {
            Self::NoCq(_) | Self::OtherContext(_) | Self::Limit { .. } => Errno::INVAL,
            Self::Transport { .. } => Errno::OPNOTSUPP,
            Self::Full { .. } | Self::Outstanding { .. } => Errno::NOMEM,
            Self::GsiInUse => Errno::BUSY,
            Self::Memory(e) => e.number(),
            _ => Errno::IO,
        }
    }
}

impl ToErrno for SrqError {
    fn number(&self) -> Errno {
        match self {
            Self::Unsupported => Errno::OPNOTSUPP,
            Self::Limit { .. } => Errno::INVAL,
            Self::Full { .. } => Errno::NOMEM,
            Self::Memory(e) => e.number(),
            _ => Errno::IO,
        }
    }
}

impl ToErrno for ModifyError {
    fn number(&self) -> Errno {
        match self {
            Self::Command(_) => Errno::IO,
            _ => Errno::INVAL,
        }
    }
}

impl ToErrno for AhError {
    fn number(&self) -> Errno {
        match self {
            Self::Path(_) => Errno::INVAL,
            Self::Full { .. } => Errno::NOMEM,
            _ => Errno::IO,
        }
    }
}

impl ToErrno for ResolveError {
    fn number(&self) -> Errno {
        match self {
            Self::Path(_) | Self::NotUnicast(_) => Errno::INVAL,
            Self::Unreachable { .. } => Errno::HOSTUNREACH,
            _ => Errno::IO,
        }
    }
}

impl ToErrno for PostCause {
    fn number(&self) -> Errno {
        match self {
            Self::Full { .. } => Errno::NOMEM,
            Self::Unsupported { .. } => Errno::OPNOTSUPP,
            _ => Errno::INVAL,
        }
    }
}

impl ToErrno for PostError {
    fn number(&self) -> Errno {
        self.cause.number()
    }
}
