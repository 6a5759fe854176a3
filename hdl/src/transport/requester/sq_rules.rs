//! The rules of a send queue: what an event makes of its state. No state of its own.
//!
//! Sources: docs/architecture.md 3.3; IBA vol. 1, 9.7.5 to 9.7.8 (requester).
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::state;

use super::event::*;
use super::sq_answer::SqAnswer;
use super::verdict::*;
use crate::bus::types::image::SqCtx;
use crate::prelude::*;

const RESET: u64 = state::RESET as u64;
const RTS: u64 = state::RTS as u64;
const SQD: u64 = state::SQD as u64;
const SQE: u64 = state::SQE as u64;
const ERR: u64 = state::ERR as u64;
const RETRY_EXC_ERR: u64 = status::RETRY_EXC_ERR as u64;

/// The rules, combinational.
#[derive(LogicBlock, Default)]
pub struct SqRules {
    /// The event.
    pub sq_event: Signal<In, SqEvent>,
    /// Static image of its queue pair.
    pub image: Signal<In, SqCtx>,
    /// State of its queue pair.
    pub state: Signal<In, SqState>,
    /// What the event means for that state.
    pub terms: Signal<In, SqTerms>,
    /// Grants so far, modulo 2^16.
    pub granted: Signal<In, Bits<16>>,
    /// There is room for completions of flushed WQEs.
    pub room: Signal<In, Bit>,
    /// The state changes.
    pub write: Signal<Out, Bit>,
    /// The state afterwards.
    pub next_state: Signal<Out, SqState>,
    /// What follows from the event.
    pub verdict: Signal<Out, SqVerdict>,

    answers: SqAnswer,
    e: Signal<Local, SqEvent>,
    k: Signal<Local, SqCtx>,
    c: Signal<Local, SqState>,
    t: Signal<Local, SqTerms>,
    n: Signal<Local, SqState>,
    kind: Signal<Local, SqEventKind>,
    changes: Signal<Local, Bit>,
    stop: Signal<Local, Bit>,
    /// To ERR or SQE, by failure or by command.
    down: Signal<Local, Bit>,
    /// Send again from the oldest PSN not acknowledged.
    retries: Signal<Local, Bit>,
    /// Responses are heard.
    open: Signal<Local, Bit>,
    in_error: Signal<Local, Bit>,
    v: Signal<Local, SqVerdict>,
    no_verdict: Zero<SqVerdict>,
}

impl Logic for SqRules {
    describe!(
        "sq_rules",
        "What an event makes of the state of its send queue.";
        RESET, RTS, SQD, SQE, ERR, RETRY_EXC_ERR
    );

    #[hdl_gen]
    fn update(&mut self) {
        self.e.next = self.sq_event.val();
        self.k.next = self.image.val();
        self.c.next = self.state.val();
        self.t.next = self.terms.val();
        self.n.next = self.state.val();
        self.kind.next = self.sq_event.val().kind;
        self.v.next = self.no_verdict.val();
        self.changes.next = true;
        self.stop.next = false;
        self.down.next = false;
        self.retries.next = false;
        self.open.next = (self.c.val().state == RTS) | (self.c.val().state == SQD);
        self.in_error.next = (self.c.val().state == ERR) | (self.c.val().state == SQE);
        self.answers.sq_event.next = self.sq_event.val();
        self.answers.state.next = self.state.val();
        self.answers.terms.next = self.terms.val();

        match self.kind.val() {
            SqEventKind::Doorbell => {
                self.n.next.producer = self.e.val().index;
                self.v.next.push_ready = (self.c.val().state != RESET)
                    & (self.e.val().index != self.c.val().fetch_index);
                // its own fetch; one that is ready already waits for its turn
                if self.e.val().fetches
                    & !self.c.val().queued
                    & self.t.val().may_fetch
                    & (self.t.val().fetched != 0)
                {
                    self.n.next.fetch_index =
                        self.c.val().fetch_index + bit_cast::<16, 4>(self.t.val().fetched);
                    self.v.next.push_ready = self.t.val().more & !self.c.val().lengthy;
                }
            }
            SqEventKind::Fetch => {
                self.n.next.queued = false;
                if self.t.val().may_fetch & (self.t.val().fetched != 0) {
                    self.n.next.fetch_index =
                        self.c.val().fetch_index + bit_cast::<16, 4>(self.t.val().fetched);
                    // still in the FIFO's care: goes to its tail at once
                    self.n.next.queued = self.t.val().more & !self.c.val().lengthy;
                }
            }
            SqEventKind::Start => {
                if self.t.val().fits {
                    if self.in_error.val() {
                        if self.c.val().used.any() | self.c.val().closing {
                            self.stop.next = true;
                        } else if !self.room.val() {
                            self.stop.next = true;
                            self.v.next.push_ready = true;
                        } else {
                            self.v.next.action = bits::<2>(2);
                            self.n.next.exec_index =
                                self.c.val().exec_index + bit_cast::<16, 3>(self.e.val().slots);
                            // it never stood in the ring
                            self.n.next.head_index =
                                self.c.val().exec_index + bit_cast::<16, 3>(self.e.val().slots);
                        }
                    } else if self.t.val().running & self.t.val().room {
                        self.v.next.action = bits::<2>(1);
                        self.n.next.next_psn = self.c.val().next_psn + self.t.val().part;
                        if self.c.val().resend.any() & self.e.val().packets.any() {
                            // what was sent before may be acknowledged at any time
                            self.n.next.unread = self.granted.val() + 1;
                        }
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
                            if self.t.val().answered {
                                self.n.next.reads = self.c.val().reads + 1;
                            }
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
                        }
                        self.n.next.lengthy = self.t.val().turn_ends;
                        self.stop.next = self.t.val().turn_ends;
                        self.v.next.push_ready = self.t.val().turn_ends | self.c.val().lengthy;
                        self.v.next.start_timer = !self.c.val().timer_on & (self.t.val().part != 0);
                        // a WQE that cannot run is retired like any other, in its turn
                        if self.e.val().status != 0 {
                            self.v.next.push_list = true;
                            self.n.next.broken = true;
                            self.stop.next = true;
                        }
                        // nobody acknowledges what takes no PSN
                        if !self.e.val().packets.any() {
                            self.v.next.push_list = true;
                        }
                    } else {
                        self.stop.next = true;
                        self.n.next.blocked = self.t.val().running;
                        self.n.next.read_blocked = self.t.val().running & self.t.val().read_bound;
                    }
                }
            }
            SqEventKind::Refetch => {
                // comes in the order of the Start events: all WQEs in front of it have started, or the epoch is another
                if self.t.val().fits {
                    self.stop.next = true;
                    self.v.next.push_ready = true;
                }
            }
            SqEventKind::Answer => {
                self.n.next = self.answers.next_state.val();
                self.v.next = self.answers.verdict.val();
                self.stop.next = self.answers.stop.val();
                self.retries.next = self.answers.retries.val();
            }
            SqEventKind::Timeout => {
                if self.t.val().timed_out {
                    self.n.next.timer_on = false;
                    if self.c.val().rnr_wait {
                        self.n.next.rnr_wait = false;
                        self.v.next.push_ready = true;
                    } else if self.c.val().inflight.any() & self.open.val() {
                        self.v.next.counts = bits::<11>(32);
                        self.n.next.implied = false;
                        self.retries.next = true;
                    }
                }
            }
            SqEventKind::Retire => {
                self.n.next.listed = false;
                if !self.c.val().closing {
                    self.n.next.error_status = bits::<8>(0);
                }
            }
            SqEventKind::Retired => {
                if self.t.val().current {
                    self.n.next.used = self.t.val().used_after;
                    self.n.next.reads = self.t.val().reads_after;
                    self.n.next.head_index = self.e.val().index;
                    if !self.c.val().read_blocked | self.e.val().reads.any() {
                        self.n.next.blocked = false;
                        self.n.next.read_blocked = false;
                    }
                    if self.c.val().rewind {
                        if self.t.val().same_una {
                            self.n.next.blocked = false;
                            self.n.next.read_blocked = false;
                            self.n.next.rewind = false;
                            // a WQE that cannot run is met again behind what is sent again
                            self.n.next.broken = false;
                            self.n.next.behind = self.t.val().used_after;
                            self.n.next.exec_index = self.e.val().index;
                            self.n.next.exec_offset = self.c.val().una_psn - self.e.val().psn;
                            self.n.next.next_psn = self.c.val().una_psn;
                            self.n.next.resend = self.c.val().inflight;
                            self.n.next.recalls = false;
                            if self.c.val().recalls {
                                self.n.next.round = self.c.val().round + 1;
                                self.v.next.recall = true;
                            }
                            self.stop.next = true;
                        } else {
                            self.v.next.push_list = true;
                        }
                    }
                    if self.t.val().empties & (self.in_error.val() | self.e.val().status.any()) {
                        // one sent in part was flushed with them: what is flushed now stands behind it
                        self.n.next.behind = bits::<16>(0);
                        self.n.next.exec_index = self.e.val().index;
                        self.n.next.exec_offset = bits::<24>(0);
                        self.stop.next = true;
                    }
                    if self.e.val().status.any() & self.open.val() {
                        self.v.next.fail = true;
                        self.n.next.error_status = bits::<8>(0);
                    } else if self.in_error.val() & !self.c.val().closing {
                        self.v.next.push_list = !self.t.val().idle;
                    } else if (self.c.val().state == SQD)
                        & self.t.val().idle
                        & !self.c.val().drained
                    {
                        self.v.next.drained = true;
                        self.n.next.drained = true;
                    }
                    self.v.next.push_ready = true;
                }
            }
            SqEventKind::Command => {
                if self.e.val().set {
                    // who drops the packets of other rounds knows the round from here
                    self.v.next.recall = true;
                    self.n.next.state = self.e.val().state;
                    self.stop.next = true;
                    self.v.next.push_ready = self.e.val().state != RESET;
                    self.n.next.closing = false;
                    self.n.next.drained = false;
                    if self.e.val().state == ERR {
                        self.down.next = true;
                    } else {
                        self.n.next.error_status = bits::<8>(0);
                    }
                    if (self.e.val().state == SQD) & (self.t.val().idle | self.e.val().reset) {
                        self.v.next.drained = true;
                        self.n.next.drained = true;
                    }
                }
                if self.e.val().reset {
                    self.n.next.incarnation = self.c.val().incarnation + 1;
                    self.n.next.blocked = false;
                    self.n.next.read_blocked = false;
                    self.n.next.reads = bits::<5>(0);
                    self.n.next.implied = false;
                    self.n.next.rnr_wait = false;
                    self.n.next.rewind = false;
                    self.n.next.recalls = false;
                    self.n.next.broken = false;
                    self.n.next.lengthy = false;
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
                // neither in RESET nor failed before; a send queue that failed alone fails with the queue pair
                if (self.c.val().state != RESET)
                    & (self.c.val().state != ERR)
                    & ((self.c.val().state != SQE) | !self.e.val().status.any())
                {
                    self.v.next.fail = true;
                    if !self.in_error.val() {
                        self.n.next.error_status = self.e.val().status;
                        self.n.next.error_syndrome = bits::<8>(0);
                    }
                }
            }
            _ => {
                self.changes.next = false;
            }
        }

        if self.retries.val() {
            if self.t.val().retry == 0 {
                self.v.next.fail = true;
                self.n.next.error_status = RETRY_EXC_ERR.into();
                self.n.next.error_syndrome = bits::<8>(0);
                self.v.next.counts = self.v.val().counts | 0x40;
            } else {
                self.n.next.retry = self.t.val().retry - 1;
                self.n.next.rewind = true;
                if self.kind.val() == SqEventKind::Answer {
                    self.n.next.recalls = true;
                }
                self.stop.next = true;
                self.v.next.push_list = true;
                self.v.next.start_timer = true;
            }
        }
        if self.v.val().fail {
            self.n.next.state = ERR.into();
            self.v.next.status = self.n.val().error_status;
            if self.kind.val() == SqEventKind::Retired {
                self.v.next.status = self.e.val().status;
            }
            // a local error of an unreliable queue pair is that of its send queue alone
            if !self.t.val().reliable & self.e.val().status.any() {
                self.n.next.state = SQE.into();
            }
            self.down.next = true;
        }
        if self.down.val() {
            self.v.next.close = true;
            self.n.next.closing = true;
            // nothing of it is granted any more; what was may not be read yet
            self.n.next.unread = self.granted.val();
            self.n.next.rewind = false;
            self.n.next.recalls = false;
            self.n.next.rnr_wait = false;
            self.n.next.blocked = false;
            self.n.next.read_blocked = false;
            self.n.next.broken = false;
            self.n.next.lengthy = false;
            self.stop.next = true;
            self.v.next.push_list = false;
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
        self.v.next.queued = self.n.val().queued;
        self.v.next.round = self.n.val().round;
        self.write.next = self.changes.val();
        self.next_state.next = self.n.val();
        self.verdict.next = self.v.val();
    }
}
