//! Requests that were refused claim room: while one waits for its class, what needs less room leaves it what it needs.
//!
//! Without that, READ responses, or short messages, would fill the queue of their class again and again to where they wait, and a
//! request that needs it emptier would wait for as long as they come.
//!
//! A claim lasts 4096 to 8192 cycles from the latest refusal: longer than the queue takes to empty and the WQE to be read again.
//!
//! Latency: 1 cycle.
use super::types::{ClaimedClasses, RequestsAhead};
use crate::prelude::*;

/// The block.
#[derive(Clone, Debug, Block)]
pub struct Claims {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Requests that were refused.
    pub ahead: Signal<In, RequestsAhead>,
    /// Classes in which some wait.
    pub claimed: Signal<Out, ClaimedClasses>,
    time: Reg<Bits<12>>,
    /// Since `time` was 0, and in the period before.
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
        time += 1;
        let ends = !time.any();
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
