//! The rules of a send queue for its timer and its outstanding messages: Timeout, Retire, Retired. No state of its own.
//!
//! Source: IBA vol. 1, 9.7.6.1.3 (timeout), 9.9 (order of completions).

use ferroce_proto::abi::cq::status;

use super::decision::*;
use super::event::*;
use crate::bus::qp_state::{SQD, is_sq_error, takes_responses};
use crate::prelude::*;

const GENERAL_ERR: u64 = status::GENERAL_ERR as u64;

/// The rules for events of messages under way, combinational.
#[derive(Block)]
pub struct SqRetired {
    /// The event.
    pub sq_event: Signal<In, SqEvent>,
    /// State of its queue pair.
    pub state: Signal<In, SqState>,
    /// What the event means for that state.
    pub terms: Signal<In, SqTerms>,
    /// The state afterwards.
    pub next_state: Signal<Out, SqState>,
    /// What follows from the event.
    pub decision: Signal<Out, SqDecision>,

    no_decision: Zero<SqDecision>,
}

impl Logic for SqRetired {
    describe!(
        "sq_retired",
        "What a timeout or a report of `retire` makes of the state of its send queue."
    );

    #[kernel]
    fn update(&mut self) {
        let mut next = state;
        let mut out = no_decision;
        // Responses count.
        let open = takes_responses(state.state);
        let in_error = is_sq_error(state.state) & !terms.resumed;

        match sq_event.kind {
            SqEventKind::Timeout => {
                if terms.timed_out {
                    next.timer_on = false;
                    next.extended = false;
                    if state.rnr_wait {
                        next.rnr_wait = false;
                        out.push_ready = true;
                    } else if state.inflight.any() & open & terms.waits {
                        // the time since it was sent counts (IB1 9.7.6.1.3), and it has not left, or is to be sent again
                        out.start_timer = true;
                    } else if state.inflight.any() & open & terms.recent & !state.extended {
                        // it waited; once, as a slow queue pair may send something all the time
                        out.start_timer = true;
                        next.extended = true;
                    } else if state.inflight.any() & open {
                        out.counts.local_ack_timeout_err = true;
                        out.retries = true;
                    }
                }
            }
            SqEventKind::Retire => {
                next.listed = false;
                if !state.closing {
                    next.error_status = bits::<8>(0);
                }
            }
            SqEventKind::Retired => {
                if terms.current {
                    next.used = terms.used_after;
                    next.reads = terms.reads_after;
                    next.unfenced = sq_event.unfenced;
                    // a report of nothing may be late: what was flushed since went on from there
                    if sq_event.count.any() {
                        next.head_index = sq_event.index;
                    }
                    if !state.read_blocked | sq_event.reads.any() | terms.empties {
                        next.blocked = false;
                        next.read_blocked = false;
                    }
                    if state.rewind {
                        if terms.same_una {
                            next.blocked = false;
                            next.read_blocked = false;
                            next.rewind = false;
                            // a WQE that cannot run is met again behind what is sent again
                            // and one that cannot be read
                            next.broken = false;
                            next.stall = false;
                            next.msgs_to_resend = terms.used_after;
                            next.exec_index = sq_event.index;
                            next.exec_offset = state.una_psn - sq_event.psn;
                            next.next_psn = state.una_psn;
                            next.resend = state.inflight;
                            next.round = state.round + 1;
                            out.recall = true;
                            out.stop = true;
                        } else {
                            out.push_list = true;
                        }
                    }
                    if terms.empties & (in_error | sq_event.status.any()) {
                        // one sent in part was flushed with them: what is flushed now stands behind it
                        next.msgs_to_resend = bits::<16>(0);
                        next.exec_index = sq_event.index;
                        next.exec_offset = bits::<24>(0);
                        out.stop = true;
                    }
                    if terms.passed {
                        // sent before, and arrived; of those behind it another one may not have left, so they are read again
                        next.stall = false;
                        if state.inflight.any() & open {
                            next.rewind = true;
                            out.rereads = true;
                            out.stop = true;
                            out.push_list = true;
                        }
                    }
                    if sq_event.status.any() & open {
                        out.fail = true;
                        next.error_status = bits::<8>(0);
                    } else if terms.stalled & terms.same_una & !terms.passed {
                        out.fail = true;
                        out.local = true;
                        next.error_status = GENERAL_ERR;
                        next.error_syndrome = bits::<8>(0);
                    } else if in_error & !state.closing {
                        // Executed pushes by itself
                        out.push_list = !terms.idle & !state.executing;
                    } else if (state.state == SQD) & terms.idle & !state.drained {
                        out.drained = true;
                        next.drained = true;
                    }
                    out.push_ready = true;
                }
            }
            _ => {}
        }

        next_state = next;
        decision = out;
    }
}
