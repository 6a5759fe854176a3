//! Completion queues: their states and images, changed by one operation in every second cycle.
//!
//! ```text
//!  cycle n        n+1                       n+2 (X)                     n+3
//!  enter, addr ─► image, sums over state ─► live, op: rules, decision ─► refused, switched
//! ```
//!
//! The sums are formed a cycle before the operation, of the state as it will be then.
use super::rules::{CqDecision, CqRules, CqTerms};
use super::types::{CqArm, CqChange, CqCommand, CqOp, CqState};
use crate::bus::types::CqToken;
use crate::bus::types::image::CqCtx;
use crate::bus::valid::Valid;
use crate::prelude::*;

/// States and images of 2^C completion queues.
#[derive(Block)]
pub struct CqQueues<const C: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// An operation enters; not in two cycles on end, and not in that behind a command's stage X.
    pub enter: Signal<In, Bit>,
    /// Its queue.
    pub addr: Signal<In, Bits<C>>,
    /// The cycle before stage X: the operation is a command.
    pub commanded: Signal<In, Bit>,
    /// The operation, from the cycle before stage X on.
    pub op: Signal<In, CqOp>,
    /// Stage X: there is one.
    pub live: Signal<In, Bit>,
    /// The command, from the cycle before stage X on.
    pub command: Signal<In, CqCommand>,
    /// The doorbell, likewise.
    pub doorbell: Signal<In, CqArm>,
    /// The completion.
    pub token: Signal<In, CqToken>,
    /// See [`CqTerms`].
    pub settled: Signal<In, Bit>,
    /// See [`CqTerms`].
    pub may_ask: Signal<In, Bit>,
    /// See [`CqTerms`].
    pub updates: Signal<In, Bit>,
    /// See [`CqTerms`].
    pub taken: Signal<In, Bits<24>>,
    /// Stage X: the queue.
    pub cqn: Signal<Out, Bits<C>>,
    /// Its image.
    pub image: Signal<Out, CqCtx>,
    /// Size of its ring less one.
    pub mask: Signal<Out, Bits<24>>,
    /// Its state, before the operation.
    pub state: Signal<Out, CqState>,
    /// What follows.
    pub decision: Signal<Out, CqDecision>,
    /// The last command was refused.
    pub refused: Signal<Out, Bit>,
    /// Entries of its queue written before it, modulo 2^24.
    pub switched: Signal<Out, Bits<24>>,
    /// A command changed a queue; one cycle.
    pub changed: Signal<Out, Valid<CqChange>>,
    /// The table is swept after reset.
    pub ready: Signal<Out, Bit>,

    table: Rmw<CqState, C>,
    images: Ram<CqCtx, C>,
    rules: CqRules,
    // stage X
    image_x: Dff<CqCtx>,
    mask_x: Dff<Bits<24>>,
    waiting: Dff<Bits<24>>,
    level: Dff<Bits<24>>,
    ahead: Dff<Bits<24>>,
    // stage W
    w_refused: Reg<Bit>,
    w_switched: Dff<Bits<24>>,
    w_changed: Reg<Valid<CqChange>>,
}

impl<const C: usize> Logic for CqQueues<C> {
    describe!(
        "cq_queues",
        format!("c{C}"),
        "States and images of completion queues."
    );

    #[kernel]
    fn update(&mut self) {
        table.valid = enter;
        table.addr = addr;
        images.re = true;
        images.raddr = addr;

        // sums over the state as it will be
        let found = images.rdata;
        image_x = found;
        let mut log_size = found.log_size;
        if commanded {
            log_size = command.image.log_size;
        }
        mask_x = !(bits::<24>(0xffffff) << log_size);
        let next_word = table.next_word;
        level = next_word.written - next_word.taken;
        waiting = next_word.written + !command.taken;
        let mut point = doorbell.index;
        let mut end = next_word.solicited_end;
        if op == CqOp::Update {
            point = taken;
        } else if doorbell.any {
            end = next_word.written;
        }
        ahead = end - point;

        // stage X
        rules.valid = live;
        rules.op = op;
        rules.token = token;
        rules.command = command;
        rules.doorbell = doorbell;
        rules.state = table.current;
        rules.terms = CqTerms {
            mask: mask_x,
            level: level,
            waiting: waiting,
            ahead: ahead,
            settled: settled,
            may_ask: may_ask,
            updates: updates,
            taken: taken,
        };
        table.write = live;
        table.result = rules.next_state;
        images.we = rules.decision.changes;
        images.waddr = table.x_addr;
        images.wdata = command.image;
        cqn = table.x_addr;
        image = image_x;
        mask = mask_x;
        state = table.current;
        decision = rules.decision;

        // stage W
        if live & (op == CqOp::Command) {
            w_refused = !rules.decision.changes;
            w_switched = table.current.written;
        }
        w_changed.valid = rules.decision.changes;
        w_changed.payload.cqn = table.x_addr.resize::<16>();
        w_changed.payload.open = command.open | command.resize;
        w_changed.payload.eqn = command.image.eqn;
        changed = w_changed;
        refused = w_refused;
        switched = w_switched;
        ready = table.ready;
    }
}
