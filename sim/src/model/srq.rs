//! Shared receive queues.

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

    /// The next receive WQE of a shared receive queue, which is taken: its context and ordinal.
    /// Below its limit the queue is reported, once.
    pub(super) fn take_shared(&mut self, srqn: u16) -> Option<(SrqCtx, u16)> {
        let srq = self.srqs.get_mut(usize::from(srqn))?;
        if srq.posted() == 0 {
            return None;
        }
        let ctx = srq.ctx.as_mut()?;
        let index = srq.consumer;
        srq.consumer = index.wrapping_add(1);
        let found = *ctx;
        if srq.producer.wrapping_sub(srq.consumer) < ctx.limit {
            ctx.limit = 0;
            let eqe = Eqe {
                event: event::SRQ_LIMIT,
                object: srqn.into(),
                ..Eqe::default()
            };
            self.event(found.eqn, eqe);
        }
        Some((found, index))
    }
}
