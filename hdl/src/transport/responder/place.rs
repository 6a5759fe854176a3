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
#[derive(LogicBlock, Default)]
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
    msn: Signal<Local, Bits<24>>,
    d: Signal<Local, RqDecision>,
    p: Signal<Local, RqRequest>,
    offset: Signal<Local, Bits<32>>,
    wqe: Signal<Local, Bits<32>>,
    base: Signal<Local, Bits<64>>,
    distance: Signal<Local, Bits<32>>,
    ends: Signal<Local, Bit>,
    acks: Signal<Local, Bit>,
    completes: Signal<Local, Bit>,
}

impl Logic for PlaceBuilder {
    describe!(
        "place_builder",
        "Makes placements of the responder's decisions.";
        ACK, RNR, NAK_SEQUENCE, NAK_INVALID, NAK_ACCESS, RECV, RECV_WRITE_IMM, SUCCESS, WR_FLUSH_ERR

    );

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, out_valid, out, out_read, slots, out_reply, answer
        );
        self.d.next = self.decision.val();
        self.p.next = self.request.val();

        // a WRITE goes to its address, a SEND by the receive WQE in its slot of the ring
        self.offset.next = self.d.val().done;
        self.base.next = self.d.val().va;
        self.out.d.next.key = self.d.val().rkey;
        if self.p.val().first {
            self.offset.next = bits::<32>(0);
            self.base.next = self.p.val().va;
            self.out.d.next.key = self.p.val().rkey;
        }
        self.wqe.next = bit_cast::<32, 16>(self.d.val().slot) << self.p.val().rq_stride;
        self.distance.next = self.offset.val();
        if self.p.val().send {
            self.base.next = self.p.val().rq_base;
            self.distance.next = self.wqe.val() << 6;
        }
        self.out.d.next.addr = self.base.val() + bit_cast::<64, 32>(self.distance.val());
        self.out.d.next.qpn = self.d.val().qpn;
        self.out.d.next.kind = bits::<2>(0);
        if self.d.val().accepted & self.p.val().send {
            self.out.d.next.kind = bits::<2>(2);
        }
        if self.d.val().accepted & self.p.val().write & self.p.val().plen.any() {
            self.out.d.next.kind = bits::<2>(1);
        }
        self.out.d.next.pd = self.p.val().pd;
        self.out.d.next.offset = self.offset.val();
        self.out.d.next.plen = self.p.val().plen;
        self.out.d.next.lane = self.p.val().lane;
        self.out.d.next.beats = bits::<10>(0);
        if self.d.val().packet {
            self.out.d.next.beats = self.p.val().beats;
        }
        self.out.d.next.reset = self.d.val().reset;
        self.out.d.next.halt = self.d.val().halt;
        self.out.d.next.incarnation = self.d.val().incarnation;

        // acknowledgement
        self.ends.next = self.d.val().accepted & self.p.val().last;
        self.acks.next = !self.p.val().unreliable
            & ((self.d.val().accepted
                & self.p.val().ack_req
                & (self.p.val().send | self.p.val().write))
                | (self.d.val().duplicate & (self.p.val().send | self.p.val().write))
                | (self.d.val().gap & !self.d.val().silent)
                | self.d.val().rnr
                | self.d.val().invalid
                | self.d.val().denied);
        self.out.d.next.end = self.ends.val();
        self.out.d.next.ack = self.acks.val();
        self.out.d.next.unreliable = self.d.val().packet & self.p.val().unreliable;
        self.out.d.next.psn = self.d.val().psn;
        if self.d.val().duplicate {
            self.out.d.next.psn = self.d.val().psn - 1;
        }
        self.msn.next = self.d.val().msn;
        if self.ends.val() {
            self.msn.next = self.d.val().msn + 1;
        }
        self.out.d.next.msn = self.msn.val();
        self.out.d.next.syndrome = ACK.into();
        if self.d.val().gap {
            self.out.d.next.syndrome = NAK_SEQUENCE.into();
        }
        if self.d.val().invalid {
            self.out.d.next.syndrome = NAK_INVALID.into();
        }
        if self.d.val().denied {
            self.out.d.next.syndrome = NAK_ACCESS.into();
        }
        if self.d.val().rnr {
            self.out.d.next.syndrome = bit_cast::<8, 5>(self.p.val().min_rnr_timer) | RNR;
        }

        // a READ or atomic
        self.out.d.next.reply = self.d.val().reply;
        self.out_reply.d.next = self.valid.val() & self.d.val().reply;
        self.answer.d.next.qpn = self.d.val().qpn;
        self.answer.d.next.incarnation = self.d.val().incarnation;
        self.answer.d.next.atomic = self.p.val().atomic;
        self.answer.d.next.add = self.p.val().add;
        self.answer.d.next.duplicate = self.d.val().duplicate;
        self.answer.d.next.psn = self.p.val().psn;
        self.answer.d.next.msn = self.msn.val();
        self.answer.d.next.mtu = self.p.val().mtu;
        self.answer.d.next.pd = self.p.val().pd;
        self.answer.d.next.va = self.p.val().va;
        self.answer.d.next.rkey = self.p.val().rkey;
        self.answer.d.next.len = self.p.val().length;
        self.answer.d.next.swap_add = self.p.val().swap_add;
        self.answer.d.next.compare = self.p.val().compare;

        // the requester's
        self.out.d.next.answer = false;
        self.out.d.next.implied = false;
        self.out.d.next.data = false;
        self.out.d.next.closed = false;

        // completion
        self.completes.next =
            (self.ends.val() & (self.p.val().send | self.p.val().with_imm)) | self.d.val().flush;
        self.out.d.next.complete = self.completes.val();
        self.out.d.next.cqn = self.p.val().cqn;
        self.out.d.next.cqe_opcode = RECV.into();
        self.out.d.next.status = SUCCESS.into();
        self.out.d.next.wqe_index = self.d.val().index;
        self.out.d.next.byte_len = self.offset.val() + bit_cast::<32, 13>(self.p.val().plen);
        self.out.d.next.imm = self.p.val().imm;
        self.out.d.next.with_imm = self.p.val().with_imm;
        self.out.d.next.with_inv = self.p.val().with_inv;
        self.out.d.next.solicited = self.p.val().solicited;
        self.out.d.next.src_qpn = self.p.val().src_qpn;
        self.out.d.next.pkey = self.p.val().pkey;
        self.out.d.next.grh = self.p.val().datagram;
        if self.d.val().packet {
            if self.p.val().write {
                self.out.d.next.cqe_opcode = RECV_WRITE_IMM.into();
            }
        } else {
            self.out.d.next.cqn = self.d.val().cqn;
            self.out.d.next.status = WR_FLUSH_ERR.into();
            self.out.d.next.byte_len = bits::<32>(0);
            self.out.d.next.imm = bits::<32>(0);
            self.out.d.next.with_imm = false;
            self.out.d.next.with_inv = false;
            self.out.d.next.solicited = false;
            self.out.d.next.src_qpn = bits::<24>(0);
            self.out.d.next.pkey = bits::<16>(0);
            self.out.d.next.grh = false;
        }

        self.out_valid.d.next = self.valid.val()
            & ((self.d.val().packet & self.p.val().beats.any())
                | (self.d.val().accepted & self.p.val().send)
                | self.acks.val()
                | self.completes.val()
                | self.d.val().reply
                | self.d.val().reset
                | self.d.val().halt);
        self.out_read.d.next = self.valid.val() & self.d.val().accepted & self.p.val().send;
        // aligned to its size, so it never wraps
        self.slots.d.next = bits::<4>(1) << self.p.val().rq_stride;

        self.place_valid.next = self.out_valid.q.val();
        self.place.next = self.out.q.val();
        self.read_valid.next = self.out_read.q.val();
        self.read.next.addr = self.out.q.val().addr;
        self.read.next.slots = self.slots.q.val();
        self.read.next.head = self.slots.q.val();
        self.read.next.base = self.out.q.val().addr;
        self.reply_valid.next = self.out_reply.q.val();
        self.reply.next = self.answer.q.val();
    }
}
