//! Receive parser: says of every frame what it is, and of every beat what it holds.
//!
//! Takes a beat a cycle, any frame of any length, and never stalls. The first reason that applies decides:
//!
//! 1. bad: the frame is marked (`tuser`);
//! 2. malformed: it ends before the headers that tell what it is: 42 bytes, with a tag 4 more, for IPv6 20 more;
//! 3. wrong address: the destination MAC address is neither that of the port nor a group address, and the port is not
//!    promiscuous;
//! 4. not RoCEv2: it is not UDP to port 4791 in an unfragmented IPv4 datagram without options, or in an IPv6 datagram
//!    without extension headers, behind at most one 802.1Q tag. Such a frame is well addressed: `not_roce` is what an
//!    exception queue would be told;
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
//!               (layout)      GID table, header checksum
//!                               └─► 4: icrc_beat, icrc_data
//! ```

// The accessors that the derive generates have no documentation.
#![allow(missing_docs)]

use ferroce_proto::wire::{Class as Transport, Opcode, atomic, eth, ip, udp};

use super::gid_table::{GidTable, GidWrite};
use super::ipv4_checksum::Ipv4Checksum;
use super::packet_buffer::RxBeat;
use super::rx_extent::{PayloadPlace, RxExtent};
use super::rx_fields::{GRH_BITS, Layout, RxFields};
use super::rx_header::FieldSelect;
use super::rx_link::{Link, RxLink};
use crate::bus::types::RxMeta;
use crate::cell::delay::Delay;
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
#[derive(Clone, Debug, Default, LogicBlock)]
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
    // What the verdict needs, in step.
    packet_8: Delay<RxMeta, 5>,
    grh_8: Delay<Bits<GRH_BITS>, 5>,
    class_8: Delay<Class, 4>,
    place_8: Delay<PayloadPlace, 1>,
    checksum_8: Delay<Bit, 1>,
    found_8: Delay<Bit, 3>,
    gid_index_8: Delay<Bits<8>, 3>,
    beat_q: Reg<RxBeat>,
    packet_q: Dff<RxMeta>,
    extra_q: Dff<Bits<GRH_BITS>>,
    udp: Signal<Local, Bit>,
    shortest: Signal<Local, Bits<14>>,
    whole: Signal<Local, Bit>,
    for_us: Signal<Local, Bit>,
    roce: Signal<Local, Bit>,
    formed: Signal<Local, Bit>,
    datagram: Signal<Local, Bit>,
    atomic_ack: Signal<Local, Bit>,
    original: Signal<Local, Bits<64>>,
}

const PROTOCOL_UDP: u64 = ip::PROTOCOL_UDP as u64;
const ROCE_PORT: u64 = udp::ROCE_PORT as u64;
const ECN_CE: u64 = ip::ECN_CE as u64;
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
        "Says of every received frame what it is, and of every beat what it holds.";
        PROTOCOL_UDP, ROCE_PORT, ECN_CE, ATOMIC_ACK, UD, ORIGINAL, SHORTEST_IPV4, SHORTEST_IPV6, TAG
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(
            self,
            clock,
            link,
            select,
            extent,
            gids,
            checksum,
            packet_8,
            grh_8,
            class_8,
            place_8,
            checksum_8,
            found_8,
            gid_index_8
        );
        dff_setup!(self, clock, link_3, class, beat_q, packet_q, extra_q);
        // Cycles 0 and 1.
        AxisIn::<W, K>::link(&mut self.s_axis, &mut self.link.s_axis);
        self.link.enable.next = self.enable.val();
        self.link.mac.next = self.mac.val();
        self.link.promiscuous.next = self.promiscuous.val();
        self.bytes.next = self.link.bytes.val();
        // Cycle 2: fields.
        self.select.header.next = self.link.header.val();
        self.select.ipv6.next = self.link.link.val().ipv6;
        self.select.vlan.next = self.link.link.val().vlan;
        self.link_3.d.next = self.link.link.val();
        // Cycle 3: IP and UDP headers.
        self.udp.next = (self.select.fields.val().protocol == PROTOCOL_UDP)
            & ((self.link_3.q.val().ipv6 & (self.select.fields.val().version == 6))
                | (self.link_3.q.val().ipv4
                    & (self.select.fields.val().version == 4)
                    & (self.select.fields.val().ihl == 5)
                    & (self.select.fields.val().fragment == 0)));
        self.shortest.next = bits::<14>(SHORTEST_IPV4);
        if self.link_3.q.val().ipv6 {
            self.shortest.next = bits::<14>(SHORTEST_IPV6);
        }
        if self.link_3.q.val().vlan {
            self.shortest.next = self.shortest.val() + TAG;
        }
        self.class.d.next.valid = self.link_3.q.val().valid;
        self.class.d.next.last = self.link_3.q.val().last;
        self.class.d.next.bad = self.link_3.q.val().bad;
        self.class.d.next.index = self.link_3.q.val().index;
        self.class.d.next.vlan = self.link_3.q.val().vlan;
        self.class.d.next.ipv6 = self.link_3.q.val().ipv6;
        self.class.d.next.short = self.link_3.q.val().length < self.shortest.val();
        self.class.d.next.mac_ok = self.link_3.q.val().mac_ok;
        self.class.d.next.roce = self.udp.val() & (self.select.fields.val().udp_port == ROCE_PORT);
        self.extent.fields.next = self.select.fields.val();
        self.extent.ipv6.next = self.link_3.q.val().ipv6;
        self.extent.vlan.next = self.link_3.q.val().vlan;
        self.extent.index.next = self.link_3.q.val().index;
        self.extent.length.next = self.link_3.q.val().length;
        self.gids.write.next = self.gid_write.val();
        self.gids.entry.next = self.gid.val();
        self.gids.gid.next = self.select.fields.val().dst_gid;
        self.gids.ipv6.next = self.link_3.q.val().ipv6;
        // An IPv4 header is the second half of its GRH.
        self.checksum.header.next = self.select.fields.val().grh.get_bits::<160>(160);
        self.packet_8.d.next.opcode = self.select.fields.val().opcode;
        self.packet_8.d.next.solicited = self.select.fields.val().solicited;
        self.packet_8.d.next.ack_req = self.select.fields.val().ack_req;
        self.packet_8.d.next.becn = self.select.fields.val().becn;
        self.packet_8.d.next.ce = self.select.fields.val().ecn == ECN_CE;
        self.packet_8.d.next.ipv6 = self.link_3.q.val().ipv6;
        self.packet_8.d.next.pkey = self.select.fields.val().pkey;
        self.packet_8.d.next.qpn = self.select.fields.val().dest_qp;
        self.packet_8.d.next.psn = self.select.fields.val().psn;
        self.packet_8.d.next.src_gid = self.select.fields.val().src_gid;
        self.packet_8.d.next.ext = self.select.fields.val().ext;
        self.packet_8.d.next.rkey = self.select.fields.val().rkey;
        self.packet_8.d.next.dma_len = self.select.fields.val().dma_len;
        self.packet_8.d.next.operands = self.select.fields.val().operands;
        self.grh_8.d.next = self.select.fields.val().grh;
        // Not known yet.
        self.packet_8.d.next.gid_index = bits::<8>(0);
        self.packet_8.d.next.imm = bits::<32>(0);
        self.packet_8.d.next.plen = bits::<13>(0);
        self.packet_8.d.next.lane = bits::<6>(0);
        self.packet_8.d.next.beats = bits::<10>(0);
        self.packet_8.d.next.grh = false;
        // Cycle 4: to the ICRC check.
        self.icrc_beat.next.valid = self.class.q.val().valid;
        self.icrc_beat.next.index = self.class.q.val().index;
        self.icrc_beat.next.ipv6 = self.class.q.val().ipv6;
        self.icrc_beat.next.vlan = self.class.q.val().vlan;
        self.icrc_beat.next.icrc_end = self.extent.icrc_end.val();
        self.icrc_data.next = self.link.data.val();
        // Cycle 8: verdict.
        self.class_8.d.next = self.class.q.val();
        self.place_8.d.next = self.extent.place.val();
        self.checksum_8.d.next = self.checksum.good.val();
        self.found_8.d.next = self.gids.found.val();
        self.gid_index_8.d.next = self.gids.index.val();
        self.whole.next =
            self.class_8.q.val().last & !self.class_8.q.val().bad & !self.class_8.q.val().short;
        self.for_us.next = self.whole.val() & self.class_8.q.val().mac_ok;
        self.roce.next = self.for_us.val() & self.class_8.q.val().roce;
        self.formed.next = self.roce.val()
            & self.place_8.q.val().formed
            & (self.checksum_8.q.val() | self.class_8.q.val().ipv6);
        self.beat_q.d.next.store = self.class_8.q.val().valid & self.place_8.q.val().store;
        self.beat_q.d.next.payload_end = self.place_8.q.val().payload_end;
        self.beat_q.d.next.last = self.class_8.q.val().last;
        self.beat_q.d.next.accept = self.formed.val() & self.found_8.q.val();
        self.beat_q.d.next.bad = self.class_8.q.val().last & self.class_8.q.val().bad;
        self.beat_q.d.next.malformed =
            (self.class_8.q.val().last & !self.class_8.q.val().bad & self.class_8.q.val().short)
                | (self.roce.val() & !self.formed.val());
        self.beat_q.d.next.wrong_address =
            (self.whole.val() & !self.for_us.val()) | (self.formed.val() & !self.found_8.q.val());
        self.beat_q.d.next.not_roce = self.for_us.val() & !self.roce.val();
        self.packet_q.d.next = self.packet_8.q.val();
        self.packet_q.d.next.gid_index = self.gid_index_8.q.val();
        self.packet_q.d.next.imm = self.place_8.q.val().imm;
        self.packet_q.d.next.plen = self.place_8.q.val().plen;
        self.packet_q.d.next.lane = self.place_8.q.val().lane;
        self.packet_q.d.next.beats = self.place_8.q.val().beats;
        self.datagram.next = self.packet_8.q.val().opcode.get_bits::<3>(5) == UD;
        self.atomic_ack.next = self.packet_8.q.val().opcode == ATOMIC_ACK;
        self.beat_q.d.next.extra =
            self.class_8.q.val().last & (self.datagram.val() | self.atomic_ack.val());
        self.packet_q.d.next.grh = self.datagram.val();
        self.original.next = (bit_cast::<64, 32>(self.packet_8.q.val().ext.get_bits::<32>(0))
            << 32)
            | bit_cast::<64, 32>(self.packet_8.q.val().rkey);
        self.extra_q.d.next = self.grh_8.q.val();
        if self.atomic_ack.val() {
            // The parser counts the value among the headers.
            self.packet_q.d.next.plen = bits::<13>(ORIGINAL);
            self.packet_q.d.next.lane = bits::<6>(0);
            self.packet_q.d.next.beats = bits::<10>(1);
            self.extra_q.d.next = bit_cast::<GRH_BITS, 64>(self.original.val());
        }
        self.extra.next = self.extra_q.q.val();
        self.beat.next = self.beat_q.q.val();
        self.packet.next = self.packet_q.q.val();
    }
}
