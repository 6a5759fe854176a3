//! What of a queue pair is due: how far its times have passed.
//!
//! Latency: a cycle behind the step.
use super::dcqcn_order::DcqcnStep;
use super::types::*;
use crate::prelude::*;

/// Times that passed; a time that is still to come has its top bit set.
#[derive(Block)]
pub struct DcqcnDue {
    /// Clock and reset.
    pub clock: ClkRst,
    /// The step.
    pub step: Signal<In, DcqcnStep>,
    /// The time.
    pub at: Signal<In, Bits<20>>,
    /// The state.
    pub state: Signal<In, DcqcnState>,
    /// Parameters.
    pub params: Signal<In, DcqcnParams>,
    /// An increase is due, and not behind a decrease.
    pub increase: Signal<Out, Bit>,
    /// A decrease is due.
    pub decrease: Signal<Out, Bit>,
    /// Since the tick of alpha.
    pub alpha: Signal<Out, Bits<20>>,
    /// Since the end of the monitor period.
    pub monitor: Signal<Out, Bits<20>>,

    late_increase: Dff<Bits<20>>,
    late_decrease: Dff<Bits<20>>,
    late_alpha: Dff<Bits<20>>,
    /// From the increase to the end of the period.
    lead: Dff<Bits<20>>,
    decreases: Dff<Bit>,
}

impl Logic for DcqcnDue {
    describe!("dcqcn_due", "What of a queue pair is due.");

    #[kernel]
    fn update(&mut self) {
        let ends = state.decrease_cnp & !late_decrease.bit(19);
        let period = params.rpg_time_reset.resize::<20>();
        match step {
            DcqcnStep::Load => decreases = false,
            DcqcnStep::Due => {
                late_increase = at - state.increase_at;
                late_decrease = at - state.decrease_at;
                lead = state.decrease_at - state.increase_at;
            }
            DcqcnStep::Choose => {
                decreases = ends;
                // a tick of the same time comes behind the decrease, unless `alpha_first`
                late_alpha = at - state.alpha_at;
                if ends & params.alpha_first {
                    late_alpha = state.decrease_at - state.alpha_at;
                } else if ends {
                    late_alpha = state.decrease_at - state.alpha_at - 1;
                }
            }
            DcqcnStep::Add => {
                late_increase = late_increase - period;
                lead = lead - period;
            }
            DcqcnStep::Raise => {
                late_alpha = bits::<20>(0);
                late_decrease = bits::<20>(0).replace_bit(19, true);
            }
            _ => {}
        }
        increase = !late_increase.bit(19) & (!state.decrease_cnp | !lead.bit(19));
        decrease = decreases;
        alpha = late_alpha;
        monitor = late_decrease;
    }
}
