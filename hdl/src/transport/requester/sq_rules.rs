//! The rules of a send queue: what an event makes of its state. No state of its own.
//!
//! Sources: docs/architecture.md 3.3; IBA vol. 1, 9.7.5 to 9.7.8 (requester).
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::state;

use super::decision::*;
use super::event::*;
use super::sq_answer::SqAnswer;
use crate::bus::types::image::SqCtx;
use crate::prelude::*;

const RESET: u64 = state::RESET as u64;
const RTS: u64 = state::RTS as u64;
const SQD: u64 = state::SQD as u64;
const SQE: u64 = state::SQE as u64;
const ERR: u64 = state::ERR as u64;
const RETRY_EXC_ERR: u64 = status::RETRY_EXC_ERR as u64;
const LOC_QP_OP_ERR: u64 = status::LOC_QP_OP_ERR as u64;

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
    pub decision: Signal<Out, SqDecision>,

    answers: SqAnswer,
    no_decision: Zero<SqDecision>,
}

impl Logic for SqRules {
    describe!(
        "sq_rules",
        "What an event makes of the state of its send queue."
    );

    #[kernel]
    fn update(&mut self) {
        let mut next = state;
        let kind = sq_event.kind;
        let mut out = no_decision;
        let mut changes = true;
        let mut stop = false;
        // To ERR or SQE, by failure or by command.
        let mut down = false;
        // It fails by a request of its own.
        let mut local = sq_event.status.any();
        // Send again from the oldest PSN not acknowledged.
        let mut retries = false;
        // Responses are heard.
        let open = (state.state == RTS) | (state.state == SQD);
        let in_error = ((state.state == ERR) | (state.state == SQE)) & !terms.resumed;
        answers.sq_event = sq_event;
        answers.state = state;
        answers.terms = terms;

        match kind {
            SqEventKind::Doorbell => {
                next.producer = sq_event.index;
                out.push_ready = (state.state != RESET) & (sq_event.index != state.fetch_index);
                // its own fetch; one that is ready already waits for its turn
                if sq_event.fetches & !state.queued & terms.may_fetch & (terms.fetched != 0) {
                    next.fetch_index = state.fetch_index + terms.fetched.resize::<16>();
                    out.push_ready = terms.more & !state.lengthy;
                }
            }
            SqEventKind::Fetch => {
                next.queued = false;
                if terms.may_fetch & (terms.fetched != 0) {
                    next.fetch_index = state.fetch_index + terms.fetched.resize::<16>();
                    // still in the FIFO's care: goes to its tail at once
                    next.queued = terms.more & !state.lengthy;
                }
            }
            SqEventKind::Start => {
                if terms.fits {
                    if in_error {
                        if state.used.any() | state.closing {
                            stop = true;
                        } else if !room {
                            stop = true;
                            out.push_ready = true;
                        } else {
                            out.action = bits::<2>(2);
                            next.exec_index = state.exec_index + sq_event.slots.resize::<16>();
                            // it never stood in the ring
                            next.head_index = state.exec_index + sq_event.slots.resize::<16>();
                        }
                    } else if terms.running & terms.differs & terms.oldest {
                        // nothing of it is sent any more; what stands in front of it has completed
                        out.fail = true;
                        local = true;
                        next.error_status = if sq_event.status.any() {
                            sq_event.status
                        } else {
                            LOC_QP_OP_ERR
                        };
                        next.error_syndrome = bits::<8>(0);
                    } else if terms.running & terms.room & !terms.differs {
                        out.action = bits::<2>(1);
                        next.next_psn = state.next_psn + terms.part;
                        if state.resend.any() & sq_event.packets.any() {
                            // what was sent before may be acknowledged at any time
                            next.unread = granted + 1;
                        }
                        if state.resend >= terms.part {
                            next.resend = state.resend - terms.part;
                        } else {
                            next.resend = bits::<24>(0);
                            next.inflight = terms.ahead + terms.part;
                        }
                        if terms.fresh {
                            out.entry = true;
                            next.tail = state.tail + 1;
                            next.used = state.used + 1;
                            if terms.answered {
                                next.reads = state.reads + 1;
                            }
                            if !terms.ends {
                                next.msgs_to_resend = bits::<16>(1);
                            }
                        } else if terms.ends {
                            next.msgs_to_resend = state.msgs_to_resend - 1;
                        }
                        if terms.ends {
                            next.exec_offset = bits::<24>(0);
                            next.exec_index = state.exec_index + sq_event.slots.resize::<16>();
                        } else {
                            next.exec_offset = state.exec_offset + terms.part;
                        }
                        next.lengthy = terms.turn_ends;
                        stop = terms.turn_ends;
                        out.push_ready = terms.turn_ends | state.lengthy;
                        out.start_timer = !state.timer_on & (terms.part != 0);
                        // a WQE that cannot run is retired like any other, in its turn
                        if sq_event.status != 0 {
                            out.push_list = true;
                            next.broken = true;
                            stop = true;
                        }
                        // nobody acknowledges what takes no PSN
                        if !sq_event.packets.any() {
                            out.push_list = true;
                        }
                    } else {
                        stop = true;
                        next.blocked = terms.running;
                        next.read_blocked = terms.running & terms.read_bound;
                    }
                }
            }
            SqEventKind::Refetch => {
                // comes in the order of the Start events: all WQEs in front of it have started, or the epoch is another
                if terms.fits {
                    stop = true;
                    out.push_ready = true;
                    // grants of others stand between its own: what is fetched ahead would be cut off again
                    next.lengthy = terms.running;
                }
            }
            SqEventKind::Answer => {
                next = answers.next_state;
                out = answers.decision;
                stop = answers.stop;
                retries = answers.retries;
            }
            SqEventKind::Timeout => {
                if terms.timed_out {
                    next.timer_on = false;
                    if state.rnr_wait {
                        next.rnr_wait = false;
                        out.push_ready = true;
                    } else if state.inflight.any() & open & terms.waits {
                        // the time since it was sent counts (IB1 9.7.6.1.3), and the wire has not taken it yet
                        out.start_timer = true;
                    } else if state.inflight.any() & open {
                        out.counts = bits::<11>(32);
                        next.implied = false;
                        retries = true;
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
                    next.head_index = sq_event.index;
                    if !state.read_blocked | sq_event.reads.any() {
                        next.blocked = false;
                        next.read_blocked = false;
                    }
                    if state.rewind {
                        if terms.same_una {
                            next.blocked = false;
                            next.read_blocked = false;
                            next.rewind = false;
                            // a WQE that cannot run is met again behind what is sent again
                            next.broken = false;
                            next.msgs_to_resend = terms.used_after;
                            next.exec_index = sq_event.index;
                            next.exec_offset = state.una_psn - sq_event.psn;
                            next.next_psn = state.una_psn;
                            next.resend = state.inflight;
                            next.recalls = false;
                            if state.recalls {
                                next.round = state.round + 1;
                                out.recall = true;
                            }
                            stop = true;
                        } else {
                            out.push_list = true;
                        }
                    }
                    if terms.empties & (in_error | sq_event.status.any()) {
                        // one sent in part was flushed with them: what is flushed now stands behind it
                        next.msgs_to_resend = bits::<16>(0);
                        next.exec_index = sq_event.index;
                        next.exec_offset = bits::<24>(0);
                        stop = true;
                    }
                    if sq_event.status.any() & open {
                        out.fail = true;
                        next.error_status = bits::<8>(0);
                    } else if in_error & !state.closing {
                        out.push_list = !terms.idle;
                    } else if (state.state == SQD) & terms.idle & !state.drained {
                        out.drained = true;
                        next.drained = true;
                    }
                    out.push_ready = true;
                }
            }
            SqEventKind::Command => {
                if sq_event.image {
                    next.known = true;
                    out.push_ready = state.state != RESET;
                }
                if sq_event.set {
                    // who drops the packets of other rounds knows the round from here
                    out.recall = true;
                    next.state = sq_event.state;
                    stop = true;
                    out.push_ready = sq_event.state != RESET;
                    if sq_event.state == RESET {
                        next.known = false;
                    }
                    next.drained = false;
                    next.resumes = false;
                    if sq_event.state == ERR {
                        down = true;
                    } else if (sq_event.state == RTS) & terms.unflushed {
                        // what was posted behind the failed request is flushed first (IB1 10.3.1)
                        next.state = SQE;
                        next.resumes = true;
                        next.flush_end = state.producer;
                    } else {
                        next.closing = false;
                        next.error_status = bits::<8>(0);
                    }
                    if (sq_event.state == SQD) & (terms.idle | sq_event.reset) {
                        out.drained = true;
                        next.drained = true;
                    }
                }
                if sq_event.reset {
                    out.recall = true;
                    next.round = state.round + 1;
                    next.incarnation = state.incarnation + 1;
                    next.blocked = false;
                    next.read_blocked = false;
                    next.reads = bits::<5>(0);
                    next.unfenced = false;
                    next.implied = false;
                    next.rnr_wait = false;
                    next.rewind = false;
                    next.recalls = false;
                    next.broken = false;
                    next.lengthy = false;
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
                if (state.state != RESET)
                    & (state.state != ERR)
                    & ((state.state != SQE) | !sq_event.status.any())
                {
                    out.fail = true;
                    if !in_error {
                        next.error_status = sq_event.status;
                        next.error_syndrome = bits::<8>(0);
                    }
                }
            }
            _ => {
                changes = false;
            }
        }

        if retries {
            if terms.retry == 0 {
                out.fail = true;
                next.error_status = RETRY_EXC_ERR;
                next.error_syndrome = bits::<8>(0);
                out.counts = out.counts | 0x40;
            } else {
                next.retry = terms.retry - 1;
                next.rewind = true;
                if kind == SqEventKind::Answer {
                    next.recalls = true;
                }
                stop = true;
                out.push_list = true;
                out.start_timer = true;
            }
        }
        if out.fail {
            next.state = ERR;
            out.status = next.error_status;
            if kind == SqEventKind::Retired {
                out.status = sq_event.status;
            }
            // a local error of an unreliable queue pair is that of its send queue alone
            if !terms.reliable & local {
                next.state = SQE;
            }
            down = true;
        }
        if down {
            // what waits for the wire is not sent any more: the host learns that it is flushed
            out.recall = true;
            next.round = state.round + 1;
            out.close = true;
            next.closing = true;
            // nothing of it is granted any more; what was may not be read yet
            next.unread = granted;
            next.rewind = false;
            next.recalls = false;
            next.rnr_wait = false;
            next.blocked = false;
            next.read_blocked = false;
            next.broken = false;
            next.lengthy = false;
            stop = true;
            out.push_list = false;
            out.stop_timer = true;
            out.start_timer = false;
        }
        if terms.resumed & !down & !((kind == SqEventKind::Command) & sq_event.set) {
            next.state = RTS;
            next.resumes = false;
            stop = true;
            out.push_ready = true;
        }
        if stop {
            next.epoch = state.epoch + 1;
            next.fetch_index = next.exec_index;
        }
        if out.stop_timer {
            next.timer_on = false;
            next.timer_generation = state.timer_generation + 1;
        } else if out.start_timer {
            next.timer_on = true;
            next.timer_generation = state.timer_generation + 1;
        }
        if out.push_ready {
            next.queued = true;
        }
        if out.push_list {
            next.listed = true;
        }
        out.queued = next.queued;
        out.round = next.round;
        write = changes;
        next_state = next;
        decision = out;
    }
}
