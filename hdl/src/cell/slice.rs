//! Register stage of a stream that cuts valid and payload; ready goes through.
//!
//! Full rate, one cycle of latency, no LUT a bit of payload: for streams whose taker has its ready from a register, or near
//! one. `s.ready` is one LUT level behind `m.ready`.
use crate::prelude::*;

/// Stage for items of type `T`.
#[derive(Clone, Debug, Block)]
pub struct Slice<T: Synth> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Items in.
    pub s: StreamIn<T>,
    /// Items out.
    pub m: StreamOut<T>,
    item: Dff<T>,
    valid: Reg<Bit>,
}

impl<T: Synth> Logic for Slice<T> {
    describe!(
        "slice",
        format!("{}", T::BITS),
        "Stream register stage that cuts valid and payload."
    );

    #[kernel]
    fn update(&mut self) {
        let take = !valid | m.ready;
        if take {
            item = s.payload;
            valid = s.valid;
        }
        s.ready = take;
        m.valid = valid;
        m.payload = item;
    }
}
