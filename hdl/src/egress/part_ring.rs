//! The parts of a lane that are under way, with what is left of the room that each reserved.
//!
//! Parts begin in order, and so do their frames leave the assembler: when one of a later part does, those before it are over, and
//! what is left of their room goes back. So packets that are dropped need no account. The lane says when it is empty; all are over
//! then.
//!
//! Rate: a part and a frame a cycle; of parts that are over, one a cycle.
//!
//! Assumes: a part has room for all its frames; at most 2^P - 1 parts and frames wait; `idle` is 0 from the cycle behind `start` until
//! no frame can come any more.
use super::types::{FramePass, Space};
use crate::bus::valid::Valid;
use crate::prelude::*;

/// Up to 2^P - 1 parts.
#[derive(Clone, Debug, Block)]
pub struct PartRing<const P: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A part begins, with this room.
    pub start: Signal<In, Valid<Space>>,
    /// Its number.
    pub number: Signal<Out, Bits<P>>,
    /// A frame has left the assembler.
    pub pass: Signal<In, Valid<FramePass>>,
    /// Nothing of the lane is under way.
    pub idle: Signal<In, Bit>,
    /// Room that was not needed.
    pub over: StreamOut<Space>,
    /// No more parts than may be on their way.
    pub full: Signal<Out, Bit>,
    tail: Reg<Bits<P>>,
    parts: Fifo<Space, P>,
    passes: Fifo<FramePass, P>,
    crowded: Reg<Bit>,
    still: Reg<Bit>,
    // the oldest part
    there: Reg<Bit>,
    head: Reg<Bits<P>>,
    next: Reg<Bits<P>>,
    oldest: Dff<Space>,
}

impl<const P: usize> PartRing<P> {
    /// Parts from which on no more are taken: 32 may be between the question and `start`.
    const CROWD: u64 = (1 << P) - 34;
}

impl<const P: usize> Logic for PartRing<P> {
    describe!(
        "part_ring",
        format!("{}", 1usize << P),
        "Parts of a lane that are under way, with their room."
    );

    #[kernel]
    fn update(&mut self) {
        parts.s.valid = start.valid;
        parts.s.payload = start.payload;
        passes.s.valid = pass.valid;
        passes.s.payload = pass.payload;
        number = tail;
        if start.valid {
            tail = tail + 1;
        }
        crowded = parts.level >= Self::CROWD;
        full = crowded;
        assert!(!start.valid | parts.s.ready, "more parts than the ring has");
        assert!(!pass.valid | passes.s.ready, "more frames than wait");

        let frame = passes.m.payload;
        let mine = there & (frame.part.low::<P>() == head);
        // a frame that comes in this cycle is seen in the next
        still = idle & !pass.valid & !start.valid;
        let ends =
            there & ((passes.m.valid & !mine) | (still & idle & !pass.valid & !passes.m.valid));
        let gives = ends & oldest.beats.any();
        over.valid = gives;
        over.payload = oldest;
        let load = (!there | ends) & (!gives | over.ready);
        parts.m.ready = load;
        passes.m.ready = mine;
        assert!(
            !passes.m.valid | !there | mine | parts.m.valid,
            "a frame of a part that is over"
        );
        assert!(
            !(passes.m.valid & mine) | (frame.beats <= oldest.beats),
            "a frame for which its part has no room"
        );
        if passes.m.valid & mine {
            oldest.beats = oldest.beats - frame.beats;
        }
        if load {
            there = parts.m.valid;
            oldest = parts.m.payload;
            head = next;
            if parts.m.valid {
                next = next + 1;
            }
        }
    }
}
