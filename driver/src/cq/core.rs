//! What the poller of a completion queue shares with the queue pairs that complete on it.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::cq::{CqCtx, Cqe, status};

use super::CqError;
use crate::Backend;
use crate::card::ASYNC_EQN;
use crate::card::{Card, Object};
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

/// Ring of CQEs.
pub(super) type Ring<B> = EntryRing<B, { Cqe::BYTES }>;

/// What has not been polled, and whose it is.
pub(super) struct Pending<B: Backend> {
    /// The ring that the card writes, which the poller has too.
    pub(super) ring: Arc<Ring<B>>,
    /// Queue pairs by number, with the position at which each began.
    pub(super) attached: Vec<Option<Life>>,
}

/// The part of a completion queue that its queue pairs keep alive.
pub(crate) struct CqCore<B: Backend> {
    pub(crate) card: Arc<Card<B>>,
    pub(crate) number: u32,
    pub(super) channel: Option<Arc<Channel<B>>>,
    /// Held by a poll that finds something, and where a queue pair comes or goes.
    pub(super) pending: Mutex<Pending<B>>,
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

/// Number of the event queue of a completion queue.
fn eqn<B: Backend>(channel: Option<&Arc<Channel<B>>>) -> u32 {
    channel.map_or(ASYNC_EQN, |channel| channel.number)
}

/// Context of a queue, as given to the card.
pub(super) fn image<B: Backend>(ring: &Ring<B>, channel: Option<&Arc<Channel<B>>>) -> CqCtx {
    CqCtx {
        base: ring.base(),
        consumer: ring.consumer(),
        log_size: ring.log_size(),
        eqn: eqn(channel) as u8,
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
            channel,
            pending: Mutex::new(Pending {
                ring: Arc::new(ring),
                attached: Vec::new(),
            }),
            unknown: AtomicU64::new(0),
        })
    }

    /// Starts a life of queue pair `qpn`. Nothing of those before is left.
    pub(crate) fn attach(&self, qpn: u32, queues: &Arc<Queues>, completes: Completes) {
        let attached = &mut lock(&self.pending).attached;
        let qpn = qpn as usize;
        if attached.len() <= qpn {
            attached.resize_with((qpn + 1).next_power_of_two(), || None);
        }
        let queues = queues.clone();
        attached[qpn] = Some(Life { queues, completes });
    }

    /// The life of queue pair `qpn` is over, and no CQE of it comes any more. Those that are there are taken out, and give
    /// back what they report of a shared receive queue.
    pub(crate) fn detach(&self, qpn: u32) {
        let pending = &mut *lock(&self.pending);
        let life = pending
            .attached
            .get_mut(qpn as usize)
            .and_then(Option::take);
        pending.ring.retain(|bytes| {
            let cqe = Cqe::parse(bytes);
            let stays = cqe.qpn != qpn;
            if let (false, Some(life)) = (stays, &life) {
                life.queues.retire_shared(&cqe);
            }
            stays
        });
    }

    /// Number of the event queue that reports its completions, and events of the queue pairs that send on it.
    pub(crate) fn eqn(&self) -> u32 {
        eqn(self.channel.as_ref())
    }

    /// A CQE of queue pair `qpn` with an error flush of a receive request is there.
    pub(crate) fn has_flushed(&self, qpn: u32) -> bool {
        lock(&self.pending).ring.any(|bytes| {
            let cqe = Cqe::parse(bytes);
            cqe.qpn == qpn && cqe.recv && cqe.status == status::WR_FLUSH_ERR
        })
    }
}

impl<B: Backend> Drop for CqCore<B> {
    fn drop(&mut self) {
        if let Some(channel) = &self.channel {
            channel.leave(self.number);
        }
        let command = Command::new(opcode::DESTROY_CQ, self.number);
        match self.card.execute("destroy CQ", &command) {
            Ok(_) => {
                self.card.end_events(Object::Cq(self.number));
                lock(&self.card.cqs).put(self.number);
            }
            Err(e) => tracing::error!("the number stays taken: {e}"),
        }
    }
}
