//! What follows a placement: acknowledgement, answer, completion, error.
//!
//! Joins the tail of a placement, the result of its check and the end of its writes (with the fence), and reports to
//! four blocks. Throughput: a placement a cycle. Latency: 1 cycle. All four streams must be ready, also those without a
//! report.
use ferroce_proto::abi::cq::status::{
    GENERAL_ERR, LOC_ACCESS_ERR, LOC_LEN_ERR, LOC_PROT_ERR, LOC_QP_OP_ERR, WR_FLUSH_ERR,
};

use super::types::{FailCause, MrResult, Tail};
use crate::bus::types::{AckToken, Answer, CqToken, PlaceError, PlaceKind};
use crate::prelude::*;

/// AETH syndrome of NAK code 0.
const NAK: u64 = 0x60;

/// Report of placements.
#[derive(Block)]
pub struct Report {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Placements.
    pub tail: StreamIn<Tail>,
    /// The results of their checks.
    pub mr_result: StreamIn<MrResult>,
    /// The ends of their writes: payload bursts so far, modulo 2^16.
    pub done: StreamIn<Bits<16>>,
    /// Acknowledgements, turns of replies, ends and fresh starts of queue pairs.
    pub ack: StreamOut<AckToken>,
    /// Answers to the requester.
    pub answer: StreamOut<Answer>,
    /// Completions.
    pub cq: StreamOut<CqToken>,
    /// Failures.
    pub error: StreamOut<PlaceError>,
    /// The one whose taker's ready is deep.
    acks: SkidRam<AckToken>,
    answers: Slice<Answer>,
    cqs: Slice<CqToken>,
    errors: Slice<PlaceError>,
    status: Signal<Local, Bits<8>>,
    ack_token: Signal<Local, AckToken>,
    answered: Signal<Local, Answer>,
    cq_token: Signal<Local, CqToken>,
    place_error: Signal<Local, PlaceError>,
}

impl Logic for Report {
    describe!("scatter_report", "Reports placements.");

    #[kernel]
    fn update(&mut self) {
        let fire = tail.valid
            & mr_result.valid
            & done.valid
            & acks.s.ready
            & answers.s.ready
            & cqs.s.ready
            & errors.s.ready;
        tail.ready = fire;
        mr_result.ready = fire;
        done.ready = fire;
        let failed = mr_result.payload.nak != 0;
        // a message of a connection that succeeds: what is answered waits for its completion
        let judged = mr_result.payload.good
            & tail.payload.complete
            & !tail.payload.unreliable
            & !tail.payload.status.any();

        copy!(ack_token <= tail.payload; qpn, psn, msn, syndrome, reply, incarnation);
        ack_token.completes = judged;
        ack_token.unanswered = judged & !tail.payload.ack;
        ack_token.void = tail.payload.reply & !mr_result.payload.good;
        ack_token.reset = tail.payload.reset;
        ack_token.rsp_flush = tail.payload.rsp_flush;
        ack_token.fence = done.payload;
        if failed {
            // A message that failed does not count.
            if tail.payload.end {
                ack_token.msn = tail.payload.msn - 1;
            }
            ack_token.syndrome = mr_result.payload.nak.resize::<8>() | NAK;
        }
        acks.s.payload = ack_token;
        acks.s.valid = fire
            & ((failed & !tail.payload.unreliable)
                | tail.payload.reply
                | tail.payload.reset
                | tail.payload.rsp_flush
                | judged
                | (mr_result.payload.good & tail.payload.ack));
        forward!(ack <= acks.m);

        status = match mr_result.payload.cause {
            FailCause::Length => LOC_LEN_ERR,
            FailCause::Protection => LOC_PROT_ERR,
            FailCause::Operation => LOC_QP_OP_ERR,
            _ => WR_FLUSH_ERR,
        };
        // IB1 11.6.2: of a WRITE with immediate the protection error has a name of its own
        if mr_result.payload.spared & (tail.payload.kind == PlaceKind::Write) {
            status = LOC_ACCESS_ERR;
        }
        copy!(answered <= tail.payload; qpn, psn, syndrome);
        answered.data = tail.payload.data & mr_result.payload.good;
        answered.implied = tail.payload.implied;
        answered.missing = tail.payload.msn;
        answered.status = status;
        if mr_result.payload.good | tail.payload.closed {
            answered.status = tail.payload.status;
        }
        answered.closed = tail.payload.closed;
        answered.fence = done.payload;
        answers.s.payload = answered;
        answers.s.valid = fire & mr_result.payload.answer;
        forward!(answer <= answers.m);

        cq_token.cqn = tail.payload.cqn;
        cq_token.fence = done.payload;
        cq_token.qpn = tail.payload.qpn;
        cq_token.opcode = tail.payload.cqe_opcode;
        copy!(cq_token <= tail.payload; wqe_index, byte_len, imm);
        cq_token.status = status;
        if mr_result.payload.good {
            cq_token.status = tail.payload.status;
        }
        cq_token.vendor_err = bits::<8>(0);
        copy!(cq_token <= tail.payload; with_imm, with_inv, solicited);
        cq_token.recv = true;
        copy!(cq_token <= tail.payload; src_qpn, pkey, grh);
        cq_token.fenced = true;
        cq_token.marker = tail.payload.last_wqe;
        cq_token.judged = judged;
        copy!(cq_token <= mr_result.payload; after_atomics, atomics);
        cqs.s.payload = cq_token;
        cqs.s.valid = fire
            & (mr_result.payload.complete
                | (mr_result.payload.good & tail.payload.complete)
                | tail.payload.last_wqe);
        forward!(cq <= cqs.m);

        place_error.qpn = tail.payload.qpn;
        place_error.incarnation = tail.payload.incarnation;
        place_error.syndrome = ack_token.syndrome;
        place_error.spared = mr_result.payload.spared;
        place_error.status = status;
        if mr_result.payload.nak == 2 {
            place_error.status = GENERAL_ERR;
        }
        errors.s.payload = place_error;
        errors.s.valid = fire & failed;
        forward!(error <= errors.m);
    }
}
