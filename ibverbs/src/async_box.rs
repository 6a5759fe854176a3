//! Asynchronous events on their way to the program.

use std::ffi::c_int;
use std::os::fd::RawFd;

use crate::abi::*;
use crate::errno::Errno;
use crate::handle::Acks;
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

    /// Adds an event of the object `object`, see [`Mailbox::put_of`].
    pub(crate) fn put_of(&self, object: Opaque, acks: &Acks, kind: c_int) {
        let element = object.addr();
        self.0.put_of(acks, ShownEvent { kind, element });
    }

    /// No event of an object that goes is left, see [`Mailbox::end`].
    pub(crate) fn end(&self, object: Opaque, acks: &Acks) {
        self.0.end(acks, |event| event.element == object.addr());
    }
}
