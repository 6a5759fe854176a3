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
#[derive(Block)]
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
    no_verdict: Zero<SqVerdict>,
}

impl Logic for SqRules {
    describe!(
        "sq_rules",
        "What an event makes of the state of its send queue."
    );

    #[kernel]
    fn update(&mut self) {
        let e = sq_event;
        let k = image;
        let c = state;
        let t = terms;
        let mut n = state;
        let kind = sq_event.kind;
        let mut v = no_verdict;
        let mut changes = true;
        let mut stop = false;
        // To ERR or SQE, by failure or by command.
        let mut down = false;
        // Send again from the oldest PSN not acknowledged.
        let mut retries = false;
        // Responses are heard.
        let open = (c.state == RTS) | (c.state == SQD);
        let in_error = (c.state == ERR) | (c.state == SQE);
        answers.sq_event = sq_event;
        answers.state = state;
        answers.terms = terms;

        match kind {
            SqEventKind::Doorbell => {
                n.producer = e.index;
                v.push_ready = (c.state != RESET) & (e.index != c.fetch_index);
                // its own fetch; one that is ready already waits for its turn
                if e.fetches & !c.queued & t.may_fetch & (t.fetched != 0) {
                    n.fetch_index = c.fetch_index + t.fetched.resize::<16>();
                    v.push_ready = t.more & !c.lengthy;
                }
            }
            SqEventKind::Fetch => {
                n.queued = false;
                if t.may_fetch & (t.fetched != 0) {
                    n.fetch_index = c.fetch_index + t.fetched.resize::<16>();
                    // still in the FIFO's care: goes to its tail at once
                    n.queued = t.more & !c.lengthy;
                }
            }
            SqEventKind::Start => {
                if t.fits {
                    if in_error {
                        if c.used.any() | c.closing {
                            stop = true;
                        } else if !room {
                            stop = true;
                            v.push_ready = true;
                        } else {
                            v.action = bits::<2>(2);
                            n.exec_index = c.exec_index + e.slots.resize::<16>();
                            // it never stood in the ring
                            n.head_index = c.exec_index + e.slots.resize::<16>();
                        }
                    } else if t.running & t.room {
                        v.action = bits::<2>(1);
                        n.next_psn = c.next_psn + t.part;
                        if c.resend.any() & e.packets.any() {
                            // what was sent before may be acknowledged at any time
                            n.unread = granted + 1;
                        }
                        if c.resend >= t.part {
                            n.resend = c.resend - t.part;
                        } else {
                            n.resend = bits::<24>(0);
                            n.inflight = t.ahead + t.part;
                        }
                        if t.fresh {
                            v.entry = true;
                            n.tail = c.tail + 1;
                            n.used = c.used + 1;
                            if t.answered {
                                n.reads = c.reads + 1;
                            }
                            if !t.ends {
                                n.behind = bits::<16>(1);
                            }
                        } else if t.ends {
                            n.behind = c.behind - 1;
                        }
                        if t.ends {
                            n.exec_offset = bits::<24>(0);
                            n.exec_index = c.exec_index + e.slots.resize::<16>();
                        } else {
                            n.exec_offset = c.exec_offset + t.part;
                        }
                        n.lengthy = t.turn_ends;
                        stop = t.turn_ends;
                        v.push_ready = t.turn_ends | c.lengthy;
                        v.start_timer = !c.timer_on & (t.part != 0);
                        // a WQE that cannot run is retired like any other, in its turn
                        if e.status != 0 {
                            v.push_list = true;
                            n.broken = true;
                            stop = true;
                        }
                        // nobody acknowledges what takes no PSN
                        if !e.packets.any() {
                            v.push_list = true;
                        }
                    } else {
                        stop = true;
                        n.blocked = t.running;
                        n.read_blocked = t.running & t.read_bound;
                    }
                }
            }
            SqEventKind::Refetch => {
                // comes in the order of the Start events: all WQEs in front of it have started, or the epoch is another
                if t.fits {
                    stop = true;
                    v.push_ready = true;
                }
            }
            SqEventKind::Answer => {
                n = answers.next_state;
                v = answers.verdict;
                stop = answers.stop;
                retries = answers.retries;
            }
            SqEventKind::Timeout => {
                if t.timed_out {
                    n.timer_on = false;
                    if c.rnr_wait {
                        n.rnr_wait = false;
                        v.push_ready = true;
                    } else if c.inflight.any() & open {
                        v.counts = bits::<11>(32);
                        n.implied = false;
                        retries = true;
                    }
                }
            }
            SqEventKind::Retire => {
                n.listed = false;
                if !c.closing {
                    n.error_status = bits::<8>(0);
                }
            }
            SqEventKind::Retired => {
                if t.current {
                    n.used = t.used_after;
                    n.reads = t.reads_after;
                    n.head_index = e.index;
                    if !c.read_blocked | e.reads.any() {
                        n.blocked = false;
                        n.read_blocked = false;
                    }
                    if c.rewind {
                        if t.same_una {
                            n.blocked = false;
                            n.read_blocked = false;
                            n.rewind = false;
                            // a WQE that cannot run is met again behind what is sent again
                            n.broken = false;
                            n.behind = t.used_after;
                            n.exec_index = e.index;
                            n.exec_offset = c.una_psn - e.psn;
                            n.next_psn = c.una_psn;
                            n.resend = c.inflight;
                            n.recalls = false;
                            if c.recalls {
                                n.round = c.round + 1;
                                v.recall = true;
                            }
                            stop = true;
                        } else {
                            v.push_list = true;
                        }
                    }
                    if t.empties & (in_error | e.status.any()) {
                        // one sent in part was flushed with them: what is flushed now stands behind it
                        n.behind = bits::<16>(0);
                        n.exec_index = e.index;
                        n.exec_offset = bits::<24>(0);
                        stop = true;
                    }
                    if e.status.any() & open {
                        v.fail = true;
                        n.error_status = bits::<8>(0);
                    } else if in_error & !c.closing {
                        v.push_list = !t.idle;
                    } else if (c.state == SQD) & t.idle & !c.drained {
                        v.drained = true;
                        n.drained = true;
                    }
                    v.push_ready = true;
                }
            }
            SqEventKind::Command => {
                if e.set {
                    // who drops the packets of other rounds knows the round from here
                    v.recall = true;
                    n.state = e.state;
                    stop = true;
                    v.push_ready = e.state != RESET;
                    n.closing = false;
                    n.drained = false;
                    if e.state == ERR {
                        down = true;
                    } else {
                        n.error_status = bits::<8>(0);
                    }
                    if (e.state == SQD) & (t.idle | e.reset) {
                        v.drained = true;
                        n.drained = true;
                    }
                }
                if e.reset {
                    n.incarnation = c.incarnation + 1;
                    n.blocked = false;
                    n.read_blocked = false;
                    n.reads = bits::<5>(0);
                    n.implied = false;
                    n.rnr_wait = false;
                    n.rewind = false;
                    n.recalls = false;
                    n.broken = false;
                    n.lengthy = false;
                    n.exec_index = bits::<16>(0);
                    n.exec_offset = bits::<24>(0);
                    n.next_psn = e.psn;
                    n.una_psn = e.psn;
                    n.inflight = bits::<24>(0);
                    n.resend = bits::<24>(0);
                    n.used = bits::<16>(0);
                    n.behind = bits::<16>(0);
                    n.head_index = bits::<16>(0);
                    n.retry = k.retry_cnt;
                    n.rnr_retry = k.rnr_retry;
                    v.stop_timer = true;
                }
            }
            SqEventKind::Failed => {
                // neither in RESET nor failed before; a send queue that failed alone fails with the queue pair
                if (c.state != RESET) & (c.state != ERR) & ((c.state != SQE) | !e.status.any()) {
                    v.fail = true;
                    if !in_error {
                        n.error_status = e.status;
                        n.error_syndrome = bits::<8>(0);
                    }
                }
            }
            _ => {
                changes = false;
            }
        }

        if retries {
            if t.retry == 0 {
                v.fail = true;
                n.error_status = RETRY_EXC_ERR;
                n.error_syndrome = bits::<8>(0);
                v.counts = v.counts | 0x40;
            } else {
                n.retry = t.retry - 1;
                n.rewind = true;
                if kind == SqEventKind::Answer {
                    n.recalls = true;
                }
                stop = true;
                v.push_list = true;
                v.start_timer = true;
            }
        }
        if v.fail {
            n.state = ERR;
            v.status = n.error_status;
            if kind == SqEventKind::Retired {
                v.status = e.status;
            }
            // a local error of an unreliable queue pair is that of its send queue alone
            if !t.reliable & e.status.any() {
                n.state = SQE;
            }
            down = true;
        }
        if down {
            v.close = true;
            n.closing = true;
            // nothing of it is granted any more; what was may not be read yet
            n.unread = granted;
            n.rewind = false;
            n.recalls = false;
            n.rnr_wait = false;
            n.blocked = false;
            n.read_blocked = false;
            n.broken = false;
            n.lengthy = false;
            stop = true;
            v.push_list = false;
            v.stop_timer = true;
            v.start_timer = false;
        }
        if stop {
            n.epoch = c.epoch + 1;
            n.fetch_index = n.exec_index;
        }
        if v.stop_timer {
            n.timer_on = false;
            n.timer_generation = c.timer_generation + 1;
        } else if v.start_timer {
            n.timer_on = true;
            n.timer_generation = c.timer_generation + 1;
        }
        if v.push_ready {
            n.queued = true;
        }
        if v.push_list {
            n.listed = true;
        }
        v.queued = n.queued;
        v.round = n.round;
        write = changes;
        next_state = n;
        verdict = v;
    }
}
