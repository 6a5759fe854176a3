//! Counts reads of memory for READ responses: those that were checked, and in the same order those that are over.
//!
//! Whoever took the right to a region away, and then waits until as many are over as were checked, knows that nothing reads
//! the region any more (IBA vol. 1, 10.6.5: an invalidated key gives no access).
//!
//! Latency: 2 cycles.
use crate::prelude::*;

/// Counts of reads.
#[derive(Block)]
pub struct ReadCount {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A read is checked in this cycle.
    pub checked: Signal<In, Bit>,
    /// There is room to count one that is asked for or not to be.
    pub ready: Signal<Out, Bit>,
    /// The oldest one that was checked is asked for.
    pub asked: Signal<In, Bit>,
    /// It is not to be.
    pub dropped: Signal<In, Bit>,
    /// The oldest one that was asked for has its answer.
    pub answered: Signal<In, Bit>,
    /// Reads checked, modulo 2^16.
    pub begun: Signal<Out, Bits<16>>,
    /// Reads over, modulo 2^16.
    pub over: Signal<Out, Bits<16>>,

    /// Of each that is not over: it was asked for.
    kinds: Fifo<Bits<1>, 8>,
    /// Answers of those.
    answers: Reg<Bits<8>>,
    came: Reg<Bits<16>>,
    gone: Reg<Bits<16>>,
}

impl Logic for ReadCount {
    describe!("read_count", "Counts reads for READ responses, in order.");

    #[kernel]
    fn update(&mut self) {
        if checked {
            came = came + 1;
        }
        kinds.s.valid = asked | dropped;
        kinds.s.payload = bits::<1>(0).replace_bit(0, asked);
        ready = kinds.s.ready;
        let reads = kinds.m.payload.bit(0);
        let ends = kinds.m.valid & (!reads | answers.any());
        kinds.m.ready = ends;
        if answered & !(ends & reads) {
            answers = answers + 1;
        } else if ends & reads & !answered {
            answers = answers - 1;
        }
        if ends {
            gone = gone + 1;
        }
        begun = came;
        over = gone;
    }
}
