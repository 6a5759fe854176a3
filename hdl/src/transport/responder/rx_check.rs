//! Receive checks: everything about a packet that needs no dynamic state.
//!
//! Reads the static image of the destination queue pair, checks transport, P_Key and addresses (IBA vol. 1, 9.6.1;
//! A17.9), decodes the opcode and compares lengths with the path MTU and the RETH, so that the responder's decision
//! has only its state to look at. Acknowledgements leave for the requester; everything else leaves as [`RqRequest`],
//! also what is to be dropped: its beats stand in the packet buffer and its counter depends on the state of the queue
//! pair. Read and atomic responses are such packets until the requester asks for them.
//!
//! Rate: a packet a cycle. Latency: 4 cycles to `m`, 5 to `acks`. `acks` holds 32; when it is full all packets wait.
//! An image written in cycle n holds for packets taken from cycle n + 1 on.
use ferroce_proto::wire::Opcode;
use ferroce_proto::wire::opcode::{Class, Operation, Suffix};

use super::event::reason::*;
use super::event::*;
use crate::bus::types::image::RqCtx;
use crate::bus::types::{AckEvent, RxMeta};
use crate::prelude::*;

const CNP: u64 = Opcode::Cnp.code() as u64;
const RC: u64 = Class::Rc as u64;

/// Receive checks for 2^Q queue pairs.
#[derive(LogicBlock)]
pub struct RxCheck<const Q: usize> {
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
    /// Beats of a GRH in the packet buffer, which are discarded with those of its datagram.
    pub grh_beats: Signal<In, Bits<10>>,
    /// Acknowledgements for the requester, in order.
    pub acks: StreamOut<AckEvent>,

    images: Ram<RqImage, Q>,
    skid: Skid<RqRequest>,
    ack_fifo: Fifo<AckEvent, 5>,
    go: Signal<Local, Bit>,

    // stage 1: image read, opcode decoded
    v1: Reg<Bit>,
    m1: Dff<RxMeta>,
    code: Signal<Local, Bits<5>>,
    difference: Signal<Local, Bits<33>>,
    payload_less: Signal<Local, Bits<13>>,

    // stage 2: everything compared with the image
    v2: Reg<Bit>,
    m2: Dff<RxMeta>,
    k2: Dff<RqImage>,
    q2: Dff<RqRequest>,
    exists: Dff<Bit>,
    supported: Dff<Bit>,
    response: Dff<Bit>,
    acknowledge: Dff<Bit>,
    /// The RETH length is less than the payload, or more than 2^31.
    off_range: Dff<Bit>,
    /// It is the payload's.
    same_length: Dff<Bit>,
    /// RETH length less one.
    length_less: Dff<Bits<32>>,
    bytes: Signal<Local, Bits<13>>,
    same_transport: Signal<Local, Bit>,
    same_pkey: Signal<Local, Bit>,
    same_address: Signal<Local, Bit>,
    reason: Signal<Local, Bits<3>>,
    shift: Signal<Local, Bits<4>>,
    behind: Signal<Local, Bits<32>>,
    size_wrong: Signal<Local, Bit>,
    sum_wrong: Signal<Local, Bit>,

    // stage 3
    v3: Reg<Bit>,
    ack3: Reg<Bit>,
    q3: Dff<RqRequest>,
    ack_event: Dff<AckEvent>,

    high: Constant<Bits<24>>,
    sends: Constant<Bits<32>>,
    writes: Constant<Bits<32>>,
    starts: Constant<Bits<32>>,
    ends: Constant<Bits<32>>,
    imms: Constant<Bits<32>>,
    supports: Constant<Bits<32>>,
    responses: Constant<Bits<32>>,
    acknowledges: Constant<Bits<32>>,
}

/// Bit n: the RC opcode n is what `is` says.
fn opcodes(is: impl Fn(Opcode) -> bool) -> Constant<Bits<32>> {
    let set = Opcode::ALL
        .iter()
        .filter(|o| o.class() == Class::Rc && is(**o));
    Constant::new(set.fold(0u64, |set, o| set | 1 << o.code()).to_bits())
}

fn places_payload(o: Opcode) -> bool {
    matches!(o.operation(), Operation::Send | Operation::Write)
}

impl<const Q: usize> Default for RxCheck<Q> {
    fn default() -> Self {
        assert!(
            (4..=14).contains(&Q),
            "2^{Q} queue pairs: 2^4 to 2^14 can be built"
        );
        Self {
            clock: ClkRst::default(),
            s: StreamIn::default(),
            image_we: Signal::default(),
            image_qpn: Signal::default(),
            image: Signal::default(),
            m: StreamOut::default(),
            grh_beats: Signal::default(),
            acks: StreamOut::default(),
            images: Ram::default(),
            skid: Skid::default(),
            ack_fifo: Fifo::default(),
            go: Signal::default(),
            v1: Reg::default(),
            m1: Dff::default(),
            code: Signal::default(),
            difference: Signal::default(),
            payload_less: Signal::default(),
            v2: Reg::default(),
            m2: Dff::default(),
            k2: Dff::default(),
            q2: Dff::default(),
            exists: Dff::default(),
            supported: Dff::default(),
            response: Dff::default(),
            acknowledge: Dff::default(),
            off_range: Dff::default(),
            same_length: Dff::default(),
            length_less: Dff::default(),
            bytes: Signal::default(),
            same_transport: Signal::default(),
            same_pkey: Signal::default(),
            same_address: Signal::default(),
            reason: Signal::default(),
            shift: Signal::default(),
            behind: Signal::default(),
            size_wrong: Signal::default(),
            sum_wrong: Signal::default(),
            v3: Reg::default(),
            ack3: Reg::default(),
            q3: Dff::default(),
            ack_event: Dff::default(),
            high: Constant::new((0xff_ffffu64 >> Q << Q).to_bits()),
            sends: opcodes(|o| o.operation() == Operation::Send),
            writes: opcodes(|o| o.operation() == Operation::Write),
            starts: opcodes(Opcode::is_start),
            ends: opcodes(Opcode::is_end),
            imms: opcodes(Opcode::has_imm),
            supports: opcodes(|o| places_payload(o) && o.suffix() != Suffix::Inv),
            responses: opcodes(Opcode::is_response),
            acknowledges: opcodes(|o| o.operation() == Operation::Ack),
        }
    }
}

impl<const Q: usize> Logic for RxCheck<Q> {
    describe!(
        "rx_check",
        format!("q{Q}"),
        "Checks received packets against the static image of their queue pair.";
        GOOD, NO_QP, TRANSPORT, PKEY, ADDRESS, NO_REQUEST, CNP, RC
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, images, skid, ack_fifo);
        dff_setup!(
            self,
            clock,
            v1,
            m1,
            v2,
            m2,
            k2,
            q2,
            exists,
            supported,
            response,
            acknowledge,
            off_range
        );
        dff_setup!(self, clock, same_length, length_less);
        dff_setup!(self, clock, v3, ack3, q3, ack_event);

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
        self.images.wdata.next.pkey = self.image.val().pkey;
        self.images.wdata.next.sgid_index = self.image.val().sgid_index;
        self.images.wdata.next.pd = self.image.val().pd;
        self.images.wdata.next.cqn = self.image.val().cqn;

        self.go.next = self.skid.s.ready.val() & self.ack_fifo.s.ready.val();
        self.s.ready.next = self.go.val();
        self.images.re.next = self.go.val();
        self.images.raddr.next = self.s.payload.val().qpn.get_bits::<Q>(0);

        // stage 1
        self.code.next = self.m1.q.val().opcode.get_bits::<5>(0);
        self.difference.next =
            bit_cast::<33, 32>(self.m1.q.val().dma_len) - bit_cast::<33, 13>(self.m1.q.val().plen);

        self.payload_less.next = self.m1.q.val().plen - 1;

        // stage 2: the first check that fails is the reason
        // nothing else is served
        self.same_transport.next =
            (self.m2.q.val().opcode.get_bits::<3>(5) == RC) & (self.k2.q.val().qp_type == RC);
        self.same_pkey.next = (self.m2.q.val().pkey.get_bits::<15>(0)
            == self.k2.q.val().pkey.get_bits::<15>(0))
            & (self.m2.q.val().pkey.get_bit(15) | self.k2.q.val().pkey.get_bit(15));
        self.same_address.next = (self.m2.q.val().src_gid == self.k2.q.val().remote_gid)
            & (self.m2.q.val().gid_index == self.k2.q.val().sgid_index);
        self.reason.next = GOOD.into();
        if self.m2.q.val().opcode == CNP {
            self.reason.next = NO_REQUEST.into();
        } else if !self.exists.q.val() {
            self.reason.next = NO_QP.into();
        } else if !self.same_transport.val() {
            self.reason.next = TRANSPORT.into();
        } else if !self.same_pkey.val() {
            self.reason.next = PKEY.into();
        } else if !self.same_address.val() {
            self.reason.next = ADDRESS.into();
        } else if self.response.q.val() {
            self.reason.next = NO_REQUEST.into();
        }
        // FIRST and MIDDLE fill the path MTU; LAST has at least a byte (IBA vol. 1, 9.7.4.1.6)
        self.bytes.next = bits::<13>(128) << self.k2.q.val().mtu;
        self.size_wrong.next = self.q2.q.val().plen != self.bytes.val();
        if self.q2.q.val().last {
            self.size_wrong.next = (self.q2.q.val().plen > self.bytes.val())
                | (!self.q2.q.val().first & !self.q2.q.val().plen.any());
        }
        self.sum_wrong.next = self.off_range.q.val() | self.same_length.q.val();
        if self.q2.q.val().last {
            self.sum_wrong.next = !self.same_length.q.val();
        }
        self.shift.next = bit_cast::<4, 3>(self.k2.q.val().mtu) + 7;
        self.behind.next = self.length_less.q.val() >> self.shift.val();

        if self.go.val() {
            self.v1.d.next = self.s.valid.val();
            self.m1.d.next = self.s.payload.val();

            self.v2.d.next = self.v1.q.val();
            self.m2.d.next = self.m1.q.val();
            self.k2.d.next = self.images.rdata.val();
            self.exists.d.next =
                !(self.m1.q.val().qpn & self.high.val()).any() & self.m1.q.val().qpn.any();
            self.supported.d.next = self.supports.val().get_bit(self.code.val().index());
            self.response.d.next = self.responses.val().get_bit(self.code.val().index());
            self.acknowledge.d.next = self.acknowledges.val().get_bit(self.code.val().index());
            self.off_range.d.next = self.difference.val().get_bit(32)
                | (self.m1.q.val().dma_len.get_bit(31)
                    & self.m1.q.val().dma_len.get_bits::<31>(0).any());
            self.q2.d.next.qpn = self.m1.q.val().qpn.get_bits::<16>(0);
            self.q2.d.next.send = self.sends.val().get_bit(self.code.val().index());
            self.q2.d.next.write = self.writes.val().get_bit(self.code.val().index());
            self.q2.d.next.first = self.starts.val().get_bit(self.code.val().index());
            self.q2.d.next.last = self.ends.val().get_bit(self.code.val().index());
            self.q2.d.next.with_imm = self.imms.val().get_bit(self.code.val().index());
            self.q2.d.next.ack_req = self.m1.q.val().ack_req;
            self.q2.d.next.solicited = self.m1.q.val().solicited;
            self.q2.d.next.psn = self.m1.q.val().psn;
            self.q2.d.next.va = self.m1.q.val().ext;
            self.q2.d.next.rkey = self.m1.q.val().rkey;
            self.q2.d.next.length = self.m1.q.val().dma_len;
            self.q2.d.next.tail = self.payload_less.val().get_bits::<12>(0);
            self.length_less.d.next = self.m1.q.val().dma_len - 1;
            self.same_length.d.next = !self.difference.val().any();
            self.q2.d.next.imm = self.m1.q.val().imm;
            self.q2.d.next.plen = self.m1.q.val().plen;
            self.q2.d.next.lane = self.m1.q.val().lane;
            self.q2.d.next.beats = self.m1.q.val().beats;
            if self.m1.q.val().grh {
                self.q2.d.next.beats = self.m1.q.val().beats + self.grh_beats.val();
            }

            self.ack3.d.next = self.v2.q.val()
                & self.acknowledge.q.val()
                & self.exists.q.val()
                & self.same_transport.val()
                & self.same_pkey.val()
                & self.same_address.val();
            self.v3.d.next = self.v2.q.val();
            self.q3.d.next = self.q2.q.val();
            self.q3.d.next.reason = self.reason.val();
            self.q3.d.next.invalid = !self.supported.q.val()
                | self.size_wrong.val()
                | (self.q2.q.val().write & !self.k2.q.val().remote_write)
                | (self.q2.q.val().write & self.q2.q.val().first & self.sum_wrong.val());
            self.q3.d.next.more = self.behind.val().get_bits::<23>(0);
            if self.q2.q.val().first {
                self.q3.d.next.tail = self.length_less.q.val().get_bits::<12>(0)
                    & (self.bytes.val() - 1).get_bits::<12>(0);
            }
            self.q3.d.next.rq_base = self.k2.q.val().rq_base;
            self.q3.d.next.rq_log = self.k2.q.val().rq_log;
            self.q3.d.next.rq_stride = self.k2.q.val().rq_stride;
            self.q3.d.next.min_rnr_timer = self.k2.q.val().min_rnr_timer;
            self.q3.d.next.pd = self.k2.q.val().pd;
            self.q3.d.next.cqn = self.k2.q.val().cqn;
            self.ack_event.d.next.qpn = self.m2.q.val().qpn.get_bits::<16>(0);
            self.ack_event.d.next.psn = self.m2.q.val().psn;
            self.ack_event.d.next.syndrome = self.m2.q.val().ext.get_bits::<8>(56);
            self.ack_event.d.next.msn = self.m2.q.val().ext.get_bits::<24>(32);
        }

        // stage 3
        self.skid.s.valid.next = self.v3.q.val()
            & self.ack_fifo.s.ready.val()
            & !(self.ack3.q.val() & !self.q3.q.val().beats.any());
        self.skid.s.payload.next = self.q3.q.val();
        self.ack_fifo.s.valid.next = self.ack3.q.val() & self.skid.s.ready.val();
        self.ack_fifo.s.payload.next = self.ack_event.q.val();
        StreamOut::<RqRequest>::link(&mut self.m, &mut self.skid.m);
        StreamOut::<AckEvent>::link(&mut self.acks, &mut self.ack_fifo.m);
    }
}
