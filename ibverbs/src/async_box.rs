//! Asynchronous events on their way to the program.

use std::ffi::c_int;
use std::os::fd::RawFd;

use crate::abi::*;
use crate::errno::Errno;
use crate::mailbox::Mailbox;

/// An asynchronous event: its kind, and the object or port that it is of.
pub(crate) struct ShownEvent {
    pub(crate) kind: c_int,
    pub(crate) element: usize,
}

/// Asynchronous events of a context.
pub(crate) struct AsyncBox(pub(crate) Mailbox<ShownEvent>);

impl AsyncBox {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self(Mailbox::new()?))
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.0.fd()
    }

    /// Forgets events of an object that goes.
    pub(crate) fn discard(&self, object: Opaque) {
        self.0.discard(|event| event.element == object.addr());
    }
}
