//! Gathers the answers of the memory region table to the checks of a WQE: one verdict a WQE.
//!
//! Answers come in the order of the checks. At most 16 checks wait for their answer, at most 16 verdicts are not taken.
use crate::prelude::*;

/// The block.
#[derive(LogicBlock, Default)]
pub struct RegionVerdict {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A check is asked for.
    pub asked: Signal<In, Bit>,
    /// It is the last of its WQE.
    pub last: Signal<In, Bit>,
    /// A check is answered.
    pub done: Signal<In, Bit>,
    /// It passed.
    pub ok: Signal<In, Bit>,
    /// Verdicts: 1 if all checks of the WQE passed.
    pub m: StreamOut<Bits<1>>,
    lasts: Fifo<Bits<1>, 4>,
    verdicts: Bypass<Bits<1>, 4>,
    denied: Reg<Bit>,
    good: Signal<Local, Bit>,
}

impl Logic for RegionVerdict {
    describe!(
        "region_verdict",
        "One verdict for the memory region checks of a WQE."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, lasts, verdicts);
        dff_setup!(self, clock, denied);
        self.lasts.s.valid.next = self.asked.val();
        self.lasts.s.payload.next = bits::<1>(0).replace_bit(0, self.last.val());
        self.lasts.m.ready.next = self.done.val();
        self.good.next = self.ok.val() & !self.denied.q.val();
        if self.done.val() {
            self.denied.d.next = !self.good.val() & !self.lasts.m.payload.val().get_bit(0);
        }
        self.verdicts.s.valid.next = self.done.val() & self.lasts.m.payload.val().get_bit(0);
        self.verdicts.s.payload.next = bits::<1>(0).replace_bit(0, self.good.val());
        StreamOut::<Bits<1>>::link(&mut self.m, &mut self.verdicts.m);
    }
}
