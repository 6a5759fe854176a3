//! The rules of a send queue for what it executes: Doorbell, Fetch, Start, Refetch, Executed. No state of its own.
//!
//! Source: docs/blocks/requester.md.
use ferroce_proto::abi::cq::status;

use super::decision::*;
use super::event::*;
use super::grant::SendAction;
use crate::bus::qp_state::{RESET, is_sq_error};
use crate::prelude::*;

const LOC_QP_OP_ERR: u64 = status::LOC_QP_OP_ERR as u64;

/// The rules for events on the way of a WQE to the wire, combinational.
#[derive(Block)]
pub struct SqStart {
    /// The event.
    pub sq_event: Signal<In, SqEvent>,
    /// State of its queue pair.
    pub state: Signal<In, SqState>,
    /// What the event means for that state.
    pub terms: Signal<In, SqTerms>,
    /// Grants so far, modulo 2^16.
    pub granted: Signal<In, Bits<16>>,
    /// There is room for completions of flushed WQEs.
    pub room: Signal<In, Bit>,
    /// The state afterwards.
    pub next_state: Signal<Out, SqState>,
    /// What follows from the event.
    pub decision: Signal<Out, SqDecision>,

    no_decision: Zero<SqDecision>,
}

impl Logic for SqStart {
    describe!(
        "sq_start",
        "What a doorbell, a fetch or a start makes of the state of its send queue."
    );

    #[kernel]
    fn update(&mut self) {
        let mut next = state;
        let mut out = no_decision;
        let in_error = is_sq_error(state.state) & !terms.resumed;

        match sq_event.kind {
            SqEventKind::Doorbell => {
                next.producer = sq_event.index;
                out.push_ready = (state.state != RESET) & (sq_event.index != state.fetch_index);
                // its own fetch; one that is ready already, or paced, waits for its turn
                let fetches = sq_event.fetches & !state.queued & !terms.paced;
                if fetches & terms.may_fetch & (terms.fetched != 0) {
                    next.fetch_index = state.fetch_index + terms.fetched.resize::<16>();
                    out.push_ready = terms.more & !state.lengthy;
                }
            }
            SqEventKind::Fetch => {
                next.queued = false;
                if terms.may_fetch & (terms.fetched != 0) {
                    next.fetch_index = state.fetch_index + terms.fetched.resize::<16>();
                    // still in the FIFO's care: goes to its tail at once
                    next.queued = terms.more & !state.lengthy & !terms.paced;
                    // it stands in line again with its first grant
                    next.lengthy = state.lengthy | terms.paced;
                    next.middling = 0;
                }
            }
            SqEventKind::Start => {
                if terms.fits {
                    if in_error {
                        if state.used.any() | state.closing {
                            out.stop = true;
                        } else if !room {
                            out.stop = true;
                            out.push_ready = true;
                        } else {
                            out.action = SendAction::Flush;
                            // the next Fetch finds that it was the last one
                            out.push_ready = state.resumes;
                            next.exec_index = state.exec_index + sq_event.slots.resize::<16>();
                            // it never stood in the ring
                            next.head_index = state.exec_index + sq_event.slots.resize::<16>();
                        }
                    } else if terms.running & terms.differs & terms.oldest {
                        // nothing of it is sent any more; what stands in front of it has completed
                        out.fail = true;
                        out.local = true;
                        next.error_status = if sq_event.status.any() {
                            sq_event.status
                        } else {
                            LOC_QP_OP_ERR
                        };
                        next.error_syndrome = bits::<8>(0);
                    } else if terms.running & terms.room & !terms.differs & terms.is_local {
                        out.action = SendAction::Execute;
                        next.executing = true;
                        out.stop = true;
                    } else if terms.running & terms.room & !terms.differs & terms.later {
                        // as one that is not whole; it may wait for its class too
                        out.stop = true;
                        out.push_ready = true;
                        out.held = sq_event.held;
                        next.lengthy = true;
                        next.single = false;
                    } else if terms.running & terms.room & !terms.differs {
                        out.action = SendAction::Send;
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
                        next.lengthy = terms.turn_ends | terms.paced;
                        next.single = terms.fills & terms.paced & (sq_event.slots == 1);
                        if terms.middling {
                            next.middling = state.middling + 1;
                        }
                        out.stop = terms.turn_ends;
                        out.push_ready = terms.turn_ends | state.lengthy;
                        out.start_timer = !state.timer_on & (terms.part != 0);
                        // a WQE that cannot run is retired like any other, in ring order
                        if sq_event.status != 0 {
                            out.push_list = true;
                            next.broken = true;
                            out.stop = true;
                        }
                    } else {
                        out.stop = true;
                        next.blocked = terms.running;
                        next.read_blocked = terms.running & terms.read_bound;
                    }
                }
            }
            SqEventKind::Executed => {
                // it takes no PSN: it is retired at once, also if its queue pair failed meanwhile
                if terms.current & state.executing {
                    next.executing = false;
                    out.entry = true;
                    next.tail = state.tail + 1;
                    next.used = bits::<16>(1);
                    next.exec_index = state.exec_index + sq_event.slots.resize::<16>();
                    next.broken = sq_event.status.any() & !is_sq_error(state.state);
                    out.stop = true;
                    out.push_list = true;
                    out.push_ready = state.state != RESET;
                }
            }
            SqEventKind::Refetch => {
                // comes in the order of the Start events: all WQEs in front of it have started, or the epoch is another
                if terms.fits {
                    out.stop = true;
                    out.push_ready = true;
                    // grants of others stand between its own: what is fetched ahead would be cut off again
                    next.lengthy = terms.running;
                    next.single = false;
                }
            }
            _ => {}
        }

        next_state = next;
        decision = out;
    }
}
