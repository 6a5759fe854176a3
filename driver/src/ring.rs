//! Rings of entries that the card writes and the driver takes: completions, events, answers to commands.
//!
//! An entry is there when the phase bit, the highest of its last 8 bytes, is that of the pass over the ring; those 8 bytes
//! become visible no earlier than the rest. Positions run freely.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use crate::dma::DmaBuf;
use crate::host::Host;
use crate::{Backend, BackendError};

/// Bytes for the consumer record, a cache line of its own behind the ring.
const RECORD_BYTES: usize = 64;

/// Phase of a position: 1 in the first pass over a ring of 2^`log_size` entries, then 0, alternating.
#[inline]
pub(crate) const fn phase(position: u32, log_size: u8) -> bool {
    position >> log_size & 1 == 0
}

/// A ring of entries of `BYTES` bytes with its consumer record.
pub(crate) struct EntryRing<B: Backend, const BYTES: usize> {
    buf: DmaBuf<B>,
    log_size: u8,
    /// Entries taken, as far as the card was told.
    consumed: AtomicU32,
}

impl<B: Backend, const BYTES: usize> EntryRing<B, BYTES> {
    /// Byte of an entry whose 8-byte word holds the phase.
    const LAST_WORD: usize = BYTES - 8;

    /// An empty ring of 2^`log_size` entries.
    pub(crate) fn new(host: &Arc<Host<B>>, log_size: u8) -> Result<Self, BackendError> {
        Ok(Self {
            buf: DmaBuf::new(host, (BYTES << log_size) + RECORD_BYTES)?,
            log_size,
            consumed: AtomicU32::new(0),
        })
    }

    #[inline]
    pub(crate) fn log_size(&self) -> u8 {
        self.log_size
    }

    /// Address of the ring.
    pub(crate) fn base(&self) -> u64 {
        self.buf.iova(0)
    }

    /// Address of the consumer record.
    pub(crate) fn consumer(&self) -> u64 {
        self.buf.iova(BYTES << self.log_size)
    }

    /// Byte of the entry at a position.
    #[inline]
    fn at(&self, position: u32) -> usize {
        (position as usize & ((1 << self.log_size) - 1)) * BYTES
    }

    /// Last word of the entry at `position` if it is written; what the card wrote before it is visible then.
    #[inline]
    fn written(&self, position: u32) -> Option<u64> {
        let last = self.buf.read_u64(self.at(position) + Self::LAST_WORD);
        if (last >> 63 == 1) != phase(position, self.log_size) {
            return None;
        }
        fence(Ordering::Acquire);
        Some(last)
    }

    /// The entry at `position` if it is written.
    #[inline]
    pub(crate) fn read(&self, position: u32) -> Option<[u8; BYTES]> {
        let last = self.written(position)?;
        let at = self.at(position);
        let mut bytes = [0; BYTES];
        for word in 0..Self::LAST_WORD / 8 {
            let value = self.buf.read_u64(at + 8 * word);
            bytes[8 * word..][..8].copy_from_slice(&value.to_le_bytes());
        }
        bytes[Self::LAST_WORD..].copy_from_slice(&last.to_le_bytes());
        Some(bytes)
    }

    /// Consumer: everything before `position` is taken, and the card may write there again.
    #[inline]
    pub(crate) fn consume(&self, position: u32) {
        // The card may overwrite the entries once it sees the record: they are read before.
        fence(Ordering::Release);
        self.consumed.store(position, Ordering::Release);
        self.buf.write_u32(BYTES << self.log_size, position);
    }

    /// The first position that the card has not written yet.
    ///
    /// The consumer may run at the same time: an entry that seems unwritten because it is used again for a
    /// later position was consumed before, which is seen after it.
    pub(crate) fn end(&self) -> u32 {
        let mut position = self.consumed.load(Ordering::Acquire);
        loop {
            if self.written(position).is_some() {
                position = position.wrapping_add(1);
                continue;
            }
            fence(Ordering::Acquire);
            let consumed = self.consumed.load(Ordering::Acquire);
            if (consumed.wrapping_sub(position) as i32) <= 0 {
                return position;
            }
            position = consumed;
        }
    }
}
