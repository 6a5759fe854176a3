//! The rules of a send queue for responses. No state of its own.
//!
//! Sources: IBA vol. 1, 9.7.5 to 9.7.8 (requester); the PSN counts as it was received, also where an earlier one turns out
//! to be missing.
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::state;
use ferroce_proto::wire::{NakCode, Syndrome};

use super::decision::*;
use super::event::*;
use crate::prelude::*;

const RTS: u64 = state::RTS as u64;
const SQD: u64 = state::SQD as u64;
const RNR_RETRY_EXC_ERR: u64 = status::RNR_RETRY_EXC_ERR as u64;
const REM_INV_REQ_ERR: u64 = status::REM_INV_REQ_ERR as u64;
const REM_ACCESS_ERR: u64 = status::REM_ACCESS_ERR as u64;
const REM_OP_ERR: u64 = status::REM_OP_ERR as u64;
const BAD_RESP_ERR: u64 = status::BAD_RESP_ERR as u64;
const NAK_SEQUENCE: u64 = Syndrome::Nak(NakCode::PsnSequence).bits() as u64;
const NAK_INVALID: u64 = Syndrome::Nak(NakCode::InvalidRequest).bits() as u64;
const NAK_ACCESS: u64 = Syndrome::Nak(NakCode::RemoteAccess).bits() as u64;
const NAK_OPERATIONAL: u64 = Syndrome::Nak(NakCode::RemoteOperational).bits() as u64;

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
    /// What was fetched is void.
    pub stop: Signal<Out, Bit>,
    /// Send again from the oldest PSN not acknowledged.
    pub retries: Signal<Out, Bit>,

    no_decision: Zero<SqDecision>,
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
        let mut stops = false;
        let mut resends = false;
        // Responses are heard.
        let open = (state.state == RTS) | (state.state == SQD);
        // 0 acknowledge, 1 RNR, 3 NAK, else reserved
        let answer = sq_event.syndrome.slice::<3>(5);
        let acked = answer == 0;
        // Counter of the kind of response.
        let mut counter: Bits<11> = bits::<11>(4);
        if sq_event.sent {
            counter = bits::<11>(0);
        } else if acked {
            counter = bits::<11>(8);
            if sq_event.data | sq_event.status.any() {
                counter = bits::<11>(0);
            }
            if sq_event.merged {
                counter = bits::<11>(0x18);
                if terms.both {
                    counter = bits::<11>(0x208);
                }
            }
        } else if answer == 1 {
            counter = bits::<11>(2);
        } else if sq_event.syndrome == NAK_SEQUENCE {
            counter = bits::<11>(1);
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
        } else if terms.in_window & open {
            out.counts = counter;
            next.una_psn = state.una_psn + terms.progress;
            next.inflight = state.inflight - terms.progress;
            if terms.progress > terms.ahead {
                // what was to be sent again has arrived after all
                next.next_psn = state.una_psn + terms.progress;
                next.resend = state.inflight - terms.progress;
                next.rewind = true;
                next.recalls = true;
                stops = true;
            }
            if terms.progresses {
                next.retry = terms.retry;
                next.rnr_retry = terms.rnr_retry;
                next.implied = false;
                next.rnr_wait = false;
                out.push_list = true;
                if terms.progress == state.inflight {
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
                    out.counts = counter | 0x100;
                    next.implied = true;
                    resends = true;
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
                        out.counts = bits::<11>(0x82);
                    } else {
                        if terms.rnr_retry != 7 {
                            next.rnr_retry = terms.rnr_retry - 1;
                        }
                        next.rnr_wait = true;
                        next.rewind = true;
                        next.recalls = true;
                        stops = true;
                        out.push_list = true;
                        out.start_timer = true;
                        out.rnr_timer = true;
                        out.stop_timer = false;
                    }
                }
            } else if sq_event.syndrome == NAK_SEQUENCE {
                // the NAK that some responders send after an RNR NAK must not cut the wait short
                resends = !pauses;
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
            out.counts = bits::<11>(16);
            if sq_event.merged {
                out.counts = bits::<11>(0x410);
            }
        }

        next_state = next;
        decision = out;
        stop = stops;
        retries = resends;
    }
}
