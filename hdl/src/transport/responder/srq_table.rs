//! Shared receive queues: their indices and limits, beside the table of the receive queues.
//!
//! Every event of the receive side passes here too, addressed by its `srqn`; `posted` and `ordinal` stand in its stage X, and
//! `take` there takes the next receive WQE. A doorbell or command of a shared receive queue does its work in the same stage,
//! so that events of all queue pairs that share a queue may follow each other in every cycle.
//!
//! ```text
//!  cycle n       n+1          n+2 (X)           n+3 (W)      n+5                    n+6
//!  srqn ─► shape (image) ─► posted, ordinal, take ─► left ─► left below the limit? ─► limit
//! ```
//!
//! The limit stands in a table of its own behind stage X. It is looked at when a receive WQE is taken, and forgotten when it
//! was reported.
//!
//! Doorbells of queues beyond 2^S do nothing; commands and packets name only queues that exist in the build. A queue that
//! does not exist has no WQEs. Its producer index is the host's and stands through creation.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use super::event::{RqEvent, RqEventKind};
use crate::bus::payload::payload;
use crate::bus::types::image::SrqCtx;
use crate::cell::delay::Delay;
use crate::prelude::*;

payload! {
    /// A shared receive queue fell below its limit.
    SrqLimit {
        /// Which.
        srqn: Bits<16>,
        /// Its event queue.
        eqn: Bits<8>,
    }

    /// Indices of a shared receive queue.
    SrqState {
        /// It exists.
        known: Bit,
        /// Producer index, in WQEs.
        producer: Bits<16>,
        /// Receive WQEs taken.
        consumer: Bits<16>,
    }

    /// What is kept of an `SrqCtx`.
    SrqShape {
        /// Address of the ring.
        base: Bits<64>,
        /// Log2 of its entries.
        log: Bits<4>,
        /// Log2 of the slots of a receive WQE.
        stride: Bits<2>,
        /// Protection domain.
        pd: Bits<24>,
        /// Event queue.
        eqn: Bits<8>,
    }

    /// What happened to a limit.
    SrqStep {
        /// Shared receive queue.
        srqn: Bits<16>,
        /// Its event queue.
        eqn: Bits<8>,
        /// A WQE was taken; else the limit is set.
        take: Bit,
        /// WQEs left.
        left: Bits<16>,
        /// New limit.
        limit: Bits<16>,
    }
}

/// Indices and limits of 2^S shared receive queues.
#[derive(LogicBlock, Default)]
pub struct SrqTable<const S: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// An event enters.
    pub valid: Signal<In, Bit>,
    /// Its shared receive queue.
    pub srqn: Signal<In, Bits<16>>,
    /// The event that entered two cycles ago.
    pub x: Signal<In, RqEvent>,
    /// It takes the next receive WQE.
    pub take: Signal<In, Bit>,
    /// A command writes the image of shared receive queue `image_srqn`.
    pub image_we: Signal<In, Bit>,
    /// Shared receive queue.
    pub image_srqn: Signal<In, Bits<S>>,
    /// Its image.
    pub image: Signal<In, SrqCtx>,
    /// Image, of the event that entered a cycle ago.
    pub shape: Signal<Out, SrqShape>,
    /// A receive WQE is there, for the event `x`.
    pub posted: Signal<Out, Bit>,
    /// Its ordinal.
    pub ordinal: Signal<Out, Bits<16>>,
    /// A queue fell below its limit.
    pub limit_valid: Signal<Out, Bit>,
    /// Which.
    pub limit: Signal<Out, SrqLimit>,
    /// The tables are swept after reset.
    pub ready: Signal<Out, Bit>,

    images: Ram<SrqShape, S>,
    table: Rmw<SrqState, S>,
    limits: Rmw<Bits<16>, S>,
    c: Signal<Local, SrqState>,
    n: Signal<Local, SrqState>,
    write: Signal<Local, Bit>,
    exists: Signal<Local, Bit>,
    commands: Signal<Local, Bit>,
    eqn_x: Dff<Bits<8>>,

    // stage W
    w_valid: Reg<Bit>,
    w: Dff<SrqStep>,
    w_producer: Dff<Bits<16>>,
    w_consumer: Dff<Bits<16>>,
    step: Signal<Local, SrqStep>,

    // the limit
    step_2: Delay<SrqStep, 2>,
    s: Signal<Local, SrqStep>,
    low: Signal<Local, Bit>,
    out_valid: Reg<Bit>,
    out: Dff<SrqLimit>,
}

impl<const S: usize> SrqTable<S> {
    /// Bits of a number that no shared receive queue of the build has.
    const BEYOND: u64 = 0xffff >> S << S;
}

impl<const S: usize> Logic for SrqTable<S> {
    describe!(
        "srq_table",
        format!("s{S}"),
        "Indices and limits of shared receive queues.";
        Self::BEYOND
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, images, table, limits, step_2);
        dff_setup!(
            self, clock, eqn_x, w_valid, w, w_producer, w_consumer, out_valid, out
        );

        self.images.we.next = self.image_we.val();
        self.images.waddr.next = self.image_srqn.val();
        self.images.wdata.next.base = self.image.val().base;
        self.images.wdata.next.log = self.image.val().log_size;
        self.images.wdata.next.stride = self.image.val().stride;
        self.images.wdata.next.pd = self.image.val().pd;
        self.images.wdata.next.eqn = self.image.val().eqn;
        self.images.re.next = true;
        self.images.raddr.next = self.srqn.val().get_bits::<S>(0);
        self.shape.next = self.images.rdata.val();
        self.eqn_x.d.next = self.images.rdata.val().eqn;
        self.table.valid.next = self.valid.val();
        self.table.addr.next = self.srqn.val().get_bits::<S>(0);

        // stage X
        self.c.next = self.table.current.val();
        self.n.next = self.table.current.val();
        self.posted.next = self.c.val().known & (self.c.val().producer != self.c.val().consumer);
        self.ordinal.next = self.c.val().consumer;
        self.exists.next = !(self.x.val().srqn & bits::<16>(Self::BEYOND)).any();
        self.commands.next = self.x.val().kind == RqEventKind::SrqCommand;
        self.write.next = self.take.val();
        if self.take.val() {
            self.n.next.consumer = self.c.val().consumer + 1;
        }
        if self.x.val().kind == RqEventKind::SrqDoorbell {
            self.n.next.producer = self.x.val().index;
            self.write.next = self.exists.val();
        }
        if self.commands.val() & self.x.val().set {
            self.n.next.known = self.x.val().image;
            if self.x.val().image {
                self.n.next.consumer = bits::<16>(0);
            }
            self.write.next = true;
        }
        self.table.write.next = self.write.val();
        self.table.result.next = self.n.val();

        // stage W
        self.w_valid.d.next = self.table.x_valid.val() & (self.take.val() | self.commands.val());
        self.w.d.next.srqn = self.x.val().srqn;
        self.w.d.next.eqn = self.eqn_x.q.val();
        self.w.d.next.take = self.take.val();
        self.w.d.next.left = bits::<16>(0);
        self.w.d.next.limit = self.x.val().index;
        self.w_producer.d.next = self.c.val().producer;
        self.w_consumer.d.next = self.c.val().consumer + 1;
        self.step.next = self.w.q.val();
        self.step.next.left = self.w_producer.q.val() - self.w_consumer.q.val();
        self.step_2.d.next = self.step.val();
        self.limits.valid.next = self.w_valid.q.val();
        self.limits.addr.next = self.step.val().srqn.get_bits::<S>(0);

        // the limit: none is 0
        self.s.next = self.step_2.q.val();
        self.low.next = self.s.val().take & (self.s.val().left < self.limits.current.val());
        self.limits.write.next = self.low.val() | !self.s.val().take;
        self.limits.result.next = self.s.val().limit;
        if self.s.val().take {
            self.limits.result.next = bits::<16>(0);
        }
        self.out_valid.d.next = self.limits.x_valid.val() & self.low.val();
        self.out.d.next.srqn = self.s.val().srqn;
        self.out.d.next.eqn = self.s.val().eqn;

        self.limit_valid.next = self.out_valid.q.val();
        self.limit.next = self.out.q.val();
        self.ready.next = self.table.ready.val() & self.limits.ready.val();
    }
}
