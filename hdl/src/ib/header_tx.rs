//! Builds the headers of packets to send: Ethernet to extension headers (docs/architecture.md 3.4).
//!
//! ```text
//!  s[0], s[1] ─► arbiter ─► AvCtx ─► GID ─► lengths, IPv4 checksum ─► layout ─┬─► FIFO ─► m[0]
//!               (room?)    └─► extension headers ────────────────────┘        └─► FIFO ─► m[1]
//! ```
//!
//! Both lanes share the tables and the pipeline and have a FIFO each, so that a lane that waits does not hold up the
//! other. A descriptor enters only when there is room behind the pipeline, which therefore never stalls. A packet a
//! cycle for both lanes together; 7 cycles from a descriptor to its headers.
//!
//! A UD packet goes on the path of its address handle, a table of its own in the same RAM, to the queue pair its
//! descriptor names; any other on the path of its queue pair.
//!
//! Assumes: `opcode` is one of `ferroce_proto::wire::Opcode`, `plen` is 0 where it has no payload; the tables were
//! written before a packet needs them, `av_we` and `ah_we` are not 1 at once; an `AvCtx` names a GID of the version it says.
use ferroce_proto::wire::{Class, Opcode, bth, icrc, ipv4, udp};

use super::ext_tx::ExtTx;
use super::header_layout::{HeaderLayout, constant_words};
use super::tx_types::{TxBase, TxBody, TxHeader, TxLengths, TxPlaces, TxSizes, TxSlot, TxTag};
use crate::bus::types::{TxDesc, image};
use crate::cell::delay::Delay;
use crate::eth::rx_fields::Layout;
use crate::prelude::*;

/// Lanes: requests, responses.
pub const LANES: usize = 2;

/// Header builder for 2^Q queue pairs and as many address handles.
#[derive(Clone, Debug, LogicBlock)]
pub struct HeaderTx<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Packets, by lane.
    pub s: [StreamIn<TxDesc>; LANES],
    /// Writes `av_image` to the address vector of `image_qpn`.
    pub av_we: Signal<In, Bit>,
    /// Writes `av_image` to the address handle `image_qpn`.
    pub ah_we: Signal<In, Bit>,
    /// Queue pair or address handle.
    pub image_qpn: Signal<In, Bits<16>>,
    /// Address vector.
    pub av_image: Signal<In, image::AvCtx>,
    /// Writes `gid` to the entry `gid_index` of the GID table.
    pub gid_we: Signal<In, Bit>,
    /// Entry, below 16.
    pub gid_index: Signal<In, Bits<8>>,
    /// GID, first byte in the lowest bits.
    pub gid: Signal<In, Bits<128>>,
    /// MAC address of the port, first byte in the lowest bits.
    pub mac: Signal<In, Bits<48>>,
    /// Headers, by lane.
    pub m: [StreamOut<TxHeader>; LANES],
    arbiter: Arbiter<LANES>,
    used: [Reg<Bits<6>>; LANES],
    room: [Reg<Bit>; LANES],
    request: Dff<TxDesc>,
    slot: Reg<TxSlot>,
    slot_line: Delay<TxSlot, 5>,
    tag_line: Delay<TxTag, 5>,
    base_line: Delay<TxBase, 5>,
    ext: ExtTx,
    ext_line: Delay<Bits<224>, 4>,
    body: Dff<TxBody>,
    sizes: Dff<TxSizes>,
    /// Address vectors of queue pairs, ring 0, and of address handles, ring 1.
    av_table: RingRam<image::AvCtx, 1, Q>,
    datagram: Dff<Bit>,
    peer: Dff<Bits<24>>,
    av: Dff<image::AvCtx>,
    av_line: Delay<image::AvCtx, 3>,
    gid_table: Ram<Bits<128>, 4>,
    gid_line: Delay<Bits<128>, 2>,
    lengths: Dff<TxLengths>,
    lengths_line: Delay<TxLengths, 2>,
    header_len: Dff<Bits<7>>,
    late_plen: Dff<Bits<13>>,
    late_padded: Dff<Bits<13>>,
    places: Dff<TxPlaces>,
    late_places: Dff<TxPlaces>,
    /// Sum of the two words of the IPv4 address of every GID.
    gid_sums: Ram<Bits<17>, 4>,
    /// IPv4 checksum: sums of the addresses and of the rest, then of all, folded twice.
    sum_dst: Dff<Bits<20>>,
    sum_rest: Dff<Bits<20>>,
    sum: Dff<Bits<20>>,
    folded: Signal<Local, Bits<17>>,
    raised: Signal<Local, Bits<17>>,
    carries: Signal<Local, Bits<5>>,
    checksum: Dff<Bits<16>>,
    layout: HeaderLayout,
    queue: [Fifo<TxHeader, 5>; LANES],
    requests: Signal<Local, Bits<LANES>>,
    desc: Signal<Local, TxDesc>,
    padded: Signal<Local, Bits<13>>,
    before_ext: Signal<Local, Bits<7>>,
    header: Signal<Local, TxHeader>,
    entered: [Signal<Local, Bit>; LANES],
    left: [Signal<Local, Bit>; LANES],
    /// Sum of the words of an IPv4 header that are constant, and of what its total length is more than that of UDP.
    constant_words: Constant<Bits<20>>,
}

/// Descriptors that may be between `s` and `m` for one more to enter; two more may before the count shows.
const MOST: u64 = 29;
const RC_ACK: u64 = Opcode::RcAck as u64;
/// Bits 7:5 of the opcodes of datagrams.
const UD_CLASS: u64 = Class::Ud as u64;
/// What of a UDP datagram is neither extension header nor payload nor pad.
const UDP_BTH_ICRC: u64 = (udp::LEN + bth::LEN + icrc::LEN) as u64;
const IPV4_HEADER: u64 = ipv4::LEN as u64;
/// Bytes before the extension headers, by layout.
const EXT_IPV4: u64 = Layout::ALL[0].ext() as u64;
const EXT_IPV4_TAG: u64 = Layout::ALL[1].ext() as u64;
const EXT_IPV6: u64 = Layout::ALL[2].ext() as u64;
const EXT_IPV6_TAG: u64 = Layout::ALL[3].ext() as u64;
const ICRC: u64 = icrc::LEN as u64;

impl<const Q: usize> Default for HeaderTx<Q> {
    fn default() -> Self {
        Self {
            clock: ClkRst::default(),
            s: Default::default(),
            m: Default::default(),
            av_we: Signal::default(),
            ah_we: Signal::default(),
            image_qpn: Signal::default(),
            av_image: Signal::default(),
            gid_we: Signal::default(),
            gid_index: Signal::default(),
            gid: Signal::default(),
            mac: Signal::default(),
            arbiter: Arbiter::default(),
            used: Default::default(),
            room: Default::default(),
            request: Dff::default(),
            slot: Reg::default(),
            slot_line: Delay::default(),
            tag_line: Delay::default(),
            base_line: Delay::default(),
            ext: ExtTx::default(),
            ext_line: Delay::default(),
            body: Dff::default(),
            sizes: Dff::default(),
            av_table: RingRam::default(),
            datagram: Dff::default(),
            peer: Dff::default(),
            av: Dff::default(),
            av_line: Delay::default(),
            gid_table: Ram::default(),
            gid_line: Delay::default(),
            lengths: Dff::default(),
            lengths_line: Delay::default(),
            header_len: Dff::default(),
            late_plen: Dff::default(),
            late_padded: Dff::default(),
            places: Dff::default(),
            late_places: Dff::default(),
            gid_sums: Ram::default(),
            sum_dst: Dff::default(),
            sum_rest: Dff::default(),
            sum: Dff::default(),
            folded: Signal::default(),
            raised: Signal::default(),
            carries: Signal::default(),
            checksum: Dff::default(),
            layout: HeaderLayout::default(),
            queue: Default::default(),
            requests: Signal::default(),
            desc: Signal::default(),
            padded: Signal::default(),
            before_ext: Signal::default(),
            header: Signal::default(),
            entered: Default::default(),
            left: Default::default(),
            constant_words: Constant::new((u64::from(constant_words()) + IPV4_HEADER).to_bits()),
        }
    }
}

impl<const Q: usize> Logic for HeaderTx<Q> {
    describe!(
        "header_tx",
        format!("q{Q}"),
        "Builds the headers of packets to send.";
        MOST, RC_ACK, UD_CLASS, UDP_BTH_ICRC, IPV4_HEADER, EXT_IPV4, EXT_IPV4_TAG, EXT_IPV6, EXT_IPV6_TAG, ICRC
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(
            self, clock, arbiter, slot_line, tag_line, base_line, ext, ext_line
        );
        clock!(self, clock, av_table, av_line, gid_table);
        clock!(self, clock, gid_sums, gid_line, lengths_line);
        dff_setup!(self, clock, request, slot, body, sizes, av, lengths);
        dff_setup!(self, clock, header_len, late_plen, late_padded, places);
        dff_setup!(self, clock, late_places, datagram, peer, sum_dst, sum_rest);
        dff_setup!(self, clock, sum, checksum);

        // Tables.
        self.av_table.we.next = self.av_we.val() | self.ah_we.val();
        self.av_table.wring.next = bits::<1>(0).replace_bit(0, self.ah_we.val());
        self.av_table.wslot.next = bit_cast::<Q, 16>(self.image_qpn.val());
        self.av_table.wdata.next = self.av_image.val();
        self.gid_table.we.next = self.gid_we.val();
        self.gid_table.waddr.next = bit_cast::<4, 8>(self.gid_index.val());
        self.gid_table.wdata.next = self.gid.val();
        self.gid_sums.we.next = self.gid_we.val();
        self.gid_sums.waddr.next = bit_cast::<4, 8>(self.gid_index.val());
        self.gid_sums.wdata.next = ((bit_cast::<17, 8>(self.gid.val().get_bits::<8>(96)) << 8)
            | bit_cast::<17, 8>(self.gid.val().get_bits::<8>(104)))
            + ((bit_cast::<17, 8>(self.gid.val().get_bits::<8>(112)) << 8)
                | bit_cast::<17, 8>(self.gid.val().get_bits::<8>(120)));

        // A lane whose FIFO has room for what it asks, in turns.
        self.requests.next = bits::<2>(0);
        for i in 0..2 {
            ClkRst::link(&mut self.clock, &mut self.used[i].clock);
            ClkRst::link(&mut self.clock, &mut self.room[i].clock);
            self.requests.next = self
                .requests
                .val()
                .replace_bit(i, self.s[i].valid.val() & self.room[i].q.val());
        }
        self.arbiter.request.next = self.requests.val();
        self.arbiter.take.next = true;
        self.desc.next = self.s[0].payload.val();
        if self.arbiter.grant.val().get_bit(1) {
            self.desc.next = self.s[1].payload.val();
        }
        self.request.d.next = self.desc.val();
        self.slot.d.next.valid = self.requests.val().any();
        self.slot.d.next.lane = self.arbiter.grant.val().get_bit(1);
        self.slot_line.d.next = self.slot.q.val();
        for i in 0..2 {
            self.s[i].ready.next = self.arbiter.grant.val().get_bit(i);
            self.entered[i].next = self.arbiter.grant.val().get_bit(i);
            self.left[i].next = self.queue[i].m.valid.val() & self.m[i].ready.val();
            self.used[i].d.next = self.used[i].q.val();
            if self.entered[i].val() & !self.left[i].val() {
                self.used[i].d.next = self.used[i].q.val() + 1;
            } else if !self.entered[i].val() & self.left[i].val() {
                self.used[i].d.next = self.used[i].q.val() - 1;
            }
            self.room[i].d.next = self.used[i].q.val() < MOST;
        }

        // Cycle 0: extension headers, read of the address vector.
        self.ext.desc.next = self.request.q.val();
        self.av_table.re.next = true;
        self.datagram.d.next = (self.request.q.val().opcode >> 5) == UD_CLASS;
        self.av_table.rring.next = bits::<1>(0);
        self.av_table.rslot.next = bit_cast::<Q, 16>(self.request.q.val().qpn);
        if (self.request.q.val().opcode >> 5) == UD_CLASS {
            self.av_table.rring.next = bits::<1>(1);
            self.av_table.rslot.next = self.request.q.val().va.get_bits::<Q>(0);
        }
        self.peer.d.next = self.request.q.val().va.get_bits::<24>(32);
        self.padded.next = (self.request.q.val().plen + 3) & 0x1ffc;
        self.body.d.next.plen = self.request.q.val().plen;
        self.body.d.next.padded = self.padded.val();
        self.base_line.d.next.opcode = self.request.q.val().opcode;
        self.base_line.d.next.solicited = self.request.q.val().solicited;
        self.base_line.d.next.pad_cnt =
            bit_cast::<2, 13>(self.padded.val()) - bit_cast::<2, 13>(self.request.q.val().plen);
        self.base_line.d.next.ack_req = self.request.q.val().ack_req;
        self.base_line.d.next.psn = self.request.q.val().psn;
        self.tag_line.d.next.qpn = self.request.q.val().qpn;
        self.tag_line.d.next.psn = self.request.q.val().psn;
        self.tag_line.d.next.msn = self.request.q.val().msn;
        self.tag_line.d.next.notify = self.request.q.val().notify;
        self.tag_line.d.next.ack = self.request.q.val().opcode == RC_ACK;
        self.tag_line.d.next.payload = self.request.q.val().plen != 0;
        // Cycle 1: UDP length.
        self.av.d.next = self.av_table.rdata.val();
        if self.datagram.q.val() {
            self.av.d.next.remote_qpn = self.peer.q.val();
        }
        self.ext_line.d.next = self.ext.bytes.val();
        self.sizes.d.next.plen = self.body.q.val().plen;
        self.sizes.d.next.padded = self.body.q.val().padded;
        self.sizes.d.next.ext_len = self.ext.len.val();
        self.sizes.d.next.udp_length =
            self.body.q.val().padded + bit_cast::<13, 5>(self.ext.len.val()) + UDP_BTH_ICRC;

        // Cycle 2: read of the GID; what depends on the layout; the words of the checksum that are there.
        self.av_line.d.next = self.av.q.val();
        self.gid_table.re.next = true;
        self.gid_table.raddr.next = bit_cast::<4, 8>(self.av.q.val().sgid_index);
        self.lengths.d.next.udp_length = self.sizes.q.val().udp_length;
        self.lengths.d.next.ip_length = self.sizes.q.val().udp_length + IPV4_HEADER;
        self.before_ext.next = bits::<7>(EXT_IPV4);
        if self.av.q.val().vlan_valid {
            self.before_ext.next = bits::<7>(EXT_IPV4_TAG);
        }
        if self.av.q.val().ipv6 {
            self.lengths.d.next.ip_length = self.sizes.q.val().udp_length;
            self.before_ext.next = bits::<7>(EXT_IPV6);
            if self.av.q.val().vlan_valid {
                self.before_ext.next = bits::<7>(EXT_IPV6_TAG);
            }
        }
        self.header_len.d.next =
            self.before_ext.val() + bit_cast::<7, 5>(self.sizes.q.val().ext_len);
        self.late_plen.d.next = self.sizes.q.val().plen;
        self.late_padded.d.next = self.sizes.q.val().padded;
        self.sum_dst.d.next = ((bit_cast::<20, 8>(self.av.q.val().dgid.get_bits::<8>(96)) << 8)
            | bit_cast::<20, 8>(self.av.q.val().dgid.get_bits::<8>(104)))
            + ((bit_cast::<20, 8>(self.av.q.val().dgid.get_bits::<8>(112)) << 8)
                | bit_cast::<20, 8>(self.av.q.val().dgid.get_bits::<8>(120)));
        self.sum_rest.d.next = ((bit_cast::<20, 8>(self.av.q.val().hop_limit) << 8)
            | bit_cast::<20, 8>(self.av.q.val().tclass))
            + bit_cast::<20, 13>(self.sizes.q.val().udp_length)
            + self.constant_words.val();

        self.gid_sums.re.next = true;
        self.gid_sums.raddr.next = bit_cast::<4, 8>(self.av.q.val().sgid_index);

        // Cycle 3: places in the frame, sum of all words of the IPv4 header.
        self.gid_line.d.next = self.gid_table.rdata.val();
        self.lengths_line.d.next = self.lengths.q.val();
        self.places.d.next.header_len = self.header_len.q.val();
        self.places.d.next.payload_last =
            bit_cast::<13, 7>(self.header_len.q.val()) + self.late_plen.q.val() - 1;
        self.places.d.next.covered =
            bit_cast::<13, 7>(self.header_len.q.val()) + self.late_padded.q.val();
        self.places.d.next.length =
            bit_cast::<13, 7>(self.header_len.q.val()) + self.late_padded.q.val() + ICRC;
        self.sum.d.next = bit_cast::<20, 17>(self.gid_sums.rdata.val())
            + self.sum_dst.q.val()
            + self.sum_rest.q.val();
        // Cycle 4: IPv4 checksum: both folds at once, the second of which cannot carry.
        self.late_places.d.next = self.places.q.val();
        self.carries.next = bit_cast::<5, 4>(self.sum.q.val().get_bits::<4>(16)) + 1;
        self.folded.next = bit_cast::<17, 16>(self.sum.q.val().get_bits::<16>(0))
            + bit_cast::<17, 4>(self.sum.q.val().get_bits::<4>(16));
        self.raised.next = bit_cast::<17, 16>(self.sum.q.val().get_bits::<16>(0))
            + bit_cast::<17, 5>(self.carries.val());
        self.checksum.d.next = !self.folded.val().get_bits::<16>(0);
        if self.folded.val().get_bit(16) {
            self.checksum.d.next = !self.raised.val().get_bits::<16>(0);
        }
        // Cycle 5: layout, into the FIFO of the lane.
        self.layout.fields.next.ipv6 = self.av_line.q.val().ipv6;
        self.layout.fields.next.vlan = self.av_line.q.val().vlan_valid;
        self.layout.fields.next.dmac = self.av_line.q.val().dmac;
        self.layout.fields.next.smac = self.mac.val();
        self.layout.fields.next.tci = self.av_line.q.val().vlan;
        self.layout.fields.next.tclass = self.av_line.q.val().tclass;
        self.layout.fields.next.flow_label = self.av_line.q.val().flow_label;
        self.layout.fields.next.hop_limit = self.av_line.q.val().hop_limit;
        self.layout.fields.next.sgid = self.gid_line.q.val();
        self.layout.fields.next.dgid = self.av_line.q.val().dgid;
        self.layout.fields.next.ip_length = bit_cast::<16, 13>(self.lengths_line.q.val().ip_length);
        self.layout.fields.next.checksum = self.checksum.q.val();
        self.layout.fields.next.udp_sport = self.av_line.q.val().udp_sport;
        self.layout.fields.next.udp_length =
            bit_cast::<16, 13>(self.lengths_line.q.val().udp_length);
        self.layout.fields.next.opcode = self.base_line.q.val().opcode;
        self.layout.fields.next.solicited = self.base_line.q.val().solicited;
        self.layout.fields.next.pad_cnt = self.base_line.q.val().pad_cnt;
        self.layout.fields.next.pkey = self.av_line.q.val().pkey;
        self.layout.fields.next.dest_qp = self.av_line.q.val().remote_qpn;
        self.layout.fields.next.ack_req = self.base_line.q.val().ack_req;
        self.layout.fields.next.psn = self.base_line.q.val().psn;
        self.layout.fields.next.ext = self.ext_line.q.val();
        self.header.next.bytes = self.layout.bytes.val();
        self.header.next.header_len = self.late_places.q.val().header_len;
        self.header.next.payload_last = self.late_places.q.val().payload_last;
        self.header.next.covered = self.late_places.q.val().covered;
        self.header.next.length = self.late_places.q.val().length;
        self.header.next.payload = self.tag_line.q.val().payload;
        self.header.next.ipv6 = self.av_line.q.val().ipv6;
        self.header.next.vlan = self.av_line.q.val().vlan_valid;
        self.header.next.ack = self.tag_line.q.val().ack;
        self.header.next.qpn = self.tag_line.q.val().qpn;
        self.header.next.psn = self.tag_line.q.val().psn;
        self.header.next.msn = self.tag_line.q.val().msn;
        self.header.next.notify = self.tag_line.q.val().notify;
        for i in 0..2 {
            ClkRst::link(&mut self.clock, &mut self.queue[i].clock);
            self.queue[i].s.payload.next = self.header.val();
            StreamOut::<TxHeader>::link(&mut self.m[i], &mut self.queue[i].m);
        }
        self.queue[0].s.valid.next = self.slot_line.q.val().valid & !self.slot_line.q.val().lane;
        self.queue[1].s.valid.next = self.slot_line.q.val().valid & self.slot_line.q.val().lane;
    }
}
