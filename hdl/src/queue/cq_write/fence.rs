//! Fence: holds a completion back until the payload it stands for is in host memory.
//!
//! Rate: a token in two cycles. Latency: 2 cycles. A token whose fence was passed once stays free to go: however long it
//! is not taken, `done` may run on.
use crate::bus::types::CqToken;
use crate::prelude::*;

/// Fence of completions.
#[derive(LogicBlock, Default)]
pub struct CqFence {
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

    skid: SkidRam<CqToken>,
    due: Reg<Bit>,
    /// Negative while a burst issued before the fence has no response.
    age: Signal<Local, Bits<16>>,
    leaves: Signal<Local, Bit>,
}

impl Logic for CqFence {
    describe!(
        "cq_fence",
        "Holds completions back until their payload is in host memory."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, skid);
        dff_setup!(self, clock, due);
        StreamIn::<CqToken>::link(&mut self.s, &mut self.skid.s);
        self.age.next = self.done.val() - self.skid.m.payload.val().fence;
        self.leaves.next = self.due.q.val() & self.m.ready.val();
        self.due.d.next = self.skid.m.valid.val()
            & !self.leaves.val()
            & (self.due.q.val() | !self.skid.m.payload.val().fenced | !self.age.val().get_bit(15));
        self.skid.m.ready.next = self.leaves.val();
        self.busy.next = self.skid.m.valid.val();
        self.m.valid.next = self.due.q.val();
        self.m.payload.next = self.skid.m.payload.val();
    }
}
