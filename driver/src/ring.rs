//! Rings of entries that the card writes and the driver takes: completions, events, answers to commands.
//!
//! An entry is there when the phase bit, the highest of its last 8 bytes, is that of the pass over the ring; those 8 bytes
//! become visible no earlier than the rest. A position is the count of entries before it since the ring began, in 64 bits:
//! the later of two is the greater. The card knows its lowest 32 bits.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::barrier;
use crate::dma::DmaBuf;
use crate::host::Host;
use crate::{Backend, BackendError};

/// Bytes for the consumer record, a cache line of its own behind the ring.
const RECORD_BYTES: usize = 64;

/// Phase of a position: 1 in the first pass over a ring of 2^`log_size` entries, then 0, alternating.
#[inline]
pub(crate) const fn phase(position: u64, log_size: u8) -> bool {
    position >> log_size & 1 == 0
}

/// A ring of entries of `BYTES` bytes with its consumer record.
pub(crate) struct EntryRing<B: Backend, const BYTES: usize> {
    buf: DmaBuf<B>,
    /// Entries of the ring, a power of two.
    size: u32,
    /// Entries taken, as last reported to the card.
    consumed: AtomicU64,
}

impl<B: Backend, const BYTES: usize> EntryRing<B, BYTES> {
    /// An empty ring of 2^`log_size` entries.
    pub(crate) fn new(host: &Arc<Host<B>>, log_size: u8) -> Result<Self, BackendError> {
        Ok(Self {
            buf: DmaBuf::new(host, (BYTES << log_size) + RECORD_BYTES)?,
            size: 1 << log_size,
            consumed: AtomicU64::new(0),
        })
    }

    /// A ring for a consumer at `position`, in which nothing is written from there on.
    pub(crate) fn from_position(
        host: &Arc<Host<B>>,
        log_size: u8,
        position: u64,
    ) -> Result<Self, BackendError> {
        let ring = Self::new(host, log_size)?;
        for position in position..position + u64::from(ring.size) {
            let last = u64::from(!phase(position, log_size)) << 63;
            ring.buf
                .write(ring.at(position) + BYTES - 8, &last.to_le_bytes());
        }
        ring.consume(position);
        Ok(ring)
    }

    /// Copies the entries of `from` between two positions, not more than the ring has. The card writes none of both.
    pub(crate) fn adopt(&self, from: &Self, positions: Range<u64>) {
        for position in positions {
            if let Some(entry) = from.read(position) {
                self.put(position, entry);
            }
        }
    }

    /// Writes an entry where the card writes none.
    fn put(&self, position: u64, mut entry: [u8; BYTES]) {
        let owner = u8::from(phase(position, self.log_size())) << 7;
        entry[BYTES - 1] = entry[BYTES - 1] & 0x7f | owner;
        self.buf.write(self.at(position), &entry);
    }

    /// Consumer: takes out the entries that `stays` refuses, oldest first. The others close up towards the newest, so that the
    /// card may use the room.
    pub(crate) fn retain(&self, mut stays: impl FnMut(&[u8; BYTES]) -> bool) {
        let (first, end) = (self.consumed(), self.end());
        let entries = (first..end).filter_map(|position| self.read(position));
        let kept: Vec<_> = entries.filter(|entry| stays(entry)).collect();
        let start = end - kept.len() as u64;
        if start != first {
            (start..end)
                .zip(kept)
                .for_each(|(position, entry)| self.put(position, entry));
            self.consume(start);
        }
    }

    /// Consumer: whether `is_meant` picks an entry that is not taken.
    pub(crate) fn any(&self, is_meant: impl Fn(&[u8; BYTES]) -> bool) -> bool {
        let mut entries = (self.consumed()..).map_while(|position| self.read(position));
        entries.any(|entry| is_meant(&entry))
    }

    #[inline]
    pub(crate) fn log_size(&self) -> u8 {
        self.size.ilog2() as u8
    }

    /// Address of the ring.
    pub(crate) fn base(&self) -> u64 {
        self.buf.iova(0)
    }

    /// Address of the consumer record.
    pub(crate) fn consumer(&self) -> u64 {
        self.buf.iova(self.record())
    }

    /// Byte of the consumer record.
    #[inline]
    fn record(&self) -> usize {
        self.size as usize * BYTES
    }

    /// Byte of the entry at a position.
    #[inline]
    fn at(&self, position: u64) -> usize {
        (position as u32 & (self.size - 1)) as usize * BYTES
    }

    /// Whether `last`, the last word of the entry at `position`, is that of this pass over the ring.
    #[inline]
    fn is_new(&self, position: u64, last: u64) -> bool {
        (last >> 63 == 1) == (position as u32 & self.size == 0)
    }

    /// The entry at `position` is written.
    #[inline]
    pub(crate) fn is_written(&self, position: u64) -> bool {
        self.is_new(position, self.buf.read_u64(self.at(position) + BYTES - 8))
    }

    /// The entry at `position` if it is written.
    #[inline]
    pub(crate) fn read(&self, position: u64) -> Option<[u8; BYTES]> {
        let at = self.at(position);
        self.buf.read_entry(at, |last| self.is_new(position, last))
    }

    /// Entries taken.
    #[inline]
    pub(crate) fn consumed(&self) -> u64 {
        self.consumed.load(Ordering::Acquire)
    }

    /// Consumer: everything before `position` is taken, and the card may write there again.
    #[inline]
    pub(crate) fn consume(&self, position: u64) {
        // The card may overwrite the entries once it sees the record: they are read before.
        barrier::after_read();
        self.consumed.store(position, Ordering::Release);
        self.buf.write_u32(self.record(), position as u32);
    }

    /// The first position that the card has not written yet.
    ///
    /// The consumer may run at the same time: an entry that seems unwritten because it is used again for a
    /// later position was consumed before, which is seen after it.
    pub(crate) fn end(&self) -> u64 {
        let mut position = self.consumed.load(Ordering::Acquire);
        loop {
            if self.is_written(position) {
                position += 1;
                continue;
            }
            barrier::after_read();
            let consumed = self.consumed.load(Ordering::Acquire);
            if consumed <= position {
                return position;
            }
            position = consumed;
        }
    }
}
