//! Requests that were refused claim room: while one waits for its class, what needs less room leaves it what it needs.
//!
//! Without that, READ responses, or short messages, would fill the queue of their class again and again to where they wait, and a
//! request that needs it emptier would wait for as long as they come.
//!
//! A claim lasts one to two periods from the latest refusal. A period is 8192 cycles of 64 bytes: at an eighth of 100 Gb/s the queue
//! empties in it, and the WQE is read again. Where it takes longer, the request is refused and claims again.
//!
//! Latency: 1 cycle.
use super::types::{ClaimedClasses, RequestsAhead};
use crate::prelude::*;

/// The block.
#[derive(Clone, Debug, Block)]
pub struct Claims {
    /// Clock and reset.
    pub clock: ClkRst,
    /// The requests that were refused, of all that it tells.
    pub ahead: Signal<In, RequestsAhead>,
    /// Cycles of a period, less one.
    pub period: Signal<In, Bits<16>>,
    /// Classes in which some wait.
    pub claimed: Signal<Out, ClaimedClasses>,
    time: Reg<Bits<16>>,
    /// In this period, and in the one before.
    latest: Reg<ClaimedClasses>,
    before: Reg<ClaimedClasses>,
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
        }
        latest.any = if ends {
            ahead.any
        } else {
            latest.any | ahead.any
        };
        latest.long = if ends {
            ahead.long
        } else {
            latest.long | ahead.long
        };
        latest.short = if ends {
            ahead.short
        } else {
            latest.short | ahead.short
        };
        claimed.any = latest.any | before.any;
        claimed.long = latest.long | before.long;
        claimed.short = latest.short | before.short;
    }
}
