//! Command events: tells requester and responder of a command on a queue pair and collects their answers.
//!
//! From `start` on an event of kind Command is offered to both; `busy` is 1 from the next cycle until both have
//! answered. Of a command on a shared receive queue (`shared`) only the responder is told, by an event of kind SrqCommand. `found` is the state of the queue pair before the command, each block's part of it by its own answer.
//! `head` and `set` stand while `busy`.
use crate::bus::types::image::{CmdHead, QpState};
use crate::prelude::*;
use crate::transport::requester::event::{SqEvent, SqEventKind};
use crate::transport::responder::event::{RqEvent, RqEventKind};

/// The block.
#[derive(LogicBlock, Default)]
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

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, sq_due, rq_due, sq_open, rq_open, state);
        if self.sq_event.ready.val() {
            self.sq_due.d.next = false;
        }
        if self.rq_event.ready.val() {
            self.rq_due.d.next = false;
        }
        if self.sq_query_valid.val() {
            self.sq_open.d.next = false;
            self.state.d.next.sq_state = self.sq_query.val().sq_state;
            self.state.d.next.sq_psn = self.sq_query.val().sq_psn;
            self.state.d.next.una_psn = self.sq_query.val().una_psn;
        }
        if self.rq_query_valid.val() {
            self.rq_open.d.next = false;
            self.state.d.next.rq_state = self.rq_query.val().rq_state;
            self.state.d.next.rq_psn = self.rq_query.val().rq_psn;
            self.state.d.next.msn = self.rq_query.val().msn;
            self.state.d.next.rq_index = self.rq_query.val().rq_index;
        }
        self.state.d.next.rsv0 = bits::<8>(0);
        if self.start.val() {
            self.sq_due.d.next = !self.shared.val();
            self.rq_due.d.next = true;
            self.sq_open.d.next = !self.shared.val();
            self.rq_open.d.next = true;
        }
        self.busy.next = self.sq_open.q.val() | self.rq_open.q.val();
        self.found.next = self.state.q.val();

        self.sq_event.valid.next = self.sq_due.q.val();
        self.sq_event.payload.next = self.no_sq_event.val();
        self.sq_event.payload.next.kind = SqEventKind::Command;
        self.sq_event.payload.next.qpn = self.head.val().index.get_bits::<16>(0);
        self.sq_event.payload.next.psn = self.head.val().sq_psn;
        self.sq_event.payload.next.state = self.head.val().sq_state.get_bits::<3>(0);
        self.sq_event.payload.next.set = self.set.val() & self.head.val().qp_sq_state;
        self.sq_event.payload.next.reset =
            self.set.val() & self.head.val().qp_sq_state & self.head.val().sq_reset;
        self.rq_event.valid.next = self.rq_due.q.val();
        self.rq_event.payload.next = self.no_rq_event.val();
        self.rq_event.payload.next.kind = RqEventKind::Command;
        self.rq_event.payload.next.qpn = self.head.val().index.get_bits::<16>(0);
        self.rq_event.payload.next.psn = self.head.val().rq_psn;
        self.rq_event.payload.next.state = self.head.val().rq_state.get_bits::<3>(0);
        self.rq_event.payload.next.set = self.set.val() & self.head.val().qp_rq_state;
        self.rq_event.payload.next.reset =
            self.set.val() & self.head.val().qp_rq_state & self.head.val().rq_reset;
        self.rq_event.payload.next.image = self.set.val() & self.head.val().qp_rq;
        if self.shared.val() {
            self.rq_event.payload.next = self.no_rq_event.val();
            self.rq_event.payload.next.kind = RqEventKind::SrqCommand;
            self.rq_event.payload.next.srqn = self.head.val().index.get_bits::<16>(0);
            self.rq_event.payload.next.set = self.srq_opens.val() | self.srq_closes.val();
            self.rq_event.payload.next.image = self.srq_opens.val();
            self.rq_event.payload.next.index = self.srq_limit.val();
        }
    }
}
