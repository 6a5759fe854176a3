//! What the poller of a completion queue shares with the queue pairs that complete on it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::cq::{CqCtx, Cqe};

use super::CqError;
use crate::Backend;
use crate::card::ASYNC_EQN;
use crate::card::Card;
use crate::command::Command;
use crate::event::Channel;
use crate::host::lock;
use crate::queue::Queues;
use crate::ring::EntryRing;

/// Which requests of a queue pair complete on a queue.
#[derive(Clone, Copy)]
pub(crate) struct Completes {
    pub(crate) sends: bool,
    pub(crate) receives: bool,
}

/// A life of a queue pair, from one RESET to the next, as far as it completes on a queue.
pub(super) struct Life {
    pub(super) queues: Arc<Queues>,
    pub(super) completes: Completes,
}

/// Queue pairs that came and went, until the poller is there.
#[derive(Default)]
pub(super) struct Changes {
    /// By the position from which on CQEs of a number are of this life, and that number; `None`: of no life.
    pub(super) incarnations: BTreeMap<(u64, u32), Option<Life>>,
    /// Length of the poller's table, and a longer one if it needs that: the poller does not allocate.
    pub(super) table_len: usize,
    pub(super) table: Vec<Option<Life>>,
}

impl Changes {
    /// Position of the first one; `u64::MAX` if there is none.
    pub(super) fn next(&self) -> u64 {
        let first = self.incarnations.first_key_value();
        first.map_or(u64::MAX, |((from, _), _)| *from)
    }
}

/// Ring of CQEs.
pub(super) type Ring<B> = EntryRing<B, { Cqe::BYTES }>;

/// The part of a completion queue that its queue pairs keep alive.
pub(crate) struct CqCore<B: Backend> {
    pub(crate) card: Arc<Card<B>>,
    pub(crate) number: u32,
    /// The ring that the card writes, which the poller has too.
    pub(super) ring: Mutex<Arc<Ring<B>>>,
    pub(super) channel: Option<Arc<Channel<B>>>,
    pub(super) changes: Mutex<Changes>,
    /// Position from which on the poller has to look at `changes`.
    pub(super) next_change: AtomicU64,
    pub(super) unknown: AtomicU64,
}

/// Log2 of the entries of a queue for so many.
pub(super) fn log_size<B: Backend>(card: &Card<B>, entries: u32) -> Result<u8, CqError> {
    let limit = card.info.max_cqe;
    if entries == 0 || entries > limit {
        return Err(CqError::Entries { entries, limit });
    }
    Ok(entries.next_power_of_two().ilog2().max(1) as u8)
}

/// Context of a queue, as given to the card.
pub(super) fn image<B: Backend>(ring: &Ring<B>, channel: Option<&Arc<Channel<B>>>) -> CqCtx {
    CqCtx {
        base: ring.base(),
        consumer: ring.consumer(),
        log_size: ring.log_size(),
        eqn: channel.map_or(ASYNC_EQN, |channel| channel.number) as u8,
    }
}

impl<B: Backend> CqCore<B> {
    pub(super) fn new(
        card: &Arc<Card<B>>,
        entries: u32,
        channel: Option<Arc<Channel<B>>>,
    ) -> Result<Self, CqError> {
        let log_size = log_size(card, entries)?;
        let ring = Ring::new(&card.host, log_size)?;
        let taken = lock(&card.cqs).take();
        let number = taken.ok_or(CqError::Full {
            limit: card.info.max_cq,
        })?;
        let ctx = image(&ring, channel.as_ref());
        let command = Command::new(opcode::CREATE_CQ, number).with(ctx.emit());
        if let Err(e) = card.execute("create CQ", &command) {
            lock(&card.cqs).put(number);
            return Err(e.into());
        }
        if let Some(channel) = &channel {
            channel.join(number);
        }
        Ok(Self {
            card: card.clone(),
            number,
            ring: Mutex::new(Arc::new(ring)),
            channel,
            changes: Mutex::default(),
            next_change: AtomicU64::new(u64::MAX),
            unknown: AtomicU64::new(0),
        })
    }

    /// Starts a life of queue pair `qpn`: before its first CQE, after the last CQE of those before.
    pub(crate) fn attach(&self, qpn: u32, queues: &Arc<Queues>, completes: Completes) {
        let mut changes = lock(&self.changes);
        if changes.table_len <= qpn as usize {
            changes.table_len = (qpn as usize + 1).next_power_of_two();
            changes.table = Vec::with_capacity(changes.table_len);
        }
        drop(changes);
        let queues = queues.clone();
        self.change(qpn, Some(Life { queues, completes }));
    }

    /// Queue pair `qpn` is gone: no CQE of it comes any more.
    pub(crate) fn detach(&self, qpn: u32) {
        self.change(qpn, None);
    }

    /// CQEs of queue pair `qpn` that were not written yet are of `life`.
    fn change(&self, qpn: u32, life: Option<Life>) {
        let from = lock(&self.ring).end();
        let mut changes = lock(&self.changes);
        changes.incarnations.insert((from, qpn), life);
        self.next_change.store(changes.next(), Ordering::Release);
    }
}

impl<B: Backend> Drop for CqCore<B> {
    fn drop(&mut self) {
        if let Some(channel) = &self.channel {
            channel.leave(self.number);
        }
        let command = Command::new(opcode::DESTROY_CQ, self.number);
        match self.card.execute("destroy CQ", &command) {
            Ok(_) => lock(&self.card.cqs).put(self.number),
            Err(e) => tracing::error!("the number stays taken: {e}"),
        }
    }
}
