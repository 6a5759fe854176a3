//! From a decision to who is told of it: counters, and failures of queue pairs.
//!
//! Rate: a decision a cycle. Latency: a cycle.
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::eq::event;
use ferroce_proto::wire::{NakCode, Syndrome};

use super::event::reason::{ADDRESS, NO_QP, NO_REQUEST, PKEY, QKEY, TRANSPORT};
use super::event::*;
use crate::prelude::*;

const QP_FATAL: u64 = event::QP_FATAL as u64;
const QP_REQ_ERR: u64 = event::QP_REQ_ERR as u64;
const QP_ACCESS_ERR: u64 = event::QP_ACCESS_ERR as u64;
const GENERAL_ERR: u64 = status::GENERAL_ERR as u64;
const NAK_INVALID: u64 = Syndrome::Nak(NakCode::InvalidRequest).bits() as u64;
const NAK_ACCESS: u64 = Syndrome::Nak(NakCode::RemoteAccess).bits() as u64;

/// Counts decisions and reports failures.
#[derive(LogicBlock, Default)]
pub struct Reporter {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A decision is there.
    pub valid: Signal<In, Bit>,
    /// The decision.
    pub decision: Signal<In, RqDecision>,
    /// The packet it is on, if it is on one.
    pub request: Signal<In, RqRequest>,
    /// A queue pair went into error because of a request.
    pub failed_valid: Signal<Out, Bit>,
    /// Which, and why.
    pub failed: Signal<Out, RqFailure>,
    /// Counter pulses.
    pub counts: Signal<Out, RqCounts>,

    failed_now: Reg<Bit>,
    failure: Dff<RqFailure>,
    pulses: Reg<RqCounts>,
    d: Signal<Local, RqDecision>,
    p: Signal<Local, RqRequest>,
    packet: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    bad_request: Signal<Local, Bit>,
    bad_access: Signal<Local, Bit>,
    bad_operation: Signal<Local, Bit>,
    heard: Signal<Local, Bit>,
    unknown: Signal<Local, Bit>,
    reached: Signal<Local, Bit>,
    begun: Signal<Local, Bit>,
}

impl Logic for Reporter {
    describe!(
        "responder_report",
        "Counts the responder's decisions and reports failures of queue pairs.";
        QP_FATAL, QP_REQ_ERR, QP_ACCESS_ERR, GENERAL_ERR, NAK_INVALID, NAK_ACCESS,
        ADDRESS, NO_QP, NO_REQUEST, PKEY, QKEY, TRANSPORT
    );

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, failed_now, failure, pulses);
        self.d.next = self.decision.val();
        self.p.next = self.request.val();
        self.packet.next = self.valid.val() & self.d.val().packet;

        // UC and UD count what RC answers with a NAK, and go on
        self.ends.next = self.valid.val()
            & ((self.d.val().packet & !self.p.val().unreliable)
                | (self.d.val().misplaced & !self.d.val().spared));
        self.bad_request.next = self.valid.val()
            & (self.d.val().invalid
                | (self.d.val().misplaced & (self.d.val().syndrome == NAK_INVALID)));
        self.bad_access.next = self.valid.val()
            & (self.d.val().denied
                | (self.d.val().misplaced & (self.d.val().syndrome == NAK_ACCESS)));
        self.bad_operation.next = self.valid.val()
            & self.d.val().misplaced
            & !self.bad_request.val()
            & !self.bad_access.val();
        self.failed_now.d.next = self.ends.val()
            & (self.bad_request.val() | self.bad_access.val() | self.bad_operation.val());
        self.failure.d.next.qpn = self.d.val().qpn;
        self.failure.d.next.event = QP_FATAL.into();
        if self.bad_request.val() {
            self.failure.d.next.event = QP_REQ_ERR.into();
        }
        if self.bad_access.val() {
            self.failure.d.next.event = QP_ACCESS_ERR.into();
        }
        self.failure.d.next.detail = GENERAL_ERR.into();
        if self.d.val().misplaced {
            self.failure.d.next.detail = self.d.val().status;
        }

        // silent drops, by the first reason: no queue pair, its state, the static checks
        // a datagram counts once
        self.heard.next =
            self.packet.val() & (self.p.val().reason != NO_REQUEST) & !self.p.val().grh;
        self.unknown.next = (self.p.val().reason == NO_QP) | !self.d.val().known;
        self.reached.next = self.heard.val() & self.d.val().usable;
        self.pulses.d.next.rx_unknown_qp = self.heard.val() & self.unknown.val();
        self.pulses.d.next.rx_qp_state =
            self.heard.val() & !self.unknown.val() & !self.d.val().usable;
        self.pulses.d.next.rx_wrong_transport =
            self.reached.val() & (self.p.val().reason == TRANSPORT);
        self.pulses.d.next.rx_pkey_violations = self.reached.val() & (self.p.val().reason == PKEY);
        self.pulses.d.next.rx_qkey_violations = self.reached.val() & (self.p.val().reason == QKEY);
        self.pulses.d.next.rx_wrong_address = self.reached.val() & (self.p.val().reason == ADDRESS);
        self.begun.next = self.valid.val() & self.d.val().accepted & self.p.val().first;
        self.pulses.d.next.rx_write_requests = self.begun.val() & self.p.val().write;
        self.pulses.d.next.rx_send_requests = self.begun.val() & self.p.val().send;
        self.pulses.d.next.rx_read_requests = self.begun.val() & self.p.val().read;
        self.pulses.d.next.rx_atomic_requests = self.begun.val() & self.p.val().atomic;
        self.pulses.d.next.out_of_sequence =
            self.valid.val() & (self.d.val().gap | self.d.val().skipped);
        self.pulses.d.next.duplicate_request = self.valid.val() & self.d.val().duplicate;
        self.pulses.d.next.rnr_nak_sent = self.valid.val() & self.d.val().rnr;
        self.pulses.d.next.invalid_request_errors = self.bad_request.val();
        self.pulses.d.next.access_errors = self.bad_access.val();
        self.pulses.d.next.operational_errors = self.bad_operation.val();

        self.failed_valid.next = self.failed_now.q.val();
        self.failed.next = self.failure.q.val();
        self.counts.next = self.pulses.q.val();
    }
}
