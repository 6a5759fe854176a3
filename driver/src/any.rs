//! A backend of any kind: [`AnyBackend`].

use std::convert::Infallible;
use std::os::fd::{BorrowedFd, OwnedFd};

#[cfg(feature = "vfio")]
use crate::vfio::Vfio;
#[cfg(feature = "vfio-user")]
use crate::vfio_user::VfioUser;
use crate::{Backend, BackendError, DmaAccess, Opened};

/// A card of any kind that this build of the crate knows (features `vfio` and `vfio-user`). The objects of the crate
/// are on one of these unless a program names another backend.
#[non_exhaustive]
pub enum AnyBackend {
    /// Of this host, through VFIO.
    #[cfg(feature = "vfio")]
    Vfio(Vfio),
    /// Behind a vfio-user socket.
    #[cfg(feature = "vfio-user")]
    VfioUser(VfioUser),
    /// None: a build without both features has no card.
    #[doc(hidden)]
    None(Infallible),
}

impl AnyBackend {
    /// Its time is not the host's: a simulated card.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        match self {
            #[cfg(feature = "vfio")]
            Self::Vfio(card) => card.is_simulated(),
            #[cfg(feature = "vfio-user")]
            Self::VfioUser(_) => true,
            Self::None(never) => match *never {},
        }
    }
}

/// Passes a call on to the card.
macro_rules! each {
    ($self:ident, $card:ident => $call:expr) => {
        match $self {
            #[cfg(feature = "vfio")]
            Self::Vfio($card) => $call,
            #[cfg(feature = "vfio-user")]
            Self::VfioUser($card) => $call,
            Self::None(never) => match *never {},
        }
    };
}

#[cfg_attr(
    not(any(feature = "vfio", feature = "vfio-user")),
    allow(unused_variables)
)]
impl Backend for AnyBackend {
    fn read32(&self, offset: u64) -> u32 {
        each!(self, card => card.read32(offset))
    }

    unsafe fn write32(&self, offset: u64, value: u32) {
        // SAFETY: the rule is the caller's, unchanged.
        each!(self, card => unsafe { card.write32(offset, value) });
    }

    unsafe fn map(&self, addr: *mut u8, len: usize, access: DmaAccess) -> Result<(), BackendError> {
        // SAFETY: the rule is the caller's, unchanged.
        each!(self, card => unsafe { card.map(addr, len, access) })
    }

    unsafe fn unmap(&self, addr: *mut u8, len: usize) -> Result<(), BackendError> {
        // SAFETY: the rule is the caller's, unchanged.
        each!(self, card => unsafe { card.unmap(addr, len) })
    }

    fn opened(&self) -> &Opened {
        each!(self, card => card.opened())
    }

    fn relax(&self) {
        each!(self, card => card.relax());
    }

    fn now_ns(&self) -> u64 {
        each!(self, card => card.now_ns())
    }

    fn page_size(&self) -> usize {
        each!(self, card => card.page_size())
    }

    fn bar_len(&self) -> u64 {
        each!(self, card => card.bar_len())
    }

    fn vectors(&self) -> u32 {
        each!(self, card => card.vectors())
    }

    fn interrupt(&self, vector: u32) -> Result<OwnedFd, BackendError> {
        each!(self, card => Backend::interrupt(card, vector))
    }

    fn wait_readable(&self, fd: BorrowedFd<'_>, timeout_ns: u64) -> bool {
        each!(self, card => card.wait_readable(fd, timeout_ns))
    }

    fn is_lost(&self) -> bool {
        each!(self, card => Backend::is_lost(card))
    }
}
