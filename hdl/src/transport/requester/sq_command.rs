//! The rules of a send queue for commands and for failures elsewhere: Command, Failed, Unread. No state of its own.
//!
//! Source: IBA vol. 1, 10.3.1 (states of a queue pair).

use super::decision::*;
use super::event::*;
use crate::bus::qp_state::{ERR, RESET, RTS, SQD, SQE, is_sq_error, takes_responses};
use crate::bus::types::image::SqCtx;
use crate::prelude::*;

/// The rules for commands and failures, combinational.
#[derive(Block)]
pub struct SqCommand {
    /// The event.
    pub sq_event: Signal<In, SqEvent>,
    /// Static image of its queue pair.
    pub image: Signal<In, SqCtx>,
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

/// A send queue that leaves SQE: nothing of what was flushed is outstanding any more, and no report of its packets counts.
#[kernel_fn]
pub fn without_outstanding(state: SqState, next_psn: Bits<24>) -> SqState {
    let mut left = state;
    left.una_psn = next_psn;
    left.inflight = bits::<24>(0);
    left.resend = bits::<24>(0);
    left
}

impl Logic for SqCommand {
    describe!(
        "sq_command",
        "What a command or a failure elsewhere makes of the state of its send queue."
    );

    #[kernel]
    fn update(&mut self) {
        let mut next = state;
        let mut out = no_decision;
        let in_error = is_sq_error(state.state) & !terms.resumed;

        match sq_event.kind {
            SqEventKind::Command => {
                // what fails of an RC queue pair is the whole of it (IB1 10.3.1)
                let target = if (sq_event.state == SQE) & terms.reliable {
                    bits::<3>(ERR)
                } else {
                    sq_event.state
                };
                if sq_event.image {
                    next.known = true;
                    out.push_ready = state.state != RESET;
                }
                let leaves = !((target == RESET)
                    | (target == ERR)
                    | ((target == RTS) & (state.state == SQE)));
                // one that failed while the command was on its way is not revived by it
                let stays = in_error & state.known & leaves & !sq_event.reset;
                // one that leaves SQE does so first: SQ_DRAINED follows what it flushes
                if sq_event.set & state.resumes & (target == SQD) {
                    next.resumes_to_sqd = true;
                }
                if sq_event.set & !stays {
                    // `recall_filter` takes the current round from this output
                    out.recall = true;
                    next.state = target;
                    out.stop = true;
                    out.push_ready = target != RESET;
                    if target == RESET {
                        next.known = false;
                    }
                    next.drained = false;
                    next.resumes = false;
                    next.resumes_to_sqd = false;
                    if (target == ERR) | (target == SQE) {
                        // a second one begins no new round: four would bring the first one back
                        out.enters_error = state.state != target;
                    } else if (target == RTS) & terms.unflushed & !sq_event.reset {
                        // what was posted behind the failed request is flushed first (IB1 10.3.1)
                        next.state = SQE;
                        next.resumes = true;
                        // what was posted since it began to leave SQE is sent
                        if !state.resumes {
                            next.flush_end = state.producer;
                        }
                    } else {
                        if state.state == SQE {
                            next = without_outstanding(next, state.next_psn);
                        }
                        next.closing = false;
                        next.error_status = bits::<8>(0);
                    }
                    if (target == SQD) & (terms.idle | sq_event.reset) {
                        out.drained = true;
                        next.drained = true;
                    }
                }
                if sq_event.reset {
                    out.recall = true;
                    next.round = state.round + 1;
                    next.incarnation = terms.next_incarnation;
                    next.blocked = false;
                    next.read_blocked = false;
                    next.reads = bits::<5>(0);
                    next.unfenced = false;
                    next.implied = false;
                    next.extended = false;
                    next.rnr_wait = false;
                    next.rewind = false;
                    next.broken = false;
                    next.executing = false;
                    next.stall = false;
                    next.lengthy = false;
                    next.single = false;
                    next.middling = 0;
                    next.exec_index = bits::<16>(0);
                    next.exec_offset = bits::<24>(0);
                    next.next_psn = sq_event.psn;
                    next.una_psn = sq_event.psn;
                    next.inflight = bits::<24>(0);
                    next.resend = bits::<24>(0);
                    next.used = bits::<16>(0);
                    next.msgs_to_resend = bits::<16>(0);
                    next.head_index = bits::<16>(0);
                    next.retry = image.retry_cnt;
                    next.rnr_retry = image.rnr_retry;
                    out.stop_timer = true;
                }
            }
            SqEventKind::Failed => {
                // neither in RESET nor failed before; a send queue that failed alone fails with the queue pair
                if (state.state != RESET) & (state.state != ERR) {
                    out.fail = true;
                    if !in_error {
                        next.error_status = bits::<8>(0);
                        next.error_syndrome = bits::<8>(0);
                    }
                }
            }
            SqEventKind::Unread => {
                // its message fails when those before it are complete; `retire` sees that
                if takes_responses(state.state) & terms.unread {
                    next.stall = true;
                    next.stall_psn = sq_event.psn;
                    out.stop = true;
                    out.push_list = true;
                }
            }
            _ => {}
        }

        next_state = next;
        decision = out;
    }
}
