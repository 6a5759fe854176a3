//! Receive parser: says of every frame what it is, and of every beat what it holds.
//!
//! Takes a beat a cycle, any frame of any length, and never stalls. The first reason that applies decides:
//!
//! 1. bad: the frame is marked (`tuser`);
//! 2. malformed: it ends before the headers that tell what it is: 42 bytes, with a tag 4 more, for IPv6 20 more;
//! 3. wrong address: the destination MAC address is neither that of the port nor a group address, and the port is not
//!    promiscuous;
//! 4. not RoCEv2: it is not UDP to port 4791 in an unfragmented IPv4 datagram without options, or in an IPv6 datagram
//!    without extension headers, behind at most one 802.1Q tag. Such a frame is well addressed: `not_roce` marks it
//!    for an exception queue;
//! 5. malformed: the IPv4 header checksum is wrong, or what [`RxExtent`] checks;
//! 6. wrong address: the destination IP address is not in the GID table.
//!
//! What is left is good if its ICRC is.
//!
//! Of two kinds of packet bytes go to the host that stand in the headers (`extra`): a datagram (UD) has its IP header
//! handed on as a GRH, an acknowledgement of an atomic its original value as 8 bytes of payload in host order.
//!
//! ```text
//! cycle 0, 1     2             3, 4 ............................ 8           9
//! rx_link   ─►  fields    ─►  IP and UDP, opcode and extent,  ─► verdict ─► beat, packet
//!               (layout)      GID table, header checksum, class
//!                               └─► 4: icrc_beat, icrc_data
//! ```

// The accessors that the derive generates have no documentation.
#![allow(missing_docs)]

use ferroce_proto::wire::ip::{ECN_CE, PROTOCOL_UDP};
use ferroce_proto::wire::udp::ROCE_PORT;
use ferroce_proto::wire::{Class as Transport, Opcode, atomic, eth};

use super::gid_table::{GidTable, GidWrite};
use super::ipv4_checksum::Ipv4Checksum;
use super::packet_buffer::RxBeat;
use super::rx_extent::{PayloadPlace, RxExtent};
use super::rx_fields::{GRH_BITS, RxFields};
use super::rx_header::FieldSelect;
use super::rx_link::{Link, RxLink};
use crate::bus::layout::Layout;
use crate::bus::types::RxMeta;
use crate::cell::delay::Delay;
use crate::egress::class_of::ClassOf;
use crate::egress::types::ClassSetup;
use crate::ib::icrc_check::IcrcBeat;
use crate::prelude::*;

/// The frame by its IP and UDP headers.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Class {
    valid: Bit,
    last: Bit,
    bad: Bit,
    index: Bits<10>,
    vlan: Bit,
    ipv6: Bit,
    short: Bit,
    mac_ok: Bit,
    roce: Bit,
}

/// The block.
#[derive(Clone, Debug, Block)]
pub struct RxParse<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Frames in; `tready` is constant 1.
    pub s_axis: AxisIn<W, K>,
    /// Frames are accepted.
    pub enable: Signal<In, Bit>,
    /// MAC address of the port, first byte in the lowest bits.
    pub mac: Signal<In, Bits<48>>,
    /// Every destination MAC address is accepted.
    pub promiscuous: Signal<In, Bit>,
    /// `gid` is written into the GID table in this cycle.
    pub gid_write: Signal<In, Bit>,
    /// Entry of the GID table to write.
    pub gid: Signal<In, GidWrite>,
    /// What the host says of classes.
    pub classes: Signal<In, ClassSetup>,
    /// Bytes of accepted frames that arrived in the cycle before, 0 to K.
    pub bytes: Signal<Out, Bits<7>>,
    /// A beat for the ICRC check, [`RxParse::ICRC_LATENCY`] cycles after it came in.
    pub icrc_beat: Signal<Out, IcrcBeat>,
    /// Its bytes.
    pub icrc_data: Signal<Out, Bits<W>>,
    /// The beat for the packet buffer, [`RxParse::LATENCY`] cycles after it came in.
    pub beat: Signal<Out, RxBeat>,
    /// In the last beat: the packet.
    pub packet: Signal<Out, RxMeta>,
    /// In the last beat of a datagram: its GRH; of an acknowledgement of an atomic: the original value in the lowest
    /// bits.
    pub extra: Signal<Out, Bits<GRH_BITS>>,
    link: RxLink<W, K>,
    select: FieldSelect<RxFields>,
    link_3: Reg<Link>,
    class: Reg<Class>,
    extent: RxExtent<K>,
    gids: GidTable,
    checksum: Ipv4Checksum,
    traffic: ClassOf,
    // What the verdict needs, in step.
    packet_8: Delay<RxMeta, 5>,
    grh_8: Delay<Bits<GRH_BITS>, 5>,
    class_8: Delay<Class, 4>,
    place_8: Delay<PayloadPlace, 1>,
    checksum_8: Delay<Bit, 1>,
    found_8: Delay<Bit, 3>,
    gid_index_8: Delay<Bits<8>, 3>,
    traffic_8: Delay<Bits<2>, 3>,
    beat_q: Reg<RxBeat>,
    packet_q: Dff<RxMeta>,
    extra_q: Dff<Bits<GRH_BITS>>,
}

const ATOMIC_ACK: u64 = Opcode::RcAtomicAck.code() as u64;
const UD: u64 = Transport::Ud as u64;
/// Bytes of the original value of an atomic.
const ORIGINAL: u64 = atomic::ack::LEN as u64;
/// Bytes up to the UDP header's end, and what a tag adds.
const SHORTEST_IPV4: u64 = Layout::ALL[0].bth() as u64;
const SHORTEST_IPV6: u64 = Layout::ALL[2].bth() as u64;
const TAG: u64 = eth::tag::LEN as u64;

impl<const W: usize, const K: usize> RxParse<W, K> {
    /// Cycles from a beat to `icrc_beat` and `icrc_data`.
    pub const ICRC_LATENCY: usize = 4;
    /// Cycles from a beat to `beat` and `packet`.
    pub const LATENCY: usize = 9;
}

impl<const W: usize, const K: usize> Logic for RxParse<W, K> {
    describe!(
        "rx_parse",
        format!("w{W}"),
        "Says of every received frame what it is, and of every beat what it holds."
    );

    #[kernel]
    fn update(&mut self) {
        // Cycles 0 and 1.
        forward!(s_axis <= link.s_axis);
        link.enable = enable;
        link.mac = mac;
        link.promiscuous = promiscuous;
        bytes = link.bytes;
        // Cycle 2: fields.
        select.header = link.header;
        select.ipv6 = link.link.ipv6;
        select.vlan = link.link.vlan;
        link_3 = link.link;
        // Cycle 3: IP and UDP headers.
        let udp = (select.fields.protocol == PROTOCOL_UDP)
            & ((link_3.ipv6 & (select.fields.version == 6))
                | (link_3.ipv4
                    & (select.fields.version == 4)
                    & (select.fields.ihl == 5)
                    & (select.fields.fragment == 0)));
        let mut shortest = bits::<14>(SHORTEST_IPV4);
        if link_3.ipv6 {
            shortest = bits::<14>(SHORTEST_IPV6);
        }
        if link_3.vlan {
            shortest = shortest + TAG;
        }
        copy!(class <= link_3; valid, last, bad, index, vlan, ipv6);
        class.short = link_3.length < shortest;
        class.mac_ok = link_3.mac_ok;
        // what is promiscuous is for the host alone
        class.roce = link_3.own & udp & (select.fields.udp_port == ROCE_PORT);
        extent.fields = select.fields;
        copy!(extent <= link_3; ipv6, vlan, index, length);
        gids.write = gid_write;
        gids.entry = gid;
        gids.gid = select.fields.dst_gid;
        gids.ipv6 = link_3.ipv6;
        // An IPv4 header is the second half of its GRH.
        checksum.header = select.fields.grh.slice::<160>(160);
        copy!(packet_8.d <= select.fields; opcode, solicited, ack_req, becn);
        packet_8.d.ce = select.fields.tclass.low::<2>() == ECN_CE;
        packet_8.d.ipv6 = link_3.ipv6;
        packet_8.d.pkey = select.fields.pkey;
        packet_8.d.qpn = select.fields.dest_qp;
        copy!(packet_8.d <= select.fields; vid, psn, src_gid, ext, rkey, dma_len, operands);
        grh_8.d = select.fields.grh;
        traffic.setup = classes;
        copy!(traffic <= select.fields; tclass, pcp);
        traffic.has_tag = link_3.vlan;
        // Not known yet.
        packet_8.d.gid_index = bits::<8>(0);
        packet_8.d.imm = bits::<32>(0);
        packet_8.d.plen = bits::<13>(0);
        packet_8.d.lane = bits::<6>(0);
        packet_8.d.beats = bits::<10>(0);
        packet_8.d.grh = false;
        packet_8.d.packet_class = bits::<2>(0);
        // Cycle 4: to the ICRC check.
        copy!(icrc_beat <= class; valid, index, ipv6, vlan);
        icrc_beat.icrc_end = extent.icrc_end;
        icrc_data = link.data;
        // Cycle 8: verdict.
        class_8.d = class;
        place_8.d = extent.place;
        checksum_8.d = checksum.good;
        found_8.d = gids.found;
        gid_index_8.d = gids.index;
        traffic_8.d = traffic.packet_class;
        let whole = class_8.q.last & !class_8.q.bad & !class_8.q.short;
        let for_us = whole & class_8.q.mac_ok;
        let roce = for_us & class_8.q.roce;
        let formed = roce & place_8.q.formed & (checksum_8.q | class_8.q.ipv6);
        beat_q.store = class_8.q.valid & place_8.q.store;
        beat_q.payload_end = place_8.q.payload_end;
        beat_q.last = class_8.q.last;
        beat_q.accept = formed & found_8.q;
        beat_q.bad = class_8.q.last & class_8.q.bad;
        beat_q.malformed = (class_8.q.last & !class_8.q.bad & class_8.q.short) | (roce & !formed);
        beat_q.wrong_address = (whole & !for_us) | (formed & !found_8.q);
        beat_q.not_roce = for_us & !roce;
        packet_q = packet_8.q;
        packet_q.gid_index = gid_index_8.q;
        packet_q.packet_class = traffic_8.q;
        copy!(packet_q <= place_8.q; imm, plen, lane, beats);
        let datagram = packet_8.q.opcode.slice::<3>(5) == UD;
        let atomic_ack = packet_8.q.opcode == ATOMIC_ACK;
        beat_q.extra = class_8.q.last & (datagram | atomic_ack);
        packet_q.grh = datagram;
        let original =
            (packet_8.q.ext.low::<32>().resize::<64>() << 32) | packet_8.q.rkey.resize::<64>();
        extra_q = grh_8.q;
        if atomic_ack {
            // The parser counts the value among the headers.
            packet_q.plen = bits::<13>(ORIGINAL);
            packet_q.lane = bits::<6>(0);
            packet_q.beats = bits::<10>(1);
            extra_q = original.resize::<GRH_BITS>();
        }
        extra = extra_q;
        beat = beat_q;
        packet = packet_q;
    }
}
