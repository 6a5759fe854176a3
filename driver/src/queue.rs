//! What post and poll share about a work queue, without a lock: indices and wr_ids.
//!
//! The poster writes an entry and then publishes the producer index; the poller, who learns from a CQE
//! that an entry is done, reads it and then publishes the consumer index. Both indices run free.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use ferroce_proto::abi::cq::Cqe;

/// The host's record of a posted work request.
#[derive(Default)]
struct Posted {
    wr_id: AtomicU64,
    slots: AtomicU32,
}

/// A send queue (counted in slots) or a receive queue (counted in WQEs).
pub(crate) struct WorkQueue {
    entries: Box<[Posted]>,
    producer: AtomicU32,
    consumer: AtomicU32,
}

impl WorkQueue {
    /// A queue of `size` entries, a power of two.
    pub(crate) fn new(size: u32) -> Self {
        Self {
            entries: (0..size).map(|_| Posted::default()).collect(),
            producer: AtomicU32::new(0),
            consumer: AtomicU32::new(0),
        }
    }

    pub(crate) fn size(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Place in the ring of an index.
    #[inline]
    pub(crate) fn place(&self, index: u32) -> usize {
        index as usize & (self.entries.len() - 1)
    }

    /// Poster: the index of the next entry.
    #[inline]
    pub(crate) fn producer(&self) -> u32 {
        self.producer.load(Ordering::Relaxed)
    }

    /// Poster: entries that may be written.
    #[inline]
    pub(crate) fn free(&self) -> u32 {
        let used = self
            .producer()
            .wrapping_sub(self.consumer.load(Ordering::Acquire));
        self.size() - used
    }

    /// Poster: notes a work request of `slots` entries from `index` on.
    #[inline]
    pub(crate) fn note(&self, index: u32, wr_id: u64, slots: u32) {
        let posted = &self.entries[self.place(index)];
        posted.wr_id.store(wr_id, Ordering::Relaxed);
        posted.slots.store(slots, Ordering::Relaxed);
    }

    /// Poster: everything before `producer` is posted.
    #[inline]
    pub(crate) fn publish(&self, producer: u32) {
        self.producer.store(producer, Ordering::Release);
    }

    /// Poller: retires the work request that `wqe_index` (modulo 2^16) names, and all before it. `None` if it is not posted.
    #[inline]
    fn retire(&self, wqe_index: u16) -> Option<u64> {
        let consumer = self.consumer.load(Ordering::Relaxed);
        let index = consumer.wrapping_add(wqe_index.wrapping_sub(consumer as u16).into());
        let outstanding = self.producer.load(Ordering::Acquire).wrapping_sub(consumer);
        if index.wrapping_sub(consumer) >= outstanding {
            return None;
        }
        let posted = &self.entries[self.place(index)];
        let wr_id = posted.wr_id.load(Ordering::Relaxed);
        let next = index.wrapping_add(posted.slots.load(Ordering::Relaxed));
        self.consumer.store(next, Ordering::Release);
        Some(wr_id)
    }
}

/// Both queues of a queue pair, for one life of it: from one RESET to the next.
pub(crate) struct Queues {
    pub(crate) sq: WorkQueue,
    pub(crate) rq: WorkQueue,
}

impl Queues {
    /// Retires what a CQE reports; its wr_id, or `None` if it names nothing that is posted.
    #[inline]
    pub(crate) fn retire(&self, cqe: &Cqe) -> Option<u64> {
        let queue = if cqe.recv { &self.rq } else { &self.sq };
        queue.retire(cqe.wqe_index)
    }
}
