//! The rules of a send queue for responses. No state of its own.
//!
//! Sources: IBA vol. 1, 9.7.5 to 9.7.8 (requester); the PSN counts as it was received, also where an earlier one turns out
//! to be missing.
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::state;
use ferroce_proto::wire::{NakCode, Syndrome};

use super::event::*;
use super::verdict::*;
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
    pub verdict: Signal<Out, SqVerdict>,
    /// What was fetched is void.
    pub stop: Signal<Out, Bit>,
    /// Send again from the oldest PSN not acknowledged.
    pub retries: Signal<Out, Bit>,

    no_verdict: Zero<SqVerdict>,
}

impl Logic for SqAnswer {
    describe!(
        "sq_answer",
        "What a response makes of the state of its send queue."
    );

    #[kernel]
    fn update(&mut self) {
        let e = sq_event;
        let c = state;
        let t = terms;
        let mut n = state;
        let mut v = no_verdict;
        let mut stops = false;
        let mut resends = false;
        // Responses are heard.
        let open = (c.state == RTS) | (c.state == SQD);
        // 0 acknowledge, 1 RNR, 3 NAK, else reserved
        let answer = e.syndrome.slice::<3>(5);
        let acked = answer == 0;
        // Counter of the kind of response.
        let mut counter: Bits<11> = bits::<11>(4);
        if e.sent {
            counter = bits::<11>(0);
        } else if acked {
            counter = bits::<11>(8);
            if e.data | e.status.any() {
                counter = bits::<11>(0);
            }
            if e.merged {
                counter = bits::<11>(0x18);
                if t.both {
                    counter = bits::<11>(0x208);
                }
            }
        } else if answer == 1 {
            counter = bits::<11>(2);
        } else if e.syndrome == NAK_SEQUENCE {
            counter = bits::<11>(1);
        }
        // nothing acknowledged ends the wait for a receiver
        // Waits for an RNR timer or goes back already.
        let pauses = (c.rnr_wait & !t.progresses) | c.rewind;

        if e.closed {
            // from here on nothing of this queue pair is on its way to memory
            if c.closing {
                n.closing = false;
                n.writes = e.writes;
                v.push_list = true;
                v.push_ready = true;
            }
        } else if t.in_window & open {
            v.counts = counter;
            n.una_psn = c.una_psn + t.progress;
            n.inflight = c.inflight - t.progress;
            if t.progress > t.ahead {
                // what was to be sent again has arrived after all
                n.next_psn = c.una_psn + t.progress;
                n.resend = c.inflight - t.progress;
                n.rewind = true;
                n.recalls = true;
                stops = true;
            }
            if t.progresses {
                n.retry = t.retry;
                n.rnr_retry = t.rnr_retry;
                n.implied = false;
                n.rnr_wait = false;
                v.push_list = true;
                if t.progress == c.inflight {
                    v.stop_timer = true;
                } else {
                    v.start_timer = true;
                }
            }
            if e.data & !e.implied {
                n.writes = e.writes;
            }
            n.error_syndrome = e.syndrome;
            if e.implied {
                // once until something is acknowledged: the other responses of the flight say the same
                if !pauses & (!c.implied | t.progresses) {
                    v.counts = counter | 0x100;
                    n.implied = true;
                    resends = true;
                }
            } else if acked {
                if e.status.any() {
                    v.fail = true;
                    n.error_status = e.status;
                    n.error_syndrome = bits::<8>(0);
                }
            } else if answer == 1 {
                // a second one for the same packet does not make the wait longer
                if !c.rnr_wait | t.progresses {
                    if t.rnr_retry == 0 {
                        v.fail = true;
                        n.error_status = RNR_RETRY_EXC_ERR;
                        v.counts = bits::<11>(0x82);
                    } else {
                        if t.rnr_retry != 7 {
                            n.rnr_retry = t.rnr_retry - 1;
                        }
                        n.rnr_wait = true;
                        n.rewind = true;
                        n.recalls = true;
                        stops = true;
                        v.push_list = true;
                        v.start_timer = true;
                        v.rnr_timer = true;
                        v.stop_timer = false;
                    }
                }
            } else if e.syndrome == NAK_SEQUENCE {
                // the NAK that some responders send after an RNR NAK must not cut the wait short
                resends = !pauses;
            } else {
                v.fail = true;
                n.error_status = BAD_RESP_ERR;
                if e.syndrome == NAK_INVALID {
                    n.error_status = REM_INV_REQ_ERR;
                }
                if e.syndrome == NAK_ACCESS {
                    n.error_status = REM_ACCESS_ERR;
                }
                if e.syndrome == NAK_OPERATIONAL {
                    n.error_status = REM_OP_ERR;
                }
            }
        } else if !e.sent {
            v.counts = bits::<11>(16);
            if e.merged {
                v.counts = bits::<11>(0x410);
            }
        }

        next_state = n;
        verdict = v;
        stop = stops;
        retries = resends;
    }
}
