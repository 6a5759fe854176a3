//! Shared memory: two queues of slots, one each way.
//!
//! A slot is a header of 64 bytes and the data behind it. Its last header byte says whose it is and what is in it: the
//! producer writes that byte last, the consumer gives the slot back by it.

use std::fs::File;
use std::io;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, memfd_create};

/// Bytes of a header.
pub(super) const HEADER: usize = 64;
/// Bytes of a slot: a jumbo frame fits.
pub(super) const SLOT: usize = 9024 + HEADER;
/// Slots of a queue.
pub(super) const SLOTS: usize = 1024;

const WORD: usize = size_of::<u64>();
/// Word of the header with the time.
const TIME: usize = 48 / WORD;
/// Word of the header whose last byte is owner and type.
const OWNER: usize = 56 / WORD;
/// Owner and type in that word.
const TYPE_SHIFT: u32 = 56;
/// The slot is the consumer's.
const FULL: u8 = 0x80;

/// What a slot carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// Picosecond at which it arrives.
    pub time: u64,
    pub kind: u8,
    /// The first bytes of the header, which are the upper protocol's.
    pub head: [u8; TIME * WORD],
    pub data: Vec<u8>,
}

/// The memory of a link.
pub(super) struct Slots {
    pub file: File,
    map: MmapRaw,
}

/// A queue of it.
#[derive(Clone, Copy)]
pub(super) enum Queue {
    /// From the card.
    Out,
    /// To the card.
    In,
}

impl Queue {
    /// Bytes in front of it.
    pub(super) fn offset(self) -> usize {
        match self {
            Self::Out => 0,
            Self::In => SLOT * SLOTS,
        }
    }
}

impl Slots {
    /// Memory of its own, all slots the producers'.
    pub(super) fn new() -> io::Result<Self> {
        let file = File::from(memfd_create("ferroce-simbricks", MemfdFlags::CLOEXEC)?);
        let bytes = 2 * SLOT * SLOTS;
        file.set_len(bytes as u64)?;
        let map = MmapOptions::new().len(bytes).map_raw(&file)?;
        Ok(Self { file, map })
    }

    /// The words of a slot.
    fn slot(&self, queue: Queue, index: usize) -> &[AtomicU64] {
        let at = (queue.offset() + index * SLOT) / WORD;
        let words = self.map.as_mut_ptr().cast::<AtomicU64>();
        // SAFETY: the mapping begins at a page, so words are aligned; it exists as long as `self`. The peer writes the same
        // memory from another process, which atomics may bear, and this is the only way in which it is reached. A peer
        // that cuts the file short ends the process by SIGBUS: it is a part of the same simulation.
        let all = unsafe { slice::from_raw_parts(words, self.map.len() / WORD) };
        &all[at..at + SLOT / WORD]
    }

    /// The message in a slot, `None` while the slot is its producer's. `bytes` tells how much data there is, by type and head.
    pub(super) fn peek(
        &self,
        index: usize,
        bytes: impl FnOnce(u8, &[u8]) -> usize,
    ) -> Option<Message> {
        let slot = self.slot(Queue::In, index);
        let owner = (u64::from_le(slot[OWNER].load(Ordering::Acquire)) >> TYPE_SHIFT) as u8;
        if owner & FULL == 0 {
            return None;
        }
        let word = |at: usize| slot[at].load(Ordering::Relaxed).to_ne_bytes();
        let mut head = [0; TIME * WORD];
        for (at, to) in head.chunks_exact_mut(WORD).enumerate() {
            to.copy_from_slice(&word(at));
        }
        let kind = owner & !FULL;
        let len = bytes(kind, &head).min(SLOT - HEADER);
        let words = HEADER / WORD..(HEADER + len).div_ceil(WORD);
        let mut data: Vec<u8> = words.flat_map(word).collect();
        data.truncate(len);
        Some(Message {
            time: u64::from_le(slot[TIME].load(Ordering::Relaxed)),
            kind,
            head,
            data,
        })
    }

    /// Gives a slot back.
    pub(super) fn give_back(&self, index: usize) {
        let owner = &self.slot(Queue::In, index)[OWNER];
        let kept = u64::from_le(owner.load(Ordering::Relaxed)) & !(u64::from(FULL) << TYPE_SHIFT);
        owner.store(kept.to_le(), Ordering::Release);
    }

    /// Puts a message into a slot; false while that is the consumer's. Its data fits.
    pub(super) fn put(&self, index: usize, message: &Message) -> bool {
        let slot = self.slot(Queue::Out, index);
        let owner = (u64::from_le(slot[OWNER].load(Ordering::Acquire)) >> TYPE_SHIFT) as u8;
        if owner & FULL != 0 {
            return false;
        }
        let head = message.head.chunks(WORD).zip(slot);
        let data = message.data.chunks(WORD).zip(&slot[HEADER / WORD..]);
        for (bytes, to) in head.chain(data) {
            let mut word = [0; WORD];
            word[..bytes.len()].copy_from_slice(bytes);
            to.store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
        slot[TIME].store(message.time.to_le(), Ordering::Relaxed);
        let owner = u64::from(message.kind | FULL) << TYPE_SHIFT;
        slot[OWNER].store(owner.to_le(), Ordering::Release);
        true
    }
}
