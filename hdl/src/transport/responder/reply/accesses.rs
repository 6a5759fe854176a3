//! Counts accesses to memory for a peer, READ responses or atomics: those that were checked, and in the same order those that
//! are over.
//!
//! Whoever took the right to a region away, and then waits until as many are over as were checked, knows that nothing accesses
//! the region any more (IBA vol. 1, 10.6.5: an invalidated key gives no access).
//!
//! Latency: 2 cycles.
use crate::prelude::*;

/// Counts of accesses, of which 2^A are not over.
#[derive(Block)]
pub struct AccessCount<const A: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// An access is checked in this cycle.
    pub checked: Signal<In, Bit>,
    /// There is room to count one that is asked for or not to be.
    pub ready: Signal<Out, Bit>,
    /// The oldest one that was checked is asked for.
    pub asked: Signal<In, Bit>,
    /// It is not to be.
    pub dropped: Signal<In, Bit>,
    /// The oldest one that was asked for has its answer.
    pub answered: Signal<In, Bit>,
    /// The oldest one is over.
    pub ends: Signal<Out, Bit>,
    /// Accesses checked, modulo 2^16.
    pub begun: Signal<Out, Bits<16>>,
    /// Accesses over, modulo 2^16.
    pub over: Signal<Out, Bits<16>>,

    /// Of each that is not over: it was asked for.
    kinds: Fifo<Bits<1>, A>,
    /// Answers of those.
    answers: Reg<Bits<8>>,
    came: Reg<Bits<16>>,
    gone: Reg<Bits<16>>,
}

impl<const A: usize> Logic for AccessCount<A> {
    describe!(
        "access_count",
        format!("{A}"),
        "Counts accesses to memory for a peer, in order."
    );

    #[kernel]
    fn update(&mut self) {
        if checked {
            came = came + 1;
        }
        kinds.s.valid = asked | dropped;
        kinds.s.payload = bits::<1>(0).replace_bit(0, asked);
        ready = kinds.s.ready;
        let waits = kinds.m.payload.bit(0);
        let over_now = kinds.m.valid & (!waits | answers.any());
        kinds.m.ready = over_now;
        ends = over_now;
        if answered & !(over_now & waits) {
            answers = answers + 1;
        } else if over_now & waits & !answered {
            answers = answers - 1;
        }
        if over_now {
            gone = gone + 1;
        }
        begun = came;
        over = gone;
    }
}
