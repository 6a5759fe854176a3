//! Memory regions.

mod buf;
mod entry;
mod window;

use std::ops::{Bound, RangeBounds};
use std::ptr;
use std::sync::Arc;
use std::{fmt, mem};

use bitflags::bitflags;
use rustix::mm::MsyncFlags;
use thiserror::Error;

use crate::card::Kind;
use crate::command::CommandError;
use crate::host::Host;
use crate::pd::PdNumber;
use crate::{AnyBackend, Backend, BackendError, DmaAccess, Pd, Sge};
pub use buf::MrBuf;
use entry::{Entry, Extent};
pub use window::{Mw, MwBind, MwError, MwType};

bitflags! {
    /// Rights to a memory region, or of a peer over a queue pair. The card may always read for local operations.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Access: u8 {
        /// The card may write for local operations: receives, READs, atomics.
        const LOCAL_WRITE = 1 << 0;
        /// A peer may write.
        const REMOTE_WRITE = 1 << 1;
        /// A peer may read.
        const REMOTE_READ = 1 << 2;
        /// A peer may use atomics.
        const REMOTE_ATOMIC = 1 << 3;
        /// Memory windows may be bound to it.
        const MW_BIND = 1 << 4;
    }
}

impl Access {
    /// What the card does with memory on which there are these rights; a peer writes only where it may.
    fn dma(self) -> DmaAccess {
        if self.contains(Self::LOCAL_WRITE) {
            DmaAccess::ReadWrite
        } else {
            DmaAccess::Read
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bitflags::parser::to_writer(self, f)
    }
}

/// Memory could not be registered or deregistered.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MrError {
    /// A region holds at least a byte and ends before the address space does.
    #[error("a region of {len} bytes at {addr:#x} is empty or wraps round the address space")]
    Length {
        /// First address.
        addr: usize,
        /// Bytes.
        len: usize,
    },
    /// There is no memory, or not everywhere.
    #[error(
        "a region of {len} bytes at {addr:#x} covers addresses where the process has no memory: allocate or map it first"
    )]
    Unmapped {
        /// First address.
        addr: usize,
        /// Bytes.
        len: usize,
    },
    /// A peer that may write needs a card that may write (IB1 10.6.3).
    #[error("rights {0} let a peer write where the card may not: add LOCAL_WRITE")]
    Access(Access),
    /// The table is full.
    #[error(
        "all {limit} memory regions of the card are in use: drop some, or register larger ones"
    )]
    Full {
        /// Entries of the table.
        limit: u32,
    },
    /// A region goes to another domain of its own card only.
    #[error(
        "region and protection domain are of different contexts: allocate the domain on that of the region"
    )]
    OtherContext,
    /// No memory, or it could not be made reachable.
    #[error("memory cannot be made reachable for the card")]
    Memory(#[from] BackendError),
    /// The region changed, but a window that was bound to it stays: what the region was before stays in reach of the card.
    #[error("a window of the region as it was cannot be ended: drop the window")]
    Windows(#[source] CommandError),
    /// The card refused.
    #[error(transparent)]
    Command(#[from] CommandError),
}

/// Memory of somebody else, reachable for the card.
struct Pinned<B: Backend> {
    host: Arc<Host<B>>,
    addr: usize,
    len: usize,
    access: DmaAccess,
}

impl<B: Backend> Pinned<B> {
    /// # Safety
    /// The memory stays allocated until the value is dropped.
    unsafe fn new(
        host: &Arc<Host<B>>,
        addr: *mut u8,
        len: usize,
        access: DmaAccess,
    ) -> Result<Self, BackendError> {
        let host = host.clone();
        // SAFETY: by the caller's word; the drop unpins it.
        unsafe { host.pin(addr, len, access) }?;
        let addr = addr.addr();
        Ok(Self {
            host,
            addr,
            len,
            access,
        })
    }
}

impl<B: Backend> Drop for Pinned<B> {
    fn drop(&mut self) {
        // Only the address counts: nothing is read through the pointer.
        if let Err(e) = self
            .host
            .unpin(ptr::without_provenance_mut(self.addr), self.len)
        {
            tracing::error!("memory stays reachable for the card: {e}");
        }
    }
}

/// What [`Mr::rereg`] changes of a region; what is `None` stays.
pub struct MrChange<'a, B: Backend = AnyBackend> {
    /// Protection domain.
    pub pd: Option<&'a Pd<B>>,
    /// First byte and number of bytes.
    pub memory: Option<(*mut u8, usize)>,
    /// Rights.
    pub access: Option<Access>,
}

impl<B: Backend> Default for MrChange<'_, B> {
    fn default() -> Self {
        Self {
            pd: None,
            memory: None,
            access: None,
        }
    }
}

/// A memory region: bytes that the card, and with the rights to it a peer, may access by key.
///
/// When it is dropped the card forgets the key, and the windows that are bound to it, and is done with the memory before
/// the drop returns.
pub struct Mr<B: Backend = AnyBackend> {
    // Fields drop in order: the card lets go before the memory leaves its reach.
    entry: Entry<B>,
    pinned: Pinned<B>,
    access: Access,
}

impl<B: Backend> Pd<B> {
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
        unsafe { Mr::new(self.inner(), addr, len, access, Kind::Promised) }
    }

    /// Allocates and registers a zeroed buffer of `len` bytes.
    ///
    /// # Errors
    /// As of [`reg_mr`](Self::reg_mr), and no memory.
    pub fn alloc_mr(&self, len: usize, access: Access) -> Result<MrBuf<B>, MrError> {
        MrBuf::new(self.inner(), len, access, Kind::Open)
    }
}

impl<B: Backend> Mr<B> {
    /// # Safety
    /// As of [`Pd::reg_mr`](crate::Pd::reg_mr).
    pub(crate) unsafe fn new(
        pd: &Arc<PdNumber<B>>,
        addr: *mut u8,
        len: usize,
        access: Access,
        kind: Kind,
    ) -> Result<Self, MrError> {
        let extent = check(addr, len, access)?;
        // SAFETY: the memory stays until the region is dropped, by the caller's word.
        let pinned = unsafe { Pinned::new(&pd.card.host, addr, len, access.dma()) }?;
        let entry = Entry::new(pd, extent, kind)?;
        Ok(Self {
            entry,
            pinned,
            access,
        })
    }

    /// Changes the region under its key, and ends the windows that are bound to it. Requests that are under way meanwhile
    /// find the old or the new; when this returns the card is done with the old.
    ///
    /// # Errors
    /// [`MrError`], with nothing changed: as of [`Pd::reg_mr`](crate::Pd::reg_mr), and a domain of another context. But of
    /// [`MrError::Windows`] the region has changed.
    ///
    /// # Safety
    /// As of [`Pd::reg_mr`](crate::Pd::reg_mr), of the new memory, rights and domain.
    pub unsafe fn rereg(&mut self, change: &MrChange<'_, B>) -> Result<(), MrError> {
        let pd = change.pd.map_or(&self.entry.pd, Pd::inner).clone();
        if !Arc::ptr_eq(&pd.card, &self.entry.pd.card) {
            return Err(MrError::OtherContext);
        }
        let old = ptr::without_provenance_mut(self.pinned.addr);
        let (addr, len) = change.memory.unwrap_or((old, self.pinned.len));
        let access = change.access.unwrap_or(self.access);
        let extent = check(addr, len, access)?;
        let pinned = if change.memory.is_some() || access.dma() != self.pinned.access {
            // SAFETY: as of `new`.
            Some(unsafe { Pinned::new(&pd.card.host, addr, len, access.dma()) }?)
        } else {
            None
        };
        let ended = self.entry.rewrite(&pd, extent)?;
        self.access = extent.access;
        let old = pinned.map(|pinned| mem::replace(&mut self.pinned, pinned));
        ended.map_err(|e| {
            // By a window the card still reaches it.
            mem::forget(old);
            MrError::Windows(e)
        })
    }

    fn place(&self) -> u32 {
        self.entry.place
    }

    fn pd(&self) -> &Arc<PdNumber<B>> {
        &self.entry.pd
    }

    /// Rights.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// Key for local operations.
    #[must_use]
    pub fn lkey(&self) -> u32 {
        self.entry.key
    }

    /// Key for a peer.
    #[must_use]
    pub fn rkey(&self) -> u32 {
        self.entry.key
    }

    /// First address, as local and remote operations name it.
    #[must_use]
    pub fn addr(&self) -> u64 {
        self.pinned.addr as u64
    }

    /// Bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a region is never empty")]
    pub fn len(&self) -> usize {
        self.pinned.len
    }

    /// Gather or scatter entry of a part of the region, in bytes from its start.
    ///
    /// # Panics
    /// If the part is outside of the region or longer than 2^32 - 1 bytes.
    ///
    /// # Safety
    /// As of [`Sge::from_raw_parts`].
    #[must_use]
    pub unsafe fn sge(&self, part: impl RangeBounds<usize>) -> Sge {
        let (start, length) = self.part(part);
        // SAFETY: the rule is the caller's, unchanged.
        unsafe { Sge::from_raw_parts(self.addr() + start as u64, length, self.lkey()) }
    }

    /// First byte of a part of the region, and its length.
    fn part(&self, part: impl RangeBounds<usize>) -> (usize, u32) {
        let start = match part.start_bound() {
            Bound::Included(&at) => at,
            Bound::Excluded(&at) => at + 1,
            Bound::Unbounded => 0,
        };
        let end = match part.end_bound() {
            Bound::Included(&at) => at + 1,
            Bound::Excluded(&at) => at,
            Bound::Unbounded => self.len(),
        };
        assert!(
            start <= end && end <= self.len(),
            "bytes {start}..{end} are not a part of a region of {} bytes",
            self.len()
        );
        let length = u32::try_from(end - start);
        let length = length.expect("a gather or scatter entry holds less than 2^32 bytes");
        (start, length)
    }
}

/// What a region would be, if it may be.
fn check(addr: *mut u8, len: usize, access: Access) -> Result<Extent, MrError> {
    let start = addr.addr();
    if len == 0 || start.checked_add(len).is_none() {
        return Err(MrError::Length { addr: start, len });
    }
    let writes = Access::REMOTE_WRITE | Access::REMOTE_ATOMIC;
    if access.intersects(writes) && !access.contains(Access::LOCAL_WRITE) {
        return Err(MrError::Access(access));
    }
    if !is_mapped(addr, len) {
        return Err(MrError::Unmapped { addr: start, len });
    }
    Ok(Extent {
        addr: start,
        len,
        access,
    })
}

/// Whether the process has memory at all of `[addr, addr + len)`, whatever its rights to it.
fn is_mapped(addr: *mut u8, len: usize) -> bool {
    let offset = addr.addr() % rustix::param::page_size();
    let start = addr.wrapping_sub(offset).cast();
    // SAFETY: without other flags ASYNC does nothing but look whether the pages are there (msync(2)).
    unsafe { rustix::mm::msync(start, len + offset, MsyncFlags::ASYNC) }.is_ok()
}
