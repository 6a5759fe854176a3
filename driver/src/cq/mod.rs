//! Completion queues.

mod core;
mod error;
mod resize;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ferroce_proto::abi::cq::Cqe;
use ferroce_proto::abi::doorbell;

use crate::barrier;
use crate::card::Card;
use crate::command::CommandError;
use crate::event::CompChannel;
use crate::host::{lock, nanoseconds};
use crate::queue::Queues;
use crate::{AnyBackend, Backend, Context, Wc, WcOpcode, WcStatus};

pub(crate) use self::core::{Completes, CqCore};
use self::core::{Life, Ring};
pub use error::CqError;

/// Polls of an empty queue from one look for the card to the next.
const LOOK_POLLS: u32 = 1 << 16;

/// Which completion to tell of, see [`Cq::req_notify`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Notify {
    /// The next one.
    Any,
    /// The next one that is solicited by the peer, or failed.
    Solicited,
}

/// A completion queue.
///
/// It is polled by one owner at a time (`&mut`); queue pairs on it are used from any thread. The card's
/// ring is kept until the last of them is dropped.
pub struct Cq<B: Backend = AnyBackend> {
    core: Arc<CqCore<B>>,
    ring: Arc<Ring<B>>,
    /// CQEs consumed.
    position: u64,
    /// Lives of queue pairs by number, as of this position.
    table: Vec<Option<Life>>,
    /// Polls since the card was looked for that found nothing.
    empty_polls: u32,
}

impl<B: Backend> Context<B> {
    /// A new completion queue for at least `entries` completions.
    ///
    /// # Errors
    /// [`CqError`]: beyond a limit of the card, no memory, or refused.
    pub fn create_cq(&self, entries: u32) -> Result<Cq<B>, CqError> {
        Cq::new(&self.card, entries, None)
    }

    /// A new completion queue for at least `entries` completions, of which `channel` tells when asked by
    /// [`Cq::req_notify`].
    ///
    /// # Errors
    /// [`CqError`]: beyond a limit of the card, another card's channel, no memory, or refused.
    pub fn create_cq_on(&self, entries: u32, channel: &CompChannel<B>) -> Result<Cq<B>, CqError> {
        Cq::new(&self.card, entries, Some(channel))
    }
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

    /// As if so many CQEs had come and been polled: for tests.
    #[doc(hidden)]
    pub fn skip(&mut self, cqes: u64) {
        self.position += cqes;
        self.ring.consume(self.position);
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
            self.follow_changes();
            if let Some(wc) = self.complete(&cqe) {
                wcs[taken] = wc;
                taken += 1;
            }
            self.position += 1;
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
        self.follow_changes();
        let mut places = wcs.iter_mut();
        let incarnations = (0..).zip(&self.table);
        for (qp_num, life) in incarnations.filter_map(|(qpn, life)| Some((qpn, life.as_ref()?))) {
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

    /// Polls until there is a completion, for `limit` of the card's time at most; 0 after that, and once the card is lost and all that
    /// was posted is reported.
    pub fn wait(&mut self, wcs: &mut [Wc], limit: Duration) -> usize {
        let host = self.core.card.host.clone();
        let some = || match self.poll(wcs) {
            0 => None,
            taken => Some(taken),
        };
        host.wait(nanoseconds(limit), some).unwrap_or(0)
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
        barrier::before_register();
        let value = order | self.position as u32 & doorbell::ARM_INDEX;
        host.write32(doorbell::cq(core.number), value);
        Ok(())
    }

    /// The completion that a CQE at the current position stands for; `None` for one of a life that is over.
    #[inline]
    fn complete(&mut self, cqe: &Cqe) -> Option<Wc> {
        let life = self.table.get(cqe.qpn as usize)?.as_ref()?;
        let retired = life.queues.retire(cqe);
        if life.queues.is_over() {
            return None;
        }
        let Some(retired) = retired else {
            self.core.unknown.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        if cqe.with_inv {
            lock(&self.core.card.windows).note_invalidated(cqe.imm);
        }
        Some(Wc::new(cqe, retired))
    }

    /// Brings the table to this position.
    #[inline]
    fn follow_changes(&mut self) {
        if self.core.next_change.load(Ordering::Acquire) <= self.position {
            self.take_changes();
        }
    }

    #[cold]
    fn take_changes(&mut self) {
        let mut changes = lock(&self.core.changes);
        if changes.table.capacity() > self.table.len() {
            let mut table = std::mem::take(&mut changes.table);
            table.append(&mut self.table);
            table.resize_with(changes.table_len, || None);
            self.table = table;
        }
        while changes.next() <= self.position
            && let Some(((_, qpn), life)) = changes.incarnations.pop_first()
        {
            if let Some(place) = self.table.get_mut(qpn as usize) {
                *place = life;
            }
        }
        let next = changes.next();
        self.core.next_change.store(next, Ordering::Relaxed);
    }
}
