//! Stage of a stream that cuts `ready` only: an item passes in the cycle it comes, or is held until it is taken.
//!
//! Full rate, no cycle of latency; `s.ready` comes straight from a register, `m.valid` and `m.payload` are one LUT level
//! behind those of `s`.
use crate::prelude::*;

/// Stage for items of type `T`.
#[derive(Clone, Debug, Block)]
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

    #[kernel]
    fn update(&mut self) {
        m.valid = held | s.valid;
        m.payload = s.payload;
        if held {
            m.payload = item;
        } else {
            item = s.payload;
        }
        held = (held | s.valid) & !m.ready;
        s.ready = !held;
    }
}
