//! Command events: tells requester and responder of a command on a queue pair and collects their answers.
//!
//! From `start` on an event of kind Command is offered to both; `busy` is 1 from the next cycle until both have
//! answered. A command on a shared receive queue (`shared`) goes to the responder only, as an event of kind SrqCommand.
//! `found` is the state of the queue pair before the command, each block's part of it by its own answer.
//! `head` and `set` stand while `busy`.
use crate::bus::types::image::{CmdHead, QpState};
use crate::prelude::*;
use crate::transport::requester::event::{SqEvent, SqEventKind};
use crate::transport::responder::event::{RqEvent, RqEventKind};

/// The block.
#[derive(Block)]
pub struct CommandEvents {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Begin.
    pub start: Signal<In, Bit>,
    /// The command.
    pub head: Signal<In, CmdHead>,
    /// It sets states (MODIFY_QP); else it only asks.
    pub set: Signal<In, Bit>,
    /// It is one on a shared receive queue.
    pub shared: Signal<In, Bit>,
    /// This begins to exist.
    pub srq_opens: Signal<In, Bit>,
    /// It ends to exist.
    pub srq_closes: Signal<In, Bit>,
    /// Its limit.
    pub srq_limit: Signal<In, Bits<16>>,
    /// An answer is missing.
    pub busy: Signal<Out, Bit>,
    /// State of the queue pair.
    pub found: Signal<Out, QpState>,
    /// Events for the requester.
    pub sq_event: StreamOut<SqEvent>,
    /// Answer to one.
    pub sq_query_valid: Signal<In, Bit>,
    /// Requester's part of the state.
    pub sq_query: Signal<In, QpState>,
    /// Events for the responder.
    pub rq_event: StreamOut<RqEvent>,
    /// Answer to one.
    pub rq_query_valid: Signal<In, Bit>,
    /// Responder's part of the state.
    pub rq_query: Signal<In, QpState>,

    // events not taken, and not answered
    sq_due: Reg<Bit>,
    rq_due: Reg<Bit>,
    sq_open: Reg<Bit>,
    rq_open: Reg<Bit>,
    state: Dff<QpState>,
    no_sq_event: Zero<SqEvent>,
    no_rq_event: Zero<RqEvent>,
}

impl Logic for CommandEvents {
    describe!(
        "command_events",
        "Tells requester and responder of a command and collects their answers."
    );

    #[kernel]
    fn update(&mut self) {
        if sq_event.ready {
            sq_due = false;
        }
        if rq_event.ready {
            rq_due = false;
        }
        if sq_query_valid {
            sq_open = false;
            copy!(state <= sq_query; sq_state, sq_psn, una_psn);
        }
        if rq_query_valid {
            rq_open = false;
            copy!(state <= rq_query; rq_state, rq_psn, msn, rq_index);
        }
        state.rsv0 = bits::<8>(0);
        if start {
            sq_due = !shared;
            rq_due = true;
            sq_open = !shared;
            rq_open = true;
        }
        busy = sq_open | rq_open;
        found = state;

        sq_event.valid = sq_due;
        sq_event.payload = no_sq_event;
        sq_event.payload.kind = SqEventKind::Command;
        sq_event.payload.qpn = head.index.low::<16>();
        sq_event.payload.psn = head.sq_psn;
        sq_event.payload.state = head.sq_state.low::<3>();
        sq_event.payload.set = set & head.qp_sq_state;
        sq_event.payload.reset = set & head.qp_sq_state & head.sq_reset;
        sq_event.payload.image = set & head.qp_sq;
        rq_event.valid = rq_due;
        rq_event.payload = no_rq_event;
        rq_event.payload.kind = RqEventKind::Command;
        rq_event.payload.qpn = head.index.low::<16>();
        rq_event.payload.psn = head.rq_psn;
        rq_event.payload.state = head.rq_state.low::<3>();
        rq_event.payload.set = set & head.qp_rq_state;
        rq_event.payload.reset = set & head.qp_rq_state & head.rq_reset;
        rq_event.payload.image = set & head.qp_rq;
        if shared {
            rq_event.payload = no_rq_event;
            rq_event.payload.kind = RqEventKind::SrqCommand;
            rq_event.payload.srqn = head.index.low::<16>();
            rq_event.payload.set = srq_opens | srq_closes;
            rq_event.payload.image = srq_opens;
            rq_event.payload.index = srq_limit;
        }
    }
}
