//! Receive checks: everything about a packet that needs no dynamic state.
//!
//! Reads the static image of the destination queue pair, checks transport, P_Key, Q_Key and addresses (IBA vol. 1,
//! 9.6.1; A17.9), decodes the opcode and compares lengths with the path MTU and the RETH, so that the responder's
//! decision has only its state to look at. A datagram may come from anywhere, its Q_Key must be that of the queue pair.
//!
//! * `responses`: responses for the requester that pass the checks, with the beats of their data.
//! * `m`: everything else as [`RqRequest`], also what is to be dropped: its beats stand in the packet buffer and its
//!   counter depends on the state of the queue pair. A datagram leaves as two, its GRH and its payload.
//! * `order`: for every item with beats a bit, 1 if it left by `responses`, in the order of the beats in the packet
//!   buffer. It leaves together with its item.
//!
//! With D = 0 the requester has no READs and atomics: responses with beats go to `m` to be discarded.
//!
//! Rate: a packet a cycle, a datagram in two. Latency: 3 cycles to `m`, 4 to `responses` and `order`. `responses` holds
//! 32 items, `order` 64; when one is full all packets wait. An image written in cycle n holds for packets taken from
//! cycle n + 1 on.
use ferroce_proto::wire::Opcode;
use ferroce_proto::wire::ip::GRH_LEN;
use ferroce_proto::wire::opcode::Class;

use super::event::reason::*;
use super::event::*;
use super::rx_decode::{RxDecode, RxKind};
use crate::bus::types::image::RqCtx;
use crate::bus::types::{Response, RxMeta};
use crate::prelude::*;

const CNP: u64 = Opcode::Cnp.code() as u64;
const UC: u64 = Class::Uc as u64;
const UD: u64 = Class::Ud as u64;
/// A class that no queue pair has (RD).
const NO_CLASS: u64 = 2;
const GRH: u64 = GRH_LEN as u64;

/// Receive checks for 2^Q queue pairs, with beats of K bytes.
#[derive(LogicBlock, Default)]
pub struct RxCheck<const Q: usize, const K: usize, const D: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Packets in the packet buffer.
    pub s: StreamIn<RxMeta>,
    /// A command writes the static image of queue pair `image_qpn`.
    pub image_we: Signal<In, Bit>,
    /// Queue pair of that image.
    pub image_qpn: Signal<In, Bits<Q>>,
    /// The image.
    pub image: Signal<In, RqCtx>,
    /// Packets for the responder, in order.
    pub m: StreamOut<RqRequest>,
    /// Responses for the requester, in order.
    pub responses: StreamOut<Response>,
    /// Whose beats come next in the packet buffer: 0 those of `m`, 1 those of `responses`.
    pub order: StreamOut<Bit>,

    images: Ram<RqImage, Q>,
    out_stage: Hold<RqRequest>,
    response_fifo: Fifo<Response, 5>,
    order_fifo: Fifo<Bit, 6>,
    room: Signal<Local, Bit>,
    go: Signal<Local, Bit>,

    // stage 1: image read, opcode decoded
    v1: Reg<Bit>,
    m1: Dff<RxMeta>,
    decode: RxDecode<Q>,
    difference: Signal<Local, Bits<33>>,

    // stage 2: everything compared with the image
    v2: Reg<Bit>,
    m2: Dff<RxMeta>,
    k2: Dff<RqImage>,
    kind: Dff<RxKind>,
    /// The RETH length is less than the payload, or more than 2^31.
    off_range: Dff<Bit>,
    /// It is more than 2^31.
    too_long: Dff<Bit>,
    /// It is the payload's.
    same_length: Dff<Bit>,
    /// It is 0.
    no_length: Dff<Bit>,
    /// RETH length less one.
    length_less: Dff<Bits<32>>,
    payload_less: Signal<Local, Bits<13>>,
    bytes: Signal<Local, Bits<13>>,
    transport: Signal<Local, Bits<3>>,
    datagram: Signal<Local, Bit>,
    same_transport: Signal<Local, Bit>,
    same_pkey: Signal<Local, Bit>,
    same_qkey: Signal<Local, Bit>,
    same_address: Signal<Local, Bit>,
    reason: Signal<Local, Bits<3>>,
    wanted: Signal<Local, Bit>,
    shift: Signal<Local, Bits<4>>,
    behind: Signal<Local, Bits<32>>,
    size_wrong: Signal<Local, Bit>,
    sum_wrong: Signal<Local, Bit>,
    write_wrong: Signal<Local, Bit>,
    read_wrong: Signal<Local, Bit>,
    atomic_wrong: Signal<Local, Bit>,

    // stage 3
    v3: Reg<Bit>,
    q3: Dff<RqRequest>,
    r3: Dff<Response>,
    to_requester: Dff<Bit>,
    /// Its GRH leaves before its payload.
    split: Dff<Bit>,
    /// The GRH has left.
    second: Reg<Bit>,
    out: Signal<Local, RqRequest>,
    has_beats: Signal<Local, Bit>,
}

impl<const Q: usize, const K: usize, const D: usize> RxCheck<Q, K, D> {
    const GRH_BEATS: u64 = GRH_LEN.div_ceil(K) as u64;
}

impl<const Q: usize, const K: usize, const D: usize> Logic for RxCheck<Q, K, D> {
    describe!(
        "rx_check",
        format!("q{Q}_k{K}_d{D}"),
        "Checks received packets against the static image of their queue pair.";
        GOOD, NO_QP, TRANSPORT, PKEY, QKEY, ADDRESS, NO_REQUEST, CNP, UC, UD, NO_CLASS, GRH, Self::GRH_BEATS, D
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, images, out_stage, response_fifo, order_fifo);
        dff_setup!(self, clock, v1, m1, v2, m2, k2, kind);
        dff_setup!(
            self,
            clock,
            off_range,
            too_long,
            same_length,
            no_length,
            length_less
        );
        dff_setup!(self, clock, v3, q3, r3, to_requester, split, second);

        self.images.we.next = self.image_we.val();
        self.images.waddr.next = self.image_qpn.val();
        self.images.wdata.next.remote_gid = self.image.val().remote_gid;
        self.images.wdata.next.rq_base = self.image.val().rq_base;
        self.images.wdata.next.qp_type = self.image.val().qp_type;
        self.images.wdata.next.mtu = self.image.val().mtu;
        self.images.wdata.next.rq_log = self.image.val().rq_log;
        self.images.wdata.next.rq_stride = self.image.val().rq_stride;
        self.images.wdata.next.min_rnr_timer = self.image.val().min_rnr_timer;
        self.images.wdata.next.remote_write = self.image.val().remote_write;
        self.images.wdata.next.remote_read = self.image.val().remote_read;
        self.images.wdata.next.remote_atomic = self.image.val().remote_atomic;
        self.images.wdata.next.max_dest_rd_atomic = self.image.val().max_dest_rd_atomic;
        self.images.wdata.next.pkey = self.image.val().pkey;
        self.images.wdata.next.sgid_index = self.image.val().sgid_index;
        self.images.wdata.next.qkey = self.image.val().qkey;
        self.images.wdata.next.pd = self.image.val().pd;
        self.images.wdata.next.cqn = self.image.val().cqn;
        self.images.wdata.next.srq_valid = self.image.val().srq_valid;
        self.images.wdata.next.srqn = self.image.val().srqn;

        self.room.next = self.out_stage.s.ready.val()
            & self.response_fifo.s.ready.val()
            & self.order_fifo.s.ready.val();
        self.go.next =
            self.room.val() & !(self.v3.q.val() & self.split.q.val() & !self.second.q.val());
        self.s.ready.next = self.go.val();
        self.images.re.next = self.go.val();
        self.images.raddr.next = self.s.payload.val().qpn.get_bits::<Q>(0);

        // stage 1
        self.decode.opcode.next = self.m1.q.val().opcode;
        self.decode.qpn.next = self.m1.q.val().qpn;
        self.difference.next =
            bit_cast::<33, 32>(self.m1.q.val().dma_len) - bit_cast::<33, 13>(self.m1.q.val().plen);

        // stage 2: the first check that fails is the reason
        self.transport.next = self.m2.q.val().opcode.get_bits::<3>(5);
        self.datagram.next = self.k2.q.val().qp_type == UD;
        self.same_transport.next = (self.transport.val()
            == bit_cast::<3, 2>(self.k2.q.val().qp_type))
            & (self.transport.val() != NO_CLASS);
        self.same_pkey.next = (self.m2.q.val().pkey.get_bits::<15>(0)
            == self.k2.q.val().pkey.get_bits::<15>(0))
            & (self.m2.q.val().pkey.get_bit(15) | self.k2.q.val().pkey.get_bit(15));
        self.same_qkey.next =
            !self.datagram.val() | (self.m2.q.val().ext.get_bits::<32>(32) == self.k2.q.val().qkey);
        self.same_address.next = self.datagram.val()
            | ((self.m2.q.val().src_gid == self.k2.q.val().remote_gid)
                & (self.m2.q.val().gid_index == self.k2.q.val().sgid_index));
        self.reason.next = GOOD.into();
        if self.m2.q.val().opcode == CNP {
            self.reason.next = NO_REQUEST.into();
        } else if !self.kind.q.val().exists {
            self.reason.next = NO_QP.into();
        } else if !self.same_transport.val() {
            self.reason.next = TRANSPORT.into();
        } else if !self.same_pkey.val() {
            self.reason.next = PKEY.into();
        } else if !self.same_qkey.val() {
            self.reason.next = QKEY.into();
        } else if !self.same_address.val() {
            self.reason.next = ADDRESS.into();
        } else if self.kind.q.val().response {
            self.reason.next = NO_REQUEST.into();
        }
        self.payload_less.next = self.m2.q.val().plen - 1;
        // FIRST and MIDDLE fill the path MTU; LAST has at least a byte (IBA vol. 1, 9.7.4.1.6)
        self.bytes.next = bits::<13>(128) << self.k2.q.val().mtu;
        self.size_wrong.next = self.m2.q.val().plen != self.bytes.val();
        if self.kind.q.val().last {
            self.size_wrong.next = (self.m2.q.val().plen > self.bytes.val())
                | (!self.kind.q.val().first & !self.m2.q.val().plen.any());
        }
        self.sum_wrong.next = self.off_range.q.val() | self.same_length.q.val();
        if self.kind.q.val().last {
            self.sum_wrong.next = !self.same_length.q.val();
        }
        self.write_wrong.next = self.kind.q.val().write
            & (!self.k2.q.val().remote_write | (self.kind.q.val().first & self.sum_wrong.val()));
        self.read_wrong.next =
            self.kind.q.val().read & (!self.k2.q.val().remote_read | self.too_long.q.val());
        // an atomic is aligned to its 8 bytes
        self.atomic_wrong.next = self.kind.q.val().atomic
            & (!self.k2.q.val().remote_atomic | self.m2.q.val().ext.get_bits::<3>(0).any());
        self.wanted.next = !self.m2.q.val().beats.any();
        if D == 1 {
            self.wanted.next = true;
        }
        self.shift.next = bit_cast::<4, 3>(self.k2.q.val().mtu) + 7;
        self.behind.next = self.length_less.q.val() >> self.shift.val();

        if self.go.val() {
            self.v1.d.next = self.s.valid.val();
            self.m1.d.next = self.s.payload.val();

            self.v2.d.next = self.v1.q.val();
            self.m2.d.next = self.m1.q.val();
            self.k2.d.next = self.images.rdata.val();
            self.kind.d.next = self.decode.kind.val();
            self.too_long.d.next = self.m1.q.val().dma_len.get_bit(31)
                & self.m1.q.val().dma_len.get_bits::<31>(0).any();
            self.off_range.d.next = self.difference.val().get_bit(32)
                | (self.m1.q.val().dma_len.get_bit(31)
                    & self.m1.q.val().dma_len.get_bits::<31>(0).any());
            self.same_length.d.next = !self.difference.val().any();
            self.no_length.d.next = !self.m1.q.val().dma_len.any();
            self.length_less.d.next = self.m1.q.val().dma_len - 1;

            self.v3.d.next = self.v2.q.val();
            self.r3.d.next.qpn = self.m2.q.val().qpn.get_bits::<16>(0);
            self.r3.d.next.psn = self.m2.q.val().psn;
            self.r3.d.next.syndrome = bits::<8>(0);
            if self.kind.q.val().aeth {
                self.r3.d.next.syndrome = self.m2.q.val().ext.get_bits::<8>(56);
            }
            self.r3.d.next.read = self.kind.q.val().read_response;
            self.r3.d.next.atomic = self.kind.q.val().atomic_ack;
            self.r3.d.next.last = self.kind.q.val().last;
            self.r3.d.next.plen = self.m2.q.val().plen;
            self.r3.d.next.lane = self.m2.q.val().lane;
            self.r3.d.next.beats = self.m2.q.val().beats;
            self.to_requester.d.next = self.kind.q.val().response
                & self.kind.q.val().exists
                & self.same_transport.val()
                & self.same_pkey.val()
                & self.same_address.val()
                & self.wanted.val();
            self.split.d.next = self.m2.q.val().grh;
            self.q3.d.next.qpn = self.m2.q.val().qpn.get_bits::<16>(0);
            self.q3.d.next.send = self.kind.q.val().send;
            self.q3.d.next.write = self.kind.q.val().write;
            self.q3.d.next.read = self.kind.q.val().read;
            self.q3.d.next.atomic = self.kind.q.val().atomic;
            self.q3.d.next.add = self.kind.q.val().add;
            self.q3.d.next.first = self.kind.q.val().first;
            self.q3.d.next.last = self.kind.q.val().last;
            self.q3.d.next.with_imm = self.kind.q.val().with_imm;
            self.q3.d.next.with_inv = self.kind.q.val().with_inv;
            self.q3.d.next.ack_req = self.m2.q.val().ack_req;
            self.q3.d.next.solicited = self.m2.q.val().solicited;
            self.q3.d.next.psn = self.m2.q.val().psn;
            self.q3.d.next.va = self.m2.q.val().ext;
            self.q3.d.next.rkey = self.m2.q.val().rkey;
            self.q3.d.next.length = self.m2.q.val().dma_len;
            self.q3.d.next.imm = self.m2.q.val().imm;
            self.q3.d.next.plen = self.m2.q.val().plen;
            self.q3.d.next.lane = self.m2.q.val().lane;
            self.q3.d.next.beats = self.m2.q.val().beats;
            self.q3.d.next.tail = self.payload_less.val().get_bits::<12>(0);
            self.q3.d.next.reason = self.reason.val();
            self.q3.d.next.unreliable = self.datagram.val() | (self.k2.q.val().qp_type == UC);
            self.q3.d.next.datagram = self.datagram.val();
            self.q3.d.next.grh = false;
            self.q3.d.next.checked = (self.kind.q.val().write & self.kind.q.val().first)
                | self.kind.q.val().read
                | self.kind.q.val().atomic;
            self.q3.d.next.right = bits::<3>(2);
            if self.kind.q.val().read {
                self.q3.d.next.right = bits::<3>(3);
            }
            if self.kind.q.val().atomic {
                self.q3.d.next.right = bits::<3>(4);
                self.q3.d.next.length = bits::<32>(8);
            }
            self.q3.d.next.invalid = !self.kind.q.val().request
                | ((self.kind.q.val().send | self.kind.q.val().write) & self.size_wrong.val())
                | self.write_wrong.val()
                | self.read_wrong.val()
                | self.atomic_wrong.val();
            self.q3.d.next.more = self.behind.val().get_bits::<23>(0);
            if self.no_length.q.val() {
                self.q3.d.next.more = bits::<23>(0);
            }
            if self.kind.q.val().first {
                self.q3.d.next.tail = self.length_less.q.val().get_bits::<12>(0)
                    & (self.bytes.val() - 1).get_bits::<12>(0);
            }
            self.q3.d.next.swap_add =
                bit_cast::<64, 32>(self.m2.q.val().operands.get_bits::<32>(64))
                    | (bit_cast::<64, 32>(self.m2.q.val().dma_len) << 32);
            self.q3.d.next.compare = self.m2.q.val().operands.get_bits::<64>(0);
            self.q3.d.next.src_qpn = bits::<24>(0);
            self.q3.d.next.pkey = bits::<16>(0);
            if self.datagram.val() {
                self.q3.d.next.src_qpn = self.m2.q.val().ext.get_bits::<24>(0);
                self.q3.d.next.pkey = self.m2.q.val().pkey;
            }
            self.q3.d.next.mtu = self.k2.q.val().mtu;
            self.q3.d.next.max_dest_rd_atomic = self.k2.q.val().max_dest_rd_atomic;
            self.q3.d.next.rq_base = self.k2.q.val().rq_base;
            self.q3.d.next.rq_log = self.k2.q.val().rq_log;
            self.q3.d.next.rq_stride = self.k2.q.val().rq_stride;
            self.q3.d.next.min_rnr_timer = self.k2.q.val().min_rnr_timer;
            self.q3.d.next.pd = self.k2.q.val().pd;
            self.q3.d.next.cqn = self.k2.q.val().cqn;
            self.q3.d.next.srq_valid = self.k2.q.val().srq_valid;
            self.q3.d.next.srqn = self.k2.q.val().srqn;
        }

        // stage 3: a datagram is its GRH, then its payload
        self.out.next = self.q3.q.val();
        self.has_beats.next = self.q3.q.val().beats.any();
        if self.split.q.val() {
            if self.second.q.val() {
                self.out.next.first = false;
            } else {
                self.out.next.grh = true;
                self.out.next.last = false;
                self.out.next.with_imm = false;
                self.out.next.plen = GRH.into();
                self.out.next.lane = bits::<6>(0);
                self.out.next.beats = bits::<10>(Self::GRH_BEATS);
                self.has_beats.next = true;
            }
        }
        if self.room.val() {
            self.second.d.next = self.v3.q.val() & self.split.q.val() & !self.second.q.val();
        }
        self.out_stage.s.valid.next =
            self.v3.q.val() & self.room.val() & !self.to_requester.q.val();
        self.out_stage.s.payload.next = self.out.val();
        self.response_fifo.s.valid.next =
            self.v3.q.val() & self.room.val() & self.to_requester.q.val();
        self.response_fifo.s.payload.next = self.r3.q.val();
        self.order_fifo.s.valid.next = self.v3.q.val() & self.room.val() & self.has_beats.val();
        self.order_fifo.s.payload.next = self.to_requester.q.val();
        StreamOut::<RqRequest>::link(&mut self.m, &mut self.out_stage.m);
        StreamOut::<Response>::link(&mut self.responses, &mut self.response_fifo.m);
        StreamOut::<Bit>::link(&mut self.order, &mut self.order_fifo.m);
    }
}
