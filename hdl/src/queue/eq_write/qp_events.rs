//! QP events: from what befalls queue pairs to events for their event queues.
//!
//! The event queue of a queue pair is that of the completion queue of its send queue; if there is no such completion queue
//! nobody is told. A queue pair reports one failure until a command sets its state: QP_REQ_ERR, QP_ACCESS_ERR or QP_FATAL of the
//! responder, or QP_FATAL when the send queue failed; the other half fails with the first and is silent. One that a command
//! put into error is silent too. SQ_DRAINED is reported as often as it happens.
//!
//! Rate: an item a cycle. Latency: 3 cycles, of a drain 4. Assumes: `answered` comes in the order of the commands with the send queue's
//! own pulses; an `RqFailure` is taken before the pulse that the send queue fails with for its sake. 2^Q events can wait
//! to be taken; while as many do a further one is forgotten.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::qpc::state;

use super::types::EqEvent;
use crate::bus::payload::payload;
use crate::prelude::*;
use crate::transport::responder::event::RqFailure;

const QP_FATAL: u64 = event::QP_FATAL as u64;
const SQ_DRAINED: u64 = event::SQ_DRAINED as u64;
const GENERAL_ERR: u64 = status::GENERAL_ERR as u64;
const ERR: u64 = state::ERR as u64;

payload! {
    /// What befell a queue pair.
    QpNews {
        /// Queue pair.
        qpn: Bits<16>,
        /// A failure is to be reported, if it is the first.
        fails: Bit,
        /// The send queue drained.
        drains: Bit,
        /// No failure is to be reported from now on.
        silences: Bit,
        /// The next failure is to be reported.
        revives: Bit,
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
#[derive(LogicBlock, Default)]
pub struct QpEvents<const Q: usize, const C: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Write the completion queue of a send queue.
    pub sq_we: Signal<In, Bit>,
    /// Queue pair.
    pub sq_qpn: Signal<In, Bits<Q>>,
    /// Its completion queue, below 2^C.
    pub sq_cqn: Signal<In, Bits<16>>,
    /// A completion queue is opened or closed.
    pub cq_we: Signal<In, Bit>,
    /// Which.
    pub cq_cqn: Signal<In, Bits<16>>,
    /// It is opened.
    pub cq_open: Signal<In, Bit>,
    /// Its event queue.
    pub cq_eqn: Signal<In, Bits<8>>,
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
    /// A send queue drained, in this cycle.
    pub drained: Signal<In, Bit>,
    /// Its queue pair.
    pub drained_qpn: Signal<In, Bits<16>>,
    /// Responders that failed.
    pub responder: StreamIn<RqFailure>,
    /// Events.
    pub events: StreamOut<EqEvent>,
    /// The tables are swept after reset.
    pub ready: Signal<Out, Bit>,

    /// What the send side says, in its order.
    news: Bypass<QpNews, Q>,
    drains: Fifo<Bits<16>, Q>,
    silent: Rmw<Bits<1>, Q>,
    send_cqs: Ram<Bits<16>, Q>,
    addresses: Ram<CqAddress, C>,
    out: Fifo<EqEvent, Q>,
    sweep_q: Reg<Bits<Q>>,
    swept_q: Reg<Bit>,
    sweep_c: Reg<Bits<C>>,
    swept_c: Reg<Bit>,
    item: Dff<QpNews>,
    item_x: Dff<QpNews>,
    next: Signal<Local, QpNews>,
    enters: Signal<Local, Bit>,
    tells: Signal<Local, Bit>,
    no_news: Zero<QpNews>,
    no_address: Zero<CqAddress>,
    no_event: Zero<EqEvent>,
}

impl<const Q: usize, const C: usize> Logic for QpEvents<Q, C> {
    describe!(
        "qp_events",
        format!("q{Q}_c{C}"),
        "From what befalls queue pairs to events.";
        QP_FATAL, SQ_DRAINED, GENERAL_ERR, ERR
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, news, drains, silent, send_cqs, addresses, out);
        dff_setup!(
            self, clock, sweep_q, swept_q, sweep_c, swept_c, item, item_x
        );

        // the tables
        self.send_cqs.we.next = self.sq_we.val();
        self.send_cqs.waddr.next = self.sq_qpn.val();
        self.send_cqs.wdata.next = self.sq_cqn.val();
        if !self.swept_q.q.val() {
            self.send_cqs.we.next = true;
            self.send_cqs.waddr.next = self.sweep_q.q.val();
            self.send_cqs.wdata.next = bits::<16>(0);
            self.sweep_q.d.next = self.sweep_q.q.val() + 1;
            self.swept_q.d.next = self.sweep_q.q.val().all();
        }
        self.addresses.we.next = self.cq_we.val();
        self.addresses.waddr.next = self.cq_cqn.val().get_bits::<C>(0);
        self.addresses.wdata.next.open = self.cq_open.val();
        self.addresses.wdata.next.eqn = self.cq_eqn.val();
        if !self.swept_c.q.val() {
            self.addresses.we.next = true;
            self.addresses.waddr.next = self.sweep_c.q.val();
            self.addresses.wdata.next = self.no_address.val();
            self.sweep_c.d.next = self.sweep_c.q.val() + 1;
            self.swept_c.d.next = self.sweep_c.q.val().all();
        }
        self.ready.next = self.swept_q.q.val() & self.swept_c.q.val() & self.silent.ready.val();

        // the send side: a command, or a failure
        self.news.s.valid.next =
            self.sq_failed.val() | (self.answered.val() & self.command_set.val());
        self.news.s.payload.next = self.no_news.val();
        self.news.s.payload.next.qpn = self.sq_failed_qpn.val();
        self.news.s.payload.next.fails = true;
        self.news.s.payload.next.kind = QP_FATAL.into();
        self.news.s.payload.next.detail = self.sq_failed_status.val();
        if !self.sq_failed_status.val().any() {
            self.news.s.payload.next.detail = GENERAL_ERR.into();
        }
        if self.answered.val() {
            self.news.s.payload.next = self.no_news.val();
            self.news.s.payload.next.qpn = self.command_qpn.val();
            self.news.s.payload.next.silences = self.command_state.val() == ERR;
            self.news.s.payload.next.revives = !(self.command_state.val() == ERR);
        }
        self.drains.s.valid.next = self.drained.val();
        self.drains.s.payload.next = self.drained_qpn.val();

        // entry: responders first
        self.enters.next = self.silent.ready.val();
        self.next.next = self.no_news.val();
        self.responder.ready.next = self.silent.ready.val();
        self.news.m.ready.next = false;
        self.drains.m.ready.next = false;
        if self.responder.valid.val() {
            self.next.next.qpn = self.responder.payload.val().qpn;
            self.next.next.fails = true;
            self.next.next.kind = self.responder.payload.val().event;
            self.next.next.detail = self.responder.payload.val().detail;
        } else if self.news.m.valid.val() {
            self.next.next = self.news.m.payload.val();
            self.news.m.ready.next = self.silent.ready.val();
        } else if self.drains.m.valid.val() {
            self.next.next.qpn = self.drains.m.payload.val();
            self.next.next.drains = true;
            self.next.next.kind = SQ_DRAINED.into();
            self.drains.m.ready.next = self.silent.ready.val();
        } else {
            self.enters.next = false;
        }
        self.silent.valid.next = self.enters.val();
        self.silent.addr.next = self.next.val().qpn.get_bits::<Q>(0);
        self.send_cqs.re.next = true;
        self.send_cqs.raddr.next = self.next.val().qpn.get_bits::<Q>(0);
        self.item.d.next = self.next.val();

        // stage 1: the completion queue is there; stage X: its event queue, and whether a failure is news
        self.addresses.re.next = true;
        self.addresses.raddr.next = self.send_cqs.rdata.val().get_bits::<C>(0);
        self.item_x.d.next = self.item.q.val();
        self.silent.result.next = self.silent.current.val();
        if self.item_x.q.val().fails | self.item_x.q.val().silences {
            self.silent.result.next = bits::<1>(1);
        }
        if self.item_x.q.val().revives {
            self.silent.result.next = bits::<1>(0);
        }
        self.silent.write.next = self.silent.x_valid.val();
        self.tells.next = self.item_x.q.val().drains
            | (self.item_x.q.val().fails & !self.silent.current.val().any());
        self.out.s.valid.next =
            self.silent.x_valid.val() & self.tells.val() & self.addresses.rdata.val().open;
        self.out.s.payload.next = self.no_event.val();
        self.out.s.payload.next.eqn = self.addresses.rdata.val().eqn;
        self.out.s.payload.next.event = self.item_x.q.val().kind;
        self.out.s.payload.next.detail = self.item_x.q.val().detail;
        self.out.s.payload.next.object = self.item_x.q.val().qpn;
        StreamOut::<EqEvent>::link(&mut self.events, &mut self.out.m);
    }
}
