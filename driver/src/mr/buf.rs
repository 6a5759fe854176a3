//! Memory regions with a buffer of their own.

use std::ops::{Deref, RangeBounds};
use std::sync::Arc;

use super::{Access, Mr, MrError};
use crate::card::Kind;
use crate::dma::DmaBuf;
use crate::pd::PdNumber;
use crate::{AnyBackend, Backend, Sge};

/// A memory region with a buffer of its own: whole pages, zero at first.
///
/// The card may write at any time, so the bytes are copied in and out and never referenced.
pub struct MrBuf<B: Backend = AnyBackend> {
    // Fields drop in order: the region goes before its memory.
    mr: Mr<B>,
    buf: DmaBuf<B>,
}

impl<B: Backend> MrBuf<B> {
    pub(crate) fn new(
        pd: &Arc<PdNumber<B>>,
        len: usize,
        access: Access,
        kind: Kind,
    ) -> Result<Self, MrError> {
        if len == 0 {
            return Err(MrError::Length { addr: 0, len });
        }
        let buf = DmaBuf::new(&pd.card.host, len)?;
        // SAFETY: the memory outlives the region by the order of the fields, and is never referenced.
        let mr = unsafe { Mr::new(pd, buf.at(0, len), len, access, kind) }?;
        Ok(Self { mr, buf })
    }

    /// Gather or scatter entry of a part of the buffer, in bytes from its start.
    ///
    /// # Panics
    /// If the part is outside of the buffer or longer than 2^32 - 1 bytes.
    #[must_use]
    pub fn sge(&self, part: impl RangeBounds<usize>) -> Sge {
        // SAFETY: the bytes are never referenced, and stay until the card has let go of the region.
        unsafe { self.mr.sge(part) }
    }

    /// Copies `bytes` into the buffer at `offset`.
    ///
    /// # Panics
    /// If they do not fit.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.check(offset, bytes.len());
        self.buf.write(offset, bytes);
    }

    /// Copies from the buffer at `offset`. Bytes the card writes meanwhile may be old or new.
    ///
    /// # Panics
    /// If the buffer ends before `bytes` is full.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        self.check(offset, bytes.len());
        self.buf.read(offset, bytes);
    }

    /// A copy of `len` bytes at `offset`.
    ///
    /// # Panics
    /// If the buffer has fewer.
    #[must_use]
    pub fn to_vec(&self, offset: usize, len: usize) -> Vec<u8> {
        self.check(offset, len);
        let mut bytes = vec![0; len];
        self.buf.read(offset, &mut bytes);
        bytes
    }

    /// First byte, for access without a copy: through raw pointers, while no request and no right of a peer lets the
    /// card write there.
    #[must_use]
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.buf.at(0, self.len())
    }

    fn check(&self, offset: usize, len: usize) {
        assert!(
            offset <= self.len() && len <= self.len() - offset,
            "{len} bytes at {offset} are not a part of a region of {} bytes",
            self.len()
        );
    }
}

impl<B: Backend> Deref for MrBuf<B> {
    type Target = Mr<B>;

    fn deref(&self) -> &Mr<B> {
        &self.mr
    }
}
