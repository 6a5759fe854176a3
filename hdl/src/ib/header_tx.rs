//! Builds the headers of packets to send: Ethernet to extension headers (docs/blocks/transmit.md).
//!
//! ```text
//!  s[0], s[1] ─► arbiter ─► AvCtx ─► GID ─► lengths, IPv4 checksum ─► layout ─┬─► FIFO ─► m[0]
//!  cnp ──────► (room?)    └─► extension headers ────────────────────┘        ├─► FIFO ─► m[1]
//!                                                                            └─► bare
//! ```
//!
//! Both lanes share the tables and the pipeline and have a FIFO each, so that a lane that waits does not hold up the
//! other. A descriptor enters only when there is room behind the pipeline, which therefore never stalls. A packet a
//! cycle for both lanes together; 7 cycles from a descriptor to its headers.
//!
//! A UD packet goes on the path of its address handle, a table of its own in the same RAM, to the queue pair its
//! descriptor names; any other on the path of its queue pair.
//!
//! A CNP goes on the path of its queue pair with DSCP, ECN and PCP of its own, before all descriptors that wait; there is one
//! at a time.
//!
//! A packet with payload is laid out for the kind of path that its payload is aligned for. If the address vector is of
//! another kind by now, its header is marked: the packet is dropped, and no other packet notices.
//!
//! Assumes: `opcode` is one of `ferroce_proto::wire::Opcode`, `plen` is 0 where it has no payload; the tables were
//! written before a packet needs them, `av_we` and `ah_we` are not 1 at once; an `AvCtx` names a GID of the version it says.
use ferroce_proto::wire::{Class, Opcode, bth, icrc, ipv4, udp};

use super::ext_tx::ExtTx;
use super::header_layout::{HeaderLayout, constant_words};
use super::tx_entry::{LANES, TxEntry};
use super::tx_types::{TxBase, TxBody, TxHeader, TxLengths, TxPlaces, TxSizes, TxSlot, TxTag};
use crate::bus::layout::Layout;
use crate::bus::path::kind_of;
use crate::bus::types::{Activity, TxDesc, image};
use crate::cell::delay::Delay;
use crate::egress::class_of::ClassOf;
use crate::egress::types::ClassSetup;
use crate::prelude::*;
use crate::transport::congestion::notify_types::NotifySetup;

/// Header builder for 2^Q queue pairs and as many address handles.
#[derive(Clone, Debug, Block)]
pub struct HeaderTx<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Packets, by lane.
    pub s: [StreamIn<TxDesc>; LANES],
    /// Queue pairs whose peer is due a CNP.
    pub cnp: StreamIn<Bits<16>>,
    /// What the host says of CNPs.
    pub notify: Signal<In, NotifySetup>,
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
    /// What the host says of classes.
    pub classes: Signal<In, ClassSetup>,
    /// MAC address of the port, first byte in the lowest bits.
    pub mac: Signal<In, Bits<48>>,
    /// Headers, by lane.
    pub m: [StreamOut<TxHeader>; LANES],
    /// Headers of CNPs.
    pub bare: StreamOut<TxHeader>,
    /// Packets between `s` and `m`, by lane.
    pub activity: [Signal<Out, Activity>; LANES],
    /// CNPs between `cnp` and `bare`.
    pub cnp_activity: Signal<Out, Activity>,
    entry: TxEntry,
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
    notifies: Dff<Bit>,
    peer: Dff<Bits<24>>,
    av: Dff<image::AvCtx>,
    av_line: Delay<image::AvCtx, 3>,
    /// Kind of path that the payload is aligned for, and whether it is no longer that of the address vector.
    aligned: Dff<Bits<2>>,
    has_payload: Dff<Bit>,
    void: Dff<Bit>,
    void_line: Delay<Bit, 3>,
    gid_table: Ram<Bits<128>, 4>,
    gid_line: Delay<Bits<128>, 2>,
    class: ClassOf,
    class_q: Dff<Bits<2>>,
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
    checksum: Dff<Bits<16>>,
    layout: HeaderLayout,
    queue: [Fifo<TxHeader, 5>; LANES],
    cnp_exit: Slice<TxHeader>,
    header: Signal<Local, TxHeader>,
    /// Sum of the words of an IPv4 header that are constant, and of what its total length is more than that of UDP.
    #[init(Constant::new((u64::from(constant_words()) + IPV4_HEADER).to_bits()))]
    constant_words: Constant<Bits<20>>,
}

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

/// The two words of the IPv4 address in a GID, added.
#[kernel_fn]
fn ipv4_words(gid: Bits<128>) -> Bits<17> {
    ((gid.slice::<8>(96).resize::<17>() << 8) | gid.slice::<8>(104).resize::<17>())
        + ((gid.slice::<8>(112).resize::<17>() << 8) | gid.slice::<8>(120).resize::<17>())
}

/// Bytes before the extension headers.
#[kernel_fn]
fn ext_at(av: image::AvCtx) -> Bits<7> {
    let at: Bits<7> = if av.ipv6 & av.vlan_valid {
        EXT_IPV6_TAG
    } else if av.ipv6 {
        EXT_IPV6
    } else if av.vlan_valid {
        EXT_IPV4_TAG
    } else {
        EXT_IPV4
    };
    at
}

/// IPv4 checksum of the sum of all words: both folds at once, the second of which cannot carry.
#[kernel_fn]
fn checksum_of(sum: Bits<20>) -> Bits<16> {
    let carries = sum.slice::<4>(16).resize::<5>() + 1;
    let folded = sum.low::<16>().resize::<17>() + sum.slice::<4>(16).resize::<17>();
    let raised = sum.low::<16>().resize::<17>() + carries.resize::<17>();
    let checksum = if folded.bit(16) {
        !raised.low::<16>()
    } else {
        !folded.low::<16>()
    };
    checksum
}

impl<const Q: usize> Logic for HeaderTx<Q> {
    describe!(
        "header_tx",
        format!("q{Q}"),
        "Builds the headers of packets to send."
    );

    #[kernel]
    fn update(&mut self) {
        // Tables.
        av_table.we = av_we | ah_we;
        av_table.wring = bits::<1>(0).replace_bit(0, ah_we);
        av_table.wslot = image_qpn.resize::<Q>();
        av_table.wdata = av_image;
        gid_table.we = gid_we;
        gid_table.waddr = gid_index.resize::<4>();
        gid_table.wdata = gid;
        gid_sums.we = gid_we;
        gid_sums.waddr = gid_index.resize::<4>();
        gid_sums.wdata = ipv4_words(gid);

        // A packet enters.
        for i in 0..LANES {
            forward!(s[i] <= entry.s[i]);
            entry.left[i] = queue[i].m.valid & m[i].ready;
            activity[i] = entry.activity[i];
        }
        forward!(cnp <= entry.cnp);
        entry.cnp_left = cnp_exit.m.valid & bare.ready;
        cnp_activity = entry.cnp_activity;
        let request = entry.desc;
        let slot = entry.slot;
        slot_line.d = slot;

        // Cycle 0: extension headers, read of the address vector.
        ext.desc = request;
        av_table.re = true;
        let is_datagram = (request.opcode >> 5) == UD_CLASS;
        datagram = is_datagram;
        av_table.rring = bits::<1>(0).replace_bit(0, is_datagram);
        av_table.rslot = if is_datagram {
            request.va.low::<Q>()
        } else {
            request.qpn.resize::<Q>()
        };
        notifies = slot.bare;
        peer = request.va.slice::<24>(32);
        let padded = (request.plen + 3) & 0x1ffc;
        body.plen = request.plen;
        body.padded = padded;
        copy!(base_line.d <= request; opcode, solicited, ack_req, psn);
        base_line.d.pad_cnt = padded.resize::<2>() - request.plen.resize::<2>();
        copy!(tag_line.d <= request; qpn, psn, msn, notify, round, incarnation, next_psn, ack_req);
        tag_line.d.ack = request.opcode == RC_ACK;
        tag_line.d.payload = request.plen != 0;
        aligned = request.path;
        has_payload = request.plen.any();
        // Cycle 1: UDP length.
        av = av_table.rdata;
        let kind = kind_of(av_table.rdata.ipv6, av_table.rdata.vlan_valid);
        void = has_payload & (kind != aligned);
        if has_payload {
            av.ipv6 = aligned.bit(0);
            av.vlan_valid = aligned.bit(1);
        }
        if datagram {
            av.remote_qpn = peer;
        }
        if notifies {
            av.tclass = notify.dscp.resize::<8>() << 2;
            av.vlan =
                av_table.rdata.vlan.low::<13>().resize::<16>() | (notify.prio.resize::<16>() << 13);
        }
        ext_line.d = ext.bytes;
        sizes.plen = body.plen;
        sizes.padded = body.padded;
        sizes.ext_len = ext.len;
        sizes.udp_length = body.padded + ext.len.resize::<13>() + UDP_BTH_ICRC;

        // Cycle 2: read of the GID; what depends on the layout; the words of the checksum that are there.
        av_line.d = av;
        void_line.d = void;
        class.setup = classes;
        class.tclass = av.tclass;
        class.has_tag = av.vlan_valid;
        class.pcp = av.vlan.slice::<3>(13);
        gid_table.re = true;
        gid_table.raddr = av.sgid_index.resize::<4>();
        lengths.udp_length = sizes.udp_length;
        lengths.ip_length = if av.ipv6 {
            sizes.udp_length
        } else {
            sizes.udp_length + IPV4_HEADER
        };
        header_len = ext_at(av) + sizes.ext_len.resize::<7>();
        late_plen = sizes.plen;
        late_padded = sizes.padded;
        sum_dst = ipv4_words(av.dgid).resize::<20>();
        sum_rest = ((av.hop_limit.resize::<20>() << 8) | av.tclass.resize::<20>())
            + sizes.udp_length.resize::<20>()
            + constant_words;

        gid_sums.re = true;
        gid_sums.raddr = av.sgid_index.resize::<4>();

        // Cycle 3: places in the frame, sum of all words of the IPv4 header.
        gid_line.d = gid_table.rdata;
        lengths_line.d = lengths;
        places.header_len = header_len;
        places.payload_last = header_len.resize::<13>() + late_plen - 1;
        places.covered = header_len.resize::<13>() + late_padded;
        places.length = header_len.resize::<13>() + late_padded + ICRC;
        sum = gid_sums.rdata.resize::<20>() + sum_dst + sum_rest;
        // Cycle 4: IPv4 checksum.
        late_places = places;
        class_q = class.packet_class;
        checksum = checksum_of(sum);
        // Cycle 5: layout, into the FIFO of the lane.
        layout.fields.ipv6 = av_line.q.ipv6;
        layout.fields.vlan = av_line.q.vlan_valid;
        layout.fields.dmac = av_line.q.dmac;
        layout.fields.smac = mac;
        layout.fields.tci = av_line.q.vlan;
        copy!(layout.fields <= av_line.q; tclass, flow_label, hop_limit);
        layout.fields.sgid = gid_line.q;
        layout.fields.dgid = av_line.q.dgid;
        layout.fields.ip_length = lengths_line.q.ip_length.resize::<16>();
        layout.fields.checksum = checksum;
        layout.fields.udp_sport = av_line.q.udp_sport;
        layout.fields.udp_length = lengths_line.q.udp_length.resize::<16>();
        copy!(layout.fields <= base_line.q; opcode, solicited, pad_cnt);
        // without an alternate path the migration state is MIGRATED, of which a CNP (of class 100) says nothing
        layout.fields.mig_req = !base_line.q.opcode.bit(7);
        layout.fields.becn = slot_line.q.bare;
        layout.fields.pkey = av_line.q.pkey;
        layout.fields.dest_qp = av_line.q.remote_qpn;
        layout.fields.ack_req = base_line.q.ack_req;
        layout.fields.psn = base_line.q.psn;
        layout.fields.ext = ext_line.q;
        header.bytes = layout.bytes;
        copy!(header <= late_places; header_len, payload_last, covered, length);
        header.payload = tag_line.q.payload;
        header.ipv6 = av_line.q.ipv6;
        header.vlan = av_line.q.vlan_valid;
        header.void = void_line.q;
        header.packet_class = class_q;
        copy!(header <= tag_line.q; ack, qpn, psn, msn, notify, round, incarnation, next_psn, ack_req);
        for i in 0..2 {
            queue[i].s.payload = header;
            forward!(m[i] <= queue[i].m);
        }
        queue[0].s.valid = slot_line.q.valid & !slot_line.q.lane & !slot_line.q.bare;
        queue[1].s.valid = slot_line.q.valid & slot_line.q.lane & !slot_line.q.bare;
        cnp_exit.s.payload = header;
        cnp_exit.s.valid = slot_line.q.valid & slot_line.q.bare;
        forward!(bare <= cnp_exit.m);
    }
}
