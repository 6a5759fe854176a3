//! Fences: holds a reply back until the payload writes of the packets before it are done.
//!
//! Fences come in the order of the packets, so the oldest is the first to pass. Throughput: a fence in 3 cycles.
use super::types::*;
use crate::prelude::*;

/// Replies held back.
#[derive(Block)]
pub struct Fences {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A reply is held back.
    pub valid: Signal<In, Bit>,
    /// The reply.
    pub entry: Signal<In, Fence>,
    /// There is room for 16 more.
    pub room: Signal<Out, Bit>,
    /// Payload writes done, modulo 2^16.
    pub done: Signal<In, Bits<16>>,
    /// Replies that may run.
    pub m: StreamOut<Op>,

    waiting: Fifo<Fence, 9>,
    held: Reg<Bit>,
    fence: Dff<Fence>,
    passed: Reg<Bit>,
    room_q: Reg<Bit>,
    blank: Zero<Op>,
}

impl Logic for Fences {
    describe!(
        "reply_fences",
        "Holds replies back until the writes before them are done."
    );

    #[kernel]
    fn update(&mut self) {
        waiting.s.valid = valid;
        waiting.s.payload = entry;
        // below 448 of 512
        room_q = !(waiting.level.slice::<3>(6).all() | waiting.level.bit(9));
        room = room_q;
        let age = done - fence.fence;
        waiting.m.ready = !held;
        if !held {
            held = waiting.m.valid;
            fence = waiting.m.payload;
            passed = false;
        } else if passed {
            held = !m.ready;
            passed = !m.ready;
        } else {
            passed = !age.bit(15);
        }
        m.valid = held & passed;
        m.payload = blank;
        m.payload.kind = OpKind::Release;
        m.payload.qpn = fence.qpn;
        m.payload.generation = fence.generation;
        m.payload.runs = fence.runs;
    }
}
