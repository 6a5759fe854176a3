//! Reports that follow from a decision: counters, failures and first requests of queue pairs.
//!
//! Rate: a decision a cycle. Latency: a cycle.
use ferroce_proto::abi::cq::status::GENERAL_ERR;
use ferroce_proto::abi::eq::event::{COMM_EST, QP_ACCESS_ERR, QP_FATAL, QP_REQ_ERR};

use super::event::reason::{ADDRESS, NO_QP, NO_REQUEST, PKEY, QKEY, TRANSPORT};
use super::event::*;
use crate::bus::syndrome::{NAK_ACCESS, NAK_INVALID};
use crate::prelude::*;

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
        let packet = valid & decision.packet;

        // UC and UD count what RC answers with a NAK, and go on
        let ends = valid
            & ((decision.packet & !request.unreliable) | (decision.misplaced & !decision.spared));
        let bad_request =
            valid & (decision.invalid | (decision.misplaced & (decision.syndrome == NAK_INVALID)));
        let bad_access =
            valid & (decision.denied | (decision.misplaced & (decision.syndrome == NAK_ACCESS)));
        let bad_operation = valid & decision.misplaced & !bad_request & !bad_access;
        failed_now =
            (ends & (bad_request | bad_access | bad_operation)) | (valid & decision.establishes);
        failure.qpn = decision.qpn;
        failure.event = QP_FATAL;
        if bad_request {
            failure.event = QP_REQ_ERR;
        }
        if bad_access {
            failure.event = QP_ACCESS_ERR;
        }
        failure.detail = GENERAL_ERR;
        if decision.misplaced {
            failure.detail = decision.status;
        }
        if decision.establishes {
            failure.event = COMM_EST;
            failure.detail = bits::<8>(0);
        }

        // silent drops, by the first reason: no queue pair, its state, the static checks
        // a datagram counts once
        let counted = packet & (request.reason != NO_REQUEST) & !request.grh;
        let unknown = (request.reason == NO_QP) | !decision.known;
        let reached = counted & decision.usable;
        pulses.rx_unknown_qp = counted & unknown;
        pulses.rx_qp_state = counted & !unknown & !decision.usable;
        pulses.rx_wrong_transport = reached & (request.reason == TRANSPORT);
        pulses.rx_pkey_violations = reached & (request.reason == PKEY);
        pulses.rx_qkey_violations = reached & (request.reason == QKEY);
        pulses.rx_wrong_address = reached & (request.reason == ADDRESS);
        let begun = valid & decision.accepted & request.first;
        pulses.rx_write_requests = begun & request.write;
        pulses.rx_send_requests = begun & request.send;
        pulses.rx_read_requests = begun & request.read;
        pulses.rx_atomic_requests = begun & request.atomic;
        pulses.out_of_sequence = valid & (decision.gap | decision.skipped);
        pulses.duplicate_request = valid & decision.duplicate;
        pulses.rnr_nak_sent = valid & decision.rnr;
        pulses.invalid_request_errors = bad_request;
        pulses.access_errors = bad_access;
        pulses.operational_errors = bad_operation;

        failed_valid = failed_now;
        failed = failure;
        counts = pulses;
    }
}
