//! What follows from the parameters, and from the state of the queue pair at hand, a cycle behind it.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use super::types::*;
use crate::bus::payload::payload;
use crate::prelude::*;

payload! {
    /// Terms of the rules.
    DcqcnTerms {
        /// The highest rate, Mb/s.
        highest: Bits<20>,
        /// The lowest rate, Mb/s.
        lowest: Bits<20>,
        /// Each CNP decreases at once.
        at_once: Bit,
        /// Bytes increase nothing.
        no_bytes: Bit,
        /// The rate is below the one at which the limit ends.
        limited: Bit,
        /// What an increase adds to the target.
        more: Bits<20>,
        /// A decrease takes the target down.
        clamps: Bit,
    }
}

/// The terms.
#[derive(Block)]
pub struct DcqcnTermsOf {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Parameters.
    pub params: Signal<In, DcqcnParams>,
    /// State.
    pub state: Signal<In, DcqcnState>,
    /// The time.
    pub at: Signal<In, Bits<20>>,
    /// The terms.
    pub terms: Signal<Out, DcqcnTerms>,
    /// The state behind a first CNP at that time.
    pub begun: Signal<Out, DcqcnState>,

    release: Dff<Bits<20>>,
    t: Dff<DcqcnTerms>,
    b: Dff<DcqcnState>,
    no_state: Zero<DcqcnState>,
}

impl Logic for DcqcnTermsOf {
    describe!(
        "dcqcn_terms",
        "What follows from parameters and state of DCQCN."
    );

    #[kernel]
    fn update(&mut self) {
        t.highest = params.rpg_max_rate;
        if !params.rpg_max_rate.any() | (params.rpg_max_rate > params.line_rate) {
            t.highest = params.line_rate;
        }
        release = t.highest - 1;
        t.lowest = params.rpg_min_rate;
        if params.rpg_min_rate > t.highest {
            t.lowest = t.highest;
        }
        t.at_once = !params.rate_reduce_monitor_period.any();
        let no_bytes = !params.rpg_byte_reset.any();
        t.no_bytes = no_bytes;
        t.limited = state.active & (state.rate < release);

        // a counter that is switched off has the stage of the other
        let threshold = params.rpg_threshold.resize::<6>();
        t.more = bits::<20>(0);
        if (state.time_stage > threshold) & ((state.byte_stage > threshold) | no_bytes) {
            t.more = params.rpg_hai_rate;
        } else if (state.time_stage >= threshold) | ((state.byte_stage >= threshold) & !no_bytes) {
            t.more = params.rpg_ai_rate;
        }
        t.clamps = params.clamp_tgt_rate
            | state.byte_stage.any()
            | (params.clamp_tgt_rate_after_time_inc & state.time_stage.any());
        terms = t;

        let set = params.rate_to_set_on_first_cnp;
        let mut rate = t.highest;
        if set.any() & (set < t.highest) {
            rate = set;
        }
        b = no_state;
        b.active = true;
        b.rate = rate;
        b.target = rate;
        b.alpha = params.initial_alpha_value.resize::<16>() << 6;
        b.alpha_cnp = t.at_once;
        b.decrease_cnp = !set.any() & !t.at_once;
        b.alpha_at = at + params.dce_tcp_rtt.resize::<20>();
        b.decrease_at = at + params.rate_reduce_monitor_period.resize::<20>();
        b.increase_at = at + params.rpg_time_reset.resize::<20>();
        begun = b;
    }
}
