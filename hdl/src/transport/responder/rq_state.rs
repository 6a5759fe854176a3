//! The dynamic state of all receive queues and the rules that change it.
//!
//! One [`RqEvent`] a cycle enters, with the packet beside it if it is one; 6 cycles later its results leave, registered:
//! at most one decision, one entry for the flush list, one failure, one answer to a command. Consumers have room by
//! construction: the parent admits an event only when they do, and a queue pair stands in the flush list at most once.
//!
//! ```text
//!  cycle n      n+1, n+2     n+3          n+4            n+5 (X)      n+6
//!  event ─► delay ─────────► state read ─► rkey verdict ─► decision ─► out
//! ```
//!
//! The memory region check of a WRITE's first packet is asked for in cycle n by the parent, so its verdict arrives one
//! cycle before stage X. Stage X sees the state after all earlier events ([`Rmw`]): packets of one queue pair may
//! follow each other in every cycle.
//!
//! Rules and their sources: docs/architecture.md 3.2; IBA vol. 1, 9.7.4 and 9.7.5 (responder). A packet is looked at in
//! this order: state, static checks, PSN, opcode order and lengths (NAK invalid request), rkey (NAK remote access),
//! receive WQE (RNR NAK).
use super::event::*;
use crate::bus::dma::MR_LATENCY;
use crate::bus::types::image::QpState;
use crate::prelude::*;

const _: () = assert!(MR_LATENCY == 4, "the delay before stage X is made for it");

/// State of 2^Q receive queues.
#[derive(LogicBlock, Default)]
pub struct RqStateTable<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// An event enters.
    pub valid: Signal<In, Bit>,
    /// The event.
    pub entry: Signal<In, RqEvent>,
    /// The packet, if it is one.
    pub request: Signal<In, RqRequest>,
    /// Verdict on the rkey of the packet that entered [`MR_LATENCY`] cycles ago.
    pub rkey_ok: Signal<In, Bit>,
    /// A command writes the completion queue of queue pair `image_qpn`.
    pub image_we: Signal<In, Bit>,
    /// Queue pair.
    pub image_qpn: Signal<In, Bits<Q>>,
    /// Completion queue.
    pub image_cqn: Signal<In, Bits<16>>,
    /// A decision on a packet, a flush or a command.
    pub decision_valid: Signal<Out, Bit>,
    /// The decision.
    pub decision: Signal<Out, RqDecision>,
    /// The packet it is on, if it is on one.
    pub decided: Signal<Out, RqRequest>,
    /// The queue pair has receive WQEs to flush.
    pub flush_valid: Signal<Out, Bit>,
    /// Which.
    pub flush_qpn: Signal<Out, Bits<16>>,
    /// A queue pair went into error because of a request.
    pub failed_valid: Signal<Out, Bit>,
    /// Which, and why.
    pub failed: Signal<Out, RqFailure>,
    /// Answer to Command.
    pub query_valid: Signal<Out, Bit>,
    /// Answer to Command: responder's part of the state, before the command.
    pub query: Signal<Out, QpState>,
    /// Counter pulses.
    pub counts: Signal<Out, RqCounts>,
    /// The table is swept after reset.
    pub ready: Signal<Out, Bit>,

    table: Rmw<RqState, Q>,
    cqns: Ram<Bits<16>, Q>,
    v: [Reg<Bit>; 3],
    e: [Dff<RqEvent>; 5],
    q: [Dff<RqRequest>; 5],

    // prepared for stage X
    denied5: Dff<Bit>,
    needs5: Dff<Bit>,
    ring5: Dff<Bits<16>>,
    flush_cqn: Dff<Bits<16>>,

    // stage X
    x: Signal<Local, RqEvent>,
    p: Signal<Local, RqRequest>,
    c: Signal<Local, RqState>,
    n: Signal<Local, RqState>,
    write: Signal<Local, Bit>,
    usable: Signal<Local, Bit>,
    packet: Signal<Local, Bit>,
    live: Signal<Local, Bit>,
    expected: Signal<Local, Bit>,
    ahead: Signal<Local, Bits<24>>,
    out_of_order: Signal<Local, Bit>,
    wrong_length: Signal<Local, Bit>,
    refused: Signal<Local, Bit>,
    starved: Signal<Local, Bit>,
    invalid: Signal<Local, Bit>,
    denied: Signal<Local, Bit>,
    rnr: Signal<Local, Bit>,
    accepted: Signal<Local, Bit>,
    duplicate: Signal<Local, Bit>,
    gap: Signal<Local, Bit>,
    fail: Signal<Local, Bit>,
    report: Signal<Local, Bit>,
    wake: Signal<Local, Bit>,
    restart: Signal<Local, Bit>,
    posted: Signal<Local, Bit>,
    flushing: Signal<Local, Bit>,
    own: Signal<Local, Bits<16>>,

    // stage W
    w_decision_valid: Reg<Bit>,
    w_decision: Dff<RqDecision>,
    w_request: Dff<RqRequest>,
    w_flush: Reg<Bit>,
    w_failed: Reg<Bit>,
    w_failure: Dff<RqFailure>,
    w_query: Reg<Bit>,
    w_state: Dff<QpState>,
    w_qpn: Dff<Bits<16>>,
    w_counts: Reg<RqCounts>,
    misplaced: Signal<Local, Bit>,
    silent_drop: Signal<Local, Bit>,
    unknown: Signal<Local, Bit>,
}

impl<const Q: usize> Logic for RqStateTable<Q> {
    describe!(
        "rq_state",
        format!("q{Q}"),
        "Dynamic state of all receive queues: one event a cycle."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, table, cqns);
        dff_setup!(self, clock, denied5, needs5, ring5, flush_cqn);
        dff_setup!(
            self,
            clock,
            w_decision_valid,
            w_decision,
            w_request,
            w_flush,
            w_failed,
            w_failure,
            w_query
        );
        dff_setup!(self, clock, w_state, w_qpn, w_counts);

        // stages 1 to 5
        for i in 0..3 {
            ClkRst::link(&mut self.clock, &mut self.v[i].clock);
        }
        for i in 0..5 {
            ClkRst::link(&mut self.clock, &mut self.e[i].clock);
            ClkRst::link(&mut self.clock, &mut self.q[i].clock);
        }
        self.v[0].d.next = self.valid.val();
        self.e[0].d.next = self.entry.val();
        self.q[0].d.next = self.request.val();
        for i in 1..3 {
            self.v[i].d.next = self.v[i - 1].q.val();
        }
        for i in 1..5 {
            self.e[i].d.next = self.e[i - 1].q.val();
            self.q[i].d.next = self.q[i - 1].q.val();
        }
        self.ready.next = self.table.ready.val();
        self.table.valid.next = self.v[2].q.val();
        self.table.addr.next = self.e[2].q.val().qpn.get_bits::<Q>(0);
        self.cqns.we.next = self.image_we.val();
        self.cqns.waddr.next = self.image_qpn.val();
        self.cqns.wdata.next = self.image_cqn.val();
        self.cqns.re.next = true;
        self.cqns.raddr.next = self.e[2].q.val().qpn.get_bits::<Q>(0);
        self.flush_cqn.d.next = self.cqns.rdata.val();
        self.denied5.d.next =
            self.q[3].q.val().write & self.q[3].q.val().first & !self.rkey_ok.val();
        self.needs5.d.next = (self.q[3].q.val().send & self.q[3].q.val().first)
            | (self.q[3].q.val().write & self.q[3].q.val().last & self.q[3].q.val().with_imm);

        self.ring5.d.next = (bits::<16>(1) << self.q[3].q.val().rq_log) - 1;

        // stage X
        self.x.next = self.e[4].q.val();
        self.p.next = self.q[4].q.val();
        self.c.next = self.table.current.val();
        self.n.next = self.table.current.val();
        self.write.next = true;
        self.fail.next = false;
        self.report.next = false;
        self.wake.next = false;
        self.restart.next = (self.x.val().kind == RqEventKind::Command) & self.x.val().reset;
        // RTR, RTS, SQD, SQE
        self.usable.next = self.c.val().state.get_bit(1) ^ self.c.val().state.get_bit(2);

        // what a packet meets
        self.packet.next = self.table.x_valid.val() & (self.x.val().kind == RqEventKind::Packet);
        self.live.next = self.packet.val() & self.usable.val() & (self.p.val().reason == 0);
        self.expected.next = self.p.val().psn == self.c.val().psn;
        self.ahead.next = self.p.val().psn - self.c.val().psn;
        self.out_of_order.next = (self.p.val().first == self.c.val().open)
            | (!self.p.val().first & (self.p.val().write != self.c.val().write));
        // a WRITE that ends too early or too late, a SEND that goes on behind 2^31 bytes
        self.wrong_length.next = (self.p.val().last != self.c.val().ends)
            | (self.p.val().last & (self.p.val().tail != self.c.val().tail));
        if self.p.val().send {
            self.wrong_length.next = self.c.val().done.get_bit(31);
        }
        self.refused.next = self.p.val().invalid
            | self.out_of_order.val()
            | (!self.p.val().first & self.wrong_length.val());
        self.posted.next = self.c.val().producer != self.c.val().index;
        self.starved.next = self.needs5.q.val() & !self.posted.val();

        self.invalid.next = self.live.val() & self.expected.val() & self.refused.val();
        self.denied.next =
            self.live.val() & self.expected.val() & !self.refused.val() & self.denied5.q.val();
        self.rnr.next = self.live.val()
            & self.expected.val()
            & !self.refused.val()
            & !self.denied5.q.val()
            & self.starved.val();
        self.accepted.next = self.live.val()
            & self.expected.val()
            & !self.refused.val()
            & !self.denied5.q.val()
            & !self.starved.val();
        self.duplicate.next = self.live.val() & self.ahead.val().get_bit(23);
        self.gap.next = self.live.val() & !self.expected.val() & !self.ahead.val().get_bit(23);

        self.flushing.next = (self.c.val().state == 6) & self.c.val().known & self.posted.val();

        // what becomes of the state
        match self.x.val().kind {
            RqEventKind::Packet => {
                if self.accepted.val() {
                    self.n.next.psn = self.c.val().psn + 1;
                    self.n.next.silent = false;
                    self.n.next.open = !self.p.val().last;
                    self.n.next.write = self.p.val().write;
                    self.n.next.done = self.c.val().done + bit_cast::<32, 13>(self.p.val().plen);
                    self.n.next.more = self.c.val().more - 1;
                    self.n.next.ends = self.c.val().more == 2;
                    if self.p.val().first {
                        self.n.next.done = bit_cast::<32, 13>(self.p.val().plen);
                        self.n.next.more = self.p.val().more;
                        self.n.next.ends = self.p.val().more == 1;
                        self.n.next.tail = self.p.val().tail;
                        self.n.next.va = self.p.val().va;
                        self.n.next.rkey = self.p.val().rkey;
                    }
                    if self.p.val().last {
                        self.n.next.msn = self.c.val().msn + 1;
                    }
                    if self.needs5.q.val() {
                        self.n.next.index = self.c.val().index + 1;
                    }
                }
                if self.duplicate.val() {
                    self.n.next.silent = false;
                }
                if self.gap.val() | self.rnr.val() {
                    self.n.next.silent = true;
                }
                self.fail.next = self.invalid.val() | self.denied.val();
                self.report.next = self.invalid.val() | self.denied.val();
            }
            RqEventKind::Doorbell => {
                self.n.next.producer = self.x.val().index;
                self.wake.next = self.c.val().state == 6;
            }
            RqEventKind::PlaceError => {
                self.fail.next =
                    self.usable.val() & (self.x.val().incarnation == self.c.val().incarnation);
                self.report.next = self.fail.val();
            }
            RqEventKind::SqFailed => {
                self.fail.next = self.usable.val();
            }
            RqEventKind::Command => {
                self.n.next.known = self.c.val().known | self.x.val().image;
                if self.x.val().set {
                    self.n.next.state = self.x.val().state;
                    self.fail.next = self.x.val().state == 6;
                    if self.x.val().state == 0 {
                        self.n.next.known = false;
                    }
                }
                // the producer index is the host's and stays
                if self.restart.val() {
                    self.n.next.incarnation = self.c.val().incarnation + 1;
                    self.n.next.silent = false;
                    self.n.next.open = false;
                    self.n.next.index = bits::<16>(0);
                    self.n.next.psn = self.x.val().psn;
                    self.n.next.msn = bits::<24>(0);
                }
            }
            RqEventKind::Flush => {
                self.n.next.queued = self.flushing.val();
                if self.flushing.val() {
                    self.n.next.index = self.c.val().index + 1;
                }
            }
            _ => {
                self.write.next = false;
            }
        }
        if self.fail.val() {
            self.n.next.state = bits::<3>(6);
            self.n.next.open = false;
            // the receive WQE of the message under way is flushed with the others
            if self.c.val().open & !self.c.val().write & !self.restart.val() {
                self.n.next.index = self.c.val().index - 1;
            }
            self.wake.next = true;
        }
        if self.wake.val() {
            self.n.next.queued = true;
        }
        self.table.write.next = self.write.val();
        self.table.result.next = self.n.val();

        // stage W
        self.w_decision_valid.d.next = self.table.x_valid.val()
            & (self.packet.val()
                | (self.x.val().kind == RqEventKind::Command)
                | (self.x.val().kind == RqEventKind::Flush));
        self.w_decision.d.next.qpn = self.x.val().qpn;
        self.w_decision.d.next.packet = self.packet.val();
        self.w_decision.d.next.accepted = self.accepted.val();
        self.w_decision.d.next.duplicate = self.duplicate.val();
        self.w_decision.d.next.gap = self.gap.val() & !self.c.val().silent;
        self.w_decision.d.next.rnr = self.rnr.val();
        self.w_decision.d.next.invalid = self.invalid.val();
        self.w_decision.d.next.denied = self.denied.val();
        self.w_decision.d.next.flush =
            (self.x.val().kind == RqEventKind::Flush) & self.flushing.val();
        self.w_decision.d.next.reset = self.restart.val();
        self.w_decision.d.next.incarnation = self.c.val().incarnation;
        self.own.next = self.c.val().index;
        if self.packet.val() & self.p.val().send & !self.p.val().first {
            self.own.next = self.c.val().index - 1;
        }
        self.w_decision.d.next.index = self.own.val();
        self.w_decision.d.next.slot = self.own.val() & self.ring5.q.val();
        self.w_decision.d.next.psn = self.c.val().psn;
        self.w_decision.d.next.msn = self.c.val().msn;
        self.w_decision.d.next.done = self.c.val().done;
        self.w_decision.d.next.va = self.c.val().va;
        self.w_decision.d.next.rkey = self.c.val().rkey;
        self.w_decision.d.next.cqn = self.flush_cqn.q.val();
        self.w_request.d.next = self.p.val();

        self.w_qpn.d.next = self.x.val().qpn;
        self.w_flush.d.next = self.table.x_valid.val()
            & ((self.wake.val() & !self.c.val().queued)
                | ((self.x.val().kind == RqEventKind::Flush) & self.flushing.val()));
        self.w_failed.d.next = self.table.x_valid.val() & self.report.val();
        self.w_failure.d.next.qpn = self.x.val().qpn;
        self.w_failure.d.next.event = bits::<8>(3);
        self.w_failure.d.next.detail = bits::<8>(21);
        if self.denied.val() {
            self.w_failure.d.next.event = bits::<8>(4);
        }
        if !self.packet.val() {
            self.w_failure.d.next.detail = self.x.val().status;
            if self.x.val().syndrome == 0x62 {
                self.w_failure.d.next.event = bits::<8>(4);
            }
            if self.x.val().syndrome == 0x63 {
                self.w_failure.d.next.event = bits::<8>(2);
            }
        }
        self.w_query.d.next =
            self.table.x_valid.val() & (self.x.val().kind == RqEventKind::Command);
        self.w_state.d.next.rq_state = bit_cast::<4, 3>(self.c.val().state);
        self.w_state.d.next.rq_psn = self.c.val().psn;
        self.w_state.d.next.msn = self.c.val().msn;
        self.w_state.d.next.rq_index = self.c.val().index;

        self.misplaced.next = self.table.x_valid.val()
            & (self.x.val().kind == RqEventKind::PlaceError)
            & self.report.val();
        self.silent_drop.next = self.packet.val() & (self.p.val().reason != 5);
        self.unknown.next = (self.p.val().reason == 1) | !self.c.val().known;
        self.w_counts.d.next.rx_unknown_qp = self.silent_drop.val() & self.unknown.val();
        self.w_counts.d.next.rx_qp_state =
            self.silent_drop.val() & !self.unknown.val() & !self.usable.val();
        self.w_counts.d.next.rx_wrong_transport =
            self.packet.val() & self.usable.val() & (self.p.val().reason == 2);
        self.w_counts.d.next.rx_pkey_violations =
            self.packet.val() & self.usable.val() & (self.p.val().reason == 3);
        self.w_counts.d.next.rx_wrong_address =
            self.packet.val() & self.usable.val() & (self.p.val().reason == 4);
        self.w_counts.d.next.rx_write_requests =
            self.accepted.val() & self.p.val().write & self.p.val().first;
        self.w_counts.d.next.rx_send_requests =
            self.accepted.val() & self.p.val().send & self.p.val().first;
        self.w_counts.d.next.out_of_sequence = self.gap.val();
        self.w_counts.d.next.duplicate_request = self.duplicate.val();
        self.w_counts.d.next.rnr_nak_sent = self.rnr.val();
        self.w_counts.d.next.invalid_request_errors =
            self.invalid.val() | (self.misplaced.val() & (self.x.val().syndrome == 0x61));
        self.w_counts.d.next.access_errors =
            self.denied.val() | (self.misplaced.val() & (self.x.val().syndrome == 0x62));
        self.w_counts.d.next.operational_errors =
            self.misplaced.val() & (self.x.val().syndrome == 0x63);

        self.decision_valid.next = self.w_decision_valid.q.val();
        self.decision.next = self.w_decision.q.val();
        self.decided.next = self.w_request.q.val();
        self.flush_valid.next = self.w_flush.q.val();
        self.flush_qpn.next = self.w_qpn.q.val();
        self.failed_valid.next = self.w_failed.q.val();
        self.failed.next = self.w_failure.q.val();
        self.query_valid.next = self.w_query.q.val();
        self.query.next = self.w_state.q.val();
        self.counts.next = self.w_counts.q.val();
    }
}
