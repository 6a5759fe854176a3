//! Fences: holds a reply back until the payload writes of the packets before it are done.
//!
//! Fences come in the order of the packets, so the oldest is the first to pass. One may be as old as it likes: its token waited for a
//! completion. Throughput: a fence in 3 cycles.
use super::types::*;
use crate::bus::types::{Activity, if_there, waits_for};
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
    /// Payload writes issued, modulo 2^16.
    pub issued: Signal<In, Bits<16>>,
    /// Of these, those that are done.
    pub done: Signal<In, Bits<16>>,
    /// Replies that may run.
    pub m: StreamOut<Op>,
    /// Replies held back, and on their way out.
    pub activity: Signal<Out, Activity>,

    waiting: Fifo<Fence, 9>,
    held: Reg<Bit>,
    fence: Dff<Fence>,
    passed: Reg<Bit>,
    latest: Reg<Bits<16>>,
    under_way: Reg<Bits<16>>,
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
        latest = issued;
        under_way = issued - done;
        waiting.m.ready = !held;
        if !held {
            held = waiting.m.valid;
            fence = waiting.m.payload;
            passed = false;
        } else if passed {
            held = !m.ready;
            passed = !m.ready;
        } else {
            passed = !waits_for(fence.fence, latest, under_way);
        }
        activity = Activity {
            busy: held | waiting.m.valid,
            moved: held & passed & m.ready,
            level: waiting.level + if_there(held, bits::<16>(1)),
        };
        m.valid = held & passed;
        m.payload = blank;
        m.payload.kind = OpKind::Release;
        m.payload.qpn = fence.qpn;
        m.payload.generation = fence.generation;
        m.payload.runs = fence.runs;
    }
}
