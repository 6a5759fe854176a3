//! The dynamic state of all send queues and the rules that change it.
//!
//! One [`SqEvent`] a cycle enters at `s`, one of the same queue pair every second cycle; four cycles later its results
//! leave, registered: at most one entry for each list, one grant and one order for timer and outstanding table. Consumers have room by
//! construction: each queue pair stands at most once in a list (`queued`, `listed`), and grants answer requests whose
//! origin reserved a place. Grants come in the order of their events.
//!
//! Stage X, two cycles after the entry, sees the state after all earlier events ([`Rmw`]) and compares; stage Y applies
//! the rules; what is not part of the state's feedback is finished behind it ([`sq_terms`](super::sq_terms),
//! [`sq_result`](super::sq_result)).
//!
//! Rules and their sources: docs/architecture.md 3.3; IBA vol. 1, 9.7.5 to 9.7.8 (requester).
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::state;
use ferroce_proto::wire::{NakCode, Syndrome};

use super::event::*;
use super::sq_result::SqResults;
use super::sq_terms::SqTermsOf;
use crate::bus::types::image::{QpState, SqCtx};
use crate::prelude::*;

const RESET: u64 = state::RESET as u64;
const RTS: u64 = state::RTS as u64;
const SQD: u64 = state::SQD as u64;
const ERR: u64 = state::ERR as u64;
const RNR_RETRY_EXC_ERR: u64 = status::RNR_RETRY_EXC_ERR as u64;
const RETRY_EXC_ERR: u64 = status::RETRY_EXC_ERR as u64;
const REM_INV_REQ_ERR: u64 = status::REM_INV_REQ_ERR as u64;
const REM_ACCESS_ERR: u64 = status::REM_ACCESS_ERR as u64;
const REM_OP_ERR: u64 = status::REM_OP_ERR as u64;
const BAD_RESP_ERR: u64 = status::BAD_RESP_ERR as u64;
const NAK_SEQUENCE: u64 = Syndrome::Nak(NakCode::PsnSequence).bits() as u64;
const NAK_INVALID: u64 = Syndrome::Nak(NakCode::InvalidRequest).bits() as u64;
const NAK_ACCESS: u64 = Syndrome::Nak(NakCode::RemoteAccess).bits() as u64;
const NAK_OPERATIONAL: u64 = Syndrome::Nak(NakCode::RemoteOperational).bits() as u64;

/// State of 2^Q send queues.
#[derive(LogicBlock, Default)]
pub struct SqStateTable<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Events.
    pub s: StreamIn<SqEvent>,
    /// A command writes the static image of queue pair `image_qpn`.
    pub image_we: Signal<In, Bit>,
    /// Queue pair of that image.
    pub image_qpn: Signal<In, Bits<Q>>,
    /// The image.
    pub image: Signal<In, SqCtx>,
    /// The queue pair has something to fetch.
    pub ready_valid: Signal<Out, Bit>,
    /// The queue pair has something to retire.
    pub list_valid: Signal<Out, Bit>,
    /// Queue pair of the two lists.
    pub list_qpn: Signal<Out, Bits<16>>,
    /// Answer to Fetch.
    pub fetch_valid: Signal<Out, Bit>,
    /// Answer to Fetch.
    pub fetch: Signal<Out, FetchGrant>,
    /// Answer to Start.
    pub start_valid: Signal<Out, Bit>,
    /// Answer to Start.
    pub start: Signal<Out, StartGrant>,
    /// Answer to Retire.
    pub retire_valid: Signal<Out, Bit>,
    /// Answer to Retire.
    pub retire: Signal<Out, RetireGrant>,
    /// Entry for the outstanding table.
    pub entry_valid: Signal<Out, Bit>,
    /// Its place in the pool.
    pub entry_addr: Signal<Out, Bits<24>>,
    /// The entry.
    pub entry: Signal<Out, Outstanding>,
    /// Order to the timer.
    pub timer_valid: Signal<Out, Bit>,
    /// Order to the timer.
    pub timer: Signal<Out, TimerSet>,
    /// Answer to Command: requester's part of the state.
    pub query_valid: Signal<Out, Bit>,
    /// Answer to Command.
    pub query: Signal<Out, QpState>,
    /// A send queue went into error.
    pub failed_valid: Signal<Out, Bit>,
    /// Its queue pair.
    pub failed_qpn: Signal<Out, Bits<16>>,
    /// Counter pulses, from bit 0: packet_seq_err, rnr_nak_received, remote_errors, rx_acks (positive, in the window),
    /// rx_ghost_acks (outside of it), local_ack_timeout_err, retry_exceeded_err, rnr_nak_retry_err.
    pub counts: Signal<Out, Bits<8>>,
    /// The table is swept after reset.
    pub ready: Signal<Out, Bit>,

    table: Rmw<SqState, Q, 2>,
    terms: SqTermsOf,
    results: SqResults,
    images: Ram<SqCtx, Q>,
    e1: Dff<SqEvent>,
    e2: Dff<SqEvent>,
    e3: Dff<SqEvent>,
    k2: Dff<SqCtx>,
    k3: Dff<SqCtx>,
    c3: Dff<SqState>,
    valid_3: Reg<Bit>,

    // stage Y: the rules
    e: Signal<Local, SqEvent>,
    k: Signal<Local, SqCtx>,
    c: Signal<Local, SqState>,
    t: Signal<Local, SqTerms>,
    n: Signal<Local, SqState>,
    kind: Signal<Local, SqEventKind>,
    write: Signal<Local, Bit>,
    stop: Signal<Local, Bit>,
    verdict: Signal<Local, Bits<3>>,
    acked: Signal<Local, Bit>,
    /// Responses are heard.
    open: Signal<Local, Bit>,
    v: Signal<Local, SqVerdict>,
    no_verdict: Zero<SqVerdict>,
}

impl<const Q: usize> Logic for SqStateTable<Q> {
    describe!(
        "sq_state",
        format!("q{Q}"),
        "Dynamic state of all send queues: one event a cycle.";
        RESET, RTS, SQD, ERR, RNR_RETRY_EXC_ERR, RETRY_EXC_ERR, REM_INV_REQ_ERR, REM_ACCESS_ERR, REM_OP_ERR, BAD_RESP_ERR,
        NAK_SEQUENCE, NAK_INVALID, NAK_ACCESS, NAK_OPERATIONAL
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, table, images, terms, results);
        dff_setup!(self, clock, e1, e2, e3, k2, k3, c3, valid_3);

        // entry and stage 1
        self.ready.next = self.table.ready.val();
        self.table.addr.next = self.s.payload.val().qpn.get_bits::<Q>(0);
        self.s.ready.next = self.table.ready.val() & !self.table.clash.val();
        self.table.valid.next =
            self.s.valid.val() & self.table.ready.val() & !self.table.clash.val();
        self.images.we.next = self.image_we.val();
        self.images.waddr.next = self.image_qpn.val();
        self.images.wdata.next = self.image.val();
        self.images.re.next = true;
        self.images.raddr.next = self.s.payload.val().qpn.get_bits::<Q>(0);
        self.e1.d.next = self.s.payload.val();
        self.e2.d.next = self.e1.q.val();
        self.k2.d.next = self.images.rdata.val();

        // stage X
        self.terms.sq_event.next = self.e2.q.val();
        self.terms.image.next = self.k2.q.val();
        self.terms.state.next = self.table.current.val();
        self.e3.d.next = self.e2.q.val();
        self.k3.d.next = self.k2.q.val();
        self.c3.d.next = self.table.current.val();
        self.valid_3.d.next = self.table.x_valid.val();

        // stage Y
        self.e.next = self.e3.q.val();
        self.k.next = self.k3.q.val();
        self.c.next = self.c3.q.val();
        self.t.next = self.terms.terms.val();
        self.n.next = self.c3.q.val();
        self.kind.next = self.e3.q.val().kind;
        self.v.next = self.no_verdict.val();
        self.write.next = true;
        self.stop.next = false;
        self.open.next = (self.c.val().state == RTS) | (self.c.val().state == SQD);
        // 0 acknowledge, 1 RNR, 3 NAK, else reserved
        self.verdict.next = self.e.val().syndrome.get_bits::<3>(5);
        self.acked.next = self.verdict.val() == 0;

        match self.kind.val() {
            SqEventKind::Doorbell => {
                self.n.next.producer = self.e.val().index;
                self.v.next.push_ready = (self.c.val().state != RESET)
                    & (self.e.val().index != self.c.val().fetch_index);
            }
            SqEventKind::Fetch => {
                self.n.next.queued = false;
                if self.t.val().may_fetch & (self.t.val().fetched != 0) {
                    self.n.next.fetch_index =
                        self.c.val().fetch_index + bit_cast::<16, 4>(self.t.val().fetched);
                    // still in the FIFO's care: goes to its tail at once
                    self.n.next.queued = self.t.val().more;
                }
            }
            SqEventKind::Start => {
                if self.t.val().fits {
                    if self.c.val().state == ERR {
                        if self.c.val().used == 0 {
                            self.v.next.action = bits::<2>(2);
                            self.n.next.exec_index =
                                self.c.val().exec_index + bit_cast::<16, 3>(self.e.val().slots);
                        } else {
                            self.stop.next = true;
                        }
                    } else if self.t.val().running & self.t.val().room {
                        self.v.next.action = bits::<2>(1);
                        self.n.next.next_psn = self.c.val().next_psn + self.t.val().part;
                        if self.c.val().resend >= self.t.val().part {
                            self.n.next.resend = self.c.val().resend - self.t.val().part;
                        } else {
                            self.n.next.resend = bits::<24>(0);
                            self.n.next.inflight = self.t.val().ahead + self.t.val().part;
                        }
                        if self.t.val().fresh {
                            self.v.next.entry = true;
                            self.n.next.tail = self.c.val().tail + 1;
                            self.n.next.used = self.c.val().used + 1;
                            if !self.t.val().ends {
                                self.n.next.behind = bits::<16>(1);
                            }
                        } else if self.t.val().ends {
                            self.n.next.behind = self.c.val().behind - 1;
                        }
                        if self.t.val().ends {
                            self.n.next.exec_offset = bits::<24>(0);
                            self.n.next.exec_index =
                                self.c.val().exec_index + bit_cast::<16, 3>(self.e.val().slots);
                        } else {
                            self.n.next.exec_offset = self.c.val().exec_offset + self.t.val().part;
                            self.stop.next = true;
                            self.v.next.push_ready = true;
                        }
                        self.v.next.start_timer = !self.c.val().timer_on & (self.t.val().part != 0);
                        // a WQE that cannot run is retired like any other, in its turn
                        if self.e.val().status != 0 {
                            self.v.next.push_list = true;
                            self.n.next.broken = true;
                            self.stop.next = true;
                        }
                    } else {
                        self.stop.next = true;
                        self.n.next.blocked = self.t.val().running;
                    }
                }
            }
            SqEventKind::Ack => {
                if self.t.val().in_window & self.open.val() {
                    self.n.next.una_psn = self.c.val().una_psn + self.t.val().progress;
                    self.n.next.inflight = self.c.val().inflight - self.t.val().progress;
                    if self.t.val().progress > self.t.val().ahead {
                        // what was to be sent again has arrived after all
                        self.n.next.next_psn = self.c.val().una_psn + self.t.val().progress;
                        self.n.next.resend = self.c.val().inflight - self.t.val().progress;
                        self.n.next.rewind = true;
                        self.stop.next = true;
                    }
                    if self.t.val().progress != 0 {
                        self.n.next.retry = self.t.val().retry;
                        self.n.next.rnr_retry = self.t.val().rnr_retry;
                        self.v.next.push_list = true;
                        if self.t.val().progress == self.c.val().inflight {
                            self.v.next.stop_timer = true;
                        } else {
                            self.v.next.start_timer = true;
                        }
                    }
                    self.n.next.error_syndrome = self.e.val().syndrome;
                    if self.acked.val() {
                        self.v.next.counts = bits::<8>(8);
                        self.n.next.rnr_wait = self.c.val().rnr_wait & (self.t.val().progress == 0);
                    } else if self.verdict.val() == 1 {
                        self.v.next.counts = bits::<8>(2);
                        // a second one for the same packet does not make the wait longer
                        if !self.c.val().rnr_wait | (self.t.val().progress != 0) {
                            if self.t.val().rnr_retry == 0 {
                                self.v.next.fail = true;
                                self.n.next.error_status = RNR_RETRY_EXC_ERR.into();
                                self.v.next.counts = bits::<8>(0x82);
                            } else {
                                if self.t.val().rnr_retry != 7 {
                                    self.n.next.rnr_retry = self.t.val().rnr_retry - 1;
                                }
                                self.n.next.rnr_wait = true;
                                self.n.next.rewind = true;
                                self.stop.next = true;
                                self.v.next.push_list = true;
                                self.v.next.start_timer = true;
                                self.v.next.rnr_timer = true;
                                self.v.next.stop_timer = false;
                            }
                        }
                    } else if self.e.val().syndrome == NAK_SEQUENCE {
                        self.v.next.counts = bits::<8>(1);
                        // the NAK that some responders send after an RNR NAK must not cut the wait short
                        if !self.c.val().rnr_wait & !self.c.val().rewind {
                            if self.t.val().retry == 0 {
                                self.v.next.fail = true;
                                self.n.next.error_status = RETRY_EXC_ERR.into();
                                self.n.next.error_syndrome = bits::<8>(0);
                                self.v.next.counts = bits::<8>(0x41);
                            } else {
                                self.n.next.retry = self.t.val().retry - 1;
                                self.n.next.rewind = true;
                                self.stop.next = true;
                                self.v.next.push_list = true;
                                self.v.next.start_timer = true;
                            }
                        }
                    } else {
                        self.v.next.counts = bits::<8>(4);
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
                } else {
                    self.v.next.counts = bits::<8>(16);
                }
            }
            SqEventKind::Timeout => {
                if self.t.val().timed_out {
                    self.n.next.timer_on = false;
                    if self.c.val().rnr_wait {
                        self.n.next.rnr_wait = false;
                        self.v.next.push_ready = true;
                    } else if self.c.val().inflight != 0 {
                        self.v.next.counts = bits::<8>(32);
                        if self.c.val().retry == 0 {
                            self.v.next.fail = true;
                            self.n.next.error_status = RETRY_EXC_ERR.into();
                            self.n.next.error_syndrome = bits::<8>(0);
                            self.v.next.counts = bits::<8>(0x60);
                        } else {
                            self.n.next.retry = self.c.val().retry - 1;
                            self.n.next.rewind = true;
                            self.stop.next = true;
                            self.v.next.push_list = true;
                            self.v.next.start_timer = true;
                        }
                    }
                }
            }
            SqEventKind::Retire => {
                self.n.next.listed = false;
                self.n.next.error_status = bits::<8>(0);
            }
            SqEventKind::Retired => {
                if self.t.val().current {
                    self.n.next.used = self.t.val().used_after;
                    self.n.next.head_index = self.e.val().index;
                    self.n.next.blocked = false;
                    if self.c.val().rewind {
                        if self.t.val().same_una {
                            self.n.next.rewind = false;
                            // a WQE that cannot run is met again behind what is sent again
                            self.n.next.broken = false;
                            self.n.next.behind = self.t.val().used_after;
                            self.n.next.exec_index = self.e.val().index;
                            self.n.next.exec_offset = self.c.val().una_psn - self.e.val().psn;
                            self.n.next.next_psn = self.c.val().una_psn;
                            self.n.next.resend = self.c.val().inflight;
                            self.stop.next = true;
                        } else {
                            self.v.next.push_list = true;
                        }
                    }
                    if self.t.val().empties
                        & ((self.c.val().state == ERR) | (self.e.val().status != 0))
                    {
                        // one sent in part was flushed with them: what is flushed now stands behind it
                        self.n.next.behind = bits::<16>(0);
                        self.n.next.exec_index = self.e.val().index;
                        self.n.next.exec_offset = bits::<24>(0);
                        self.stop.next = true;
                    }
                    if (self.e.val().status != 0) & self.open.val() {
                        self.v.next.fail = true;
                        self.n.next.error_status = bits::<8>(0);
                    } else if self.c.val().state == ERR {
                        self.v.next.push_list = self.t.val().used_after.any();
                    }
                    self.v.next.push_ready = true;
                }
            }
            SqEventKind::Command => {
                if self.e.val().set {
                    self.n.next.state = self.e.val().state;
                    self.stop.next = true;
                    self.v.next.push_ready = self.e.val().state != RESET;
                    self.v.next.push_list = self.e.val().state == ERR;
                    self.n.next.error_status = bits::<8>(0);
                }
                if self.e.val().reset {
                    self.n.next.incarnation = self.c.val().incarnation + 1;
                    self.n.next.blocked = false;
                    self.n.next.rnr_wait = false;
                    self.n.next.rewind = false;
                    self.n.next.broken = false;
                    self.n.next.exec_index = bits::<16>(0);
                    self.n.next.exec_offset = bits::<24>(0);
                    self.n.next.next_psn = self.e.val().psn;
                    self.n.next.una_psn = self.e.val().psn;
                    self.n.next.inflight = bits::<24>(0);
                    self.n.next.resend = bits::<24>(0);
                    self.n.next.used = bits::<16>(0);
                    self.n.next.behind = bits::<16>(0);
                    self.n.next.head_index = bits::<16>(0);
                    self.n.next.retry = self.k.val().retry_cnt;
                    self.n.next.rnr_retry = self.k.val().rnr_retry;
                    self.v.next.stop_timer = true;
                }
            }
            SqEventKind::Failed => {
                // neither in RESET nor failed before
                if (self.c.val().state != RESET) & (self.c.val().state != ERR) {
                    self.v.next.fail = true;
                    self.n.next.error_status = self.e.val().status;
                    self.n.next.error_syndrome = bits::<8>(0);
                }
            }
            _ => {
                self.write.next = false;
            }
        }

        if self.v.val().fail {
            self.n.next.state = ERR.into();
            self.n.next.rewind = false;
            self.n.next.rnr_wait = false;
            self.stop.next = true;
            self.v.next.push_list = true;
            self.v.next.stop_timer = true;
            self.v.next.start_timer = false;
        }
        if self.stop.val() {
            self.n.next.epoch = self.c.val().epoch + 1;
            self.n.next.fetch_index = self.n.val().exec_index;
        }
        if self.v.val().stop_timer {
            self.n.next.timer_on = false;
            self.n.next.timer_generation = self.c.val().timer_generation + 1;
        } else if self.v.val().start_timer {
            self.n.next.timer_on = true;
            self.n.next.timer_generation = self.c.val().timer_generation + 1;
        }
        if self.v.val().push_ready {
            self.n.next.queued = true;
        }
        if self.v.val().push_list {
            self.n.next.listed = true;
        }
        self.table.write.next = self.write.val();
        self.table.result.next = self.n.val();

        self.v.next.queued = self.n.val().queued;
        self.results.valid.next = self.valid_3.q.val();
        self.results.sq_event.next = self.e3.q.val();
        self.results.image.next = self.k3.q.val();
        self.results.state.next = self.c3.q.val();
        self.results.terms.next = self.terms.terms.val();
        self.results.verdict.next = self.v.val();
        self.ready_valid.next = self.results.ready_valid.val();
        self.list_valid.next = self.results.list_valid.val();
        self.list_qpn.next = self.results.list_qpn.val();
        self.fetch_valid.next = self.results.fetch_valid.val();
        self.fetch.next = self.results.fetch.val();
        self.start_valid.next = self.results.start_valid.val();
        self.start.next = self.results.start.val();
        self.retire_valid.next = self.results.retire_valid.val();
        self.retire.next = self.results.retire.val();
        self.entry_valid.next = self.results.entry_valid.val();
        self.entry_addr.next = self.results.entry_addr.val();
        self.entry.next = self.results.entry.val();
        self.timer_valid.next = self.results.timer_valid.val();
        self.timer.next = self.results.timer.val();
        self.query_valid.next = self.results.query_valid.val();
        self.query.next = self.results.query.val();
        self.failed_valid.next = self.results.failed_valid.val();
        self.failed_qpn.next = self.results.failed_qpn.val();
        self.counts.next = self.results.counts.val();
    }
}
