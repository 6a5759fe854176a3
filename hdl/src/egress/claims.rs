//! Requests that were refused claim room: while one waits for its class, what needs less room leaves it what it needs.
//!
//! Without that, READ responses or short messages would fill the queue of their class again and again. A request that needs it emptier
//! would wait for as long as they come.
//!
//! A claim lasts one to two periods from the latest refusal. A period is 8192 cycles at 512 bits and 65,536 at 64, in which a
//! full wire takes the whole queue and the WQE is read again. Where that takes longer, as in a class that gets an eighth of the
//! wire, the request is refused and claims again.
//!
//! Latency: 1 cycle.
use super::types::RefusedClasses;
use crate::prelude::*;

/// The block.
#[derive(Clone, Debug, Block)]
pub struct Claims {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Classes of which a request is refused; one cycle.
    pub refused: Signal<In, RefusedClasses>,
    /// Cycles of a period, less one.
    pub period: Signal<In, Bits<16>>,
    /// Classes in which some wait.
    pub claimed: Signal<Out, RefusedClasses>,
    time: Reg<Bits<16>>,
    /// In this period, and in the one before.
    latest: Reg<RefusedClasses>,
    before: Reg<RefusedClasses>,
}

/// Classes of one or the other.
#[kernel_fn]
fn either(one: RefusedClasses, other: RefusedClasses) -> RefusedClasses {
    let mut both = one;
    both.any = one.any | other.any;
    both.long = one.long | other.long;
    both.short = one.short | other.short;
    both
}

impl Logic for Claims {
    describe!(
        "claims",
        "Classes in which requests that were refused wait."
    );

    #[kernel]
    fn update(&mut self) {
        let ends = time == period;
        time = if ends { 0 } else { time + 1 };
        if ends {
            before = latest;
            latest = refused;
        } else {
            latest = either(latest, refused);
        }
        claimed = either(latest, before);
    }
}
