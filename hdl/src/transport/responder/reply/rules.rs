//! The rules of replies and acknowledgements: what an operation makes of the state of its queue pair. No state of its own.
//!
//! | operation | if | then |
//! |---|---|---|
//! | Ack | nothing else of its queue pair waits, and there is room on the way out and for its class | leaves at once |
//! | Ack | else | waits in the place of the one that waits; ACKs coalesce (IB1 9.7.5.1) |
//! | Ack | it is an ACK, and of PSNs before the one that waits | forgotten: that one covers it |
//! | Ack | it is a NAK that ends the queue pair (IB1 9.9.3) | likewise, and no Ack and no Reply behind it counts |
//! | Reply | a new one | enters the ring; its response acknowledges what is before it, so that a waiting acknowledgement goes |
//! | Reply | a duplicate | enters the ring, to be executed or looked up again (IB1 9.7.5.1.5) |
//! | Reply | a duplicate whose answer is due already, or the 17th; the ring is full | dropped |
//! | Release | of a READ or a duplicate | it may be answered |
//! | Atomic | | the next atomic is over: it may be answered |
//! | Turn | the oldest reply may be answered | it starts |
//! | Turn | likewise, but it has a rate and was listed for an acknowledgement alone | listed again, to wait for its rate |
//! | Turn | there is none | the acknowledgement leaves |
//! | Turn | what would start or leave is of a class that is closed to it | stays listed, and waits ([`held`](super::held)) |
//! | Served | some packets of the reply are sent | listed again |
//! | Served | all of them; or it is a READ, and a later duplicate asks for the rest | the reply leaves the ring |
//! | Served | failed | **fails** |
//! | Lost | the queue pair answers | its NAK leaves, and it **fails** |
//! | Halt | | nothing of what waits runs or is answered; the turn under way goes to its end |
//! | Reset | | all that waits is forgotten; what is under way belongs to an earlier generation |
//!
//! What runs when is in [`run_rules`](super::run_rules).
//!
//! A queue pair that **fails**, or was halted, is `dead`: it answers nothing until a reset. Operations of
//! an earlier generation change nothing but the list.
use super::run_rules::RunRules;
use super::types::*;
use crate::prelude::*;

/// The oldest reply may be answered: a READ or duplicate past its fence, or, with `atomic`, an atomic that is over.
#[kernel_fn]
pub fn may_start(atomic: Bit, released: Bits<6>, done: Bits<5>) -> Bit {
    let may = if atomic { done.any() } else { released.any() };
    may
}

/// The reply behind the one that is finished, which was counted, may be answered: no difference is taken, its carry would come late.
#[kernel_fn]
fn next_may_start(state: ReplyState) -> Bit {
    let atomic = state.runs.bit(0);
    let released = state.released.slice::<5>(1).any() | (atomic & state.released.bit(0));
    let done = state.done.slice::<4>(1).any() | (!atomic & state.done.bit(0));
    let may = if state.runs.bit(1) { done } else { released };
    may
}

/// Of the replies in the ring one is no duplicate.
#[kernel_fn]
fn holds_new(state: ReplyState) -> Bit {
    state.count != state.duplicates.resize::<6>()
}

/// The PSN is one of the latest run of duplicates.
#[kernel_fn]
fn in_dups(order: PsnOrder) -> Bit {
    !order.before_dup & !order.after_dup
}

/// A reply does not enter: the ring is full, or it is a duplicate more than 16 or whose answer is due.
#[kernel_fn]
fn is_refused(state: ReplyState, order: PsnOrder, duplicate: Bit) -> Bit {
    // due: of the latest run of duplicates; without one, of a reply not executed before. What that says before it answers a
    // duplicate is of no use: its requester went back to an earlier one
    let due: Bit = if state.duplicates.any() {
        in_dups(order)
    } else {
        holds_new(state) & !order.before_due
    };
    state.count.bit(5) | (duplicate & (state.duplicates.bit(4) | due))
}

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
    /// The class of its queue pair is closed.
    pub closed: Signal<In, Bit>,
    /// Acknowledgements of that class wait.
    pub ack_waits: Signal<In, Bit>,
    /// The state afterwards.
    pub next_state: Signal<Out, ReplyState>,
    /// What follows from the operation.
    pub decision: Signal<Out, ReplyDecision>,

    running: RunRules,
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
        let current = (op.generation == state.generation) & !state.dead;
        // the oldest reply may be answered
        let may_run = may_start(state.runs.bit(0), state.released, state.done);
        let is_positive = !op.syndrome.slice::<2>(5).any();
        let is_final = op.syndrome.slice::<2>(5).all() & op.syndrome.low::<5>().any();
        let open = !state.dead & !state.ended;
        let refused = is_refused(state, order, op.duplicate);
        match op.kind {
            OpKind::Ack => {
                if open {
                    next.ended = is_final;
                    if empty & !state.listed & room {
                        out.leaves = true;
                    } else {
                        next.ack_due = true;
                        if !(state.ack_due & is_positive & order.before_ack) {
                            copy!(next <= op; psn, msn, syndrome);
                            out.writes.ack = true;
                        }
                        out.lists = empty & !state.listed;
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
                        if !state.duplicates.any() | !order.after_dup {
                            next.earlier = state.duplicates;
                            next.dup_first = op.psn;
                            out.writes.dup_first = true;
                        }
                    } else {
                        next.ack_due = false;
                        if op.runs {
                            next.runs = state.runs | (bits::<32>(1) << state.count.low::<5>());
                        }
                        if !holds_new(state) {
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
                if current & !op.runs {
                    next.released = state.released + 1;
                    out.lists = !state.listed & !state.runs.bit(0);
                }
            }
            OpKind::Atomic => {
                if current {
                    next.done = state.done + 1;
                    out.lists = !state.listed & state.runs.bit(0);
                }
            }
            OpKind::Turn => {
                let runs = !state.dead & may_run;
                let acks = !state.dead & empty & state.ack_due;
                if (runs & closed) | (acks & ack_waits) {
                    out.holds = true;
                    out.holds_ack = acks;
                } else if runs {
                    out.starts = !op.alone;
                    next.serving = !op.alone & !state.runs.bit(0);
                    out.lists = op.alone;
                } else {
                    next.listed = false;
                    if acks {
                        next.ack_due = false;
                        out.leaves = true;
                    }
                }
            }
            OpKind::Served => {
                next.listed = false;
                next.serving = false;
                if !current {
                    out.lists = !state.dead & (may_run | (empty & state.ack_due));
                } else if op.failed {
                    out.fails = true;
                } else {
                    let atomic = state.runs.bit(0);
                    let others = next_may_start(state);
                    out.lists = !op.over | others | ((state.count == 1) & state.ack_due);
                    next.offset = op.offset;
                    if op.over {
                        next.offset = 0;
                        next.head = state.head + 1;
                        next.count = state.count - 1;
                        next.runs = state.runs >> 1;
                        next.released = state.released - bits::<6>(0).replace_bit(0, !atomic);
                        next.done = state.done - bits::<5>(0).replace_bit(0, atomic);
                        if op.duplicate {
                            next.duplicates = state.duplicates - 1;
                            next.earlier -= bits::<5>(0).replace_bit(0, state.earlier.any());
                        }
                        if atomic {
                            next.save = state.save + 1;
                            next.saved += bits::<5>(0).replace_bit(0, !state.saved.bit(4));
                        }
                        out.replies = !op.duplicate;
                    }
                    if !op.duplicate {
                        next.due_psn = op.psn;
                        out.writes.due = true;
                    } else if in_dups(order) {
                        next.dup_first = op.psn;
                        out.writes.dup_first = true;
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
        running.op = op;
        running.current = current;
        running.enters = (op.kind == OpKind::Reply) & open & !refused & op.runs;
        running.dead = state.dead;
        running.state = state.running;
        next.running = running.next_state;
        copy!(out <= running; run_lists, runs, voids);
        next_state = next;
        decision = out;
    }
}
