//! Puts the fields of a packet at their places in the frame, in two LUT levels and no cycle.
//!
//! The places come from `ferroce_proto::wire`; there are four layouts, IPv4 or IPv6, with or without 802.1Q tag.
use std::fmt::Write;

use ferroce_proto::wire::{Field, bth, eth, ip, ipv4, ipv6, udp};

use super::tx_types::{EXT_BYTES, TxFields};
use super::wiring::Wiring;
use crate::bus::layout::{HEADER_BITS, Layout};
use crate::prelude::*;

/// The block.
#[derive(Clone, Debug, Block)]
pub struct HeaderLayout {
    /// The fields.
    pub fields: Signal<In, TxFields>,
    /// The headers, 0 behind them.
    pub bytes: Signal<Out, Bits<HEADER_BITS>>,
}

/// Byte of a GID at which its IPv4 address stands.
const IPV4_OF_GID: usize = (128 - ipv4::field::SRC.width) / 8;
/// Words of an IPv4 header without options.
const IHL: u128 = (ipv4::LEN / 4) as u128;

/// Sum of the 16-bit words of an IPv4 header but for addresses, TOS, TTL and total length.
pub(super) fn constant_words() -> u32 {
    let zero = ipv4::Repr {
        src: 0.into(),
        dst: 0.into(),
        tos: 0,
        ident: 0,
        ttl: 0,
    };
    let mut header = ipv4::Header::new(zero.emit(0));
    header.set_checksum(0);
    header.set_total_len(0);
    let bytes = header.into_inner();
    let words = bytes.chunks(2).map(|w| u16::from_be_bytes([w[0], w[1]]));
    words.map(u32::from).sum()
}

/// Where the headers of a layout come from.
fn wiring(layout: Layout) -> Wiring {
    let mut wires = Wiring::from::<TxFields>();
    let ethertype = u128::from(if layout.ipv6 {
        eth::ETHERTYPE_IPV6
    } else {
        eth::ETHERTYPE_IPV4
    });
    wires.bytes(0, eth::field::DST, "dmac", 0);
    wires.bytes(0, eth::field::SRC, "smac", 0);
    if layout.vlan {
        wires.constant(0, eth::field::ETHERTYPE, eth::TPID_8021Q.into());
        wires.number(eth::LEN, eth::tag::field::TCI, "tci");
        wires.constant(eth::LEN, eth::tag::field::ETHERTYPE, ethertype);
    } else {
        wires.constant(0, eth::field::ETHERTYPE, ethertype);
    }
    let start = layout.ip();
    if layout.ipv6 {
        wires.constant(start, ipv6::field::VERSION, 6);
        wires.number(start, ipv6::field::TRAFFIC_CLASS, "tclass");
        wires.number(start, ipv6::field::FLOW_LABEL, "flow_label");
        wires.number(start, ipv6::field::PAYLOAD_LEN, "ip_length");
        wires.constant(start, ipv6::field::NEXT_HEADER, ip::PROTOCOL_UDP.into());
        wires.number(start, ipv6::field::HOP_LIMIT, "hop_limit");
        wires.bytes(start, ipv6::field::SRC, "sgid", 0);
        wires.bytes(start, ipv6::field::DST, "dgid", 0);
    } else {
        wires.constant(start, ipv4::field::VERSION, 4);
        wires.constant(start, ipv4::field::IHL, IHL);
        wires.number(start, ipv4::field::TOS, "tclass");
        wires.number(start, ipv4::field::TOTAL_LEN, "ip_length");
        wires.constant(start, ipv4::field::DF, 1);
        wires.number(start, ipv4::field::TTL, "hop_limit");
        wires.constant(start, ipv4::field::PROTOCOL, ip::PROTOCOL_UDP.into());
        wires.number(start, ipv4::field::CHECKSUM, "checksum");
        wires.bytes(start, ipv4::field::SRC, "sgid", IPV4_OF_GID);
        wires.bytes(start, ipv4::field::DST, "dgid", IPV4_OF_GID);
    }
    let start = layout.udp();
    wires.number(start, udp::field::SRC_PORT, "udp_sport");
    wires.constant(start, udp::field::DST_PORT, udp::ROCE_PORT.into());
    wires.number(start, udp::field::LENGTH, "udp_length");
    let start = layout.bth();
    wires.number(start, bth::field::OPCODE, "opcode");
    wires.number(start, bth::field::SE, "solicited");
    wires.number(start, bth::field::MIG_REQ, "mig_req");
    wires.number(start, bth::field::PAD_CNT, "pad_cnt");
    wires.number(start, bth::field::BECN, "becn");
    wires.number(start, bth::field::P_KEY, "pkey");
    wires.number(start, bth::field::DEST_QP, "dest_qp");
    wires.number(start, bth::field::ACK_REQ, "ack_req");
    wires.number(start, bth::field::PSN, "psn");
    let all = Field {
        bit: 0,
        width: 8 * EXT_BYTES,
    };
    wires.bytes(layout.ext(), all, "ext", 0);
    wires
}

impl Logic for HeaderLayout {
    describe!("header_layout", "Header bytes of a packet from its fields.");

    fn update(&mut self) {
        let fields = self.fields.val();
        let layout = Layout {
            ipv6: fields.ipv6,
            vlan: fields.vlan,
        };
        let bits: Bits<{ TxFields::BITS }> = fields.into();
        self.bytes.next = wiring(layout).apply(|i| bits.get_bit(i));
    }

    fn connect(&mut self) {
        self.bytes.connect();
    }

    fn hdl(&self) -> Verilog {
        let source = |name| Wiring::from::<TxFields>().source(name).0;
        let (ipv6, vlan) = (source("ipv6"), source("vlan"));
        let mut text = format!(
            "always @* begin\n    bytes = {HEADER_BITS}'h0;\n    \
             case ({{fields[{ipv6}], fields[{vlan}]}})\n",
        );
        for (number, &layout) in Layout::ALL.iter().enumerate() {
            let label = if number < 3 {
                format!("2'd{number}")
            } else {
                "default".into()
            };
            let _ = write!(
                text,
                "        {label}: begin // IPv{}{}\n{}        end\n",
                if layout.ipv6 { 6 } else { 4 },
                if layout.vlan { ", 802.1Q" } else { "" },
                wiring(layout).verilog("            ", "bytes", "=", "fields")
            );
        }
        text.push_str("    endcase\nend\n");
        Verilog::Custom(text)
    }
}
