//! Queues are opened, closed and resized.

use ferroce_proto::abi::cq::CqCtx;

use super::{Rig, Ring};

impl Ring {
    /// The ring of the next entry.
    pub(super) fn current(&self) -> CqCtx {
        self.old.front().map_or(self.ctx, |(old, _)| *old)
    }

    /// Leaves rings that are written to their end.
    pub(super) fn pass(&mut self) {
        let written = self.written;
        while self.old.front().is_some_and(|(_, end)| *end == written) {
            self.old.pop_front();
        }
    }
}

impl Rig {
    /// Opens a queue of 2^`log_size` entries, and forgets what was there.
    pub(crate) fn open(&mut self, cqn: u16, log_size: u8) {
        let base = 0x7f00_0000_0000 + (u64::from(cqn) << 32);
        let rng = self.bench.rng();
        let ctx = CqCtx {
            base: base + 64 * rng.u64(..1 << 20),
            consumer: base + (1 << 31) + 4 * rng.u64(..1 << 20),
            log_size,
            eqn: rng.u8(..),
        };
        self.command(cqn, Some(ctx));
    }

    /// Closes a queue.
    pub(crate) fn close(&mut self, cqn: u16) {
        self.command(cqn, None);
    }

    /// A command, and steps until it is taken. No token of the queue is on its way.
    fn command(&mut self, cqn: u16, image: Option<CqCtx>) {
        let ring = &mut self.rings[usize::from(cqn)];
        assert_eq!(ring.pending, 0, "the queue is drained first");
        let was_dead = ring.is_dead();
        if was_dead {
            let is_full = |known: &u32| ring.written - known == ring.size();
            assert!(
                ring.full_by.iter().any(is_full),
                "an overflow of queue {cqn} that was not full: {ring:?}"
            );
        }
        let ctx = image.unwrap_or_default();
        *ring = Ring {
            ctx,
            open: image.is_some(),
            ..Ring::default()
        };
        self.reports.begin(cqn, image.map(|ctx| ctx.eqn), was_dead);
        self.records.borrow_mut().insert(ctx.consumer, 0);
        self.order(cqn, ctx, image.is_some(), None);
    }

    /// A command, and steps until it is taken.
    fn order(&mut self, cqn: u16, ctx: CqCtx, open: bool, resize: Option<u32>) {
        let item = self.commands.item();
        self.commands.push(
            item.with("cqn", cqn.into())
                .with("open", open.into())
                .with("resize", resize.is_some().into())
                .with("taken", u64::from(resize.unwrap_or(0)) & 0xff_ffff)
                .with("image.base", ctx.base)
                .with("image.consumer", ctx.consumer)
                .with("image.log_size", ctx.log_size.into())
                .with("image.eqn", ctx.eqn.into()),
        );
        let before = self.commands.sent();
        while self.commands.sent() == before {
            self.step();
        }
    }

    /// Resizes a queue whatever is on its way; whether it was.
    pub(crate) fn resize(&mut self, cqn: u16, log_size: u8) -> bool {
        let base = 0x6f00_0000_0000 + (u64::from(cqn) << 32);
        let rng = self.bench.rng();
        let place = rng.u64(..1 << 20);
        let ring = &self.rings[usize::from(cqn)];
        let (before, taken) = (ring.ctx, ring.consumed);
        let ctx = CqCtx {
            base: base + 64 * place,
            consumer: base + (1 << 31) + 4 * place,
            log_size,
            eqn: before.eqn,
        };
        self.records.borrow_mut().insert(ctx.consumer, taken);
        self.order(cqn, ctx, false, Some(taken));
        self.step();
        let switched = self.bench.dut().get(self.switched) as u32;
        let waiting = switched.wrapping_sub(taken) & 0xff_ffff;
        if self.bench.dut().is_set(self.refused) {
            // the overflow shows when the loss is reported
            (0..200).for_each(|_| self.step());
            let ring = &self.rings[usize::from(cqn)];
            let fits = waiting <= 1 << log_size;
            assert!(!ring.open || ring.is_dead() || !fits, "refused: {ring:?}");
            return false;
        }
        let ring = &mut self.rings[usize::from(cqn)];
        assert!(
            ring.open && waiting <= 1 << log_size,
            "{waiting} entries wait: {ring:?}"
        );
        let before = ring.ctx;
        ring.old.push_back((before, taken.wrapping_add(waiting)));
        ring.pass();
        ring.ctx = ctx;
        ring.known = taken;
        true
    }
}
