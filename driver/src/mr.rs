//! Memory regions.

use std::collections::VecDeque;
use std::fmt;
use std::ops::{Bound, Deref, RangeBounds};
use std::ptr;
use std::sync::Arc;

use bitflags::bitflags;
use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::mr::MrCtx;
use rustix::mm::MsyncFlags;
use thiserror::Error;

use crate::command::{Command, CommandError};
use crate::dma::DmaBuf;
use crate::host::{Host, lock};
use crate::pd::PdNumber;
use crate::{Backend, BackendError, Sge};

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
    /// No memory, or it could not be made reachable.
    #[error("memory cannot be made reachable for the card")]
    Memory(#[from] BackendError),
    /// The card refused.
    #[error(transparent)]
    Command(#[from] CommandError),
}

/// Places of the memory region table, and the variant of the key given out last for each.
pub(crate) struct Keys {
    limit: u32,
    variants: Vec<u8>,
    back: VecDeque<u32>,
}

impl Keys {
    pub(crate) fn new(limit: u32) -> Self {
        Self {
            limit,
            variants: Vec::new(),
            back: VecDeque::new(),
        }
    }

    /// A place and its key: the place in bits 8 and up, a variant from 1 to 255 below.
    fn take(&mut self) -> Option<(u32, u32)> {
        let place = if self.variants.len() < self.limit as usize {
            self.variants.push(0);
            self.variants.len() as u32 - 1
        } else {
            self.back.pop_front()?
        };
        let variant = &mut self.variants[place as usize];
        // Not 0: no key is 0.
        *variant = variant.checked_add(1).unwrap_or(1);
        Some((place, place << 8 | u32::from(*variant)))
    }

    fn put(&mut self, place: u32) {
        self.back.push_back(place);
    }
}

/// An entry of the memory region table; cleared when dropped.
struct Entry<B: Backend> {
    pd: Arc<PdNumber<B>>,
    place: u32,
    key: u32,
}

impl<B: Backend> Entry<B> {
    fn new(
        pd: &Arc<PdNumber<B>>,
        addr: usize,
        len: usize,
        access: Access,
    ) -> Result<Self, MrError> {
        let taken = lock(&pd.card.keys).take();
        let (place, key) = taken.ok_or(MrError::Full {
            limit: pd.card.info.max_mr,
        })?;
        let ctx = MrCtx {
            base: addr as u64,
            last: (addr + (len - 1)) as u64,
            key,
            pd: pd.number,
            valid: true,
            local_write: access.contains(Access::LOCAL_WRITE),
            remote_write: access.contains(Access::REMOTE_WRITE),
            remote_read: access.contains(Access::REMOTE_READ),
            remote_atomic: access.contains(Access::REMOTE_ATOMIC),
        };
        let command = Command::new(opcode::WRITE_MR, place).with(ctx.emit());
        if let Err(e) = pd.card.execute("register MR", &command) {
            lock(&pd.card.keys).put(place);
            return Err(e.into());
        }
        Ok(Self {
            pd: pd.clone(),
            place,
            key,
        })
    }
}

impl<B: Backend> Drop for Entry<B> {
    fn drop(&mut self) {
        let card = &self.pd.card;
        let command = Command::new(opcode::WRITE_MR, self.place).with(MrCtx::default().emit());
        // Answered only when the card is done with the memory.
        match card.execute("deregister MR", &command) {
            Ok(_) => lock(&card.keys).put(self.place),
            Err(e) => tracing::error!("the table entry stays taken: {e}"),
        }
    }
}

/// Memory of somebody else, reachable for the card.
struct Pinned<B: Backend> {
    host: Arc<Host<B>>,
    addr: usize,
    len: usize,
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

/// A memory region: bytes that the card, and with the rights to it a peer, may access by key.
///
/// When it is dropped the card forgets the key and is done with the memory before the drop returns.
pub struct Mr<B: Backend> {
    // Fields drop in order: the card lets go before the memory leaves its reach.
    entry: Entry<B>,
    pinned: Pinned<B>,
}

impl<B: Backend> Mr<B> {
    /// # Safety
    /// As of [`Pd::reg_mr`](crate::Pd::reg_mr).
    pub(crate) unsafe fn new(
        pd: &Arc<PdNumber<B>>,
        addr: *mut u8,
        len: usize,
        access: Access,
    ) -> Result<Self, MrError> {
        if len == 0 || addr.addr().checked_add(len).is_none() {
            let addr = addr.addr();
            return Err(MrError::Length { addr, len });
        }
        let writes = Access::REMOTE_WRITE | Access::REMOTE_ATOMIC;
        if access.intersects(writes) && !access.contains(Access::LOCAL_WRITE) {
            return Err(MrError::Access(access));
        }
        if !is_mapped(addr, len) {
            let addr = addr.addr();
            return Err(MrError::Unmapped { addr, len });
        }
        let host = pd.card.host.clone();
        // SAFETY: the memory stays until the region is dropped, by the caller's word; `Pinned` unpins it then.
        unsafe { host.pin(addr, len) }?;
        let addr = addr.addr();
        let pinned = Pinned { host, addr, len };
        let entry = Entry::new(pd, addr, len, access)?;
        Ok(Self { entry, pinned })
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

/// Whether the process has memory at all of `[addr, addr + len)`, whatever its rights to it.
fn is_mapped(addr: *mut u8, len: usize) -> bool {
    let offset = addr.addr() % rustix::param::page_size();
    let start = addr.wrapping_sub(offset).cast();
    // SAFETY: without other flags ASYNC does nothing but look whether the pages are there (msync(2)).
    unsafe { rustix::mm::msync(start, len + offset, MsyncFlags::ASYNC) }.is_ok()
}

/// A memory region with a buffer of its own: whole pages, zero at first.
///
/// The card may write at any time, so the bytes are copied in and out and never referenced.
pub struct MrBuf<B: Backend> {
    // Fields drop in order: the region goes before its memory.
    mr: Mr<B>,
    buf: DmaBuf<B>,
}

impl<B: Backend> MrBuf<B> {
    pub(crate) fn new(pd: &Arc<PdNumber<B>>, len: usize, access: Access) -> Result<Self, MrError> {
        if len == 0 {
            return Err(MrError::Length { addr: 0, len });
        }
        let buf = DmaBuf::new(&pd.card.host, len)?;
        // SAFETY: the memory outlives the region by the order of the fields, and is never referenced.
        let mr = unsafe { Mr::new(pd, buf.at(0, len), len, access) }?;
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

    /// First byte, for access without a copy: through raw pointers, while neither card nor peer was told to write there.
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
