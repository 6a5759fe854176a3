//! Simple dual-port RAM that starts with zeros.
//!
//! As [`Ram`]. After reset every word becomes 0, one a cycle; `ready` is 0 meanwhile, and writes are lost.
use crate::prelude::*;

/// RAM of 2^A words of type `T`, 0 after reset.
#[derive(Clone, Debug, Block)]
#[block(A = "LOG_DEPTH")]
pub struct SweptRam<T: Synth, const A: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Write enable.
    pub we: Signal<In, Bit>,
    /// Write address.
    pub waddr: Signal<In, Bits<A>>,
    /// Word to write.
    pub wdata: Signal<In, T>,
    /// Read enable.
    pub re: Signal<In, Bit>,
    /// Read address.
    pub raddr: Signal<In, Bits<A>>,
    /// Word read.
    pub rdata: Signal<Out, T>,
    /// Every word is 0 or was written.
    pub ready: Signal<Out, Bit>,
    ram: Ram<T, A>,
    /// The word that becomes 0.
    sweep: Reg<Bits<A>>,
    swept: Reg<Bit>,
    nothing: Zero<T>,
}

impl<T: Synth, const A: usize> SweptRam<T, A> {
    /// A RAM made of `style`.
    pub fn new(style: Style) -> Self {
        Self {
            ram: Ram::new(style),
            ..Self::default()
        }
    }
}

impl<T: Synth, const A: usize> Logic for SweptRam<T, A> {
    describe!(
        "swept_ram",
        |this| format!("{}x{}_{}", 1usize << A, T::BITS, this.ram.style().name()),
        "Simple dual-port RAM, every word 0 after reset."
    );

    #[kernel]
    fn update(&mut self) {
        copy!(ram <= self; re, raddr, waddr, wdata);
        rdata = ram.rdata;
        ram.we = we | !swept;
        if !swept {
            ram.waddr = sweep;
            ram.wdata = nothing;
            sweep += 1;
            swept = sweep.all();
        }
        ready = swept;
    }
}
