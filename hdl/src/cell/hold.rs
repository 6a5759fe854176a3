//! Stage of a stream that cuts `ready` only: an item passes in the cycle it comes, or is held until it is taken.
//!
//! Full rate, no cycle of latency; `s.ready` comes straight from a register, `m.valid` and `m.payload` are one LUT level
//! behind those of `s`.
use crate::prelude::*;

/// Stage for items of type `T`.
#[derive(Clone, Debug, Default, LogicBlock)]
pub struct Hold<T: Synth> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Items in.
    pub s: StreamIn<T>,
    /// Items out.
    pub m: StreamOut<T>,
    item: Dff<T>,
    held: Reg<Bit>,
}

impl<T: Synth> Logic for Hold<T> {
    describe!(
        "hold",
        format!("{}", T::BITS),
        "Stream stage that cuts ready, no cycle of latency."
    );

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, item, held);
        self.m.valid.next = self.held.q.val() | self.s.valid.val();
        self.m.payload.next = self.s.payload.val();
        if self.held.q.val() {
            self.m.payload.next = self.item.q.val();
        } else {
            self.item.d.next = self.s.payload.val();
        }
        self.held.d.next = (self.held.q.val() | self.s.valid.val()) & !self.m.ready.val();
        self.s.ready.next = !self.held.q.val();
    }
}
