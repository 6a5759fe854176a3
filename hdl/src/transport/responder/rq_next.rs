//! The state of a receive queue after an event. No state of its own.
//!
//! | event | if | then | source |
//! |---|---|---|---|
//! | Packet | accepted | its message goes on or ends, `psn` and `msn` count it; it takes a receive WQE or a place for its answer | IB1 9.7.4 |
//! | Packet | gap, or no receive WQE | `nak_sent`: the NAK is not repeated | IB1 9.7.5.2.8 |
//! | Packet | invalid or denied, of RC | **ERR** | IB1 9.9.3 |
//! | Packet | of UC or UD, not accepted | the message under way ends, the next one takes its receive WQE | IB1 9.8.2 |
//! | Doorbell | | the producer index is that; in ERR what it posts is flushed | |
//! | PlaceError | of this incarnation, the queue pair receives | **ERR**, unless it is spared | [`guard_rules`](crate::memory::scatter::guard_rules) |
//! | SqFailed | not in RESET or ERR | **ERR** | IB1 9.9.2 |
//! | Command | sets the state | that state; ERR as **ERR**; out of ERR only RESET, or afresh | IB1 10.3.1 |
//! | Command | starts afresh | PSN and counts; placements from before are stale | |
//! | Flush | in ERR, a receive WQE is left | it is flushed: the one that was taken first | IB1 10.3.1 |
//! | Flush | in ERR, of a shared receive queue, none is left | LAST_WQE_REACHED, once | IB1 11.6.3.1 |
//! | Replied | of this incarnation | there is room for one more READ or atomic | |
//!
//! **ERR**: the state is ERR, no message is under way, and the queue pair stands in the flush list.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use super::event::*;
use super::rq_rules::{RqFate, RqNotes};
use crate::bus::payload::payload;
use crate::bus::qp_state::{ERR, RESET};
use crate::prelude::*;

payload! {
    /// What else follows from an event.
    RqEffects {
        /// The state changes.
        write: Bit,
        /// The queue pair goes into error.
        fails: Bit,
        /// It is to stand in the flush list.
        wakes: Bit,
        /// A placement of this incarnation failed.
        misplaced: Bit,
        /// A receive WQE is flushed.
        flushes: Bit,
        /// There is none of a shared receive queue left to flush, and that was not reported.
        last_wqe: Bit,
        /// The queue pair starts afresh.
        restarts: Bit,
    }
}

/// The next state, combinational.
#[derive(Block)]
pub struct RqNext {
    /// The event.
    pub rq_event: Signal<In, RqEvent>,
    /// Of a packet: the packet.
    pub request: Signal<In, RqRequest>,
    /// Of a packet: what is known of it.
    pub notes: Signal<In, RqNotes>,
    /// Of a packet: what it meets.
    pub outcome: Signal<In, RqFate>,
    /// Of a packet: the ordinal of the receive WQE that it takes or goes on with.
    pub own: Signal<In, Bits<16>>,
    /// Its receive WQEs are those of a shared receive queue.
    pub shared: Signal<In, Bit>,
    /// State of its queue pair.
    pub state: Signal<In, RqState>,
    /// The state afterwards.
    pub next_state: Signal<Out, RqState>,
    /// What else follows.
    pub effects: Signal<Out, RqEffects>,
}

impl Logic for RqNext {
    describe!("rq_next", "The state of a receive queue after an event.");

    #[kernel]
    fn update(&mut self) {
        let mut next = state;
        let mut write = true;
        let mut fails = false;
        let mut misplaced = false;
        let mut wakes = false;
        let restarts = (rq_event.kind == RqEventKind::Command) & rq_event.reset;
        let dead = (state.state == ERR) & state.known;
        let flushing = dead & (state.held | (!shared & (state.producer != state.index)));
        let last_wqe = (rq_event.kind == RqEventKind::Flush)
            & dead
            & shared
            & !state.held
            & !state.last_reported;
        match rq_event.kind {
            RqEventKind::Packet => {
                if outcome.accepted {
                    next.established = true;
                    next.nak_sent = false;
                    next.open = !request.last;
                    next.write = request.write;
                    next.done = state.done + request.plen.resize::<32>();
                    next.more = state.more - 1;
                    next.ends = state.more == 2;
                    if request.first {
                        next.done = request.plen.resize::<32>();
                        next.more = request.more;
                        next.ends = request.more == 1;
                        copy!(next <= request; tail, va, rkey);
                    }
                    if request.last & !request.datagram {
                        next.msn = state.msn + 1;
                    }
                    if outcome.takes & !request.srq_valid {
                        next.index = state.index + 1;
                    }
                    if notes.needs | request.send {
                        next.held = !request.last;
                        next.own = own;
                    }
                    if notes.asks {
                        next.replies = state.replies + 1;
                        next.asked = true;
                        next.asked_psn = request.psn;
                    }
                } else if outcome.drops {
                    next.open = false;
                }
                if outcome.moves {
                    next.psn = notes.psn_after;
                }
                if outcome.gap | outcome.rnr {
                    next.nak_sent = true;
                }
                fails = outcome.fails;
            }
            RqEventKind::Doorbell => {
                next.producer = rq_event.index;
                wakes = state.state == ERR;
            }
            RqEventKind::PlaceError => {
                misplaced = outcome.usable & (rq_event.incarnation == state.incarnation);
                fails = misplaced & !rq_event.spared;
            }
            RqEventKind::SqFailed => {
                fails = (state.state != RESET) & (state.state != ERR);
            }
            RqEventKind::Command => {
                next.known = state.known | rq_event.image;
                let leaves = (rq_event.state != RESET) & (rq_event.state != ERR);
                if rq_event.set & !(dead & leaves & !restarts) {
                    next.state = rq_event.state;
                    // what is due before its own NAK still leaves
                    fails = (rq_event.state == ERR) & (state.state != ERR);
                    if rq_event.state == RESET {
                        next.known = false;
                    }
                    if rq_event.state != ERR {
                        next.last_reported = false;
                    }
                }
                // the producer index is the host's and stays
                if restarts {
                    next.incarnation = state.incarnation + 1;
                    next.nak_sent = false;
                    next.open = false;
                    next.held = false;
                    next.last_reported = false;
                    next.index = bits::<16>(0);
                    next.psn = rq_event.psn;
                    next.established = false;
                    next.asked = false;
                    next.msn = bits::<24>(0);
                    next.replies = bits::<5>(0);
                }
            }
            RqEventKind::Flush => {
                next.queued = flushing;
                next.last_reported = state.last_reported | last_wqe;
                if flushing & state.held {
                    next.held = false;
                } else if flushing {
                    next.index = state.index + 1;
                }
            }
            RqEventKind::Replied => {
                next.replies = state.replies - 1;
                write = (rq_event.incarnation == state.incarnation) & state.replies.any();
            }
            _ => {
                write = false;
            }
        }
        if fails {
            next.state = ERR;
            next.open = false;
            wakes = true;
        }
        if wakes {
            next.queued = true;
        }
        next_state = next;
        effects = RqEffects {
            write: write,
            fails: fails,
            wakes: wakes,
            misplaced: misplaced,
            flushes: (rq_event.kind == RqEventKind::Flush) & flushing,
            last_wqe: last_wqe,
            restarts: restarts,
        };
    }
}
