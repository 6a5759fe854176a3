//! Completions of payload that host memory refused: no state of its own.
//!
//! A completion that would be a success becomes one with GENERAL_ERR if its fence is the end of the first placement that
//! failed (`write_faults`), or behind it, as is all when that is `old`. Of sends those without a fence stand for no payload.
use ferroce_proto::abi::cq::status::GENERAL_ERR;

use crate::bus::types::{CqToken, WriteMarks};
use crate::prelude::*;

/// What a refusal makes of a completion, combinational.
#[derive(Block)]
pub struct CqRefusal {
    /// The completion.
    pub found: Signal<In, CqToken>,
    /// Since when payload of its queue pair was refused.
    pub since: Signal<In, WriteMarks>,
    /// The completion afterwards.
    pub token: Signal<Out, CqToken>,
    /// Its payload was refused.
    pub refused: Signal<Out, Bit>,
}

impl Logic for CqRefusal {
    describe!(
        "cq_refusal",
        "Completions of payload that host memory refused."
    );

    #[kernel]
    fn update(&mut self) {
        let mark = if found.recv { since.recv } else { since.send };
        let after = found.fence - mark.end;
        let is_after = mark.old | !after.bit(15);
        let hit = mark.failed & is_after & (found.recv | found.fenced) & !found.status.any();
        token = found;
        if hit {
            token.status = GENERAL_ERR;
        }
        refused = hit;
    }
}
