//! Fences: holds a reply back until the payload writes of the packets before it are done.
//!
//! Fences come in the order of the packets, so the oldest is the first to pass. Throughput: a fence in 3 cycles.
use super::types::*;
use crate::prelude::*;

/// Replies held back.
#[derive(LogicBlock, Default)]
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
    age: Signal<Local, Bits<16>>,
    blank: Zero<Op>,
}

impl Logic for Fences {
    describe!(
        "reply_fences",
        "Holds replies back until the writes before them are done."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, waiting);
        dff_setup!(self, clock, held, fence, passed, room_q);
        self.waiting.s.valid.next = self.valid.val();
        self.waiting.s.payload.next = self.entry.val();
        // below 448 of 512
        self.room_q.d.next = !(self.waiting.level.val().get_bits::<3>(6).all()
            | self.waiting.level.val().get_bit(9));
        self.room.next = self.room_q.q.val();
        self.age.next = self.done.val() - self.fence.q.val().fence;
        self.waiting.m.ready.next = !self.held.q.val();
        if !self.held.q.val() {
            self.held.d.next = self.waiting.m.valid.val();
            self.fence.d.next = self.waiting.m.payload.val();
            self.passed.d.next = false;
        } else if self.passed.q.val() {
            self.held.d.next = !self.m.ready.val();
            self.passed.d.next = !self.m.ready.val();
        } else {
            self.passed.d.next = !self.age.val().get_bit(15);
        }
        self.m.valid.next = self.held.q.val() & self.passed.q.val();
        self.m.payload.next = self.blank.val();
        self.m.payload.next.kind = OpKind::Release;
        self.m.payload.next.qpn = self.fence.q.val().qpn;
        self.m.payload.next.generation = self.fence.q.val().generation;
    }
}
