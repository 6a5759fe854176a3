//! Completion queues.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex};

use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::cq::{CqCtx, Cqe};
use thiserror::Error;

use crate::command::{Command, CommandError};
use crate::context::Card;
use crate::dma::DmaBuf;
use crate::host::lock;
use crate::queue::Queues;
use crate::{Backend, BackendError, Wc};

/// Byte of a CQE whose 8-byte word holds the owner bit, its highest.
const OWNER_WORD: usize = Cqe::BYTES - 8;
/// Bytes for the consumer record, a cache line of its own behind the ring.
const RECORD_BYTES: usize = 64;

/// A completion queue could not be created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CqError {
    /// Too long or empty.
    #[error("a completion queue of {entries} entries was asked for, the card has 1 to {limit}")]
    Entries {
        /// Entries asked for.
        entries: u32,
        /// Longest queue.
        limit: u32,
    },
    /// All are taken.
    #[error(
        "all {limit} completion queues of the card are in use: drop some, or let queue pairs share them"
    )]
    Full {
        /// Completion queues of the card.
        limit: u32,
    },
    /// No memory, or it could not be made reachable.
    #[error("no memory for the completion queue")]
    Memory(#[from] BackendError),
    /// The card refused.
    #[error(transparent)]
    Command(#[from] CommandError),
}

/// A life of a queue pair, and the position in this queue from which on CQEs of its number mean it.
struct Life {
    queues: Arc<Queues>,
    from: u32,
}

/// Queue pairs that came and went since the poller looked last.
#[derive(Default)]
struct Changes {
    lives: BTreeMap<u32, Option<Life>>,
    /// Length of the poller's table, and a longer one if it needs that: the poller does not allocate.
    table_len: usize,
    table: Vec<Option<Life>>,
}

/// The part of a completion queue that its queue pairs keep alive.
pub(crate) struct CqCore<B: Backend> {
    pub(crate) card: Arc<Card<B>>,
    pub(crate) number: u32,
    ring: DmaBuf<B>,
    log_size: u8,
    /// CQEs consumed, as far as the card was told.
    consumed: AtomicU32,
    changes: Mutex<Changes>,
    changed: AtomicBool,
    unknown: AtomicU64,
}

impl<B: Backend> CqCore<B> {
    fn new(card: &Arc<Card<B>>, entries: u32) -> Result<Self, CqError> {
        let limit = card.info.max_cqe;
        if entries == 0 || entries > limit {
            return Err(CqError::Entries { entries, limit });
        }
        let log_size = entries.next_power_of_two().ilog2().max(1) as u8;
        let ring = DmaBuf::new(&card.host, (Cqe::BYTES << log_size) + RECORD_BYTES)?;
        let taken = lock(&card.cqs).take();
        let number = taken.ok_or(CqError::Full {
            limit: card.info.max_cq,
        })?;
        let ctx = CqCtx {
            base: ring.iova(0),
            consumer: ring.iova(Cqe::BYTES << log_size),
            log_size,
            eqn: 0,
        };
        let command = Command::new(opcode::CREATE_CQ, number).with(ctx.emit());
        if let Err(e) = card.execute("create CQ", &command) {
            lock(&card.cqs).put(number);
            return Err(e.into());
        }
        Ok(Self {
            card: card.clone(),
            number,
            ring,
            log_size,
            consumed: AtomicU32::new(0),
            changes: Mutex::default(),
            changed: AtomicBool::new(false),
            unknown: AtomicU64::new(0),
        })
    }

    /// Byte in the ring of the CQE at a position.
    #[inline]
    fn at(&self, position: u32) -> usize {
        (position as usize & ((1 << self.log_size) - 1)) * Cqe::BYTES
    }

    /// Whether the CQE at `position` is written; what the card wrote before it is visible then.
    #[inline]
    fn is_written(&self, position: u32) -> Option<u64> {
        let last = self.ring.read_u64(self.at(position) + OWNER_WORD);
        let owner = position >> self.log_size & 1 == 0;
        if (last >> 63 == 1) != owner {
            return None;
        }
        fence(Ordering::Acquire);
        Some(last)
    }

    #[inline]
    fn read(&self, position: u32) -> Option<Cqe> {
        let last = self.is_written(position)?;
        let at = self.at(position);
        let mut bytes = [0; Cqe::BYTES];
        for word in 0..OWNER_WORD / 8 {
            let value = self.ring.read_u64(at + 8 * word);
            bytes[8 * word..][..8].copy_from_slice(&value.to_le_bytes());
        }
        bytes[OWNER_WORD..].copy_from_slice(&last.to_le_bytes());
        Some(Cqe::parse(&bytes))
    }

    /// The first position that the card has not written yet.
    ///
    /// The poller may run at the same time: an entry that seems unwritten because it is used again for a
    /// later position was consumed before, which is seen after it.
    fn end(&self) -> u32 {
        let mut position = self.consumed.load(Ordering::Acquire);
        loop {
            if self.is_written(position).is_some() {
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

    /// A life of queue pair `qpn` begins. No CQE of it was written yet, and all of earlier lives were.
    pub(crate) fn attach(&self, qpn: u32, queues: &Arc<Queues>) {
        let from = self.end();
        let mut changes = lock(&self.changes);
        if changes.table_len <= qpn as usize {
            changes.table_len = (qpn as usize + 1).next_power_of_two();
            changes.table = Vec::with_capacity(changes.table_len);
        }
        let queues = queues.clone();
        changes.lives.insert(qpn, Some(Life { queues, from }));
        self.changed.store(true, Ordering::Release);
    }

    /// The life of queue pair `qpn` is over; CQEs of it that are still in the ring are dropped.
    pub(crate) fn detach(&self, qpn: u32) {
        lock(&self.changes).lives.insert(qpn, None);
        self.changed.store(true, Ordering::Release);
    }
}

impl<B: Backend> Drop for CqCore<B> {
    fn drop(&mut self) {
        let command = Command::new(opcode::DESTROY_CQ, self.number);
        match self.card.execute("destroy CQ", &command) {
            Ok(_) => lock(&self.card.cqs).put(self.number),
            Err(e) => tracing::error!("the number stays taken: {e}"),
        }
    }
}

/// A completion queue.
///
/// It is polled by one owner at a time (`&mut`); queue pairs on it are used from any thread. The card's
/// ring lives until the last of them is gone.
pub struct Cq<B: Backend> {
    core: Arc<CqCore<B>>,
    /// CQEs consumed.
    position: u32,
    /// Queue pairs by number.
    table: Vec<Option<Life>>,
}

impl<B: Backend> Cq<B> {
    pub(crate) fn new(card: &Arc<Card<B>>, entries: u32) -> Result<Self, CqError> {
        Ok(Self {
            core: Arc::new(CqCore::new(card, entries)?),
            position: 0,
            table: Vec::new(),
        })
    }

    pub(crate) fn core(&self) -> &Arc<CqCore<B>> {
        &self.core
    }

    /// Number of the queue.
    #[must_use]
    pub fn cqn(&self) -> u32 {
        self.core.number
    }

    /// Completions it holds: a power of two, not fewer than asked for. One more is an overflow and
    /// puts the queue pairs in error.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        1 << self.core.log_size
    }

    /// CQEs that named no posted work request: not 0 only if the card is faulty.
    #[must_use]
    pub fn unknown_cqes(&self) -> u64 {
        self.core.unknown.load(Ordering::Relaxed)
    }

    /// Takes up to `wcs.len()` completions, oldest first, to the start of `wcs`; returns how many.
    ///
    /// No system call and no allocation; no lock unless a queue pair on this queue came or went.
    pub fn poll(&mut self, wcs: &mut [Wc]) -> usize {
        let start = self.position;
        let mut taken = 0;
        while taken < wcs.len() {
            let Some(cqe) = self.core.read(self.position) else {
                break;
            };
            // Whatever came before the CQE, as its queue pair, is seen by now.
            if self.core.changed.load(Ordering::Acquire) {
                self.take_changes();
            }
            if let Some(wc) = self.complete(&cqe) {
                wcs[taken] = wc;
                taken += 1;
            }
            self.position = self.position.wrapping_add(1);
        }
        if self.position != start {
            // The card may overwrite the entries once it sees the record: they are read before.
            fence(Ordering::Release);
            self.core.consumed.store(self.position, Ordering::Release);
            let record = Cqe::BYTES << self.core.log_size;
            self.core.ring.write_u32(record, self.position);
        }
        taken
    }

    /// Polls until there is a completion, for `limit_ns` at most; 0 after that.
    pub fn wait(&mut self, wcs: &mut [Wc], limit_ns: u64) -> usize {
        let host = self.core.card.host.clone();
        let some = || match self.poll(wcs) {
            0 => None,
            taken => Some(taken),
        };
        host.wait(limit_ns, some).unwrap_or(0)
    }

    /// The completion that a CQE at the current position stands for; `None` for one of an earlier life.
    #[inline]
    fn complete(&mut self, cqe: &Cqe) -> Option<Wc> {
        let life = self.table.get(cqe.qpn as usize)?.as_ref()?;
        if (self.position.wrapping_sub(life.from) as i32) < 0 {
            return None;
        }
        let Some(wr_id) = life.queues.retire(cqe) else {
            self.core.unknown.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        Some(Wc::new(cqe, wr_id))
    }

    #[cold]
    fn take_changes(&mut self) {
        let mut changes = lock(&self.core.changes);
        self.core.changed.store(false, Ordering::Relaxed);
        if changes.table.capacity() > self.table.len() {
            let mut table = std::mem::take(&mut changes.table);
            table.append(&mut self.table);
            table.resize_with(changes.table_len, || None);
            self.table = table;
        }
        while let Some((qpn, life)) = changes.lives.pop_first() {
            if let Some(place) = self.table.get_mut(qpn as usize) {
                *place = life;
            }
        }
    }
}
