//! The header fields the receive side reads, and where they stand.
//!
//! The headers of a frame stand at one of four places, as it has an 802.1Q tag or not and is IPv4 or IPv6
//! ([`Layout`]). Each field has a place in each layout, taken from the tables of `ferroce_proto::wire`; the Verilog
//! and the Rust model of `rx_header` come from the same places.

// The accessors that the derive generates have no documentation.
#![allow(missing_docs)]

use std::net::Ipv4Addr;

use ferroce_proto::wire::ip::GRH_LEN;
use ferroce_proto::wire::{Field, Gid, atomic, bth, eth, ipv4, ipv6, reth, udp};

use crate::bus::layout::Layout;
use crate::prelude::*;

/// Where a bit of a field comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// This bit of the frame, byte 0 in bits 7:0.
    Frame(usize),
    /// Nowhere: it is this constant.
    Constant(bool),
}

/// The bits of a field, lowest first.
pub type Place = Vec<Wire>;

/// A number, big-endian on the wire, in the header that starts at byte `start`.
fn number(start: usize, field: Field) -> Place {
    let wire = |bit: usize| Wire::Frame(8 * start + bit / 8 * 8 + 7 - bit % 8);
    (field.bit..field.end()).rev().map(wire).collect()
}

/// Bytes as they come, the first in the lowest bits.
fn bytes(start: usize, field: Field) -> Place {
    (8 * start + field.bit..8 * start + field.end())
        .map(Wire::Frame)
        .collect()
}

/// An IPv4 address as a GID.
fn mapped(start: usize, field: Field) -> Place {
    let gid = Gid::from(Ipv4Addr::UNSPECIFIED).to_le_bits();
    let constant = |bit| Wire::Constant(gid >> bit & 1 == 1);
    let prefix = (0..128 - field.width).map(constant);
    prefix.chain(bytes(start, field)).collect()
}

/// The lowest `width` bits of a field.
const fn low(field: Field, width: usize) -> Field {
    Field {
        bit: field.end() - width,
        width,
    }
}

/// Two neighbours as one field.
const fn both(first: Field, second: Field) -> Field {
    assert!(first.end() == second.bit, "the fields must be neighbours");
    Field {
        bit: first.bit,
        width: first.width + second.width,
    }
}

/// An IP field: its place in the header of the layout's version.
fn ip(layout: Layout, v4: Field, v6: Field) -> Place {
    number(layout.ip(), if layout.ipv6 { v6 } else { v4 })
}

/// An IPv4 field; in IPv6 it reads as 0.
fn ipv4_only(layout: Layout, field: Field) -> Place {
    if layout.ipv6 {
        vec![Wire::Constant(false); field.width]
    } else {
        number(layout.ip(), field)
    }
}

/// An IP address as a GID.
fn gid(layout: Layout, v4: Field, v6: Field) -> Place {
    if layout.ipv6 {
        bytes(layout.ip(), v6)
    } else {
        mapped(layout.ip(), v4)
    }
}

/// VLAN identifier of the tag.
fn vid(layout: Layout) -> Place {
    if layout.vlan {
        number(eth::LEN, low(eth::tag::field::TCI, eth::tag::VID_BITS))
    } else {
        vec![Wire::Constant(false); eth::tag::VID_BITS]
    }
}

/// PCP of the tag.
fn pcp(layout: Layout) -> Place {
    let Field { bit, .. } = eth::tag::field::TCI;
    if layout.vlan {
        number(eth::LEN, Field { bit, width: 3 })
    } else {
        vec![Wire::Constant(false); 3]
    }
}

/// Bits of the GRH in front of the payload of a datagram.
pub const GRH_BITS: usize = 8 * GRH_LEN;

/// The bytes of an IP header at the end of a GRH, zeros in front of it (A17.9.4).
fn grh(layout: Layout) -> Place {
    let header = Field {
        bit: 0,
        width: 8 * layout.ip_len(),
    };
    let mut place = vec![Wire::Constant(false); GRH_BITS - header.width];
    place.extend(bytes(layout.ip(), header));
    place
}

/// A set of fields with their places.
pub trait HeaderFields: Synth {
    /// Name and place of each field, in the order of the struct.
    fn places(layout: Layout) -> Vec<(&'static str, Place)>;

    /// The fields of the frame whose bit `i` is `bit(i)`.
    fn read(layout: Layout, bit: &dyn Fn(usize) -> bool) -> Self;
}

/// A type that a field of a struct may have.
trait FieldType: Synth {
    fn pack(bits: impl Iterator<Item = bool>) -> Self;
}

impl FieldType for Bit {
    fn pack(mut bits: impl Iterator<Item = bool>) -> Self {
        bits.next().expect("a field has at least one bit")
    }
}

impl<const N: usize> FieldType for Bits<N> {
    fn pack(bits: impl Iterator<Item = bool>) -> Self {
        bits.enumerate()
            .fold(Self::default(), |value, (i, bit)| value.replace_bit(i, bit))
    }
}

macro_rules! header_fields {
    ($( $(#[$m:meta])* $name:ident { $( $(#[$fm:meta])* $f:ident : $t:ty = $place:expr ),* $(,)? } )*) => {$(
        $(#[$m])*
        #[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
        pub struct $name { $( $(#[$fm])* pub $f: $t ),* }

        impl HeaderFields for $name {
            fn places(layout: Layout) -> Vec<(&'static str, Place)> {
                vec![$({
                    let place: fn(Layout) -> Place = $place;
                    let place = place(layout);
                    assert_eq!(place.len(), <$t>::BITS, "width of {}", stringify!($f));
                    (stringify!($f), place)
                }),*]
            }

            fn read(layout: Layout, bit: &dyn Fn(usize) -> bool) -> Self {
                let mut places = Self::places(layout).into_iter();
                let mut next = || {
                    let (_, place) = places.next().expect("a place a field");
                    place.into_iter().map(|wire| match wire {
                        Wire::Frame(at) => bit(at),
                        Wire::Constant(constant) => constant,
                    })
                };
                Self { $( $f: <$t>::pack(next()) ),* }
            }
        }
    )*};
}

header_fields! {
    /// Fields of the Ethernet header: at the same place in every layout.
    EthFields {
        /// Destination MAC address, first byte in the lowest bits.
        dst: Bits<48> = |_| bytes(0, eth::field::DST),
        /// EtherType, or the TPID of a tag.
        ethertype: Bits<16> = |_| number(0, eth::field::ETHERTYPE),
        /// EtherType behind the tag, if there is one.
        tag_ethertype: Bits<16> = |_| number(eth::LEN, eth::tag::field::ETHERTYPE),
    }

    /// Fields from the IP header to the extension headers.
    RxFields {
        /// VLAN identifier; 0 without a tag.
        vid: Bits<12> = vid,
        /// IP version.
        version: Bits<4> = |l| ip(l, ipv4::field::VERSION, ipv6::field::VERSION),
        /// IPv4 header length in words.
        ihl: Bits<4> = |l| ipv4_only(l, ipv4::field::IHL),
        /// IPv4 more-fragments flag and fragment offset.
        fragment: Bits<14> = |l| ipv4_only(l, both(ipv4::field::MF, ipv4::field::FRAG_OFFSET)),
        /// IP protocol or next header.
        protocol: Bits<8> = |l| ip(l, ipv4::field::PROTOCOL, ipv6::field::NEXT_HEADER),
        /// IPv4 total length or IPv6 payload length.
        ip_length: Bits<16> = |l| ip(l, ipv4::field::TOTAL_LEN, ipv6::field::PAYLOAD_LEN),
        /// PCP of the tag; 0 without one.
        pcp: Bits<3> = pcp,
        /// Type of service or traffic class: DSCP and, in the lowest bits, ECN.
        tclass: Bits<8> = |l| ip(l, ipv4::field::TOS, ipv6::field::TRAFFIC_CLASS),
        /// Source address.
        src_gid: Bits<128> = |l| gid(l, ipv4::field::SRC, ipv6::field::SRC),
        /// Destination address.
        dst_gid: Bits<128> = |l| gid(l, ipv4::field::DST, ipv6::field::DST),
        /// The IP header as the 40 bytes of a GRH: an IPv4 header stands behind 20 zero bytes.
        grh: Bits<GRH_BITS> = grh,
        /// UDP destination port.
        udp_port: Bits<16> = |l| number(l.udp(), udp::field::DST_PORT),
        /// UDP length.
        udp_length: Bits<16> = |l| number(l.udp(), udp::field::LENGTH),
        /// BTH opcode.
        opcode: Bits<8> = |l| number(l.bth(), bth::field::OPCODE),
        /// BTH solicited event.
        solicited: Bit = |l| number(l.bth(), bth::field::SE),
        /// BTH PadCnt.
        pad_cnt: Bits<2> = |l| number(l.bth(), bth::field::PAD_CNT),
        /// BTH transport version.
        tver: Bits<4> = |l| number(l.bth(), bth::field::TVER),
        /// BTH P_Key.
        pkey: Bits<16> = |l| number(l.bth(), bth::field::P_KEY),
        /// BTH backward congestion mark.
        becn: Bit = |l| number(l.bth(), bth::field::BECN),
        /// BTH destination queue pair.
        dest_qp: Bits<24> = |l| number(l.bth(), bth::field::DEST_QP),
        /// BTH acknowledge request.
        ack_req: Bit = |l| number(l.bth(), bth::field::ACK_REQ),
        /// BTH PSN.
        psn: Bits<24> = |l| number(l.bth(), bth::field::PSN),
        /// Bytes 0..8 of the extension headers.
        ext: Bits<64> = |l| number(l.ext(), reth::field::VA),
        /// Bytes 8..12.
        rkey: Bits<32> = |l| number(l.ext(), reth::field::R_KEY),
        /// Bytes 12..16.
        dma_len: Bits<32> = |l| number(l.ext(), reth::field::DMA_LEN),
        /// Bytes 16..28: what of the AtomicETH lies behind the place of a RETH.
        operands: Bits<96> = |l| number(l.ext(), low(both(atomic::field::SWAP_ADD, atomic::field::COMPARE), 96)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::layout::HEADER_BYTES;
    use ferroce_proto::wire::Opcode;
    use ferroce_proto::wire::Psn;

    #[test]
    fn layouts() {
        assert_eq!(HEADER_BYTES, 18 + 40 + 8 + 12 + 28);
        assert_eq!(Layout::ALL.map(Layout::ext), [54, 58, 74, 78]);
        for (number, layout) in Layout::ALL.into_iter().enumerate() {
            assert_eq!(
                2 * usize::from(layout.ipv6) + usize::from(layout.vlan),
                number
            );
        }
    }

    #[test]
    fn fields_of_a_frame() {
        let mut bth = bth::Repr::new(Opcode::RcFetchAdd, 0x12_3456, Psn::new(0xab_cdef));
        bth.ack_req = true;
        for layout in Layout::ALL {
            let mut frame = [0; HEADER_BYTES];
            frame[layout.bth()..layout.ext()].copy_from_slice(&bth.emit(0));
            let ext: Vec<u8> = (1..29).collect();
            frame[layout.ext()..][..28].copy_from_slice(&ext);
            frame[..6].copy_from_slice(&[1, 2, 3, 4, 5, 6]);
            let bit = |i: usize| frame[i / 8] >> (i % 8) & 1 == 1;
            assert_eq!(EthFields::read(layout, &bit).dst.to_u64(), 0x0605_0403_0201);
            let fields = RxFields::read(layout, &bit);
            assert_eq!(fields.opcode.to_u32(), 0x14);
            assert_eq!(fields.dest_qp.to_u32(), 0x12_3456);
            assert_eq!(fields.psn.to_u32(), 0xab_cdef);
            assert!(fields.ack_req && !fields.solicited);
            assert_eq!(fields.ext.to_u64(), 0x0102_0304_0506_0708);
            assert_eq!(fields.rkey.to_u32(), 0x090a_0b0c);
            assert_eq!(fields.dma_len.to_u32(), 0x0d0e_0f10);
            let operands = 0x1112_1314_1516_1718_191a_1b1c_u128;
            assert_eq!(fields.operands, operands.to_bits());
            let gid = if layout.ipv6 { 0 } else { 0xffff << 80 };
            assert_eq!(fields.src_gid, u128::to_bits(gid));
        }
    }
}
