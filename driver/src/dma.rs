//! Memory that driver and card share.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use ferroce_proto::abi::wqe::SLOT_BYTES;
use memmap2::{MmapOptions, MmapRaw};

use crate::host::Host;
use crate::{Backend, BackendError, DmaAccess, barrier, words};

/// Places that are tried for a buffer, less one.
const PLACES: usize = 64;

/// Zeroed whole pages, mapped for the card for as long as they live.
///
/// The card writes here at any time: bytes are only ever touched through raw pointers.
pub(crate) struct DmaBuf<B: Backend> {
    host: Arc<Host<B>>,
    map: ManuallyDrop<MmapRaw>,
    /// First byte that is aligned to a page of the backend.
    offset: usize,
    len: usize,
}

impl<B: Backend> DmaBuf<B> {
    /// At least `len` bytes (1 or more).
    pub(crate) fn new(host: &Arc<Host<B>>, len: usize) -> Result<Self, BackendError> {
        let refused = |source| BackendError::System {
            operation: "allocation",
            addr: 0,
            len,
            source,
        };
        let page = host.backend.page_size();
        let too_long = || refused(std::io::ErrorKind::OutOfMemory.into());
        let len = len.checked_next_multiple_of(page).ok_or_else(too_long)?;
        // The pages of the backend may be larger than those of the system.
        let room = len.checked_add(page).ok_or_else(too_long)?;
        // Places where a registered range was given back in part: kept until another place is found.
        let mut stale = Vec::new();
        let (map, offset) = loop {
            let map = MmapRaw::from(MmapOptions::new().len(room).map_anon().map_err(refused)?);
            // A child of fork() must not make the system copy pages away from under the card.
            #[cfg(target_os = "linux")]
            map.advise(memmap2::Advice::DontFork).map_err(refused)?;
            let addr = map.as_mut_ptr().addr();
            let offset = addr.next_multiple_of(page) - addr;
            let base = map.as_mut_ptr().wrapping_add(offset);
            // SAFETY: the memory is private to the value built here, which unpins it before it frees it.
            match unsafe { host.pin(base, len, DmaAccess::ReadWrite) } {
                Ok(()) => break (map, offset),
                Err(BackendError::Stale { .. }) if stale.len() < PLACES => stale.push(map),
                Err(e) => return Err(e),
            }
        };
        Ok(Self {
            host: host.clone(),
            map: ManuallyDrop::new(map),
            offset,
            len,
        })
    }

    pub(crate) fn host(&self) -> &Arc<Host<B>> {
        &self.host
    }

    /// Address as the card sees it.
    pub(crate) fn iova(&self, offset: usize) -> u64 {
        self.at(offset, 0).addr() as u64
    }

    /// Pointer to `len` bytes at `offset`.
    ///
    /// # Panics
    /// Beyond the buffer.
    #[inline]
    pub(crate) fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(
            offset <= self.len && len <= self.len - offset,
            "{len} bytes at {offset} lie outside of a buffer of {} bytes",
            self.len
        );
        // SAFETY: `offset` is inside of the mapping, see above.
        unsafe { self.map.as_mut_ptr().add(self.offset + offset) }
    }

    /// Reads 8 bytes at `offset`, a multiple of 8, in one access.
    #[inline]
    pub(crate) fn read_u64(&self, offset: usize) -> u64 {
        let at = self.at(offset, 8).cast::<u64>();
        debug_assert!(at.is_aligned());
        // SAFETY: `at` points to 8 bytes of the mapping, aligned as `offset` is.
        u64::from_le(unsafe { AtomicU64::from_ptr(at) }.load(Ordering::Relaxed))
    }

    /// Reads an entry of `BYTES` bytes at `offset`, both multiples of 8, that is written from its start to its last 8-byte word:
    /// that first, and the rest if it says that the entry is written.
    #[inline]
    pub(crate) fn read_entry<const BYTES: usize>(
        &self,
        offset: usize,
        is_written: impl FnOnce(u64) -> bool,
    ) -> Option<[u8; BYTES]> {
        let from = self.at(offset, BYTES).cast::<u64>();
        debug_assert!(from.is_aligned());
        // SAFETY: a word of the bytes above, aligned as `offset` is.
        let word = |place| unsafe { AtomicU64::from_ptr(from.add(place)) }.load(Ordering::Relaxed);
        let last = word(BYTES / 8 - 1);
        if !is_written(u64::from_le(last)) {
            return None;
        }
        // What was written before it is visible.
        barrier::after_read();
        let mut bytes = [0; BYTES];
        for (place, to) in bytes.chunks_exact_mut(8).enumerate() {
            let is_last = place == BYTES / 8 - 1;
            let value = if is_last { last } else { word(place) };
            to.copy_from_slice(&value.to_ne_bytes());
        }
        Some(bytes)
    }

    /// The slot of a work queue at `offset`.
    #[inline]
    pub(crate) fn slot(&self, offset: usize) -> Slot<'_> {
        Slot(self.at(offset, SLOT_BYTES), PhantomData)
    }

    /// Writes 4 bytes at `offset`, a multiple of 4, in one access.
    #[inline]
    pub(crate) fn write_u32(&self, offset: usize, value: u32) {
        let at = self.at(offset, 4).cast::<u32>();
        debug_assert!(at.is_aligned());
        // SAFETY: `at` points to 4 bytes of the mapping, aligned as `offset` is.
        unsafe { AtomicU32::from_ptr(at) }.store(value.to_le(), Ordering::Relaxed);
    }

    /// Copies `bytes` to `offset`; their last word, if that is aligned, is seen no earlier than the rest.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        let to = self.at(offset, bytes.len());
        // SAFETY: `to` points to as many bytes of the mapping; no reference to those exists.
        unsafe { words::write(to, bytes) }
    }

    /// Copies from `offset` to `bytes`; what the card writes meanwhile may be in part old, in part new.
    pub(crate) fn read(&self, offset: usize, bytes: &mut [u8]) {
        let from = self.at(offset, bytes.len());
        // SAFETY: `from` points to as many bytes of the mapping; no reference to those exists.
        unsafe { words::read(from, bytes) }
    }
}

/// A slot of a work queue, to be written.
pub(crate) struct Slot<'a>(*mut u8, PhantomData<&'a ()>);

impl Slot<'_> {
    /// Copies `bytes` to byte `at`.
    #[inline]
    pub(crate) fn write(&self, at: usize, bytes: &[u8]) {
        let fits = at <= SLOT_BYTES && bytes.len() <= SLOT_BYTES - at;
        assert!(fits, "a slot has {SLOT_BYTES} bytes");
        // SAFETY: so many bytes of the slot are left; no reference to those exists.
        unsafe {
            let to = self.0.add(at);
            to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }
}

impl<B: Backend> Drop for DmaBuf<B> {
    fn drop(&mut self) {
        match self.host.unpin(self.at(0, self.len), self.len) {
            // SAFETY: dropped here only, and not used afterwards.
            Ok(()) => unsafe { ManuallyDrop::drop(&mut self.map) },
            Err(e) => tracing::error!(
                "{} bytes that the card may still reach are never freed: {e}",
                self.len
            ),
        }
    }
}
