//! What post and poll share about a work queue, without a lock: indices and wr_ids.
//!
//! The poster writes an entry and then publishes the producer index; once a CQE reports
//! that an entry is done, the poller reads it and then publishes the consumer index. Both indices run free.

use std::sync::Arc;
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
        if next.wrapping_sub(consumer) > outstanding {
            // Slots that were noted a round before: a card that names the middle of a WQE.
            return None;
        }
        self.consumer.store(next, Ordering::Release);
        Some(wr_id)
    }
}

/// A work queue whose card is gone.
impl WorkQueue {
    /// Poller: retires the oldest work request that is posted.
    pub(crate) fn retire_oldest(&self) -> Option<u64> {
        self.retire(self.consumer.load(Ordering::Relaxed) as u16)
    }
}

/// A receive queue of many queue pairs. Their completions come in any order, so that an entry is used again when it is
/// done and all entries before it are. The ring is longer than what may be posted: a queue pair that waits in the middle of
/// a message does not hold up the others before they went round it.
pub(crate) struct SharedQueue {
    /// Requests that may be posted at a time.
    limit: u32,
    /// Requests completed so far.
    done: AtomicU32,
    wr_ids: Box<[AtomicU64]>,
    /// Bit i % 64 of word i / 64: entry i is posted and not completed.
    open: Box<[AtomicU64]>,
    producer: AtomicU32,
    consumer: AtomicU32,
}

impl SharedQueue {
    /// A queue of `limit` requests in a ring of `size` entries, a power of two.
    pub(crate) fn new(limit: u32, size: u32) -> Self {
        let words = |n: u32| (0..n).map(|_| AtomicU64::new(0)).collect();
        Self {
            limit,
            done: AtomicU32::new(0),
            wr_ids: words(size),
            open: words(size.div_ceil(64)),
            producer: AtomicU32::new(0),
            consumer: AtomicU32::new(0),
        }
    }

    /// Requests that may be posted at a time.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    fn size(&self) -> u32 {
        self.wr_ids.len() as u32
    }

    /// Place in the ring of an index.
    #[inline]
    pub(crate) fn place(&self, index: u32) -> usize {
        index as usize & (self.wr_ids.len() - 1)
    }

    /// Poster: the index of the next entry.
    #[inline]
    pub(crate) fn producer(&self) -> u32 {
        self.producer.load(Ordering::Relaxed)
    }

    fn is_open(&self, place: usize) -> bool {
        self.open[place / 64].load(Ordering::Acquire) >> (place % 64) & 1 == 1
    }

    /// Poster: entries that may be written. Looks how far completions have come.
    pub(crate) fn free(&self) -> u32 {
        let producer = self.producer();
        let mut consumer = self.consumer.load(Ordering::Relaxed);
        while consumer != producer && !self.is_open(self.place(consumer)) {
            consumer = consumer.wrapping_add(1);
        }
        // a caller that reads at the same time comes to the same or an earlier end, both true
        self.consumer.store(consumer, Ordering::Relaxed);
        let open = producer.wrapping_sub(self.done.load(Ordering::Acquire));
        let room = self.size() - producer.wrapping_sub(consumer);
        room.min(self.limit.saturating_sub(open))
    }

    /// Poster: notes a work request at `index`.
    #[inline]
    pub(crate) fn note(&self, index: u32, wr_id: u64) {
        let place = self.place(index);
        self.wr_ids[place].store(wr_id, Ordering::Relaxed);
        self.open[place / 64].fetch_or(1 << (place % 64), Ordering::Release);
    }

    /// Poster: everything before `producer` is posted.
    #[inline]
    pub(crate) fn publish(&self, producer: u32) {
        self.producer.store(producer, Ordering::Release);
    }

    /// Poller of any of the queue pairs: retires the request of ordinal `wqe_index`. `None` if it is not posted.
    #[inline]
    fn retire(&self, wqe_index: u16) -> Option<u64> {
        let place = self.place(wqe_index.into());
        if !self.is_open(place) {
            return None;
        }
        let wr_id = self.wr_ids[place].load(Ordering::Relaxed);
        self.open[place / 64].fetch_and(!(1 << (place % 64)), Ordering::Release);
        self.done.fetch_add(1, Ordering::Release);
        Some(wr_id)
    }
}

/// Both queues of a queue pair, for one life of it: from one RESET to the next.
pub(crate) struct Queues {
    pub(crate) sq: WorkQueue,
    pub(crate) rq: WorkQueue,
    /// Receives from this one in place of `rq`.
    pub(crate) srq: Option<Arc<SharedQueue>>,
}

impl Queues {
    /// Retires what a CQE reports; its wr_id, or `None` if it names nothing that is posted.
    #[inline]
    pub(crate) fn retire(&self, cqe: &Cqe) -> Option<u64> {
        if let (true, Some(shared)) = (cqe.recv, &self.srq) {
            return shared.retire(cqe.wqe_index);
        }
        let queue = if cqe.recv { &self.rq } else { &self.sq };
        queue.retire(cqe.wqe_index)
    }
}
