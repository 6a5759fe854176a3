//! Write bursts of a received frame for the host: whether all have their response, and whether host memory refused one.
//!
//! Latency: both answers a cycle behind `sent` and `written`.

use crate::prelude::*;

/// Bursts under way.
#[derive(Clone, Debug, Block)]
pub struct ExceptionWrites {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A frame begins; no burst is under way.
    pub starts: Signal<In, Bit>,
    /// A burst is handed over; one cycle.
    pub sent: Signal<In, Bit>,
    /// Bursts that have their response, modulo 2^16.
    pub written: Signal<In, Bits<16>>,
    /// The last one was refused.
    pub refused: Signal<In, Bit>,
    /// All have their response.
    pub settled: Signal<Out, Bit>,
    /// One of the frame was refused.
    pub spoiled: Signal<Out, Bit>,

    count: Reg<Bits<16>>,
    seen: Reg<Bits<16>>,
    all: Reg<Bit>,
    bad: Reg<Bit>,
}

impl Logic for ExceptionWrites {
    describe!(
        "exception_writes",
        "Write bursts of a received frame for the host."
    );

    #[kernel]
    fn update(&mut self) {
        if sent {
            count = count + 1;
        }
        seen = written;
        all = written == count;
        if starts {
            bad = false;
        } else if refused & (written != seen) {
            bad = true;
        }
        settled = all;
        spoiled = bad;
    }
}
