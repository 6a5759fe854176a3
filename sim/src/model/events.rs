//! Event queues and interrupt moderation.

use std::collections::VecDeque;

use ferroce_proto::abi::eq::{EqCtx, Eqe, WAITING};

use super::{CYCLES_PER_TICK, Env};

/// An event queue.
#[derive(Clone, Default)]
pub(super) struct Eq {
    /// Present between CREATE_EQ and DESTROY_EQ.
    pub(super) ctx: Option<EqCtx>,
    /// EQEs written, free running.
    producer: u32,
    /// Events that wait for room in the ring.
    backlog: VecDeque<Eqe>,
    /// EQEs were written since the last interrupt.
    unreported: bool,
    /// First cycle at which moderation permits an interrupt.
    earliest: u64,
}

impl Eq {
    pub(super) fn create(ctx: EqCtx) -> Self {
        Self {
            ctx: Some(ctx),
            ..Self::default()
        }
    }

    /// First cycle at which the queue has something to do; `u64::MAX` when it has nothing.
    pub(super) fn due(&self) -> u64 {
        match (self.backlog.is_empty(), self.unreported) {
            (false, _) => 0,
            (true, true) => self.earliest,
            (true, false) => u64::MAX,
        }
    }
}

impl Env {
    /// Queues an event; sets its phase when written. Without the event queue it is forgotten.
    pub(super) fn event(&mut self, eqn: u8, eqe: Eqe) {
        if let Some(eq) = self
            .eqs
            .get_mut(usize::from(eqn))
            .filter(|eq| eq.ctx.is_some())
        {
            eq.backlog.push_back(eqe);
        }
    }

    /// One cycle: writes what has room, asks for interrupts that are due.
    pub(super) fn step_events(&mut self) {
        for eq in &mut self.eqs {
            let Some(ctx) = eq.ctx else { continue };
            if eq.due() > self.now {
                continue;
            }
            let size = 1u32 << ctx.log_size;
            while let Some(eqe) = eq.backlog.front() {
                let consumer = u32::from_le_bytes(self.dma.read_array(ctx.consumer));
                if eq.producer.wrapping_sub(consumer) >= size {
                    break;
                }
                let owner = eq.producer >> ctx.log_size & 1 == 0;
                let slot = u64::from(eq.producer & (size - 1)) * Eqe::BYTES as u64;
                self.dma
                    .write_entry(ctx.base.wrapping_add(slot), &Eqe { owner, ..*eqe }.emit());
                eq.producer = eq.producer.wrapping_add(1);
                eq.backlog.pop_front();
                eq.unreported = true;
            }
            eq.backlog.truncate(WAITING);
            if eq.unreported && self.now >= eq.earliest {
                eq.unreported = false;
                eq.earliest = self.now + u64::from(ctx.moderation) * CYCLES_PER_TICK;
                self.interrupts.push_back(ctx.vector);
            }
        }
    }
}
