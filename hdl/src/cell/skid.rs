//! Skid buffer: a register stage of a stream that cuts both directions. For wide items see `SkidRam`.
//!
//! Full rate, one cycle of latency; `s.ready` and `m.valid` come straight from registers. Two items of storage: the
//! output register, and the one that catches the item in flight when `m.ready` falls.
use crate::prelude::*;

/// Register stage for items of type `T`.
#[derive(Clone, Debug, Block)]
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
}

impl<T: Synth> Logic for Skid<T> {
    describe!(
        "skid",
        format!("{}", T::BITS),
        "Stream register stage that cuts valid, payload and ready."
    );

    #[kernel]
    fn update(&mut self) {
        let take = m.ready | !out_valid;
        if take {
            out_valid = spare_valid | s.valid;
            spare_valid = false;
            out = s.payload;
            if spare_valid {
                out = spare;
            }
        } else if !spare_valid {
            spare_valid = s.valid;
        }
        if !spare_valid {
            spare = s.payload;
        }
        s.ready = !spare_valid;
        m.valid = out_valid;
        m.payload = out;
    }
}
