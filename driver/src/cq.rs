//! Completion queues.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex};

use ferroce_proto::abi::cmd::{opcode, status};
use ferroce_proto::abi::cq::{CqCtx, Cqe};
use ferroce_proto::abi::doorbell;
use thiserror::Error;

use crate::command::{Command, CommandError};
use crate::context::Card;
use crate::event::{ASYNC_EQN, Channel, CompChannel};
use crate::host::lock;
use crate::queue::Queues;
use crate::ring::EntryRing;
use crate::{Backend, BackendError, Features, Wc, WcOpcode, WcStatus};

/// Polls of an empty queue from one look for the card to the next.
const LOOK_POLLS: u32 = 1 << 16;
/// Longest wait, before a queue becomes shorter, for what was posted, in ns.
const RESIZE_WAIT_NS: u64 = 1_000_000;
/// Bits of a position that the card counts.
const INDEX: u32 = (1 << 24) - 1;

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
    /// The card does not change the size of a queue.
    #[error(
        "this build of the card does not resize completion queues: load one with feature RESIZE_CQ"
    )]
    Unsupported,
    /// Completions that nobody polled do not fit.
    #[error(
        "the completion queue keeps its size: more than {entries} completions wait in it, or it has overflowed: poll it first"
    )]
    Waiting {
        /// Entries asked for.
        entries: u32,
    },
    /// The channel is another card's.
    #[error(
        "completion channel and completion queue are of different contexts: create both on the same"
    )]
    OtherContext,
    /// Nobody would hear of completions.
    #[error(
        "completion queue {cqn} has no channel, or its channel was dropped: create it with `create_cq_on` to be notified"
    )]
    NoChannel {
        /// The completion queue.
        cqn: u32,
    },
    /// No memory, or it could not be made reachable.
    #[error("no memory for the completion queue")]
    Memory(#[from] BackendError),
    /// The card refused.
    #[error(transparent)]
    Command(#[from] CommandError),
}

/// Which completion to tell of, see [`Cq::req_notify`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Notify {
    /// The next one.
    Any,
    /// The next one that is solicited by the peer, or failed.
    Solicited,
}

/// Which requests of a queue pair complete on a queue.
#[derive(Clone, Copy)]
pub(crate) struct Completes {
    pub(crate) sends: bool,
    pub(crate) receives: bool,
}

/// A life of a queue pair, and the position in this queue from which on CQEs of its number mean it.
struct Life {
    queues: Arc<Queues>,
    completes: Completes,
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

/// Ring of CQEs.
type Ring<B> = EntryRing<B, { Cqe::BYTES }>;

/// The part of a completion queue that its queue pairs keep alive.
pub(crate) struct CqCore<B: Backend> {
    pub(crate) card: Arc<Card<B>>,
    pub(crate) number: u32,
    /// The ring that the card writes, which the poller has too.
    ring: Mutex<Arc<Ring<B>>>,
    channel: Option<Arc<Channel<B>>>,
    changes: Mutex<Changes>,
    changed: AtomicBool,
    unknown: AtomicU64,
}

/// Log2 of the entries of a queue for so many.
fn log_size<B: Backend>(card: &Card<B>, entries: u32) -> Result<u8, CqError> {
    let limit = card.info.max_cqe;
    if entries == 0 || entries > limit {
        return Err(CqError::Entries { entries, limit });
    }
    Ok(entries.next_power_of_two().ilog2().max(1) as u8)
}

fn image<B: Backend>(ring: &Ring<B>, channel: Option<&Arc<Channel<B>>>) -> CqCtx {
    CqCtx {
        base: ring.base(),
        consumer: ring.consumer(),
        log_size: ring.log_size(),
        eqn: channel.map_or(ASYNC_EQN, |channel| channel.number) as u8,
    }
}

impl<B: Backend> CqCore<B> {
    fn new(
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
            changed: AtomicBool::new(false),
            unknown: AtomicU64::new(0),
        })
    }

    /// A life of queue pair `qpn` begins. No CQE of it was written yet, and all of earlier lives were.
    pub(crate) fn attach(&self, qpn: u32, queues: &Arc<Queues>, completes: Completes) {
        let from = lock(&self.ring).end();
        let mut changes = lock(&self.changes);
        if changes.table_len <= qpn as usize {
            changes.table_len = (qpn as usize + 1).next_power_of_two();
            changes.table = Vec::with_capacity(changes.table_len);
        }
        let queues = queues.clone();
        let life = Life {
            queues,
            completes,
            from,
        };
        changes.lives.insert(qpn, Some(life));
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

/// A completion queue.
///
/// It is polled by one owner at a time (`&mut`); queue pairs on it are used from any thread. The card's
/// ring lives until the last of them is gone.
pub struct Cq<B: Backend> {
    core: Arc<CqCore<B>>,
    ring: Arc<Ring<B>>,
    /// CQEs consumed.
    position: u32,
    /// Queue pairs by number.
    table: Vec<Option<Life>>,
    /// Polls since the card was looked for that found nothing.
    empty_polls: u32,
}

impl<B: Backend> Cq<B> {
    pub(crate) fn new(
        card: &Arc<Card<B>>,
        entries: u32,
        channel: Option<&CompChannel<B>>,
    ) -> Result<Self, CqError> {
        let channel = channel.map(|channel| channel.core().clone());
        if channel
            .as_ref()
            .is_some_and(|channel| !Arc::ptr_eq(&channel.card, card))
        {
            return Err(CqError::OtherContext);
        }
        let core = Arc::new(CqCore::new(card, entries, channel)?);
        let ring = lock(&core.ring).clone();
        Ok(Self {
            core,
            ring,
            position: 0,
            table: Vec::new(),
            empty_polls: 0,
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
        1 << self.ring.log_size()
    }

    /// Gives the queue room for `entries` completions, more or fewer, while completions arrive: none is lost and none comes
    /// twice, and an event that was asked for comes. If more send requests are posted than the queue would hold, their
    /// completions are waited for, for a millisecond at most, to see whether they fit.
    ///
    /// # Errors
    /// [`CqError::Entries`], [`CqError::Unsupported`], [`CqError::Memory`]; [`CqError::Waiting`]: more completions than
    /// that were not polled, or the queue has overflowed. The queue is as before.
    pub fn resize(&mut self, entries: u32) -> Result<(), CqError> {
        let card = &self.core.card;
        if !card.info.features.contains(Features::RESIZE_CQ) {
            return Err(CqError::Unsupported);
        }
        let log_size = log_size(card, entries)?;
        if log_size == self.ring.log_size() {
            return Ok(());
        }
        let size = 1 << log_size;
        if self.sends_open() > size {
            // What is on its way may not fit: it shows, or stays away, within this time.
            let host = self.core.card.host.clone();
            let (ring, position) = (&self.ring, self.position);
            let is_more = || ring.end().wrapping_sub(position) > size;
            host.wait(RESIZE_WAIT_NS, || is_more().then_some(()));
        }
        let card = &self.core.card;
        let ring = Ring::from_position(&card.host, log_size, self.position)?;
        // who begins a life of a queue pair waits: positions are found in one ring
        let mut current = lock(&self.core.ring);
        let (number, channel) = (self.core.number, self.core.channel.as_ref());
        let mut command =
            Command::new(opcode::RESIZE_CQ, number).with(image(&ring, channel).emit());
        command.head.cq_taken = self.position & INDEX;
        let switched = card.execute("resize CQ", &command).map_err(|e| match e {
            CommandError::Refused {
                status: status::BAD_STATE,
                ..
            } => CqError::Waiting { entries },
            other => other.into(),
        })?;
        // What the card wrote before is in memory, and goes to places that it does not write before they are polled.
        let ahead = (switched as u32).wrapping_sub(self.position) & INDEX;
        let end = self.position.wrapping_add(ahead);
        ring.adopt(&self.ring, self.position..end);
        self.ring = Arc::new(ring);
        *current = self.ring.clone();
        Ok(())
    }

    /// Slots of send queues that complete here and were not retired.
    fn sends_open(&mut self) -> u32 {
        if self.core.changed.load(Ordering::Acquire) {
            self.take_changes();
        }
        let lives = self.table.iter().flatten();
        let sends = lives.filter(|life| life.completes.sends);
        sends
            .map(|life| life.queues.sq.size() - life.queues.sq.free())
            .sum()
    }

    /// CQEs that named no posted work request: not 0 only if the card is faulty.
    #[must_use]
    pub fn unknown_cqes(&self) -> u64 {
        self.core.unknown.load(Ordering::Relaxed)
    }

    /// Takes up to `wcs.len()` completions, oldest first, to the start of `wcs`; returns how many.
    ///
    /// No system call and no allocation; no lock unless a queue pair on this queue came or went. Now and then a poll that
    /// finds nothing looks for the card: if that is gone, what is posted completes with [`WcStatus::FatalErr`], but for
    /// what is posted to shared receive queues.
    #[inline]
    pub fn poll(&mut self, wcs: &mut [Wc]) -> usize {
        if self.ring.is_written(self.position) {
            return self.poll_ring(wcs);
        }
        self.empty_polls += 1;
        if self.empty_polls >= LOOK_POLLS || self.core.card.host.lost() {
            return self.poll_lost(wcs);
        }
        0
    }

    fn poll_ring(&mut self, wcs: &mut [Wc]) -> usize {
        let start = self.position;
        let mut taken = 0;
        while taken < wcs.len() {
            let Some(bytes) = self.ring.read(self.position) else {
                break;
            };
            let cqe = Cqe::parse(&bytes);
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
            self.ring.consume(self.position);
        }
        taken
    }

    /// Takes what is posted if the card is gone.
    #[cold]
    fn poll_lost(&mut self, wcs: &mut [Wc]) -> usize {
        self.empty_polls = 0;
        if !self.core.card.host.look() {
            return 0;
        }
        if self.core.changed.load(Ordering::Acquire) {
            self.take_changes();
        }
        let mut places = wcs.iter_mut();
        let lives = (0..).zip(&self.table);
        for (qp_num, life) in lives.filter_map(|(qpn, life)| Some((qpn, life.as_ref()?))) {
            let Queues { sq, rq, .. } = &*life.queues;
            for (is_ours, queue, opcode) in [
                (life.completes.sends, sq, WcOpcode::Send),
                (life.completes.receives, rq, WcOpcode::Recv),
            ] {
                while is_ours
                    && places.len() > 0
                    && let Some(wr_id) = queue.retire_oldest()
                    && let Some(place) = places.next()
                {
                    *place = Wc {
                        wr_id,
                        status: WcStatus::FatalErr,
                        opcode,
                        qp_num,
                        ..Wc::default()
                    };
                }
            }
        }
        let left = places.len();
        wcs.len() - left
    }

    /// Polls until there is a completion, for `limit_ns` at most; 0 after that, and if the card is gone and all that was
    /// posted is told of.
    pub fn wait(&mut self, wcs: &mut [Wc], limit_ns: u64) -> usize {
        let host = self.core.card.host.clone();
        let some = || match self.poll(wcs) {
            0 => None,
            taken => Some(taken),
        };
        host.wait(limit_ns, some).unwrap_or(0)
    }

    /// Asks for one event on the channel of the queue: at the next completion that `notify` names, or at once if one
    /// that was not polled is there. So none is missed between the last poll and this call.
    ///
    /// # Errors
    /// [`CqError::NoChannel`]; [`CommandError::Lost`]: the card was found to be gone.
    pub fn req_notify(&mut self, notify: Notify) -> Result<(), CqError> {
        let core = &self.core;
        if !core
            .channel
            .as_ref()
            .is_some_and(|channel| channel.is_open())
        {
            return Err(CqError::NoChannel { cqn: core.number });
        }
        let host = &core.card.host;
        if host.lost() {
            let (operation, index) = ("arm CQ", core.number);
            return Err(CommandError::Lost { operation, index }.into());
        }
        let order = match notify {
            Notify::Any => doorbell::ARM_ANY,
            Notify::Solicited => doorbell::ARM_SOLICITED,
        };
        // The consumer record is written before.
        fence(Ordering::Release);
        let value = order | self.position & doorbell::ARM_INDEX;
        host.backend.write32(doorbell::cq(core.number), value);
        Ok(())
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
        if cqe.with_inv {
            lock(&self.core.card.windows).note_invalidated(cqe.imm);
        }
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
