//! From a decision to what follows from it: the placement, its acknowledgement and completion, the
//! receive WQE to read, the READ or atomic to answer.
//!
//! Rate: a decision a cycle. Latency: a cycle. A decision from which nothing follows gives no placement.
use ferroce_proto::abi::cq::opcode::{RECV, RECV_WRITE_IMM};
use ferroce_proto::abi::cq::status::{SUCCESS, WR_FLUSH_ERR};

use super::event::*;
use crate::bus::syndrome::{ACK, NAK_ACCESS, NAK_INVALID, NAK_OPERATIONAL, NAK_SEQUENCE, RNR};
use crate::bus::types::{Place, PlaceKind, Reply, RqRead};
use crate::prelude::*;

/// Makes placements of decisions.
#[derive(Block)]
pub struct PlaceBuilder {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A decision is there.
    pub valid: Signal<In, Bit>,
    /// The decision.
    pub decision: Signal<In, RqDecision>,
    /// The packet it is on, if it is on one.
    pub request: Signal<In, RqRequest>,
    /// A placement is there.
    pub place_valid: Signal<Out, Bit>,
    /// The placement.
    pub place: Signal<Out, Place>,
    /// It needs a receive WQE.
    pub read_valid: Signal<Out, Bit>,
    /// Which.
    pub read: Signal<Out, RqRead>,
    /// It is of a READ or atomic to be answered.
    pub reply_valid: Signal<Out, Bit>,
    /// Which.
    pub reply: Signal<Out, Reply>,

    out_valid: Reg<Bit>,
    out: Dff<Place>,
    out_read: Reg<Bit>,
    wqe: Dff<RqRead>,
    out_reply: Reg<Bit>,
    answer: Dff<Reply>,
}

impl Logic for PlaceBuilder {
    describe!(
        "place_builder",
        "Makes placements of the responder's decisions."
    );

    #[kernel]
    fn update(&mut self) {
        // a WRITE goes to its address
        let mut offset = decision.done;
        let mut base = decision.va;
        out.key = decision.rkey;
        if request.first {
            offset = bits::<32>(0);
            base = request.va;
            out.key = request.rkey;
        }
        out.addr = base + offset.resize::<64>();
        out.kind = PlaceKind::Discard;
        if decision.accepted & request.send {
            out.kind = PlaceKind::Recv;
        }
        if decision.accepted & request.write & request.plen.any() {
            out.kind = PlaceKind::Write;
        }
        out.offset = offset;
        out.beats = bits::<10>(0);
        if decision.packet {
            out.beats = request.beats;
        }
        copy!(out <= decision; qpn, reset, rsp_flush, last_wqe, incarnation, reply);
        copy!(out <= request; pd, plen, lane);

        // acknowledgement
        let ends = decision.accepted & request.last;
        let answers = !request.unreliable
            & ((decision.accepted & request.ack_req & (request.send | request.write))
                | (decision.duplicate & (request.send | request.write))
                | (decision.gap & !decision.nak_sent)
                | decision.rnr
                | decision.invalid
                | decision.denied);
        let acks = answers | decision.late;
        out.end = ends;
        out.ack = acks;
        out.unreliable = decision.packet & request.unreliable;
        out.psn = decision.psn;
        // the ACK of a duplicate names the latest request executed, or only the duplicate if a READ or atomic was
        // executed behind it: none but its own response acknowledges that
        let distance = decision.asked_psn - request.psn;
        let resend_before = decision.asked & !distance.bit(23);
        if decision.duplicate {
            out.psn = decision.psn - 1;
            if resend_before {
                out.psn = request.psn;
            }
        }
        let msn = if ends { decision.msn + 1 } else { decision.msn };
        out.msn = msn;
        out.syndrome = ACK;
        if decision.gap {
            out.syndrome = NAK_SEQUENCE;
        }
        if decision.invalid {
            out.syndrome = NAK_INVALID;
        }
        if decision.denied {
            out.syndrome = NAK_ACCESS;
        }
        if decision.late {
            out.syndrome = NAK_OPERATIONAL;
        }
        if decision.rnr {
            out.syndrome = request.min_rnr_timer.resize::<8>() | RNR;
        }

        // a READ or atomic
        out.runs = request.atomic & !decision.duplicate;
        out_reply = valid & decision.reply;
        copy!(answer <= decision; qpn, incarnation, duplicate);
        copy!(answer <= request; mtu, pd, va, rkey, psn, atomic, add, swap_add, compare);
        answer.msn = msn;
        answer.len = request.length;

        // the requester's
        out.answer = false;
        out.implied = false;
        out.data = false;
        out.closed = false;

        // completion
        let completes = (ends & (request.send | request.with_imm)) | decision.flush;
        out.complete = completes;
        out.cqn = request.cqn;
        out.cqe_opcode = RECV;
        out.status = SUCCESS;
        out.wqe_index = decision.index;
        out.byte_len = offset + request.plen.resize::<32>();
        copy!(out <= request; imm, with_imm, with_inv, solicited, src_qpn, pkey);
        out.grh = request.datagram;
        if decision.packet {
            if request.write {
                out.cqe_opcode = RECV_WRITE_IMM;
            }
        } else {
            out.cqn = decision.cqn;
            out.status = WR_FLUSH_ERR;
            out.byte_len = bits::<32>(0);
            out.imm = bits::<32>(0);
            out.with_imm = false;
            out.with_inv = false;
            out.solicited = false;
            out.src_qpn = bits::<24>(0);
            out.pkey = bits::<16>(0);
            out.grh = false;
        }

        out_valid = valid
            & ((decision.packet & request.beats.any())
                | (decision.accepted & request.send)
                | acks
                | completes
                | decision.reply
                | decision.reset
                | decision.rsp_flush
                | decision.last_wqe);

        // the receive WQE in its slot of the ring, or its number in that of a shared queue
        let numbered = completes & decision.shared;
        let list = decision.accepted & request.send;
        out.numbered = numbered;
        out_read = valid & (list | numbered);
        let slot = decision.slot.resize::<32>();
        let mut distance = (slot << request.rq_stride) << 6;
        if decision.shared {
            distance = slot << 1;
        }
        wqe.addr = request.rq_base + distance.resize::<64>();
        wqe.base = request.va;
        // aligned to its size, so it never wraps
        wqe.slots = bits::<4>(1) << request.rq_stride;
        wqe.head = bits::<4>(1) << request.rq_stride;
        wqe.wraps = false;
        wqe.list = list;
        copy!(wqe <= decision; qpn, shared);
        wqe.log = request.rq_log;
        wqe.takes = decision.packet & decision.takes;
        wqe.numbered = numbered;

        place_valid = out_valid;
        place = out;
        read_valid = out_read;
        read = wqe;
        reply_valid = out_reply;
        reply = answer;
    }
}
