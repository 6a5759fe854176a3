//! The rules of replies and acknowledgements: what an operation makes of the state of its queue pair. No state of its own.
//!
//! | operation | if | then |
//! |---|---|---|
//! | Ack | nothing else of its queue pair waits, and there is room on the way out | leaves at once |
//! | Ack | else | waits in the place of the one that waits; ACKs coalesce (IB1 9.7.5.1) |
//! | Ack | it is an ACK, and of PSNs before the one that waits | forgotten: that one covers it |
//! | Ack | it is a NAK that ends the queue pair (IB1 9.9.3) | likewise, and no Ack and no Reply behind it counts |
//! | Reply | a new one | enters the ring; its response acknowledges what is before it, so that a waiting acknowledgement goes |
//! | Reply | a duplicate | enters the ring, to be executed or looked up again (IB1 9.7.5.1.5) |
//! | Reply | a duplicate whose answer is due already, or the 17th; the ring is full | dropped |
//! | Release | | the oldest reply held back for its fence may run |
//! | Turn | a reply may run | the oldest one starts |
//! | Turn | likewise, but it has a rate and was listed for an acknowledgement alone | listed again, to wait for its rate |
//! | Turn | there is none | the acknowledgement leaves |
//! | Served | some packets of the reply are sent | listed again |
//! | Served | all of them | the reply leaves the ring; an atomic is under way, its result kept at `save` |
//! | Served | it waits for atomics before it | listed again when the last of these is done |
//! | Served, Atomic | failed | **fails** |
//! | Atomic | the last one | READs and acknowledgements behind it may go |
//! | Lost | the queue pair answers | its NAK leaves, and it **fails** |
//! | Halt | | nothing of what waits is answered; the turn under way goes to its end |
//! | Reset | | all that waits is forgotten; what is under way belongs to an earlier generation |
//!
//! A queue pair that **fails**, or was halted, is `dead`: it answers nothing until a reset. Operations of
//! an earlier generation change nothing but the list.
use super::types::*;
use crate::prelude::*;

/// The rules, combinational.
#[derive(Block)]
pub struct ReplyRules {
    /// The operation.
    pub op: Signal<In, Op>,
    /// Last PSN of a reply.
    pub last: Signal<In, Bits<24>>,
    /// State of its queue pair.
    pub state: Signal<In, ReplyState>,
    /// Where its PSN stands to those of the state.
    pub order: Signal<In, PsnOrder>,
    /// An acknowledgement may leave at once.
    pub room: Signal<In, Bit>,
    /// The state afterwards.
    pub next_state: Signal<Out, ReplyState>,
    /// What follows from the operation.
    pub decision: Signal<Out, ReplyDecision>,

    blank: Zero<ReplyState>,
    no_decision: Zero<ReplyDecision>,
}

impl Logic for ReplyRules {
    describe!(
        "reply_rules",
        "What an operation makes of the replies and the acknowledgement of a queue pair."
    );

    #[kernel]
    fn update(&mut self) {
        let mut next = state;
        let mut out = no_decision;
        let empty = !state.count.any();
        let idle = empty & !state.atomics.any();
        let current = (op.generation == state.generation) & !state.dead;
        let may_run = state.released.any();
        let is_positive = !op.syndrome.slice::<2>(5).any();
        let is_final = op.syndrome.slice::<2>(5).all() & op.syndrome.low::<5>().any();
        let open = !state.dead & !state.ended;

        // a duplicate whose answer is due: of a reply not executed before, or of the latest run of duplicates
        let in_dups = !order.before_dup & !order.after_dup;
        let has_new = state.count != state.duplicates.resize::<6>();
        let has_dups = state.duplicates.any();
        let due = (has_new & !order.before_due) | (has_dups & in_dups);
        let refused = state.count.bit(5) | (op.duplicate & (state.duplicates.bit(4) | due));

        match op.kind {
            OpKind::Ack => {
                if open {
                    next.ended = is_final;
                    if idle & !state.listed & room {
                        out.leaves = true;
                    } else {
                        next.ack_due = true;
                        if !(state.ack_due & is_positive & order.before_ack) {
                            copy!(next <= op; psn, msn, syndrome);
                            out.writes.ack = true;
                        }
                        out.lists = idle & !state.listed;
                    }
                }
            }
            OpKind::Reply => {
                if open & !refused {
                    out.enters = true;
                    next.live = true;
                    next.incarnation = op.incarnation;
                    next.count = state.count + 1;
                    if op.duplicate {
                        next.duplicates = state.duplicates + 1;
                        next.dup_last = last;
                        out.writes.dup_last = true;
                        if !has_dups | !order.after_dup {
                            next.dup_first = op.psn;
                            out.writes.dup_first = true;
                        }
                    } else {
                        next.ack_due = false;
                        if !has_new {
                            next.due_psn = op.psn;
                            out.writes.due = true;
                        }
                    }
                }
            }
            OpKind::Reset => {
                next = blank;
                next.listed = state.listed;
                next.generation = state.generation + 1;
            }
            OpKind::Halt => next.dead = true,
            OpKind::Release => {
                if current {
                    next.released = state.released + 1;
                    out.lists = !state.listed;
                }
            }
            OpKind::Turn => {
                if !state.dead & may_run {
                    out.starts = !op.alone;
                    out.lists = op.alone;
                } else {
                    next.listed = false;
                    if !state.dead & idle & state.ack_due {
                        next.ack_due = false;
                        out.leaves = true;
                    }
                }
            }
            OpKind::Served => {
                next.listed = false;
                if !current {
                    out.lists = !state.dead & (may_run | (idle & state.ack_due));
                } else if op.waits {
                    out.lists = !(op.blocked & state.atomics.any());
                } else if op.failed {
                    out.fails = true;
                } else {
                    let others = state.released.slice::<5>(1).any();
                    let ends_all = (state.count == 1) & !state.atomics.any() & !op.atomic;
                    out.lists = !op.over | others | (ends_all & state.ack_due);
                    next.offset = op.offset;
                    if op.over {
                        next.offset = 0;
                        next.head = state.head + 1;
                        next.count = state.count - 1;
                        next.released = state.released - 1;
                        if op.duplicate {
                            next.duplicates = state.duplicates - 1;
                        }
                        if op.atomic {
                            next.atomics = state.atomics + 1;
                            if !op.duplicate {
                                next.save = state.save + 1;
                                if !state.saved.bit(4) {
                                    next.saved = state.saved + 1;
                                }
                            }
                        }
                        out.replies = !op.duplicate & !op.atomic;
                    }
                    if !op.duplicate {
                        next.due_psn = op.psn;
                        out.writes.due = true;
                    } else if in_dups {
                        next.dup_first = op.psn;
                        out.writes.dup_first = true;
                    }
                }
            }
            OpKind::Atomic => {
                if current {
                    next.atomics = state.atomics - 1;
                    if op.failed {
                        out.fails = true;
                    } else {
                        out.replies = !op.duplicate;
                        out.lists = !state.listed
                            & (state.atomics == 1)
                            & (may_run | (empty & state.ack_due));
                    }
                }
            }
            OpKind::Lost => {
                out.fails = state.live & !state.dead;
                out.leaves = state.live & !state.dead;
            }
            _ => {}
        }
        if out.lists {
            next.listed = true;
        }
        if out.fails {
            next.dead = true;
        }
        next_state = next;
        decision = out;
    }
}
