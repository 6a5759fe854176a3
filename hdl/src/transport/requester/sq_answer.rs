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
#[derive(LogicBlock, Default)]
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

    e: Signal<Local, SqEvent>,
    c: Signal<Local, SqState>,
    t: Signal<Local, SqTerms>,
    n: Signal<Local, SqState>,
    v: Signal<Local, SqVerdict>,
    stops: Signal<Local, Bit>,
    resends: Signal<Local, Bit>,
    answer: Signal<Local, Bits<3>>,
    acked: Signal<Local, Bit>,
    /// Counter of the kind of response.
    counter: Signal<Local, Bits<11>>,
    /// Waits for an RNR timer or goes back already.
    pauses: Signal<Local, Bit>,
    /// Responses are heard.
    open: Signal<Local, Bit>,
    no_verdict: Zero<SqVerdict>,
}

impl Logic for SqAnswer {
    describe!(
        "sq_answer",
        "What a response makes of the state of its send queue.";
        RTS, SQD, RNR_RETRY_EXC_ERR, REM_INV_REQ_ERR, REM_ACCESS_ERR, REM_OP_ERR, BAD_RESP_ERR,
        NAK_SEQUENCE, NAK_INVALID, NAK_ACCESS, NAK_OPERATIONAL
    );

    #[hdl_gen]
    fn update(&mut self) {
        self.e.next = self.sq_event.val();
        self.c.next = self.state.val();
        self.t.next = self.terms.val();
        self.n.next = self.state.val();
        self.v.next = self.no_verdict.val();
        self.stops.next = false;
        self.resends.next = false;
        self.open.next = (self.c.val().state == RTS) | (self.c.val().state == SQD);
        // 0 acknowledge, 1 RNR, 3 NAK, else reserved
        self.answer.next = self.e.val().syndrome.get_bits::<3>(5);
        self.acked.next = self.answer.val() == 0;
        self.counter.next = bits::<11>(4);
        if self.e.val().sent {
            self.counter.next = bits::<11>(0);
        } else if self.acked.val() {
            self.counter.next = bits::<11>(8);
            if self.e.val().data | self.e.val().status.any() {
                self.counter.next = bits::<11>(0);
            }
            if self.e.val().merged {
                self.counter.next = bits::<11>(0x18);
                if self.t.val().both {
                    self.counter.next = bits::<11>(0x208);
                }
            }
        } else if self.answer.val() == 1 {
            self.counter.next = bits::<11>(2);
        } else if self.e.val().syndrome == NAK_SEQUENCE {
            self.counter.next = bits::<11>(1);
        }
        // nothing acknowledged ends the wait for a receiver
        self.pauses.next = (self.c.val().rnr_wait & !self.t.val().progresses) | self.c.val().rewind;

        if self.e.val().closed {
            // from here on nothing of this queue pair is on its way to memory
            if self.c.val().closing {
                self.n.next.closing = false;
                self.n.next.writes = self.e.val().writes;
                self.v.next.push_list = true;
                self.v.next.push_ready = true;
            }
        } else if self.t.val().in_window & self.open.val() {
            self.v.next.counts = self.counter.val();
            self.n.next.una_psn = self.c.val().una_psn + self.t.val().progress;
            self.n.next.inflight = self.c.val().inflight - self.t.val().progress;
            if self.t.val().progress > self.t.val().ahead {
                // what was to be sent again has arrived after all
                self.n.next.next_psn = self.c.val().una_psn + self.t.val().progress;
                self.n.next.resend = self.c.val().inflight - self.t.val().progress;
                self.n.next.rewind = true;
                self.n.next.recalls = true;
                self.stops.next = true;
            }
            if self.t.val().progresses {
                self.n.next.retry = self.t.val().retry;
                self.n.next.rnr_retry = self.t.val().rnr_retry;
                self.n.next.implied = false;
                self.n.next.rnr_wait = false;
                self.v.next.push_list = true;
                if self.t.val().progress == self.c.val().inflight {
                    self.v.next.stop_timer = true;
                } else {
                    self.v.next.start_timer = true;
                }
            }
            if self.e.val().data & !self.e.val().implied {
                self.n.next.writes = self.e.val().writes;
            }
            self.n.next.error_syndrome = self.e.val().syndrome;
            if self.e.val().implied {
                // once until something is acknowledged: the other responses of the flight say the same
                if !self.pauses.val() & (!self.c.val().implied | self.t.val().progresses) {
                    self.v.next.counts = self.counter.val() | 0x100;
                    self.n.next.implied = true;
                    self.resends.next = true;
                }
            } else if self.acked.val() {
                if self.e.val().status.any() {
                    self.v.next.fail = true;
                    self.n.next.error_status = self.e.val().status;
                    self.n.next.error_syndrome = bits::<8>(0);
                }
            } else if self.answer.val() == 1 {
                // a second one for the same packet does not make the wait longer
                if !self.c.val().rnr_wait | self.t.val().progresses {
                    if self.t.val().rnr_retry == 0 {
                        self.v.next.fail = true;
                        self.n.next.error_status = RNR_RETRY_EXC_ERR.into();
                        self.v.next.counts = bits::<11>(0x82);
                    } else {
                        if self.t.val().rnr_retry != 7 {
                            self.n.next.rnr_retry = self.t.val().rnr_retry - 1;
                        }
                        self.n.next.rnr_wait = true;
                        self.n.next.rewind = true;
                        self.n.next.recalls = true;
                        self.stops.next = true;
                        self.v.next.push_list = true;
                        self.v.next.start_timer = true;
                        self.v.next.rnr_timer = true;
                        self.v.next.stop_timer = false;
                    }
                }
            } else if self.e.val().syndrome == NAK_SEQUENCE {
                // the NAK that some responders send after an RNR NAK must not cut the wait short
                self.resends.next = !self.pauses.val();
            } else {
                self.v.next.fail = true;
                self.n.next.error_status = BAD_RESP_ERR.into();
                if self.e.val().syndrome == NAK_INVALID {
                    self.n.next.error_status = REM_INV_REQ_ERR.into();
                }
                if self.e.val().syndrome == NAK_ACCESS {
                    self.n.next.error_status = REM_ACCESS_ERR.into();
                }
                if self.e.val().syndrome == NAK_OPERATIONAL {
                    self.n.next.error_status = REM_OP_ERR.into();
                }
            }
        } else if !self.e.val().sent {
            self.v.next.counts = bits::<11>(16);
            if self.e.val().merged {
                self.v.next.counts = bits::<11>(0x410);
            }
        }

        self.next_state.next = self.n.val();
        self.verdict.next = self.v.val();
        self.stop.next = self.stops.val();
        self.retries.next = self.resends.val();
    }
}
