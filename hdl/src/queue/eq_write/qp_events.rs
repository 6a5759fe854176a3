//! QP events: from what befalls queue pairs to events for their event queues.
//!
//! The event queue of a queue pair is that of the completion queue of its send queue; if there is no such completion queue
//! there is no event. A queue pair reports one failure until a command sets its state: QP_REQ_ERR, QP_ACCESS_ERR or
//! QP_FATAL of the responder, or QP_FATAL when the send queue failed; the other half fails with the first and is
//! muted. One that a command put into error is muted too. SQ_DRAINED, LAST_WQE_REACHED and COMM_EST are
//! reported as often as they happen.
//!
//! Rate: an item a cycle. Latency: 4 cycles. 2^Q events can wait to be taken; while as many do nothing enters, and none is lost.
//!
//! Assumes: `answered` comes in the order of the commands with the send queue's own pulses; an `RqFailure` is taken before the
//! pulse that the send queue fails with for its sake. While nothing enters, each queue pair fails once, and no more than 32 others
//! come: commands that set a state, and queue pairs of UC and UD that fail again by a completion queue that overflows.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use ferroce_proto::abi::cq::status::GENERAL_ERR;
use ferroce_proto::abi::eq::event::{COMM_EST, LAST_WQE_REACHED, QP_FATAL, SQ_DRAINED};

use super::types::EqEvent;
use crate::bus::payload::payload;
use crate::bus::qp_state::ERR;
use crate::bus::valid::Valid;
use crate::prelude::*;
use crate::queue::cq_write::{CqChange, CqMarked};
use crate::transport::responder::event::RqFailure;

payload! {
    /// What befell a queue pair.
    QpChange {
        /// Queue pair.
        qpn: Bits<16>,
        /// A failure is to be reported, if it is the first.
        fails: Bit,
        /// A marker, or the first request was accepted: it is reported in any case.
        always: Bit,
        /// No failure is to be reported from now on.
        mutes: Bit,
        /// The next failure is to be reported.
        unmutes: Bit,
        /// Event.
        kind: Bits<8>,
        /// Its detail.
        detail: Bits<8>,
    }

    /// A completion queue as an address of events.
    CqAddress {
        /// Exists.
        open: Bit,
        /// Event queue.
        eqn: Bits<8>,
    }
}

/// Events of 2^Q queue pairs and 2^C completion queues.
#[derive(Block)]
pub struct QpEvents<const Q: usize, const C: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Write the completion queue of a send queue.
    pub sq_we: Signal<In, Bit>,
    /// Queue pair.
    pub sq_qpn: Signal<In, Bits<Q>>,
    /// Its completion queue, below 2^C.
    pub sq_cqn: Signal<In, Bits<16>>,
    /// A completion queue is opened, closed or resized; it is below 2^C.
    pub cq: Signal<In, Valid<CqChange>>,
    /// The send queue carried out a command.
    pub answered: Signal<In, Bit>,
    /// The queue pair of the command.
    pub command_qpn: Signal<In, Bits<16>>,
    /// The command sets the send queue's state.
    pub command_set: Signal<In, Bit>,
    /// The state.
    pub command_state: Signal<In, Bits<3>>,
    /// A send queue failed, in this cycle.
    pub sq_failed: Signal<In, Bit>,
    /// Its queue pair.
    pub sq_failed_qpn: Signal<In, Bits<16>>,
    /// Completion status behind it, 0 if it is elsewhere.
    pub sq_failed_status: Signal<In, Bits<8>>,
    /// Send queues that drained, queue pairs that took their last receive WQE.
    pub marks: StreamIn<CqMarked>,
    /// Responders that failed, or accepted their first request.
    pub responder: StreamIn<RqFailure>,
    /// Events.
    pub events: StreamOut<EqEvent>,
    /// Something waits at an input, or is here.
    pub busy: Signal<Out, Bit>,
    /// The tables are swept after reset.
    pub ready: Signal<Out, Bit>,

    /// What the send side says, in its order: a failure a queue pair, and the commands that end while events wait.
    newest: Bypass<QpChange, 5>,
    changes: Bypass<QpChange, Q>,
    muted: Rmw<Bits<1>, Q>,
    send_cqs: SweptRam<Bits<16>, Q>,
    addresses: SweptRam<CqAddress, C>,
    out: Deep<EqEvent, Q>,
    item: Dff<QpChange>,
    item_x: Dff<QpChange>,
    entered: Reg<Bit>,
    /// `out` has room for all that is under way.
    room: Reg<Bit>,
    no_change: Zero<QpChange>,
    no_event: Zero<EqEvent>,
}

impl<const Q: usize, const C: usize> QpEvents<Q, C> {
    /// Events that wait while nothing enters: less than `out` holds by those under way.
    const FULL: u64 = (1 << Q) - 5;
}

impl<const Q: usize, const C: usize> Logic for QpEvents<Q, C> {
    describe!(
        "qp_events",
        format!("q{Q}_c{C}"),
        "From what befalls queue pairs to events."
    );

    #[kernel]
    fn update(&mut self) {
        // the tables
        send_cqs.we = sq_we;
        send_cqs.waddr = sq_qpn;
        send_cqs.wdata = sq_cqn;
        addresses.we = cq.valid;
        addresses.waddr = cq.payload.cqn.low::<C>();
        copy!(addresses.wdata <= cq.payload; open, eqn);
        ready = send_cqs.ready & addresses.ready & muted.ready;

        // the send side: a command, or a failure
        let befalls = sq_failed | (answered & command_set);
        newest.s.valid = befalls;
        newest.s.payload = no_change;
        newest.s.payload.qpn = sq_failed_qpn;
        newest.s.payload.fails = true;
        newest.s.payload.kind = QP_FATAL;
        newest.s.payload.detail = sq_failed_status;
        if !sq_failed_status.any() {
            newest.s.payload.detail = GENERAL_ERR;
        }
        if answered {
            newest.s.payload = no_change;
            newest.s.payload.qpn = command_qpn;
            newest.s.payload.mutes = command_state == ERR;
            newest.s.payload.unmutes = !(command_state == ERR);
        }
        assert!(
            !befalls | newest.s.ready,
            "what befell a send queue is lost"
        );
        forward!(changes.s <= newest.m);

        // entry: responders first
        room = muted.ready & (out.level < Self::FULL);
        let mut enters = room;
        let mut next = no_change;
        responder.ready = room;
        changes.m.ready = false;
        marks.ready = false;
        if responder.valid {
            next.qpn = responder.payload.qpn;
            next.always = responder.payload.event == COMM_EST;
            next.fails = !(responder.payload.event == COMM_EST);
            next.kind = responder.payload.event;
            next.detail = responder.payload.detail;
        } else if changes.m.valid {
            next = changes.m.payload;
            changes.m.ready = room;
        } else if marks.valid {
            next.qpn = marks.payload.qpn;
            next.always = true;
            next.kind = SQ_DRAINED;
            if marks.payload.recv {
                next.kind = LAST_WQE_REACHED;
            }
            marks.ready = room;
        } else {
            enters = false;
        }
        muted.valid = enters;
        muted.addr = next.qpn.low::<Q>();
        send_cqs.re = true;
        send_cqs.raddr = next.qpn.low::<Q>();
        item = next;

        // stage 1: the completion queue is there; stage X: its event queue, and whether a failure is the first
        addresses.re = true;
        addresses.raddr = send_cqs.rdata.low::<C>();
        item_x = item;
        muted.result = muted.current;
        if item_x.fails | item_x.mutes {
            muted.result = bits::<1>(1);
        }
        if item_x.unmutes {
            muted.result = bits::<1>(0);
        }
        muted.write = muted.x_valid;
        let report = item_x.always | (item_x.fails & !muted.current.any());
        out.s.valid = muted.x_valid & report & addresses.rdata.open;
        out.s.payload = no_event;
        out.s.payload.eqn = addresses.rdata.eqn;
        out.s.payload.event = item_x.kind;
        out.s.payload.detail = item_x.detail;
        out.s.payload.object = item_x.qpn;
        forward!(events <= out.m);
        entered = enters;
        let comes = responder.valid | marks.valid;
        let waits = newest.m.valid | changes.m.valid | out.m.valid;
        busy = comes | waits | entered | muted.x_valid;
    }
}
