//! The rules of a send queue for responses. No state of its own.
//!
//! Sources: IBA vol. 1, 9.7.5 to 9.7.8 (requester); the PSN counts as it was received, also where an earlier one turns out
//! to be missing.
use ferroce_proto::abi::cq::status;

use super::decision::*;
use super::event::*;
use crate::bus::syndrome::{NAK_ACCESS, NAK_INVALID, NAK_OPERATIONAL, NAK_SEQUENCE};
use crate::prelude::*;

const RNR_RETRY_EXC_ERR: u64 = status::RNR_RETRY_EXC_ERR as u64;
const REM_INV_REQ_ERR: u64 = status::REM_INV_REQ_ERR as u64;
const REM_ACCESS_ERR: u64 = status::REM_ACCESS_ERR as u64;
const REM_OP_ERR: u64 = status::REM_OP_ERR as u64;
const BAD_RESP_ERR: u64 = status::BAD_RESP_ERR as u64;

/// The rules for events of kind Answer, combinational.
#[derive(Block)]
pub struct SqAnswer {
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
    no_counts: Zero<SqCounts>,
}

impl Logic for SqAnswer {
    describe!(
        "sq_answer",
        "What a response makes of the state of its send queue."
    );

    #[kernel]
    fn update(&mut self) {
        let mut next = state;
        let mut out = no_decision;
        // 0 acknowledge, 1 RNR, 3 NAK, else reserved
        let answer = sq_event.syndrome.slice::<3>(5);
        let acked = answer == 0;
        // counts of a response in the window, by its kind
        let mut counts = no_counts;
        if !sq_event.sent {
            if acked {
                counts.rx_acks = sq_event.merged | !(sq_event.data | sq_event.status.any());
                counts.rx_acks_earlier = sq_event.merged & terms.both;
                counts.rx_ghost_acks = sq_event.merged & !terms.both;
            } else if answer == 1 {
                counts.rnr_nak_received = true;
            } else if sq_event.syndrome == NAK_SEQUENCE {
                counts.packet_seq_err = true;
            } else {
                counts.remote_errors = true;
            }
        }
        let mut progress = terms.progress;
        if terms.earlier {
            progress = terms.earlier_progress;
        }
        // nothing acknowledged ends the wait for a receiver
        // Waits for an RNR timer or goes back already.
        let pauses = (state.rnr_wait & !terms.progresses) | state.rewind;

        if sq_event.closed {
            // from here on nothing of this queue pair is on its way to memory
            if state.closing {
                next.closing = false;
                next.writes = sq_event.writes;
                out.push_list = true;
                out.push_ready = true;
            }
        } else if terms.in_window & terms.counts {
            out.counts = counts;
            next.una_psn = state.una_psn + progress;
            next.inflight = state.inflight - progress;
            if progress > terms.ahead {
                // what was to be sent again has arrived after all
                next.next_psn = state.una_psn + progress;
                next.resend = state.inflight - progress;
                next.rewind = true;
                out.stop = true;
            }
            if terms.progresses {
                next.retry = terms.retry;
                next.rnr_retry = terms.rnr_retry;
                next.implied = false;
                next.extended = false;
                next.rnr_wait = false;
                out.push_list = true;
                if progress == state.inflight {
                    out.stop_timer = true;
                } else {
                    out.start_timer = true;
                }
            }
            if sq_event.data & !sq_event.implied {
                next.writes = sq_event.writes;
            }
            next.error_syndrome = sq_event.syndrome;
            if sq_event.implied {
                // once until something is acknowledged: the other responses of the flight say the same
                if !pauses & (!state.implied | terms.progresses) {
                    out.counts.implied_nak_seq_err = true;
                    next.implied = true;
                    out.retries = true;
                }
            } else if acked {
                if sq_event.status.any() {
                    out.fail = true;
                    next.error_status = sq_event.status;
                    next.error_syndrome = bits::<8>(0);
                }
            } else if answer == 1 {
                // a second one for the same packet does not make the wait longer
                if !state.rnr_wait | terms.progresses {
                    if terms.rnr_retry == 0 {
                        out.fail = true;
                        next.error_status = RNR_RETRY_EXC_ERR;
                        out.counts.rnr_nak_retry_err = true;
                    } else {
                        if terms.rnr_retry != 7 {
                            next.rnr_retry = terms.rnr_retry - 1;
                        }
                        next.rnr_wait = true;
                        next.rewind = true;
                        out.stop = true;
                        out.push_list = true;
                        out.start_timer = true;
                        out.rnr_timer = true;
                        out.stop_timer = false;
                    }
                }
            } else if sq_event.syndrome == NAK_SEQUENCE {
                // the NAK that some responders send after an RNR NAK must not cut the wait short
                // nor be acted upon if what it asks for cannot be read
                out.retries = !pauses & !terms.at_stall;
            } else {
                out.fail = true;
                next.error_status = BAD_RESP_ERR;
                if sq_event.syndrome == NAK_INVALID {
                    next.error_status = REM_INV_REQ_ERR;
                }
                if sq_event.syndrome == NAK_ACCESS {
                    next.error_status = REM_ACCESS_ERR;
                }
                if sq_event.syndrome == NAK_OPERATIONAL {
                    next.error_status = REM_OP_ERR;
                }
            }
        } else if !sq_event.sent {
            out.counts.rx_ghost_acks = true;
            out.counts.rx_ghost_acks_earlier = sq_event.merged;
        }

        next_state = next;
        decision = out;
    }
}
