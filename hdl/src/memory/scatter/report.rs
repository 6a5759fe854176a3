//! What follows a placement: acknowledgement, answer, completion, error.
//!
//! Joins the tail of a placement, its verdict and the end of its writes (with the fence), and tells the four who want
//! to know. Throughput: a placement a cycle. Latency: 1 cycle. All four streams must be ready, whoever of them is told.
use ferroce_proto::abi::cq::status;

use super::types::{Tail, Verdict};
use crate::bus::types::{AckToken, Answer, CqToken, PlaceError};
use crate::prelude::*;

const LOC_LEN_ERR: u64 = status::LOC_LEN_ERR as u64;
const LOC_PROT_ERR: u64 = status::LOC_PROT_ERR as u64;
const LOC_QP_OP_ERR: u64 = status::LOC_QP_OP_ERR as u64;
const WR_FLUSH_ERR: u64 = status::WR_FLUSH_ERR as u64;
const GENERAL_ERR: u64 = status::GENERAL_ERR as u64;
/// AETH syndrome of NAK code 0.
const NAK: u64 = 0x60;

/// Report of placements.
#[derive(LogicBlock, Default)]
pub struct Report {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Placements.
    pub tail: StreamIn<Tail>,
    /// Their verdicts.
    pub verdict: StreamIn<Verdict>,
    /// The ends of their writes: payload bursts so far, modulo 2^16.
    pub done: StreamIn<Bits<16>>,
    /// Acknowledgements, turns of replies, ends and fresh starts of queue pairs.
    pub ack: StreamOut<AckToken>,
    /// What the requester is told.
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
    fire: Signal<Local, Bit>,
    failed: Signal<Local, Bit>,
    status: Signal<Local, Bits<8>>,
    ack_token: Signal<Local, AckToken>,
    answered: Signal<Local, Answer>,
    cq_token: Signal<Local, CqToken>,
    place_error: Signal<Local, PlaceError>,
}

impl Logic for Report {
    describe!("scatter_report", "Reports placements.";
        LOC_LEN_ERR, LOC_PROT_ERR, LOC_QP_OP_ERR, WR_FLUSH_ERR, GENERAL_ERR, NAK);

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, acks, answers, cqs, errors);
        self.fire.next = self.tail.valid.val()
            & self.verdict.valid.val()
            & self.done.valid.val()
            & self.acks.s.ready.val()
            & self.answers.s.ready.val()
            & self.cqs.s.ready.val()
            & self.errors.s.ready.val();
        self.tail.ready.next = self.fire.val();
        self.verdict.ready.next = self.fire.val();
        self.done.ready.next = self.fire.val();
        self.failed.next = self.verdict.payload.val().nak != 0;

        self.ack_token.next.qpn = self.tail.payload.val().qpn;
        self.ack_token.next.psn = self.tail.payload.val().psn;
        self.ack_token.next.msn = self.tail.payload.val().msn;
        self.ack_token.next.syndrome = self.tail.payload.val().syndrome;
        self.ack_token.next.reply = self.tail.payload.val().reply;
        self.ack_token.next.void = self.tail.payload.val().reply & !self.verdict.payload.val().good;
        self.ack_token.next.reset = self.tail.payload.val().reset;
        self.ack_token.next.halt = self.tail.payload.val().halt;
        self.ack_token.next.fence = self.done.payload.val();
        if self.failed.val() {
            // A message that failed does not count.
            if self.tail.payload.val().end {
                self.ack_token.next.msn = self.tail.payload.val().msn - 1;
            }
            self.ack_token.next.syndrome = bit_cast::<8, 2>(self.verdict.payload.val().nak) | NAK;
        }
        self.acks.s.payload.next = self.ack_token.val();
        self.acks.s.valid.next = self.fire.val()
            & ((self.failed.val() & !self.tail.payload.val().unreliable)
                | self.tail.payload.val().reply
                | self.tail.payload.val().reset
                | self.tail.payload.val().halt
                | (self.verdict.payload.val().good & self.tail.payload.val().ack));
        StreamOut::<AckToken>::link(&mut self.ack, &mut self.acks.m);

        match self.verdict.payload.val().cause.index() {
            1 => {
                self.status.next = LOC_LEN_ERR.into();
            }
            2 => {
                self.status.next = LOC_PROT_ERR.into();
            }
            3 => {
                self.status.next = LOC_QP_OP_ERR.into();
            }
            _ => {
                self.status.next = WR_FLUSH_ERR.into();
            }
        }
        self.answered.next.qpn = self.tail.payload.val().qpn;
        self.answered.next.psn = self.tail.payload.val().psn;
        self.answered.next.syndrome = self.tail.payload.val().syndrome;
        self.answered.next.data = self.tail.payload.val().data & self.verdict.payload.val().good;
        self.answered.next.implied = self.tail.payload.val().implied;
        self.answered.next.missing = self.tail.payload.val().msn;
        self.answered.next.status = self.status.val();
        if self.verdict.payload.val().good | self.tail.payload.val().closed {
            self.answered.next.status = self.tail.payload.val().status;
        }
        self.answered.next.closed = self.tail.payload.val().closed;
        self.answered.next.fence = self.done.payload.val();
        self.answers.s.payload.next = self.answered.val();
        self.answers.s.valid.next = self.fire.val() & self.verdict.payload.val().answer;
        StreamOut::<Answer>::link(&mut self.answer, &mut self.answers.m);

        self.cq_token.next.cqn = self.tail.payload.val().cqn;
        self.cq_token.next.fence = self.done.payload.val();
        self.cq_token.next.qpn = self.tail.payload.val().qpn;
        self.cq_token.next.opcode = self.tail.payload.val().cqe_opcode;
        self.cq_token.next.wqe_index = self.tail.payload.val().wqe_index;
        self.cq_token.next.byte_len = self.tail.payload.val().byte_len;
        self.cq_token.next.imm = self.tail.payload.val().imm;
        self.cq_token.next.status = self.status.val();
        if self.verdict.payload.val().good {
            self.cq_token.next.status = self.tail.payload.val().status;
        }
        self.cq_token.next.vendor_err = bits::<8>(0);
        self.cq_token.next.with_imm = self.tail.payload.val().with_imm;
        self.cq_token.next.with_inv = self.tail.payload.val().with_inv;
        self.cq_token.next.solicited = self.tail.payload.val().solicited;
        self.cq_token.next.recv = true;
        self.cq_token.next.src_qpn = self.tail.payload.val().src_qpn;
        self.cq_token.next.pkey = self.tail.payload.val().pkey;
        self.cq_token.next.grh = self.tail.payload.val().grh;
        self.cq_token.next.fenced = true;
        self.cqs.s.payload.next = self.cq_token.val();
        self.cqs.s.valid.next = self.fire.val()
            & (self.verdict.payload.val().complete
                | (self.verdict.payload.val().good & self.tail.payload.val().complete));
        StreamOut::<CqToken>::link(&mut self.cq, &mut self.cqs.m);

        self.place_error.next.qpn = self.tail.payload.val().qpn;
        self.place_error.next.incarnation = self.tail.payload.val().incarnation;
        self.place_error.next.syndrome = self.ack_token.val().syndrome;
        self.place_error.next.spared = self.verdict.payload.val().spared;
        self.place_error.next.status = self.status.val();
        if self.verdict.payload.val().nak == 2 {
            self.place_error.next.status = GENERAL_ERR.into();
        }
        self.errors.s.payload.next = self.place_error.val();
        self.errors.s.valid.next = self.fire.val() & self.failed.val();
        StreamOut::<PlaceError>::link(&mut self.error, &mut self.errors.m);
    }
}
