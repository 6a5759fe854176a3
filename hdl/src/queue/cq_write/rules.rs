//! The rules of a completion queue: what an operation makes of its state. No state of its own.
//!
//! A queue is *usable* if it is open and has not overflowed. A reason to report that finds a report of its queue waiting
//! needs none of its own.
//!
//! | operation | if | then |
//! |---|---|---|
//! | Token | a marker | no CQE, see [`reports`](super::reports) |
//! | Token | usable, an entry is free | a CQE; an armed queue reports it |
//! | Token | usable, full | waits for a read of the consumer record that is begun after it |
//! | Token | usable, full by a read that is final for it ([`looks`](super::looks)) | the queue overflows: **lost**, and reported |
//! | Token | not usable | **lost** |
//! | Token | half the ring is not taken, no read is final for it | the consumer record is read |
//! | Command | opens or closes | a fresh state; reports that wait stay |
//! | Command | resizes, usable, what is not taken fits | goes on in the new ring |
//! | Command | resizes, else | refused |
//! | Arm | an entry that is asked for is there | reported |
//! | Arm | else | the next one is |
//! | Report | | handed over: first the entry, then the overflow |
//! | Update | the read succeeded, of the queue as it is | its entries are free |
//!
//! **Lost**: the queue pair of the completion goes into error.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use super::types::{CqArm, CqCommand, CqOp, CqState};
use crate::bus::payload::payload;
use crate::bus::types::CqToken;
use crate::prelude::*;

payload! {
    /// What is known beside the state.
    CqTerms {
        /// Size of the ring less one; resize: of the new ring.
        mask: Bits<24>,
        /// Entries in the ring.
        level: Bits<24>,
        /// Entries that wait when the host resizes, less one.
        waiting: Bits<24>,
        /// Entries that a doorbell asks for and that are there.
        ahead: Bits<24>,
        /// What is known is final for the token ([`looks`](super::looks)).
        settled: Bit,
        /// A read may begin.
        may_ask: Bit,
        /// Update: the read succeeded, and the queue is the same.
        updates: Bit,
        /// Update: entries taken by the host, modulo 2^24.
        taken: Bits<24>,
    }

    /// What follows from an operation.
    CqDecision {
        /// The command changes the queue.
        changes: Bit,
        /// The token becomes a CQE.
        writes: Bit,
        /// It waits.
        waits: Bit,
        /// It is lost.
        loses: Bit,
        /// The queue overflows with it.
        overflows: Bit,
        /// The consumer record is read.
        asks: Bit,
        /// For a token that waits.
        full: Bit,
        /// The queue has something to report.
        reports: Bit,
        /// An overflow is reported; else an entry.
        error: Bit,
    }
}

/// The rules, combinational.
#[derive(Block)]
pub struct CqRules {
    /// There is an operation.
    pub valid: Signal<In, Bit>,
    /// What it is.
    pub op: Signal<In, CqOp>,
    /// Token: the completion.
    pub token: Signal<In, CqToken>,
    /// Command: the command.
    pub command: Signal<In, CqCommand>,
    /// Arm: the doorbell.
    pub doorbell: Signal<In, CqArm>,
    /// What else is known.
    pub terms: Signal<In, CqTerms>,
    /// State of the queue.
    pub state: Signal<In, CqState>,
    /// The state afterwards.
    pub next_state: Signal<Out, CqState>,
    /// What follows.
    pub decision: Signal<Out, CqDecision>,

    no_state: Zero<CqState>,
}

impl Logic for CqRules {
    describe!("cq_rules", "What an operation makes of a completion queue.");

    #[kernel]
    fn update(&mut self) {
        let mut next = state;
        let full = (terms.level & !terms.mask).any();
        let half = (terms.level & !(terms.mask >> 1)).any();
        let usable = state.open & !state.overflowed;
        let completing = valid & (op == CqOp::Token) & !token.marker;
        let accepts = usable & !full & !token.marker;
        let overflows = usable & full & terms.settled & !token.marker;
        let waits = usable & full & !terms.settled;
        let fits = terms.waiting.bit(23) | !(terms.waiting & !terms.mask).any();
        let solicited = token.solicited | token.status.any();
        let is_ahead = terms.ahead.any() & !terms.ahead.bit(23);
        let both = state.open & state.completion_due & state.error_due;
        let pending = state.completion_due | state.error_due;
        let mut fires = false;
        match op {
            CqOp::Token => {
                if accepts {
                    next.written = state.written + 1;
                    if solicited {
                        next.solicited_end = state.written + 1;
                    }
                    fires = state.armed | (state.armed_solicited & solicited);
                }
                if overflows {
                    next.overflowed = true;
                    next.error_due = true;
                }
            }
            CqOp::Command => {
                if !command.resize {
                    next = no_state;
                    next.open = command.open;
                    copy!(next <= state; completion_due, error_due);
                } else if usable & fits {
                    next.taken = command.taken;
                }
            }
            CqOp::Arm => {
                if doorbell.any | doorbell.solicited {
                    // an order for any entry stands beside one for a solicited one
                    next.armed = state.open & (state.armed | doorbell.any);
                    next.armed_solicited = state.open & !doorbell.any;
                    fires = state.open & is_ahead;
                }
            }
            CqOp::Report => {
                // both are reported one after the other
                next.completion_due = false;
                next.error_due = both;
            }
            CqOp::Update => {
                if terms.updates {
                    next.taken = terms.taken;
                    // the host has it; kept close, or it would be ahead again when the count has gone half round
                    if terms.ahead.bit(23) {
                        next.solicited_end = terms.taken;
                    }
                }
            }
            _ => {}
        }
        if fires {
            next.armed = false;
            next.armed_solicited = false;
            next.completion_due = true;
        }
        next_state = next;
        decision = CqDecision {
            changes: valid & (op == CqOp::Command) & (!command.resize | (usable & fits)),
            writes: completing & accepts,
            waits: completing & waits,
            loses: completing & !accepts & !waits,
            overflows: completing & overflows,
            asks: completing & usable & half & terms.may_ask & !overflows,
            full: full,
            reports: valid
                & ((fires & !pending)
                    | (completing & overflows & !pending)
                    | ((op == CqOp::Report) & both)),
            error: !state.completion_due,
        };
    }
}
