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
//! The limit stands in a table of its own behind stage X. It is looked at when a receive WQE is taken or a command sets it
//! for a queue that exists, and forgotten when it was reported.
//!
//! Doorbells of queues beyond 2^S do nothing; commands and packets name only queues that exist in the build. A queue that
//! does not exist has no WQEs. Its producer index is the host's and stands through creation.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use super::event::{RqEvent, RqEventKind};
use crate::bus::payload::payload;
use crate::bus::types::image::SrqCtx;
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
        /// Address of the WQEs.
        base: Bits<64>,
        /// Address of the ring of numbers.
        numbers: Bits<64>,
        /// Log2 of the entries of both.
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
        /// It is set for a queue that exists, and looked at.
        arm: Bit,
        /// WQEs left.
        left: Bits<16>,
        /// New limit.
        limit: Bits<16>,
    }
}

/// Indices and limits of 2^S shared receive queues.
#[derive(Block)]
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
    eqn_x: Dff<Bits<8>>,

    // stage W
    w_valid: Reg<Bit>,
    w: Dff<SrqStep>,
    w_producer: Dff<Bits<16>>,
    w_consumer: Dff<Bits<16>>,

    // the limit
    step_1: Dff<SrqStep>,
    step_2: Dff<SrqStep>,
    /// The limit that `step_2` sets is above what is left.
    above: Dff<Bit>,
    out_valid: Reg<Bit>,
    out: Dff<SrqLimit>,
}

impl<const S: usize> SrqTable<S> {
    /// Bits of a number that no shared receive queue of the build has.
    const OUTSIDE: u64 = 0xffff >> S << S;
}

impl<const S: usize> Logic for SrqTable<S> {
    describe!(
        "srq_table",
        format!("s{S}"),
        "Indices and limits of shared receive queues."
    );

    #[kernel]
    fn update(&mut self) {
        images.we = image_we;
        images.waddr = image_srqn;
        images.wdata.log = image.log_size;
        copy!(images.wdata <= image; base, numbers, stride, pd, eqn);
        images.re = true;
        images.raddr = srqn.low::<S>();
        shape = images.rdata;
        eqn_x = images.rdata.eqn;
        table.valid = valid;
        table.addr = srqn.low::<S>();

        // stage X
        let current = table.current;
        let mut next = table.current;
        posted = current.known & (current.producer != current.consumer);
        ordinal = current.consumer;
        let exists = !(x.srqn & bits::<16>(Self::OUTSIDE)).any();
        let commands = x.kind == RqEventKind::SrqCommand;
        let mut write = take;
        if take {
            next.consumer = current.consumer + 1;
        }
        if x.kind == RqEventKind::SrqDoorbell {
            next.producer = x.index;
            write = exists;
        }
        if commands & x.set {
            next.known = x.image;
            if x.image {
                next.consumer = bits::<16>(0);
            }
            write = true;
        }
        table.write = write;
        table.result = next;

        // stage W
        w_valid = table.x_valid & (take | commands);
        w.srqn = x.srqn;
        w.eqn = eqn_x;
        w.take = take;
        w.arm = commands & !x.set & current.known;
        w.left = bits::<16>(0);
        w.limit = x.index;
        w_producer = current.producer;
        w_consumer = current.consumer + 1;
        if commands {
            w_consumer = current.consumer;
        }
        let mut step = w;
        step.left = w_producer - w_consumer;
        step_1 = step;
        step_2 = step_1;
        above = step_1.arm & (step_1.left < step_1.limit);
        limits.valid = w_valid;
        limits.addr = step.srqn.low::<S>();

        // the limit: none is 0
        let s = step_2;
        let low = s.take & (s.left < limits.current);
        limits.write = low | !s.take;
        limits.result = s.limit;
        if s.take | above {
            limits.result = bits::<16>(0);
        }
        out_valid = limits.x_valid & (low | above);
        out.srqn = s.srqn;
        out.eqn = s.eqn;

        limit_valid = out_valid;
        limit = out;
        ready = table.ready & limits.ready;
    }
}
