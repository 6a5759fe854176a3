//! Fence with a queue: many completions wait at once for the payload they stand for.
//!
//! ```text
//!  s ─┬─────────── nothing waits ───────────────────────────────┬─► fence ─► m
//!     ├─► queue of 256 tokens ─────────── while `passed` is not 0 ─┘
//!     └─► their fences ─► oldest one passed? ─► passed
//! ```
//!
//! Fences are passed in their order, whether the tokens are taken or not, so `done` may run on while a token waits.
//! Rate: a token in two cycles. Latency: 2 cycles while nothing waits.
use super::fence::CqFence;
use crate::bus::types::CqToken;
use crate::prelude::*;

/// What a completion waits for.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Wait {
    /// Payload bursts issued before it, modulo 2^16.
    fence: Bits<16>,
    /// It waits for them.
    fenced: Bit,
}

/// Queue of completions behind a fence.
#[derive(LogicBlock, Default)]
pub struct CqFenceQueue {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Completions.
    pub s: StreamIn<CqToken>,
    /// Payload bursts that have their response, modulo 2^16.
    pub done: Signal<In, Bits<16>>,
    /// Completions whose payload is there.
    pub m: StreamOut<CqToken>,
    /// A completion is held.
    pub busy: Signal<Out, Bit>,

    /// A token that comes out of the queue is through it at once.
    front: CqFence,
    tokens: Fifo<CqToken, 8>,
    waits: Fifo<Wait, 8>,
    due: Reg<Bit>,
    /// Tokens whose fence is passed.
    passed: Reg<Bits<9>>,
    ready: Reg<Bit>,
    /// Negative while a burst issued before the fence has no response.
    age: Signal<Local, Bits<16>>,
    leaves: Signal<Local, Bit>,
    empty: Signal<Local, Bit>,
    direct: Signal<Local, Bit>,
    left: Signal<Local, Bits<9>>,
}

impl Logic for CqFenceQueue {
    describe!(
        "cq_fence_queue",
        "Holds many completions back until their payload is in host memory."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, front, tokens, waits);
        dff_setup!(self, clock, due, passed, ready);
        // both are as deep and take the same items; the tokens leave last
        self.s.ready.next = self.tokens.s.ready.val();
        self.empty.next = !self.tokens.level.val().any();
        self.direct.next = self.empty.val() & self.front.s.ready.val();
        self.tokens.s.valid.next = self.s.valid.val() & !self.direct.val();
        self.tokens.s.payload.next = self.s.payload.val();
        self.waits.s.valid.next =
            self.s.valid.val() & self.tokens.s.ready.val() & !self.direct.val();
        self.waits.s.payload.next.fence = self.s.payload.val().fence;
        self.waits.s.payload.next.fenced = self.s.payload.val().fenced;

        self.age.next = self.done.val() - self.waits.m.payload.val().fence;
        self.due.d.next = self.waits.m.valid.val()
            & !self.due.q.val()
            & (!self.waits.m.payload.val().fenced | !self.age.val().get_bit(15));
        self.waits.m.ready.next = self.due.q.val();

        self.front.done.next = self.done.val();
        self.front.s.valid.next = (self.s.valid.val() & self.empty.val()) | self.ready.q.val();
        self.front.s.payload.next = self.s.payload.val();
        if self.ready.q.val() {
            self.front.s.payload.next = self.tokens.m.payload.val();
            self.front.s.payload.next.fenced = false;
        }
        StreamOut::<CqToken>::link(&mut self.m, &mut self.front.m);
        self.leaves.next = self.ready.q.val() & self.front.s.ready.val();
        self.tokens.m.ready.next = self.leaves.val();
        self.left.next = self.passed.q.val();
        if self.due.q.val() & !self.leaves.val() {
            self.left.next = self.passed.q.val() + 1;
        } else if self.leaves.val() & !self.due.q.val() {
            self.left.next = self.passed.q.val() - 1;
        }
        self.passed.d.next = self.left.val();
        self.ready.d.next = self.left.val().any();
        self.busy.next = !self.empty.val() | self.front.busy.val();
    }
}
