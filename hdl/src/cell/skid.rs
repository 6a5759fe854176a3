//! Skid buffer: a register stage of a stream that cuts both directions. For wide items see `SkidRam`.
//!
//! Full rate, one cycle of latency; `s.ready` and `m.valid` come straight from registers. Two items of storage: the
//! output register, and the one that catches the item in flight when `m.ready` falls.
use crate::prelude::*;

/// Register stage for items of type `T`.
#[derive(Clone, Debug, Default, LogicBlock)]
pub struct Skid<T: Synth> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Items in.
    pub s: StreamIn<T>,
    /// Items out.
    pub m: StreamOut<T>,
    out: Dff<T>,
    spare: Dff<T>,
    out_valid: Reg<Bit>,
    spare_valid: Reg<Bit>,
    take: Signal<Local, Bit>,
}

impl<T: Synth> Logic for Skid<T> {
    describe!(
        "skid",
        format!("{}", T::BITS),
        "Stream register stage that cuts valid, payload and ready."
    );

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, out, spare, out_valid, spare_valid);
        self.take.next = self.m.ready.val() | !self.out_valid.q.val();
        if self.take.val() {
            self.out_valid.d.next = self.spare_valid.q.val() | self.s.valid.val();
            self.spare_valid.d.next = false;
            self.out.d.next = self.s.payload.val();
            if self.spare_valid.q.val() {
                self.out.d.next = self.spare.q.val();
            }
        } else if !self.spare_valid.q.val() {
            self.spare_valid.d.next = self.s.valid.val();
        }
        if !self.spare_valid.q.val() {
            self.spare.d.next = self.s.payload.val();
        }
        self.s.ready.next = !self.spare_valid.q.val();
        self.m.valid.next = self.out_valid.q.val();
        self.m.payload.next = self.out.q.val();
    }
}
