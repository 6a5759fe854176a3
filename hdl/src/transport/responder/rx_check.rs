//! Receive checks: everything about a packet that needs no dynamic state.
//!
//! Reads the static image of the destination queue pair, checks transport, P_Key, Q_Key and addresses (IBA vol. 1,
//! 9.6.1; A17.9), decodes the opcode and compares lengths with the path MTU and the RETH, so that the responder's
//! decision has only its state to look at. A datagram may come from anywhere, its Q_Key must be that of the queue pair.
//!
//! * `responses`: responses for the requester that pass the checks, with the beats of their data.
//! * `m`: everything else as [`RqRequest`], also what is to be dropped: its beats stand in the packet buffer and its
//!   counter depends on the state of the queue pair. A datagram leaves as two, its GRH and its payload.
//! * `notice`: CNPs, and packets marked CE that are none and pass the checks of a connection; one cycle each.
//! * `order`: for every item with beats a bit, 1 if it left by `responses`, in the order of the beats in the packet
//!   buffer. It leaves together with its item.
//!
//! A response to a queue pair that does not exist, as in RESET, goes to `m` too, to be counted as such.
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
use crate::bus::types::{MrRight, Response, RxMeta};
use crate::bus::valid::Valid;
use crate::cell::ram::Style;
use crate::prelude::*;
use crate::transport::congestion::notify_types::Notice;

const CNP: u64 = Opcode::Cnp.code() as u64;
const UC: u64 = Class::Uc as u64;
const UD: u64 = Class::Ud as u64;
/// A class that no queue pair has (RD).
const NO_CLASS: u64 = 2;
const GRH: u64 = GRH_LEN as u64;

/// Receive checks for 2^Q queue pairs, with beats of K bytes.
#[derive(Block)]
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
    /// Queue pair `known_qpn` begins or ends to exist, as `known` says.
    pub known_we: Signal<In, Bit>,
    /// See there.
    pub known_qpn: Signal<In, Bits<Q>>,
    /// See there.
    pub known: Signal<In, Bit>,
    /// Packets for the responder, in order.
    pub m: StreamOut<RqRequest>,
    /// Responses for the requester, in order.
    pub responses: StreamOut<Response>,
    /// Whose beats come next in the packet buffer: 0 those of `m`, 1 those of `responses`.
    pub order: StreamOut<Bit>,
    /// A CNP, or a mark.
    pub notice: Signal<Out, Valid<Notice>>,
    /// No queue pair exists, after reset.
    pub ready: Signal<Out, Bit>,

    images: Ram<RqImage, Q>,
    /// A bit each: no block RAM for some hundred of them.
    #[init(SweptRam::new(if Q > 9 { Style::Block } else { Style::Distributed }))]
    exist: SweptRam<Bits<1>, Q>,
    out_stage: Hold<RqRequest>,
    response_fifo: Fifo<Response, 5>,
    order_fifo: Fifo<Bit, 6>,

    // stage 1: image read, opcode decoded
    v1: Reg<Bit>,
    m1: Dff<RxMeta>,
    decode: RxDecode<Q>,

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

    // stage 3
    v3: Reg<Bit>,
    q3: Dff<RqRequest>,
    r3: Dff<Response>,
    to_requester: Dff<Bit>,
    /// Its GRH leaves before its payload.
    split: Dff<Bit>,
    /// The GRH has left.
    second: Reg<Bit>,
    seen: Reg<Valid<Notice>>,
}

impl<const Q: usize, const K: usize, const D: usize> RxCheck<Q, K, D> {
    const GRH_BEATS: u64 = GRH_LEN.div_ceil(K) as u64;
}

/// A packet is of the transport of its queue pair.
#[kernel_fn]
fn same_transport(packet: RxMeta, image: RqImage) -> Bit {
    let transport = packet.opcode.slice::<3>(5);
    (transport == image.qp_type.resize::<3>()) & (transport != NO_CLASS)
}

/// Of its partition, of which one of the two is a full member.
#[kernel_fn]
fn same_pkey(packet: RxMeta, image: RqImage) -> Bit {
    let full = packet.pkey.bit(15) | image.pkey.bit(15);
    (packet.pkey.low::<15>() == image.pkey.low::<15>()) & full
}

/// From its peer, to its own address and in its VLAN (docs/decisions/vlan.md); a datagram may come from anywhere.
#[kernel_fn]
fn same_address(packet: RxMeta, image: RqImage) -> Bit {
    let of_peer = (packet.src_gid == image.remote_gid) & (packet.gid_index == image.sgid_index);
    let of_vlan = !image.check_vlan | (packet.vid == image.vlan);
    (image.qp_type == UD) | (of_peer & of_vlan)
}

/// Why a packet is no request for its queue pair: the first that applies.
#[kernel_fn]
fn reason_of(packet: RxMeta, image: RqImage, kind: RxKind) -> Bits<3> {
    let wrong_qkey = (image.qp_type == UD) & (packet.ext.slice::<32>(32) != image.qkey);
    let reason: Bits<3> = if packet.opcode == CNP {
        NO_REQUEST
    } else if !kind.exists {
        NO_QP
    } else if !same_transport(packet, image) {
        TRANSPORT
    } else if !same_pkey(packet, image) {
        PKEY
    } else if wrong_qkey {
        QKEY
    } else if !same_address(packet, image) {
        ADDRESS
    } else if kind.response {
        NO_REQUEST
    } else {
        GOOD
    };
    reason
}

/// The GRH of a datagram, a request before that of its payload.
#[kernel_fn]
fn grh_of(datagram: RqRequest, beats: Bits<10>) -> RqRequest {
    let mut grh = datagram;
    grh.grh = true;
    grh.last = false;
    grh.with_imm = false;
    grh.plen = GRH;
    grh.lane = bits::<6>(0);
    grh.beats = beats;
    grh
}

/// Right that its rkey must give.
#[kernel_fn]
fn right_of(kind: RxKind) -> MrRight {
    let right = if kind.atomic {
        MrRight::RemoteAtomic
    } else if kind.read {
        MrRight::RemoteRead
    } else {
        MrRight::RemoteWrite
    };
    right
}

/// An RC responder answers NAK invalid request, whatever its state: a length that does not fit, an operation that the
/// queue pair does not allow, an atomic that is not aligned to its 8 bytes.
#[kernel_fn]
fn is_invalid(
    packet: RxMeta,
    image: RqImage,
    kind: RxKind,
    bytes: Bits<13>,
    sum_wrong: Bit,
    too_long: Bit,
) -> Bit {
    // FIRST and MIDDLE fill the path MTU; LAST has at least a byte (IBA vol. 1, 9.7.4.1.6)
    let size_wrong = if kind.last {
        (packet.plen > bytes) | (!kind.first & !packet.plen.any())
    } else {
        packet.plen != bytes
    };
    let write_wrong = kind.write & (!image.remote_write | (kind.first & sum_wrong));
    let read_wrong = kind.read & (!image.remote_read | too_long);
    let atomic_wrong = kind.atomic & (!image.remote_atomic | packet.ext.low::<3>().any());
    let payload_wrong = (kind.send | kind.write) & size_wrong;
    !kind.request | payload_wrong | write_wrong | read_wrong | atomic_wrong
}

impl<const Q: usize, const K: usize, const D: usize> Logic for RxCheck<Q, K, D> {
    describe!(
        "rx_check",
        format!("q{Q}_k{K}_d{D}"),
        "Checks received packets against the static image of their queue pair."
    );

    #[kernel]
    fn update(&mut self) {
        images.we = image_we;
        images.waddr = image_qpn;
        copy!(images.wdata <= image;
            remote_gid, rq_base, qp_type, mtu, rq_log, rq_stride, min_rnr_timer, remote_write,
            remote_read, remote_atomic, max_dest_rd_atomic, pkey, sgid_index, check_vlan, vlan, qkey, pd, cqn,
            srq_valid, srqn);

        exist.we = known_we;
        exist.waddr = known_qpn;
        exist.wdata = bits::<1>(0).replace_bit(0, known);
        ready = exist.ready;

        let room = out_stage.s.ready & response_fifo.s.ready & order_fifo.s.ready;
        let go = room & !(v3 & split & !second);
        s.ready = go;
        images.re = go;
        images.raddr = s.payload.qpn.low::<Q>();
        exist.re = go;
        exist.raddr = s.payload.qpn.low::<Q>();

        // stage 1
        decode.opcode = m1.opcode;
        decode.qpn = m1.qpn;
        let difference = m1.dma_len.resize::<33>() - m1.plen.resize::<33>();

        // stage 2: the first check that fails is the reason
        let datagram = k2.qp_type == UD;
        let right_place = kind.exists & same_pkey(m2, k2) & same_address(m2, k2);
        let right_transport = same_transport(m2, k2);
        let cnp = m2.opcode == CNP;
        let of_peer = right_place & !datagram;
        seen.valid = go & v2 & (cnp | (m2.ce & right_transport & of_peer));
        seen.payload.qpn = m2.qpn.low::<16>();
        seen.payload.cnp = cnp;
        seen.payload.of_peer = of_peer;
        notice = seen;

        let payload_less = m2.plen - 1;
        let bytes = bits::<13>(128) << k2.mtu;
        // the length in the RETH is that of ONLY, more than that of FIRST
        let sum_wrong = if kind.last {
            !same_length
        } else {
            off_range | same_length
        };
        let mut wanted = !m2.beats.any();
        if D == 1 {
            wanted = true;
        }
        let shift = k2.mtu.resize::<4>() + 7;
        let packets_after_first = length_less >> shift;

        if go {
            v1 = s.valid;
            m1 = s.payload;

            v2 = v1;
            m2 = m1;
            k2 = images.rdata;
            kind = decode.kind;
            kind.exists = decode.kind.exists & exist.rdata.any();
            too_long = m1.dma_len.bit(31) & m1.dma_len.low::<31>().any();
            off_range = difference.bit(32) | (m1.dma_len.bit(31) & m1.dma_len.low::<31>().any());
            same_length = !difference.any();
            no_length = !m1.dma_len.any();
            length_less = m1.dma_len - 1;

            v3 = v2;
            r3.qpn = m2.qpn.low::<16>();
            r3.psn = m2.psn;
            r3.syndrome = bits::<8>(0);
            if kind.aeth {
                r3.syndrome = m2.ext.slice::<8>(56);
            }
            r3.read = kind.read_response;
            r3.atomic = kind.atomic_ack;
            r3.last = kind.last;
            copy!(r3 <= m2; plen, lane, beats);
            to_requester = kind.response & right_place & right_transport & wanted;
            split = m2.grh;
            q3.qpn = m2.qpn.low::<16>();
            copy!(q3 <= kind; send, write, read, atomic, add, first, last, with_imm, with_inv);
            copy!(q3 <= m2; ack_req, solicited, psn);
            q3.va = m2.ext;
            q3.rkey = m2.rkey;
            q3.length = m2.dma_len;
            copy!(q3 <= m2; imm, plen, lane, beats);
            q3.tail = payload_less.low::<12>();
            q3.reason = reason_of(m2, k2, kind);
            q3.unreliable = datagram | (k2.qp_type == UC);
            q3.datagram = datagram;
            q3.grh = false;
            q3.checked = (kind.write & kind.first) | kind.read | kind.atomic;
            q3.right = right_of(kind);
            if kind.atomic {
                q3.length = bits::<32>(8);
            }
            q3.invalid = is_invalid(m2, k2, kind, bytes, sum_wrong, too_long);
            q3.more = packets_after_first.low::<23>();
            if no_length {
                q3.more = bits::<23>(0);
            }
            if kind.first {
                q3.tail = length_less.low::<12>() & (bytes - 1).low::<12>();
            }
            q3.swap_add =
                m2.operands.slice::<32>(64).resize::<64>() | (m2.dma_len.resize::<64>() << 32);
            q3.compare = m2.operands.low::<64>();
            q3.src_qpn = bits::<24>(0);
            q3.pkey = bits::<16>(0);
            if datagram {
                q3.src_qpn = m2.ext.low::<24>();
                q3.pkey = m2.pkey;
            }
            copy!(q3 <= k2;
                mtu, max_dest_rd_atomic, rq_base, rq_log, rq_stride, min_rnr_timer, pd, cqn,
                srq_valid, srqn);
        }

        // stage 3: a datagram is its GRH, then its payload
        let mut out = q3;
        if split & second {
            out.first = false;
        } else if split {
            out = grh_of(q3, bits::<10>(Self::GRH_BEATS));
        }
        let has_beats = q3.beats.any() | (split & !second);
        if room {
            second = v3 & split & !second;
        }
        out_stage.s.valid = v3 & room & !to_requester;
        out_stage.s.payload = out;
        response_fifo.s.valid = v3 & room & to_requester;
        response_fifo.s.payload = r3;
        order_fifo.s.valid = v3 & room & has_beats;
        order_fifo.s.payload = to_requester;
        forward!(m <= out_stage.m);
        forward!(responses <= response_fifo.m);
        forward!(order <= order_fifo.m);
    }
}
