//! Shared receive queues.

use std::sync::Arc;

use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::qpc::SrqCtx;
use ferroce_proto::abi::wqe;
use thiserror::Error;

use crate::barrier;
use crate::card::Object;
use crate::command::{Command, CommandError};
use crate::dma::DmaBuf;
use crate::encode::{self, Extent};
use crate::host::lock;
use crate::pd::PdNumber;
use crate::post_error::{PostCause, PostError, check_list};
use crate::queue::SharedQueue;
use crate::wr::RecvWr;
use crate::{AnyBackend, Backend, BackendError, Pd};

/// A shared receive queue could not be created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SrqError {
    /// This build has none.
    #[error("this build of the card has no shared receive queues: load one with feature SRQ")]
    Unsupported,
    /// A size beyond the card's limits, or 0.
    #[error(
        "{attribute} of {value} was asked for, this shared receive queue takes {minimum} to {limit}"
    )]
    Limit {
        /// Name of the attribute.
        attribute: &'static str,
        /// How much.
        value: u32,
        /// At least.
        minimum: u32,
        /// At most.
        limit: u32,
    },
    /// All are taken.
    #[error("all {limit} shared receive queues of the card are in use: drop some")]
    Full {
        /// Shared receive queues of the card.
        limit: u32,
    },
    /// No memory, or it could not be made reachable.
    #[error("no memory for the shared receive queue")]
    Memory(#[from] BackendError),
    /// The card refused.
    #[error(transparent)]
    Command(#[from] CommandError),
}

fn check(attribute: &'static str, value: u32, minimum: u32, limit: u32) -> Result<(), SrqError> {
    if (minimum..=limit).contains(&value) {
        return Ok(());
    }
    Err(SrqError::Limit {
        attribute,
        value,
        minimum,
        limit,
    })
}

/// Bytes of an entry of the ring of numbers.
const NUMBER_BYTES: usize = size_of::<u16>();

/// The part of a shared receive queue that its queue pairs keep alive.
pub(crate) struct SrqCore<B: Backend> {
    pub(crate) pd: Arc<PdNumber<B>>,
    pub(crate) number: u32,
    pub(crate) queue: Arc<SharedQueue>,
    /// The WQEs, and behind them the ring of their numbers.
    memory: DmaBuf<B>,
    /// Where the ring begins.
    ring: usize,
    /// Log2 of the slots of a WQE.
    stride: u8,
}

impl<B: Backend> Drop for SrqCore<B> {
    fn drop(&mut self) {
        let card = &self.pd.card;
        let command = Command::new(opcode::DESTROY_SRQ, self.number);
        match card.execute("destroy SRQ", &command) {
            Ok(_) => {
                // the producer index is the host's and outlives the queue
                let doorbell = doorbell::srq(self.number);
                card.host.write32(doorbell, 0);
                card.end_events(Object::Srq(self.number));
                lock(&card.srqs).put(self.number);
            }
            Err(e) => tracing::error!("the number stays taken: {e}"),
        }
    }
}

/// A receive queue that many queue pairs receive from.
///
/// One owner posts at a time (`&mut`); queue pairs on it are polled from any thread. The card's ring is kept until the
/// last of them is dropped.
///
/// A request makes room for another when it completed and was polled, whatever became of those before it. A queue pair
/// that waits in the middle of a message, be it for ever, has that one request. When it is reset or dropped it gives back
/// what it took: its responder is brought to ERR before, and its completions that were not polled are taken out.
pub struct Srq<B: Backend = AnyBackend> {
    core: Arc<SrqCore<B>>,
    max_sge: usize,
}

impl<B: Backend> Pd<B> {
    /// A receive queue for many queue pairs, of at least `max_wr` requests with lists of up to `max_sge` entries. The
    /// memory that requests name is of this protection domain, whatever that of the queue pair.
    ///
    /// # Errors
    /// [`SrqError`]: beyond a limit of the card, none left, no memory, or refused.
    pub fn create_srq(&self, max_wr: u32, max_sge: u32) -> Result<Srq<B>, SrqError> {
        Srq::new(self.inner(), max_wr, max_sge)
    }
}

impl<B: Backend> Srq<B> {
    pub(crate) fn new(pd: &Arc<PdNumber<B>>, max_wr: u32, max_sge: u32) -> Result<Self, SrqError> {
        let card = &pd.card;
        if card.info.max_srq == 0 {
            return Err(SrqError::Unsupported);
        }
        check("max_wr", max_wr, 1, card.info.max_qp_wr)?;
        check("max_sge", max_sge, 1, card.info.max_recv_sge)?;
        let entries = max_wr.next_power_of_two();
        let stride = encode::recv_stride(max_sge as usize);
        let ring = ((entries as usize) << stride) * wqe::SLOT_BYTES;
        let memory = DmaBuf::new(&card.host, ring + entries as usize * NUMBER_BYTES)?;
        let numbers = card.info.max_srq;
        let number = lock(&card.srqs).take();
        let number = number.ok_or(SrqError::Full { limit: numbers })?;
        let ctx = SrqCtx {
            base: memory.iova(0),
            numbers: memory.iova(ring),
            log_size: entries.ilog2() as u8,
            stride,
            pd: pd.number,
            ..SrqCtx::default()
        };
        let command = Command::new(opcode::CREATE_SRQ, number).with(ctx.emit());
        if let Err(e) = card.execute("create SRQ", &command) {
            lock(&card.srqs).put(number);
            return Err(e.into());
        }
        let core = SrqCore {
            pd: pd.clone(),
            number,
            queue: Arc::new(SharedQueue::new(entries)),
            memory,
            ring,
            stride,
        };
        Ok(Self {
            core: Arc::new(core),
            max_sge: max_sge as usize,
        })
    }

    pub(crate) fn core(&self) -> &Arc<SrqCore<B>> {
        &self.core
    }

    /// Number of the queue.
    #[must_use]
    pub fn srqn(&self) -> u32 {
        self.core.number
    }

    /// Receive requests that may be posted.
    #[must_use]
    pub fn free(&self) -> u32 {
        self.core.queue.free()
    }

    /// Posts receive requests in order and rings the doorbell once. All are posted or none.
    ///
    /// Their completions come to the completion queue of the queue pair that took them.
    ///
    /// # Errors
    /// [`PostError`] names the first request that cannot be posted and why; nothing has changed then.
    pub fn post_recv(&mut self, wrs: &[RecvWr<'_>]) -> Result<(), PostError> {
        if wrs.is_empty() {
            return Ok(());
        }
        let core = &self.core;
        let queue = &core.queue;
        let room = queue.free();
        // A request counts from its note on: all are looked at before.
        for (index, wr) in wrs.iter().enumerate() {
            let at = |cause| PostError { index, cause };
            check_list(wr.sges, self.max_sge).map_err(at)?;
            if index as u32 >= room {
                let (queue, free, needed) = ("shared receive", 0, 1);
                return Err(at(PostCause::Full {
                    queue,
                    free,
                    needed,
                }));
            }
        }
        let mut producer = queue.producer();
        for wr in wrs {
            core.write(wr, Extent::of_list(wr.sges), producer);
            producer = producer.wrapping_add(1);
        }
        core.publish(producer);
        Ok(())
    }

    /// Receive requests of which each is posted, or not, by itself: see [`SharedReceives`].
    pub fn receives(&mut self) -> SharedReceives<'_, B> {
        let producer = self.core.queue.producer();
        SharedReceives {
            srq: self,
            producer,
        }
    }

    /// Has the card report, once ([`AsyncEvent::SrqLimit`](crate::AsyncEvent::SrqLimit)), when fewer than `limit`
    /// requests are left, now or after one was taken; 0 = never.
    ///
    /// # Errors
    /// [`SrqError`]: more than the queue holds, or refused.
    pub fn arm(&mut self, limit: u16) -> Result<(), SrqError> {
        check("limit", limit.into(), 0, self.core.queue.size())?;
        let ctx = SrqCtx {
            limit,
            ..SrqCtx::default()
        };
        let command = Command::new(opcode::ARM_SRQ, self.core.number).with(ctx.emit());
        self.core.pd.card.execute("arm SRQ", &command)?;
        Ok(())
    }
}

impl<B: Backend> SrqCore<B> {
    /// Writes a request, whose number is entry `producer` of the ring.
    fn write(&self, wr: &RecvWr<'_>, extent: Extent, producer: u32) {
        let number = self.queue.take(wr.wr_id);
        encode::recv(wr, extent, |slot| {
            let slot = (number << self.stride) + slot;
            self.memory.slot(slot * wqe::SLOT_BYTES)
        });
        let entry = (producer & (self.queue.size() - 1)) as usize;
        let at = self.ring + entry * NUMBER_BYTES;
        self.memory.write(at, &(number as u16).to_le_bytes());
    }

    fn publish(&self, producer: u32) {
        self.queue.publish(producer);
        barrier::before_register();
        let doorbell = doorbell::srq(self.number);
        self.pd.card.host.write32(doorbell, producer);
    }
}

/// Requests of a shared receive queue that are posted one by one, by one doorbell: when this is dropped.
pub struct SharedReceives<'a, B: Backend = AnyBackend> {
    srq: &'a mut Srq<B>,
    /// Behind what is written.
    producer: u32,
}

impl<B: Backend> SharedReceives<'_, B> {
    /// A further request.
    ///
    /// # Errors
    /// Why it cannot be posted. Those before it are.
    pub fn add(&mut self, wr: &RecvWr<'_>) -> Result<(), PostCause> {
        let core = &self.srq.core;
        let extent = check_list(wr.sges, self.srq.max_sge)?;
        if core.queue.free() == 0 {
            let (queue, free, needed) = ("shared receive", 0, 1);
            return Err(PostCause::Full {
                queue,
                free,
                needed,
            });
        }
        core.write(wr, extent, self.producer);
        self.producer = self.producer.wrapping_add(1);
        Ok(())
    }
}

impl<B: Backend> Drop for SharedReceives<'_, B> {
    fn drop(&mut self) {
        if self.producer != self.srq.core.queue.producer() {
            self.srq.core.publish(self.producer);
        }
    }
}
