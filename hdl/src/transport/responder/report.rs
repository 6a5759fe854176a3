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
#[derive(Block)]
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
}

impl Logic for Reporter {
    describe!(
        "responder_report",
        "Counts the responder's decisions and reports failures of queue pairs."
    );

    #[kernel]
    fn update(&mut self) {
        let d = decision;
        let p = request;
        let packet = valid & d.packet;

        // UC and UD count what RC answers with a NAK, and go on
        let ends = valid & ((d.packet & !p.unreliable) | (d.misplaced & !d.spared));
        let bad_request = valid & (d.invalid | (d.misplaced & (d.syndrome == NAK_INVALID)));
        let bad_access = valid & (d.denied | (d.misplaced & (d.syndrome == NAK_ACCESS)));
        let bad_operation = valid & d.misplaced & !bad_request & !bad_access;
        failed_now = ends & (bad_request | bad_access | bad_operation);
        failure.qpn = d.qpn;
        failure.event = QP_FATAL;
        if bad_request {
            failure.event = QP_REQ_ERR;
        }
        if bad_access {
            failure.event = QP_ACCESS_ERR;
        }
        failure.detail = GENERAL_ERR;
        if d.misplaced {
            failure.detail = d.status;
        }

        // silent drops, by the first reason: no queue pair, its state, the static checks
        // a datagram counts once
        let heard = packet & (p.reason != NO_REQUEST) & !p.grh;
        let unknown = (p.reason == NO_QP) | !d.known;
        let reached = heard & d.usable;
        pulses.rx_unknown_qp = heard & unknown;
        pulses.rx_qp_state = heard & !unknown & !d.usable;
        pulses.rx_wrong_transport = reached & (p.reason == TRANSPORT);
        pulses.rx_pkey_violations = reached & (p.reason == PKEY);
        pulses.rx_qkey_violations = reached & (p.reason == QKEY);
        pulses.rx_wrong_address = reached & (p.reason == ADDRESS);
        let begun = valid & d.accepted & p.first;
        pulses.rx_write_requests = begun & p.write;
        pulses.rx_send_requests = begun & p.send;
        pulses.rx_read_requests = begun & p.read;
        pulses.rx_atomic_requests = begun & p.atomic;
        pulses.out_of_sequence = valid & (d.gap | d.skipped);
        pulses.duplicate_request = valid & d.duplicate;
        pulses.rnr_nak_sent = valid & d.rnr;
        pulses.invalid_request_errors = bad_request;
        pulses.access_errors = bad_access;
        pulses.operational_errors = bad_operation;

        failed_valid = failed_now;
        failed = failure;
        counts = pulses;
    }
}
