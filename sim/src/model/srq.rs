//! Shared receive queues.

use ferroce_proto::abi::cq::NO_NUMBER;
use ferroce_proto::abi::eq::{Eqe, event};
use ferroce_proto::abi::qpc::SrqCtx;

use super::Env;

/// A shared receive queue.
#[derive(Clone, Default)]
pub(super) struct Srq {
    /// Present between CREATE_SRQ and DESTROY_SRQ.
    pub(super) ctx: Option<SrqCtx>,
    /// Producer index in WQEs, as rung by the host.
    producer: u16,
    /// Receive WQEs consumed.
    consumer: u16,
}

impl Srq {
    /// Starts afresh; the producer index is the host's and stays.
    pub(super) fn create(&mut self, ctx: SrqCtx) {
        *self = Self {
            ctx: Some(ctx),
            producer: self.producer,
            consumer: 0,
        };
    }

    pub(super) fn destroy(&mut self) {
        self.ctx = None;
    }

    fn posted(&self) -> u16 {
        self.producer.wrapping_sub(self.consumer)
    }
}

impl Env {
    /// Doorbell of a shared receive queue. That of a queue that the build does not have is ignored.
    pub(super) fn ring_srq(&mut self, srqn: u32, producer: u16) {
        if let Some(srq) = self.srqs.get_mut(srqn as usize) {
            srq.producer = producer;
        }
    }

    /// The next receive WQE of a shared receive queue, which is taken: its context, and its number or [`NO_NUMBER`].
    /// Below its limit the queue is reported, once.
    pub(super) fn take_shared(&mut self, srqn: u16) -> Option<(SrqCtx, u16)> {
        let srq = self.srqs.get_mut(usize::from(srqn))?;
        if srq.posted() == 0 {
            return None;
        }
        let ctx = srq.ctx?;
        let mask = (1 << ctx.log_size) - 1;
        let entry = u64::from(srq.consumer & mask);
        srq.consumer = srq.consumer.wrapping_add(1);
        let mut number = [0; 2];
        let address = ctx.numbers.wrapping_add(entry * number.len() as u64);
        let is_read = self.dma.read(address, &mut number);
        self.look_at_limit(srqn);
        let number = u16::from_le_bytes(number) & mask;
        Some((ctx, if is_read { number } else { NO_NUMBER }))
    }

    /// Sets the limit of a shared receive queue; one above what is posted is reported at once. `None` if there is no such
    /// queue.
    pub(super) fn arm_srq(&mut self, srqn: u16, limit: u16) -> Option<()> {
        let srq = self.srqs.get_mut(usize::from(srqn))?;
        srq.ctx.as_mut()?.limit = limit;
        self.look_at_limit(srqn);
        Some(())
    }

    /// Reports a shared receive queue that is below its limit, once.
    fn look_at_limit(&mut self, srqn: u16) {
        let srq = &mut self.srqs[usize::from(srqn)];
        let posted = srq.posted();
        let Some(ctx) = srq.ctx.as_mut().filter(|ctx| posted < ctx.limit) else {
            return;
        };
        ctx.limit = 0;
        let eqn = ctx.eqn;
        let eqe = Eqe {
            event: event::SRQ_LIMIT,
            object: srqn.into(),
            ..Eqe::default()
        };
        self.event(eqn, eqe);
    }
}
