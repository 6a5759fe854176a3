//! The rules of DCQCN: what a step makes of the state of its queue pair. No state of its own.
//!
//! | step | rule (docs/congestion.md) |
//! |---|---|
//! | Add | the target grows by `more`, up to the highest rate; the stage of time or bytes is one further, up to 63 |
//! | Mean | the rate is the mean of rate and target; an increase that is one of too many is dropped |
//! | Tick | the ticks of alpha that passed, a rise in the first of them; the end of the monitor period after those without a CNP |
//! | Cut | the target is the rate if it clamps; the rate falls by alpha; stages and bytes start afresh |
//! | Act | a CNP: alpha rises with the next tick, the rate falls at the end of the period; the first one starts it all |
//! | Bytes | the bytes sent since the last increase by bytes |
use super::dcqcn_order::{DcqcnStep, DcqcnWork};
use super::dcqcn_terms::DcqcnTerms;
use super::types::*;
use crate::prelude::*;

/// The rules, combinational.
#[derive(Block)]
pub struct DcqcnRules {
    /// The step.
    pub step: Signal<In, DcqcnStep>,
    /// The event.
    pub kind: Signal<In, CongestionEventKind>,
    /// When it counts.
    pub at: Signal<In, Bits<20>>,
    /// Parameters.
    pub params: Signal<In, DcqcnParams>,
    /// See there.
    pub terms: Signal<In, DcqcnTerms>,
    /// See there.
    pub work: Signal<In, DcqcnWork>,
    /// The state.
    pub state: Signal<In, DcqcnState>,
    /// Load: the state in the table.
    pub loaded: Signal<In, DcqcnState>,
    /// Act: the state behind a first CNP.
    pub begun: Signal<In, DcqcnState>,
    /// Tick: all are counted.
    pub ticked: Signal<In, Bit>,
    /// Tick: alpha behind its last rise,
    pub alpha: Signal<In, Bits<16>>,
    /// and the ticks since.
    pub alpha_ticks: Signal<In, Bits<14>>,
    /// Tick: the time that these took.
    pub alpha_passed: Signal<In, Bits<20>>,
    /// Tick: that of the periods.
    pub monitor_passed: Signal<In, Bits<20>>,
    /// Cut: the decrease begins.
    pub cut_begins: Signal<In, Bit>,
    /// Cut: it is computed.
    pub cut_ends: Signal<In, Bit>,
    /// Cut: the rate behind it.
    pub cut_rate: Signal<In, Bits<20>>,
    /// Bytes: the bytes.
    pub sum: Signal<In, Bits<25>>,
    /// The state behind the step.
    pub next_state: Signal<Out, DcqcnState>,

    no_state: Zero<DcqcnState>,
}

impl Logic for DcqcnRules {
    describe!("dcqcn_rules", "What a step of DCQCN makes of the state.");

    #[kernel]
    fn update(&mut self) {
        let period = params.rpg_time_reset.resize::<20>();
        let with_target = state.target.resize::<21>() + terms.more.resize::<21>();
        let both = state.rate.resize::<21>() + state.target.resize::<21>();
        let mut next = state;
        match step {
            DcqcnStep::Load => {
                next = loaded;
                if kind == CongestionEventKind::Reset {
                    next = no_state;
                }
            }
            DcqcnStep::Tick => {
                if ticked & work.alpha_ticks {
                    next.alpha = alpha;
                    next.alpha_ticks = alpha_ticks;
                    next.alpha_cnp = false;
                    next.alpha_at = state.alpha_at + alpha_passed;
                }
                if ticked & work.monitor_ticks {
                    next.decrease_at = state.decrease_at + monitor_passed;
                }
            }
            DcqcnStep::Add => {
                next.target = with_target.low::<20>();
                if with_target > terms.highest.resize::<21>() {
                    next.target = terms.highest;
                }
                if work.by_bytes {
                    next.byte_stage = later(state.byte_stage);
                } else {
                    next.time_stage = later(state.time_stage);
                    next.increase_at = state.increase_at + period;
                }
            }
            DcqcnStep::Mean => {
                next.rate = both.slice::<20>(1);
                if !work.by_bytes & work.increases.all() {
                    next.increase_at = at + period;
                }
            }
            DcqcnStep::Cut => {
                if cut_begins & terms.clamps {
                    next.target = state.rate;
                }
                if cut_ends {
                    next.rate = cut_rate;
                    next.time_stage = bits::<6>(0);
                    next.byte_stage = bits::<6>(0);
                    next.byte_count = bits::<24>(0);
                    next.increase_at = at + period;
                    if !work.cuts {
                        next.increase_at = state.decrease_at + period;
                        next.decrease_cnp = false;
                        next.decrease_at =
                            state.decrease_at + params.rate_reduce_monitor_period.resize::<20>();
                    }
                }
            }
            DcqcnStep::Act => {
                if kind == CongestionEventKind::Cnp {
                    next.alpha_cnp = true;
                    next.decrease_cnp = !terms.at_once;
                    if work.sets {
                        next = begun;
                    }
                    if terms.at_once {
                        next.alpha_at = at;
                    }
                }
            }
            DcqcnStep::Bytes => next.byte_count = sum.low::<24>(),
            _ => {}
        }
        next_state = next;
    }
}

/// A stage further, up to 63.
#[kernel_fn]
fn later(stage: Bits<6>) -> Bits<6> {
    let mut next = stage;
    if !stage.all() {
        next = stage + 1;
    }
    next
}
