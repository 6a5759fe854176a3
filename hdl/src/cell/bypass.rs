//! Queue that an item passes in the cycle it comes while nothing is in front of it.
//!
//! Holds as much as the [`Fifo`] in it, at full rate. `s.ready` comes straight from a register; `m.valid` and `m.payload`
//! are one LUT level behind those of `s`, so both sides are to be near their registers.
use crate::prelude::*;

/// Queue of items of type `T` over a RAM of 2^A words.
#[derive(Clone, Debug, Block)]
#[block(no_default, A = "LOG_DEPTH")]
pub struct Bypass<T: Synth, const A: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Items in.
    pub s: StreamIn<T>,
    /// Items out.
    pub m: StreamOut<T>,
    /// Items held.
    pub level: Signal<Out, Bits<16>>,
    fifo: Fifo<T, A>,
}

impl<T: Synth, const A: usize> Bypass<T, A> {
    /// A queue whose RAM is made of `style`.
    pub fn new(style: Style) -> Self {
        Self {
            clock: ClkRst::default(),
            s: StreamIn::default(),
            m: StreamOut::default(),
            level: Signal::default(),
            fifo: Fifo::new(style),
        }
    }
}

impl<T: Synth, const A: usize> Default for Bypass<T, A> {
    fn default() -> Self {
        Self::new(Style::for_depth(A))
    }
}

impl<T: Synth, const A: usize> Logic for Bypass<T, A> {
    describe!(
        "bypass",
        |this| format!("{}x{}_{}", 1usize << A, T::BITS, this.fifo.style().name()),
        "Stream queue, full rate, no cycle of latency."
    );

    #[kernel]
    fn update(&mut self) {
        // a full queue offers an item of its own
        m.valid = fifo.m.valid | s.valid;
        m.payload = s.payload;
        if fifo.m.valid {
            m.payload = fifo.m.payload;
        }
        fifo.m.ready = m.ready;
        fifo.s.valid = s.valid & (fifo.m.valid | !m.ready);
        fifo.s.payload = s.payload;
        s.ready = fifo.s.ready;
        level = fifo.level;
    }
}
