//! Protection domains.

use std::sync::Arc;

use crate::context::Card;
use crate::host::lock;
use crate::mr::{Access, Kind, Mr, MrBuf, MrError, Mw, MwError, MwType};
use crate::owned::Buf;
use crate::path::{Ah, AhError, Path};
use crate::srq::{Srq, SrqError};
use crate::{AnyBackend, Backend};

pub(crate) struct PdNumber<B: Backend> {
    pub(crate) card: Arc<Card<B>>,
    pub(crate) number: u32,
}

impl<B: Backend> Drop for PdNumber<B> {
    fn drop(&mut self) {
        lock(&self.card.pds).put(self.number);
    }
}

/// A protection domain: queue pairs reach memory regions of their own domain only.
///
/// Clones are handles of the same domain; it exists as long as anything in it.
pub struct Pd<B: Backend = AnyBackend> {
    inner: Arc<PdNumber<B>>,
}

impl<B: Backend> Clone for Pd<B> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
        }
    }
}

/// Handles of the same domain are equal.
impl<B: Backend> PartialEq for Pd<B> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl<B: Backend> Eq for Pd<B> {}

impl<B: Backend> Pd<B> {
    pub(crate) fn new(card: &Arc<Card<B>>) -> Self {
        let number = lock(&card.pds)
            .take()
            .expect("2^24 protection domains are in use");
        Self {
            inner: Arc::new(PdNumber {
                card: card.clone(),
                number,
            }),
        }
    }

    pub(crate) fn inner(&self) -> &Arc<PdNumber<B>> {
        &self.inner
    }

    /// Registers `len` bytes at `addr`, of the caller's memory.
    ///
    /// # Errors
    /// [`MrError`]: no bytes, rights that make no sense, no free table entry, or refused by system or card.
    ///
    /// # Safety
    /// Until the region is dropped the memory stays allocated. With remote rights its bytes are the peer's as long as a
    /// queue pair of the domain is connected: a peer that may write does so at any time, so no
    /// reference to them may exist; what a peer may only read, others do not write meanwhile. [`Mr::sge`] covers the
    /// requests of this side.
    pub unsafe fn reg_mr(
        &self,
        addr: *mut u8,
        len: usize,
        access: Access,
    ) -> Result<Mr<B>, MrError> {
        // SAFETY: the rule is the caller's, unchanged.
        unsafe { Mr::new(&self.inner, addr, len, access, Kind::Promised) }
    }

    /// A memory window, bound to nothing.
    ///
    /// # Errors
    /// [`MwError`]: the card has none, or none is left.
    pub fn alloc_mw(&self, mw_type: MwType) -> Result<Mw<B>, MwError> {
        Mw::new(&self.inner, mw_type)
    }

    /// An address handle: a way that datagrams take.
    ///
    /// # Errors
    /// [`AhError`]: a path that cannot be, no handle left, or refused.
    pub fn create_ah(&self, path: &Path) -> Result<Ah<B>, AhError> {
        Ah::new(self, path)
    }

    /// A receive queue for many queue pairs, of at least `max_wr` requests with lists of up to `max_sge` entries. The
    /// memory that requests name is of this protection domain, whatever that of the queue pair.
    ///
    /// # Errors
    /// [`SrqError`]: beyond a limit of the card, none left, no memory, or refused.
    pub fn create_srq(&self, max_wr: u32, max_sge: u32) -> Result<Srq<B>, SrqError> {
        Srq::new(&self.inner, max_wr, max_sge)
    }

    /// Number of the domain in the card.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.inner.number
    }

    /// Allocates and registers a zeroed buffer of `len` bytes.
    ///
    /// # Errors
    /// As of [`reg_mr`](Self::reg_mr), and no memory.
    pub fn alloc_mr(&self, len: usize, access: Access) -> Result<MrBuf<B>, MrError> {
        MrBuf::new(&self.inner, len, access, Kind::Open)
    }

    /// Allocates and registers a zeroed buffer of `len` bytes for requests that own it, see
    /// [`OwnedQueues`](crate::OwnedQueues).
    ///
    /// # Errors
    /// As of [`alloc_mr`](Self::alloc_mr).
    pub fn alloc_buf(&self, len: usize) -> Result<Buf<B>, MrError> {
        Buf::new(self, len)
    }
}
