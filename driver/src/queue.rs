//! What post and poll share about a work queue, without a lock: indices and wr_ids.
//!
//! The poster writes an entry and then publishes the producer index; once a CQE reports
//! that an entry is done, the poller reads it and then publishes the consumer index. Both indices run free.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use ferroce_proto::abi::cq::{Cqe, status};

/// Most slots of a request.
const MAX_SLOTS: u32 = 5;

/// The host's record of a slot: of the work request that begins there, if one does.
#[derive(Default)]
struct Posted {
    wr_id: AtomicU64,
    /// Bits 7:0: its slots, 0 if none begins; 63:32: its ordinal.
    extent: AtomicU64,
}

/// A place in a queue: slots and requests before it. Both run free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) slots: u32,
    pub(crate) requests: u32,
}

impl Place {
    /// Behind a further request.
    #[inline]
    pub(crate) fn after(self, slots: u32) -> Self {
        Self {
            slots: self.slots.wrapping_add(slots),
            requests: self.requests.wrapping_add(1),
        }
    }
}

/// A [`Place`] of which both numbers are read and written together.
#[derive(Default)]
struct AtomicPlace(AtomicU64);

impl AtomicPlace {
    #[inline]
    fn load(&self, order: Ordering) -> Place {
        let both = self.0.load(order);
        Place {
            slots: both as u32,
            requests: (both >> 32) as u32,
        }
    }

    #[inline]
    fn store(&self, place: Place) {
        let both = u64::from(place.requests) << 32 | u64::from(place.slots);
        self.0.store(both, Ordering::Release);
    }
}

/// A send queue, or a receive queue, whose requests take a slot each.
pub(crate) struct WorkQueue {
    entries: Box<[Posted]>,
    /// Requests that may be posted at a time.
    limit: u32,
    producer: AtomicPlace,
    consumer: AtomicPlace,
    /// Slots before the consumer since the queue began; the lower half is that of the consumer.
    retired: AtomicU64,
}

impl WorkQueue {
    /// A queue of `size` slots, a power of two, and `limit` requests.
    pub(crate) fn new(size: u32, limit: u32) -> Self {
        Self {
            entries: (0..size).map(|_| Posted::default()).collect(),
            limit,
            producer: AtomicPlace::default(),
            consumer: AtomicPlace::default(),
            retired: AtomicU64::new(0),
        }
    }

    /// A queue like it with nothing posted.
    pub(crate) fn afresh(&self) -> Self {
        Self::new(self.size(), self.limit)
    }

    pub(crate) fn size(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Requests that may be posted at a time.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Place in the ring of an index.
    #[inline]
    pub(crate) fn place(&self, index: u32) -> usize {
        index as usize & (self.entries.len() - 1)
    }

    /// Poster: behind the last request.
    #[inline]
    pub(crate) fn producer(&self) -> Place {
        self.producer.load(Ordering::Relaxed)
    }

    /// Poster: behind the last request that completed.
    #[inline]
    pub(crate) fn consumer(&self) -> Place {
        self.consumer.load(Ordering::Acquire)
    }

    /// Poster: slots that may be written.
    #[inline]
    pub(crate) fn free(&self) -> u32 {
        self.size() - self.producer().slots.wrapping_sub(self.consumer().slots)
    }

    /// Poster: slots that the request at `at` may take, when those before `done` completed.
    #[inline]
    pub(crate) fn room(&self, at: Place, done: Place) -> u32 {
        if at.requests.wrapping_sub(done.requests) >= self.limit {
            return 0;
        }
        self.size() - at.slots.wrapping_sub(done.slots)
    }

    /// Poster: notes a work request of `slots` slots at `at`.
    #[inline]
    pub(crate) fn note(&self, at: Place, wr_id: u64, slots: u32) {
        let posted = &self.entries[self.place(at.slots)];
        posted.wr_id.store(wr_id, Ordering::Relaxed);
        let extent = u64::from(at.requests) << 32 | u64::from(slots);
        posted.extent.store(extent, Ordering::Relaxed);
        for further in 1..slots {
            let place = self.place(at.slots.wrapping_add(further));
            self.entries[place].extent.store(0, Ordering::Relaxed);
        }
    }

    /// Poster: everything before `producer` is posted.
    #[inline]
    pub(crate) fn publish(&self, producer: Place) {
        self.producer.store(producer);
    }

    /// Poster: the slot of the next request since the queue began.
    pub(crate) fn next(&self) -> u64 {
        let retired = self.retired.load(Ordering::Acquire);
        retired + u64::from(self.producer().slots.wrapping_sub(retired as u32))
    }

    /// Poller: the slot since the queue began that `wqe_index` names, if that is posted.
    pub(crate) fn slot(&self, wqe_index: u16) -> u64 {
        let retired = self.retired.load(Ordering::Relaxed);
        retired + u64::from(wqe_index.wrapping_sub(retired as u16))
    }

    /// The request at this slot since the queue began, which was posted, is complete.
    pub(crate) fn is_retired(&self, slot: u64) -> bool {
        self.retired.load(Ordering::Acquire) > slot
    }

    /// Poller: retires the work request whose first slot `wqe_index` (modulo 2^16) names, or one of the first `within`, and
    /// all before it. `None` if there is none.
    #[inline]
    fn retire(&self, wqe_index: u16, within: u32) -> Option<u64> {
        let consumer = self.consumer.load(Ordering::Relaxed).slots;
        let ahead = u32::from(wqe_index.wrapping_sub(consumer as u16));
        let producer = self.producer.load(Ordering::Acquire).slots;
        if ahead >= producer.wrapping_sub(consumer) {
            return None;
        }
        let named = consumer.wrapping_add(ahead);
        let (posted, start, slots) = (0..within.min(ahead + 1)).find_map(|back| {
            let slots = named.wrapping_sub(back);
            let posted = &self.entries[self.place(slots)];
            let extent = posted.extent.load(Ordering::Relaxed);
            let requests = (extent >> 32) as u32;
            let start = Place { slots, requests };
            (extent != 0).then_some((posted, start, extent as u32 & 0xff))
        })?;
        let wr_id = posted.wr_id.load(Ordering::Relaxed);
        let next = start.after(slots);
        let slots = next.slots.wrapping_sub(consumer);
        let retired = self.retired.load(Ordering::Relaxed) + u64::from(slots);
        self.retired.store(retired, Ordering::Release);
        self.consumer.store(next);
        Some(wr_id)
    }
}

/// A work queue whose card is gone.
impl WorkQueue {
    /// Poller: retires the oldest work request that is posted.
    pub(crate) fn retire_oldest(&self) -> Option<u64> {
        let oldest = self.consumer.load(Ordering::Relaxed).slots;
        self.retire(oldest as u16, 1)
    }
}

/// A receive queue of many queue pairs. Their completions come in any order, and each frees its place at once.
pub(crate) struct SharedQueue {
    wr_ids: Box<[AtomicU64]>,
    /// Bit i % 64 of word i / 64: place i holds a request that is posted and not completed, or is none.
    open: Box<[AtomicU64]>,
    /// Poster: the word in which the last free place was found.
    word: AtomicUsize,
    /// Requests posted so far.
    producer: AtomicU32,
    /// Places taken so far, also of requests that are not posted yet, or never will be.
    taken: AtomicU32,
    /// Requests completed so far.
    done: AtomicU32,
}

impl SharedQueue {
    /// A queue of `size` requests, a power of two.
    pub(crate) fn new(size: u32) -> Self {
        let none = u64::MAX.checked_shl(size).unwrap_or(0);
        Self {
            wr_ids: (0..size).map(|_| AtomicU64::new(0)).collect(),
            open: (0..size.div_ceil(64))
                .map(|_| AtomicU64::new(none))
                .collect(),
            word: AtomicUsize::new(0),
            producer: AtomicU32::new(0),
            taken: AtomicU32::new(0),
            done: AtomicU32::new(0),
        }
    }

    /// Requests that may be posted at a time.
    pub(crate) fn size(&self) -> u32 {
        self.wr_ids.len() as u32
    }

    /// Poster: the index of the next request.
    #[inline]
    pub(crate) fn producer(&self) -> u32 {
        self.producer.load(Ordering::Relaxed)
    }

    /// Poster: places that may be taken.
    pub(crate) fn free(&self) -> u32 {
        let done = self.done.load(Ordering::Acquire);
        let open = self.taken.load(Ordering::Relaxed).wrapping_sub(done);
        self.size().saturating_sub(open)
    }

    /// Poster: takes a free place for a request. There is one if [`free`](Self::free) says so.
    #[inline]
    pub(crate) fn take(&self, wr_id: u64) -> usize {
        let words = self.open.len();
        let last = self.word.load(Ordering::Relaxed);
        let (word, bit) = (last..last + words)
            .map(|word| word % words)
            .map(|word| {
                (
                    word,
                    self.open[word].load(Ordering::Acquire).trailing_ones(),
                )
            })
            .find(|(_, bit)| *bit < 64)
            .expect("a place is free");
        self.word.store(word, Ordering::Relaxed);
        let place = 64 * word + bit as usize;
        self.wr_ids[place].store(wr_id, Ordering::Relaxed);
        // Before it can be retired.
        self.taken.fetch_add(1, Ordering::Relaxed);
        self.open[word].fetch_or(1 << bit, Ordering::Release);
        place
    }

    /// Poster: everything before `producer` is posted.
    #[inline]
    pub(crate) fn publish(&self, producer: u32) {
        self.producer.store(producer, Ordering::Release);
    }

    /// Poller of any of the queue pairs: retires the request at `place`. `None` if there is none.
    #[inline]
    fn retire(&self, place: u16) -> Option<u64> {
        let place = usize::from(place);
        let wr_id = self.wr_ids.get(place)?.load(Ordering::Relaxed);
        let (word, bit) = (&self.open[place / 64], 1 << (place % 64));
        if word.fetch_and(!bit, Ordering::AcqRel) & bit == 0 {
            return None;
        }
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
    /// Windows were bound by it.
    pub(crate) binds: AtomicBool,
}

impl Queues {
    pub(crate) fn new(sq: WorkQueue, rq: WorkQueue, srq: Option<Arc<SharedQueue>>) -> Self {
        Self {
            sq,
            rq,
            srq,
            binds: AtomicBool::new(false),
        }
    }

    /// Queues like them with nothing posted but what is shared.
    pub(crate) fn afresh(&self) -> Self {
        Self::new(self.sq.afresh(), self.rq.afresh(), self.srq.clone())
    }

    /// Retires what a CQE reports, or `None` if it names nothing that is posted.
    #[inline]
    pub(crate) fn retire(&self, cqe: &Cqe) -> Option<u64> {
        if cqe.recv && self.srq.is_some() {
            return self.retire_shared(cqe);
        }
        if cqe.recv {
            return self.rq.retire(cqe.wqe_index, 1);
        }
        // Of a WQE that it cannot read the card knows no length, and goes on at the next slot.
        let within = if cqe.status == status::SUCCESS {
            1
        } else {
            MAX_SLOTS
        };
        self.sq.retire(cqe.wqe_index, within)
    }

    /// Retires what a CQE reports of a shared receive queue.
    #[inline]
    pub(crate) fn retire_shared(&self, cqe: &Cqe) -> Option<u64> {
        let shared = self.srq.as_ref().filter(|_| cqe.recv)?;
        shared.retire(cqe.wqe_index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Posts requests of so many slots each.
    fn post(queue: &WorkQueue, slots: &[u32]) {
        for (wr_id, &slots) in (0..).zip(slots) {
            let at = queue.producer();
            queue.note(at, wr_id, slots);
            queue.publish(at.after(slots));
        }
    }

    #[test]
    fn the_middle_of_a_request_retires_nothing() {
        let queue = WorkQueue::new(4, 4);
        post(&queue, &[2, 2]);
        assert!(queue.retire(1, 1).is_none() && queue.retire(3, 1).is_none());
        assert!(queue.retire(0, 1).is_some() && queue.retire(2, 1).is_some());
        // In the round before a request began at slot 2.
        post(&queue, &[1, 2]);
        assert!(queue.retire(6, 1).is_none());
        assert_eq!(queue.free(), 1);
        assert_eq!(queue.retire(5, 1), Some(1));
        assert_eq!(queue.free(), 4);
        // And one at slot 1, and one was to begin at slot 2 but was not posted.
        post(&queue, &[1]);
        queue.note(queue.producer().after(1), 9, 1);
        post(&queue, &[3]);
        assert!(queue.retire(9, 1).is_none() && queue.retire(10, 1).is_none());
        assert_eq!(queue.retire(8, 1), Some(0));
        assert_eq!(queue.producer(), queue.consumer());
    }

    #[test]
    fn slots_that_are_read_as_requests_complete_each_request_once() {
        let queue = WorkQueue::new(16, 16);
        post(&queue, &[3, 1, 5, 2, 3]);
        // Each slot by itself, but for 4 and 5: what is in slot 3 said that it goes up to 5.
        let found = [0, 1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14];
        let found = found.map(|index| queue.retire(index, MAX_SLOTS));
        let found: Vec<_> = found.into_iter().flatten().collect();
        assert_eq!(found, [0, 1, 2, 3, 4]);
        assert_eq!(queue.producer(), queue.consumer());
    }
}
