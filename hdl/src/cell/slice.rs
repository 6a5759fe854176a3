//! Register stage of a stream that cuts valid and payload; ready goes through.
//!
//! Full rate, one cycle of latency, no LUT a bit of payload: for streams whose taker has its ready from a register, or near
//! one. `s.ready` is one LUT level behind `m.ready`.
use crate::prelude::*;

/// Stage for items of type `T`.
#[derive(Clone, Debug, Default, LogicBlock)]
pub struct Slice<T: Synth> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Items in.
    pub s: StreamIn<T>,
    /// Items out.
    pub m: StreamOut<T>,
    item: Dff<T>,
    valid: Reg<Bit>,
    take: Signal<Local, Bit>,
}

impl<T: Synth> Logic for Slice<T> {
    describe!(
        "slice",
        format!("{}", T::BITS),
        "Stream register stage that cuts valid and payload."
    );

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, item, valid);
        self.take.next = !self.valid.q.val() | self.m.ready.val();
        if self.take.val() {
            self.item.d.next = self.s.payload.val();
            self.valid.d.next = self.s.valid.val();
        }
        self.s.ready.next = self.take.val();
        self.m.valid.next = self.valid.q.val();
        self.m.payload.next = self.item.q.val();
    }
}
