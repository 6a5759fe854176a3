//! From a decision to what follows from it: the placement, its acknowledgement and completion, the
//! receive WQE to read, the READ or atomic to answer.
//!
//! Rate: a decision a cycle. Latency: a cycle. A decision from which nothing follows gives no placement.
use ferroce_proto::abi::cq::{opcode, status};
use ferroce_proto::wire::{NakCode, Syndrome};

use super::event::*;
use crate::bus::types::{Place, Reply, RqRead};
use crate::prelude::*;

const ACK: u64 = Syndrome::ACK.bits() as u64;
const RNR: u64 = Syndrome::RnrNak { timer: 0 }.bits() as u64;
const NAK_SEQUENCE: u64 = Syndrome::Nak(NakCode::PsnSequence).bits() as u64;
const NAK_INVALID: u64 = Syndrome::Nak(NakCode::InvalidRequest).bits() as u64;
const NAK_ACCESS: u64 = Syndrome::Nak(NakCode::RemoteAccess).bits() as u64;
const RECV: u64 = opcode::RECV as u64;
const RECV_WRITE_IMM: u64 = opcode::RECV_WRITE_IMM as u64;
const SUCCESS: u64 = status::SUCCESS as u64;
const WR_FLUSH_ERR: u64 = status::WR_FLUSH_ERR as u64;

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
    slots: Dff<Bits<4>>,
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
        let d = decision;
        let p = request;

        // a WRITE goes to its address, a SEND by the receive WQE in its slot of the ring
        let mut offset = d.done;
        let mut base = d.va;
        out.key = d.rkey;
        if p.first {
            offset = bits::<32>(0);
            base = p.va;
            out.key = p.rkey;
        }
        let wqe = d.slot.resize::<32>() << p.rq_stride;
        let mut distance = offset;
        if p.send {
            base = p.rq_base;
            distance = wqe << 6;
        }
        out.addr = base + distance.resize::<64>();
        out.qpn = d.qpn;
        out.kind = bits::<2>(0);
        if d.accepted & p.send {
            out.kind = bits::<2>(2);
        }
        if d.accepted & p.write & p.plen.any() {
            out.kind = bits::<2>(1);
        }
        out.pd = p.pd;
        out.offset = offset;
        out.plen = p.plen;
        out.lane = p.lane;
        out.beats = bits::<10>(0);
        if d.packet {
            out.beats = p.beats;
        }
        copy!(out <= d; reset, halt, incarnation);

        // acknowledgement
        let ends = d.accepted & p.last;
        let acks = !p.unreliable
            & ((d.accepted & p.ack_req & (p.send | p.write))
                | (d.duplicate & (p.send | p.write))
                | (d.gap & !d.silent)
                | d.rnr
                | d.invalid
                | d.denied);
        out.end = ends;
        out.ack = acks;
        out.unreliable = d.packet & p.unreliable;
        out.psn = d.psn;
        if d.duplicate {
            out.psn = d.psn - 1;
        }
        let mut msn = d.msn;
        if ends {
            msn = d.msn + 1;
        }
        out.msn = msn;
        out.syndrome = ACK;
        if d.gap {
            out.syndrome = NAK_SEQUENCE;
        }
        if d.invalid {
            out.syndrome = NAK_INVALID;
        }
        if d.denied {
            out.syndrome = NAK_ACCESS;
        }
        if d.rnr {
            out.syndrome = p.min_rnr_timer.resize::<8>() | RNR;
        }

        // a READ or atomic
        out.reply = d.reply;
        out_reply = valid & d.reply;
        answer.qpn = d.qpn;
        answer.incarnation = d.incarnation;
        answer.atomic = p.atomic;
        answer.add = p.add;
        answer.duplicate = d.duplicate;
        answer.psn = p.psn;
        answer.msn = msn;
        copy!(answer <= p; mtu, pd, va, rkey);
        answer.len = p.length;
        answer.swap_add = p.swap_add;
        answer.compare = p.compare;

        // the requester's
        out.answer = false;
        out.implied = false;
        out.data = false;
        out.closed = false;

        // completion
        let completes = (ends & (p.send | p.with_imm)) | d.flush;
        out.complete = completes;
        out.cqn = p.cqn;
        out.cqe_opcode = RECV;
        out.status = SUCCESS;
        out.wqe_index = d.index;
        out.byte_len = offset + p.plen.resize::<32>();
        copy!(out <= p; imm, with_imm, with_inv, solicited, src_qpn, pkey);
        out.grh = p.datagram;
        if d.packet {
            if p.write {
                out.cqe_opcode = RECV_WRITE_IMM;
            }
        } else {
            out.cqn = d.cqn;
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
            & ((d.packet & p.beats.any())
                | (d.accepted & p.send)
                | acks
                | completes
                | d.reply
                | d.reset
                | d.halt);
        out_read = valid & d.accepted & p.send;
        // aligned to its size, so it never wraps
        slots = bits::<4>(1) << p.rq_stride;

        place_valid = out_valid;
        place = out;
        read_valid = out_read;
        read.addr = out.addr;
        read.slots = slots;
        read.head = slots;
        read.base = out.addr;
        reply_valid = out_reply;
        reply = answer;
    }
}
