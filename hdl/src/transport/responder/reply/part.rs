//! Turns of replies: reads the reply from its ring and cuts what may be sent in this turn into packets.
//!
//! ```text
//!  Start ─► ring, path ─► byte offset ─► address, bytes left ─► packets ─┬─► Cut
//!                                                                        └─► region check
//! ```
//!
//! A turn ends with the reply, or behind 64 KiB or 128 packets; that of a queue pair with a rate behind fewer
//! ([`pace`](super::pace)). While its class is closed, the next packet is void and ends the turn: it has no bytes, and is not sent.
//! The turn of an atomic is one packet of no bytes. The check of no bytes always passes.
//!
//! If the peer asked for the rest of a READ again, the READ ends here: one void packet, which is not sent, counts as its last.
//! The duplicate behind it sends the data.
//!
//! A packet is cut when there is room for its payload and its descriptor ([`cut_gate`](super::cut_gate)), so that nothing
//! that was checked waits for the wire ([`exit`](super::exit)). One of 512 bytes or more is the only one in 5 cycles.
//!
//! Throughput: a packet a cycle; 1 cycle between turns. Latency: 6 cycles to the first packet. At most 15 packets between here
//! and the descriptors.
use super::cut_gate::CutGate;
use super::types::*;
use crate::bus::dma::MrCheckOut;
use crate::bus::path::{kind_of, lane_of};
use crate::bus::types::image::AvCtx;
use crate::bus::types::{MrReq, MrRight, PayloadSize};
use crate::bus::valid::Valid;
use crate::egress::CLASSES;
use crate::prelude::*;

/// Cutter of replies of 2^Q queue pairs.
#[derive(Block)]
pub struct Cutter<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Turns.
    pub s: StreamIn<Start>,
    /// A reply enters a ring.
    pub enter: Signal<In, Bit>,
    /// Its ring.
    pub enter_qpn: Signal<In, Bits<Q>>,
    /// Its slot.
    pub enter_slot: Signal<In, Bits<5>>,
    /// The reply.
    pub entered: Signal<In, ReplyWord>,
    /// A command writes the address vector of `image_qpn`.
    pub av_we: Signal<In, Bit>,
    /// Queue pair of the address vector.
    pub image_qpn: Signal<In, Bits<Q>>,
    /// Address vector.
    pub av_image: Signal<In, AvCtx>,
    /// A packet leaves in this cycle.
    pub valid: Signal<Out, Bit>,
    /// The packet.
    pub cut: Signal<Out, Cut>,
    /// The check of it.
    pub mr: MrCheckOut,
    /// In the next cycle none may be checked.
    pub yields: Signal<In, Bit>,
    /// There is room for payload: of one packet of any size, and of four below 512 bytes.
    pub roomy: Signal<In, Bit>,
    /// Payload of `cut` for which room is taken.
    pub reserve: Signal<Out, Valid<PayloadSize>>,
    /// Classes of which nothing is to be cut.
    pub closed: Signal<In, Bits<CLASSES>>,
    /// A packet passed the exit.
    pub passed: Signal<In, Bit>,

    ring: RingRam<ReplyWord, Q, 5>,
    paths: Ram<Bits<2>, Q>,
    gate: CutGate,

    valid_1: Reg<Bit>,
    start_1: Dff<Start>,
    valid_2: Reg<Bit>,
    turn_2: Dff<ReplyTurn>,
    valid_3: Reg<Bit>,
    turn_3: Dff<ReplyTurn>,
    offset_3: Dff<Bits<32>>,
    valid_4: Reg<Bit>,
    turn_4: Dff<ReplyTurn>,
    psn_4: Dff<Bits<24>>,
    addr_4: Dff<Bits<64>>,
    left_4: Dff<Bits<32>>,
    count_4: Dff<Bits<8>>,

    // the turn being cut
    active: Reg<Bit>,
    turn: Dff<ReplyTurn>,
    psn: Dff<Bits<24>>,
    offset: Dff<Bits<24>>,
    addr: Dff<Bits<64>>,
    /// Bytes of the reply from the packet on.
    left: Dff<Bits<32>>,
    plen: Dff<Bits<13>>,
    last: Dff<Bit>,
    /// A later duplicate asks for the rest.
    repeated: Dff<Bit>,
    /// Packets that the turn may still have.
    count: Dff<Bits<8>>,
    mtu: Dff<Bits<32>>,
    valid_q: Reg<Bit>,
    cut_q: Dff<Cut>,
    mr_q: Dff<MrReq>,
}

/// Payload of a packet.
#[kernel_fn]
fn plen_of(left: Bits<32>, mtu: Bits<32>, last: Bit) -> Bits<13> {
    let plen = if last { left } else { mtu };
    plen.low::<13>()
}

/// The next packet of a READ is of the latest run of duplicates, and the READ is not.
#[kernel_fn]
fn is_repeated(turn: ReplyTurn, psn: Bits<24>) -> Bit {
    let start = turn.start;
    let word = turn.word;
    let from_first = psn - start.dup_first;
    let to_last = start.dup_last - psn;
    let among = !from_first.bit(23) & !to_last.bit(23);
    start.repeats & !word.atomic & (!word.duplicate | start.earlier) & among
}

/// Packets of a turn of 2^`log_bytes` bytes, 128 at most and one at least. MTU code c is 2^(7 + c) bytes.
#[kernel_fn]
fn quantum(mtu: Bits<3>, log_bytes: Bits<5>) -> Bits<8> {
    let packets: Bits<10> = ((bits::<17>(1) << log_bytes) >> mtu).slice::<10>(7);
    let mut most = packets.low::<8>();
    if packets.slice::<2>(8).any() {
        most = bits::<8>(128);
    } else if !most.any() {
        most = bits::<8>(1);
    }
    most
}

impl<const Q: usize> Logic for Cutter<Q> {
    describe!(
        "reply_cutter",
        format!("q{Q}"),
        "Cuts replies into packets."
    );

    #[kernel]
    fn update(&mut self) {
        let word = turn.word;
        let start = turn.start;
        // the packet being cut
        let step = active & gate.may & !yields;
        copy!(gate <= self; roomy, passed);
        gate.step = step;
        let void = repeated | (start.of_class & closed).any();
        gate.big = plen.slice::<4>(9).any() & !void;
        let ends = last | (count == 1) | void;

        let go_4 = valid_4 & (!active | (step & ends));
        let go_3 = valid_3 & (!valid_4 | go_4);
        let go_2 = valid_2 & (!valid_3 | go_3);
        let go_1 = valid_1 & (!valid_2 | go_2);
        let go_0 = s.valid & (!valid_1 | go_1);
        s.ready = !valid_1 | go_1;
        valid_1 = go_0 | (valid_1 & !go_1);
        valid_2 = go_1 | (valid_2 & !go_2);
        valid_3 = go_2 | (valid_3 & !go_3);
        valid_4 = go_3 | (valid_4 & !go_4);

        // 1: ring and path
        ring.we = enter;
        ring.wring = enter_qpn;
        ring.wslot = enter_slot;
        ring.wdata = entered;
        ring.re = go_0;
        ring.rring = s.payload.qpn.low::<Q>();
        ring.rslot = s.payload.slot;
        paths.we = av_we;
        paths.waddr = image_qpn;
        paths.wdata = kind_of(av_image.ipv6, av_image.vlan_valid);
        paths.re = go_0;
        paths.raddr = s.payload.qpn.low::<Q>();
        if go_0 {
            start_1 = s.payload;
        }
        if go_1 {
            turn_2 = ReplyTurn {
                start: start_1,
                word: ring.rdata,
                path: paths.rdata,
            };
        }
        // 3: byte offset; MTU code c is 128 << c bytes
        if go_2 {
            turn_3 = turn_2;
            offset_3 = (turn_2.start.offset.resize::<32>() << 7) << turn_2.word.mtu;
        }
        // 4: address
        if go_3 {
            turn_4 = turn_3;
            psn_4 = turn_3.word.psn + turn_3.start.offset;
            addr_4 = turn_3.word.va + offset_3.resize::<64>();
            left_4 = turn_3.word.len - offset_3;
            count_4 = quantum(turn_3.word.mtu, turn_3.start.log_bytes);
        }
        // a packet a cycle
        let last_next = left <= (mtu << 1);
        let plen_next = plen_of(left - mtu, mtu, last_next);
        if step {
            psn += 1;
            offset += 1;
            count -= 1;
            addr += mtu.resize::<64>();
            left -= mtu;
            last = last_next;
            plen = plen_next;
            active = !ends;
        }
        let mtu_4 = bits::<32>(128) << turn_4.word.mtu;
        let last_4 = left_4 <= mtu_4;
        let plen_4 = plen_of(left_4, mtu_4, last_4);
        if go_4 {
            active = true;
            turn = turn_4;
            repeated = is_repeated(turn_4, psn_4);
            psn = psn_4;
            offset = turn_4.start.offset + 1;
            addr = addr_4;
            left = left_4;
            last = last_4;
            plen = plen_4;
            mtu = mtu_4;
            count = count_4;
        }

        // out: the packet, its check, its atomic
        valid_q = step;
        copy!(cut_q.packet <= self; psn, plen, offset);
        copy!(cut_q.packet <= start; qpn, generation, save, saved);
        // MSN of a NAK too: a READ counts once it is accepted
        copy!(cut_q.packet <= word; msn, duplicate);
        cut_q.packet.last = repeated | (last & !void);
        cut_q.packet.atomic = word.atomic & !void;
        cut_q.packet.void = void;
        if void {
            // Served names the next one: of a READ that ends here that behind all duplicates
            cut_q.packet.psn = if repeated { start.dup_last } else { psn - 1 };
            cut_q.packet.offset = offset - 1;
            cut_q.packet.plen = 0;
        }
        cut_q.packet.path = turn.path;
        cut_q.packet.first = offset == 1;
        cut_q.packet.ends = ends;
        cut_q.addr = addr;
        let has_aeth = (offset == 1) | last;
        let lane = lane_of(turn.path);
        cut_q.lane = if has_aeth { lane + 4 } else { lane };
        valid = valid_q;
        cut = cut_q;
        let packet = cut_q.packet;
        reserve.valid = valid_q & packet.plen.any();
        reserve.payload.plen = packet.plen;
        reserve.payload.lane = cut_q.lane;

        mr_q = MrReq {
            key: word.rkey,
            pd: word.pd,
            qpn: start.qpn,
            addr: addr,
            len: if void { 0 } else { plen.resize::<32>() },
            right: MrRight::RemoteRead,
        };
        mr.valid = valid_q;
        mr.request = mr_q;
    }
}
