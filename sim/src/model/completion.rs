//! Completion queues: CQEs with their phase, the consumer record, overflow, arming.

use ferroce_proto::abi::cq::{CqCtx, Cqe, status};
use ferroce_proto::abi::doorbell::{ARM_ANY, ARM_SOLICITED};
use ferroce_proto::abi::eq::{Eqe, event};

use super::Env;
use super::stats;

/// Bits of an index that a command tells.
const INDEX_MASK: u32 = (1 << 24) - 1;

/// A completion queue.
#[derive(Clone, Default)]
pub(super) struct Cq {
    /// Present between CREATE_CQ and DESTROY_CQ.
    pub(super) ctx: Option<CqCtx>,
    /// CQEs written, free running.
    producer: u32,
    /// CQEs taken, as last read from the consumer record.
    consumer: u32,
    /// Producer index behind the last CQE that was solicited or failed.
    solicited_end: u32,
    /// What is to be reported, as set by the arm doorbell.
    armed: Option<Arm>,
    /// Overflowed; takes nothing any more.
    error: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Arm {
    Any,
    Solicited,
}

/// The CQE could not be written: its queue is full, in error or not there.
#[derive(Debug)]
pub(super) struct Lost;

impl Cq {
    pub(super) fn create(ctx: CqCtx) -> Self {
        Self {
            ctx: Some(ctx),
            ..Self::default()
        }
    }

    /// Goes on with the ring of `ctx`, of which the host has taken `taken` entries (modulo 2^24); the first entry
    /// there. `None`: the queue is not there or in error, or has more entries than the ring holds.
    pub(super) fn resize(&mut self, ctx: CqCtx, taken: u32) -> Option<u128> {
        self.ctx.filter(|_| !self.error)?;
        let waiting = self.producer.wrapping_sub(taken) & INDEX_MASK;
        if waiting > 1 << ctx.log_size {
            return None;
        }
        self.ctx = Some(ctx);
        self.consumer = self.producer.wrapping_sub(waiting);
        Some((self.producer & INDEX_MASK).into())
    }
}

impl Env {
    /// Writes a CQE; sets its phase.
    pub(super) fn complete(&mut self, cqn: u16, cqe: Cqe) -> Result<(), Lost> {
        let cq = &mut self.cqs[usize::from(cqn)];
        let Some(ctx) = cq.ctx.filter(|_| !cq.error) else {
            return Err(Lost);
        };
        let size = 1u32 << ctx.log_size;
        if cq.producer.wrapping_sub(cq.consumer) >= size / 2 {
            cq.consumer = u32::from_le_bytes(self.dma.read_array(ctx.consumer));
        }
        if cq.producer.wrapping_sub(cq.consumer) >= size {
            cq.error = true;
            self.stats.count(stats::CQ_OVERFLOWS);
            self.event(
                ctx.eqn,
                Eqe {
                    event: event::CQ_ERROR,
                    object: cqn.into(),
                    ..Eqe::default()
                },
            );
            return Err(Lost);
        }
        let owner = cq.producer >> ctx.log_size & 1 == 0;
        let slot = u64::from(cq.producer & (size - 1)) * Cqe::BYTES as u64;
        self.dma
            .write_entry(ctx.base.wrapping_add(slot), &Cqe { owner, ..cqe }.emit());
        cq.producer = cq.producer.wrapping_add(1);
        let solicited = cqe.solicited || cqe.status != status::SUCCESS;
        if solicited {
            cq.solicited_end = cq.producer;
        }
        if cq.armed == Some(Arm::Any) || (cq.armed == Some(Arm::Solicited) && solicited) {
            self.report(cqn);
        }
        Ok(())
    }

    /// Arm doorbell of a completion queue.
    pub(super) fn arm(&mut self, cqn: u32, value: u32) {
        let Some(cq) = self.cqs.get_mut(cqn as usize).filter(|cq| cq.ctx.is_some()) else {
            return;
        };
        let (arm, end) = if value & ARM_ANY != 0 {
            (Arm::Any, cq.producer)
        } else if value & ARM_SOLICITED != 0 {
            (Arm::Solicited, cq.solicited_end)
        } else {
            return;
        };
        // An order for the next CQE is not replaced by one for the next that is solicited (C11-31, C11-32).
        if cq.armed != Some(Arm::Any) {
            cq.armed = Some(arm);
        }
        // CQEs that came before the doorbell and that the host has not seen are reported at once.
        let unseen = ferroce_proto::wire::psn::distance(cq.producer, value);
        if i64::from(unseen) > i64::from(cq.producer.wrapping_sub(end)) {
            self.report(cqn as u16);
        }
    }

    fn report(&mut self, cqn: u16) {
        let cq = &mut self.cqs[usize::from(cqn)];
        cq.armed = None;
        if let Some(ctx) = cq.ctx {
            self.event(
                ctx.eqn,
                Eqe {
                    event: event::COMPLETION,
                    object: cqn.into(),
                    ..Eqe::default()
                },
            );
        }
    }
}
