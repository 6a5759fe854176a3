//! Completion queues.

mod core;
mod error;
mod resize;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ferroce_proto::abi::cq::{Cqe, NO_NUMBER, status};
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::eq::{Eqe, event};

use crate::barrier;
use crate::card::Card;
use crate::command::CommandError;
use crate::event::CompChannel;
use crate::host::{lock, nanoseconds};
use crate::queue::Queues;
use crate::{AnyBackend, Backend, Context, Wc, WcOpcode, WcStatus};

pub(crate) use self::core::{Completes, CqCore};
use self::core::{Life, Pending, Ring};
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
        let ring = lock(&core.pending).ring.clone();
        Ok(Self {
            core,
            ring,
            empty_polls: 0,
        })
    }

    pub(crate) fn core(&self) -> &Arc<CqCore<B>> {
        &self.core
    }

    /// As if so many CQEs had come and been polled: for tests.
    #[doc(hidden)]
    pub fn skip(&mut self, cqes: u64) {
        self.ring.consume(self.ring.consumed() + cqes);
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

    /// CQEs that named no posted work request. A card that cannot read a send WQE of several slots writes some; any other
    /// is faulty.
    #[must_use]
    pub fn unknown_cqes(&self) -> u64 {
        self.core.unknown.load(Ordering::Relaxed)
    }

    /// Takes up to `wcs.len()` completions, oldest first, to the start of `wcs`; returns how many.
    ///
    /// No system call and no allocation. A poll that finds something has a lock for which only queue pairs of this queue
    /// that come or go compete. Now and then a poll that finds nothing looks for the card: if that is gone, what is posted completes with [`WcStatus::FatalErr`], but for
    /// what is posted to shared receive queues.
    #[inline]
    pub fn poll(&mut self, wcs: &mut [Wc]) -> usize {
        if self.ring.is_written(self.ring.consumed()) {
            return self.poll_ring(wcs);
        }
        self.empty_polls += 1;
        if self.empty_polls >= LOOK_POLLS || self.core.card.host.lost() {
            return self.poll_lost(wcs);
        }
        0
    }

    fn poll_ring(&mut self, wcs: &mut [Wc]) -> usize {
        let Pending { ring, attached } = &*lock(&self.core.pending);
        let mut taken = 0;
        while taken < wcs.len() {
            let position = ring.consumed();
            let Some(bytes) = ring.read(position) else {
                break;
            };
            // Before the slot of its request is free: a thread that posts by that slot finds room here.
            ring.consume(position + 1);
            if let Some(wc) = self.complete(&Cqe::parse(&bytes), attached) {
                wcs[taken] = wc;
                taken += 1;
            }
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
        let pending = lock(&self.core.pending);
        let mut places = wcs.iter_mut();
        let attached = (0..).zip(&pending.attached);
        for (qp_num, life) in attached.filter_map(|(qpn, life)| Some((qpn, life.as_ref()?))) {
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
        let value = order | self.ring.consumed() as u32 & doorbell::ARM_INDEX;
        host.write32(doorbell::cq(core.number), value);
        Ok(())
    }

    /// The completion that a CQE stands for.
    #[inline]
    fn complete(&self, cqe: &Cqe, attached: &[Option<Life>]) -> Option<Wc> {
        let life = attached.get(cqe.qpn as usize)?.as_ref()?;
        // Of a WQE that could not be read the opcode is none.
        let failed = cqe.status != status::SUCCESS && !cqe.recv;
        if failed && life.queues.binds.load(Ordering::Relaxed) {
            lock(&self.core.card.windows).note_failure(&life.queues, cqe.wqe_index);
        }
        let Some(wr_id) = life.queues.retire(cqe) else {
            self.note_unknown(cqe, &life.queues);
            return None;
        };
        Some(Wc::new(cqe, wr_id))
    }

    /// A CQE that names no posted work request. If the card could not read the number of one, an event tells of it.
    #[cold]
    fn note_unknown(&self, cqe: &Cqe, queues: &Queues) {
        if !cqe.recv || queues.srq.is_none() || cqe.wqe_index != NO_NUMBER {
            self.core.unknown.fetch_add(1, Ordering::Relaxed);
            return;
        }
        lock(&self.core.card.parked).put(Eqe {
            event: event::QP_FATAL,
            detail: status::GENERAL_ERR,
            object: cqe.qpn,
            ..Eqe::default()
        });
    }
}
