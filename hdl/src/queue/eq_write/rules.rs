//! The rules of an event queue: what an operation makes of its state. No state of its own.
//!
//! *Room* is an entry that the host has taken, as far as is known; *landed* says that an EQE is in host memory.
//!
//! | operation | if | then |
//! |---|---|---|
//! | Scan | landed, `moderation` is over and no interrupt waits | an interrupt is asked for; the next one waits for `moderation` |
//! | Scan | the consumer record is wanted | it is read |
//! | Command | | the queue is opened afresh or closed; what is parked is void |
//! | Update | the host has taken entries | they are free: a pass looks at what is parked |
//! | Update | it has not, and there is no room | the record is wanted again |
//! | Event | the queue is not open | dropped |
//! | Event | there is room | written |
//! | Event | there is none | parked; lost, if [`WAITING`] of the queue are |
//! | Parked | of a queue that was opened or closed since | dropped |
//! | Parked | there is room | written |
//! | Parked | there is none | parked again |
//! | Event, Parked | the ring is half full | the consumer record is wanted |
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use ferroce_proto::abi::eq::WAITING;

use super::types::{EqFound, EqOp, EqState};
use crate::bus::payload::payload;
use crate::prelude::*;

const MOST: u64 = WAITING as u64;

payload! {
    /// What is known beside the state.
    EqTerms {
        /// Command: the queue is opened.
        open: Bit,
        /// Update: the read succeeded, and its queue is the same.
        valid: Bit,
        /// Update: entries taken by the host, modulo 2^24.
        taken: Bits<24>,
        /// Parked: `turn` of the queue at that time.
        turn: Bit,
        /// Scan: no interrupt waits.
        free: Bit,
        /// Scan: a read may begin.
        may_ask: Bit,
        /// EQEs written, modulo 2^16.
        sent: Bits<16>,
        /// The time, in cycles.
        now: Bits<26>,
    }

    /// What follows from an operation.
    EqDecision {
        /// An interrupt is asked for.
        fires: Bit,
        /// The consumer record is read.
        asks: Bit,
        /// What is parked is looked at again.
        passes: Bit,
        /// The event is taken.
        takes: Bit,
        /// It becomes an EQE.
        writes: Bit,
        /// It is parked.
        parks: Bit,
    }
}

/// The rules, combinational.
#[derive(Block)]
pub struct EqRules {
    /// The operation.
    pub op: Signal<In, EqOp>,
    /// Its queue.
    pub found: Signal<In, EqFound>,
    /// What else is known.
    pub terms: Signal<In, EqTerms>,
    /// State of the queue afterwards.
    pub next_state: Signal<Out, EqState>,
    /// What follows.
    pub decision: Signal<Out, EqDecision>,

    no_state: Zero<EqState>,
    no_decision: Zero<EqDecision>,
}

impl Logic for EqRules {
    describe!("eq_rules", "What an operation makes of an event queue.");

    #[kernel]
    fn update(&mut self) {
        let state = found.state;
        let full = (found.level & !found.mask).any();
        let half = (found.level & !(found.mask >> 1)).any();
        let mut next = state;
        let mut out = no_decision;
        match op {
            EqOp::Scan => {
                let landed = state.landed | (state.fresh & found.arrived);
                let waiting = state.waiting & !found.over;
                out.fires = state.open & landed & !waiting & terms.free;
                out.asks = state.open & state.want & terms.may_ask;
                if state.fresh & found.arrived {
                    next.fresh = !found.all_arrived;
                    next.mark = state.last;
                }
                next.landed = landed & !out.fires;
                next.waiting = waiting;
                if out.fires {
                    next.waiting = found.image.moderation.any();
                    next.deadline = terms.now + (found.image.moderation.resize::<26>() << 8);
                }
                if out.asks {
                    next.want = false;
                }
            }
            EqOp::Command => {
                next = no_state;
                next.open = terms.open;
                next.turn = !state.turn;
                out.passes = true;
            }
            EqOp::Update => {
                if terms.valid & (terms.taken != state.taken) {
                    next.taken = terms.taken;
                    out.passes = true;
                } else if full {
                    next.want = true;
                }
            }
            _ => {
                let usable = state.open & ((op == EqOp::Event) | (terms.turn == state.turn));
                let has_place = state.parked != MOST;
                out.takes = true;
                out.writes = usable & !full;
                out.parks = usable & full & (has_place | (op == EqOp::Parked));
                if usable {
                    if (op == EqOp::Event) & full & has_place {
                        next.parked = state.parked + 1;
                    }
                    if (op == EqOp::Parked) & !full {
                        next.parked = state.parked - 1;
                    }
                    if half {
                        next.want = true;
                    }
                    if !full {
                        next.written = state.written + 1;
                        next.fresh = true;
                        next.last = terms.sent + 1;
                        if !state.fresh {
                            next.mark = terms.sent + 1;
                        }
                    }
                }
            }
        }
        next_state = next;
        decision = out;
    }
}
