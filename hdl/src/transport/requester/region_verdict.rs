//! Gathers the answers of the memory region table to the checks of a WQE: one verdict a WQE.
//!
//! Answers come in the order of the checks. At most 16 checks wait for their answer, at most 16 verdicts are not taken.
use crate::prelude::*;

/// The block.
#[derive(Block)]
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
}

impl Logic for RegionVerdict {
    describe!(
        "region_verdict",
        "One verdict for the memory region checks of a WQE."
    );

    #[kernel]
    fn update(&mut self) {
        lasts.s.valid = asked;
        lasts.s.payload = bits::<1>(0).replace_bit(0, last);
        lasts.m.ready = done;
        let good = ok & !denied;
        if done {
            denied = !good & !lasts.m.payload.bit(0);
        }
        verdicts.s.valid = done & lasts.m.payload.bit(0);
        verdicts.s.payload = bits::<1>(0).replace_bit(0, good);
        forward!(m <= verdicts.m);
    }
}
