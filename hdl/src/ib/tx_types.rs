//! Packed types of the streams inside the transmit back end. First field = lowest bits.

// The methods that the derive generates have no documentation.
#![allow(missing_docs)]

use crate::bus::layout::HEADER_BITS;
use crate::bus::payload::payload;
use crate::prelude::*;

/// Bytes of the longest extension headers.
pub const EXT_BYTES: usize = 28;

payload! {
    /// The headers of a packet to send (`header_tx` to `assemble`).
    TxHeader {
        /// Ethernet header to extension headers, byte 0 in the lowest bits; 0 behind them.
        bytes: Bits<HEADER_BITS>,
        /// Their length in bytes: the payload begins here.
        header_len: Bits<7>,
        /// The last byte of the payload, counted from the start of the frame.
        payload_last: Bits<13>,
        /// Bytes before the ICRC, pad included.
        covered: Bits<13>,
        /// Bytes of the frame, the ICRC included.
        length: Bits<13>,
        /// There is payload.
        payload: Bit,
        /// IPv6; else IPv4.
        ipv6: Bit,
        /// With an 802.1Q tag.
        vlan: Bit,
        /// It must not be sent: its payload is aligned for another kind of path.
        void: Bit,
        /// An acknowledgement.
        ack: Bit,
        /// Its class.
        packet_class: Bits<2>,
        /// Queue pair.
        qpn: Bits<16>,
        /// BTH PSN.
        psn: Bits<24>,
        /// MSN of the responder.
        msn: Bits<24>,
        /// As in [`TxDesc`](crate::bus::types::TxDesc).
        notify: Bit,
        /// As in [`TxDesc`](crate::bus::types::TxDesc).
        round: Bits<2>,
        /// As in [`TxDesc`](crate::bus::types::TxDesc).
        incarnation: Bits<2>,
        /// As in [`TxDesc`](crate::bus::types::TxDesc).
        next_psn: Bits<24>,
        /// As in [`TxDesc`](crate::bus::types::TxDesc).
        ack_req: Bit,
    }

    /// All that stands in the headers of a packet and is not constant.
    TxFields {
        /// IPv6; else IPv4.
        ipv6: Bit,
        /// With an 802.1Q tag.
        vlan: Bit,
        /// Destination MAC address, first byte in the lowest bits.
        dmac: Bits<48>,
        /// Source MAC address, first byte in the lowest bits.
        smac: Bits<48>,
        /// Tag control information.
        tci: Bits<16>,
        /// Type of service or traffic class.
        tclass: Bits<8>,
        /// Flow label.
        flow_label: Bits<20>,
        /// TTL or hop limit.
        hop_limit: Bits<8>,
        /// Source address as a GID.
        sgid: Bits<128>,
        /// Destination address as a GID.
        dgid: Bits<128>,
        /// IPv4 total length or IPv6 payload length.
        ip_length: Bits<16>,
        /// IPv4 header checksum.
        checksum: Bits<16>,
        /// UDP source port.
        udp_sport: Bits<16>,
        /// UDP length.
        udp_length: Bits<16>,
        /// BTH opcode.
        opcode: Bits<8>,
        /// BTH solicited event.
        solicited: Bit,
        /// BTH MigReq.
        mig_req: Bit,
        /// BTH PadCnt.
        pad_cnt: Bits<2>,
        /// BTH BECN.
        becn: Bit,
        /// BTH P_Key.
        pkey: Bits<16>,
        /// BTH destination queue pair.
        dest_qp: Bits<24>,
        /// BTH acknowledge request.
        ack_req: Bit,
        /// BTH PSN.
        psn: Bits<24>,
        /// Extension headers, the first byte in the lowest bits, 0 behind them.
        ext: Bits<224>,
    }

    /// What of a descriptor the BTH needs.
    TxBase {
        /// BTH opcode.
        opcode: Bits<8>,
        /// BTH solicited event.
        solicited: Bit,
        /// BTH PadCnt.
        pad_cnt: Bits<2>,
        /// BTH acknowledge request.
        ack_req: Bit,
        /// BTH PSN.
        psn: Bits<24>,
    }

    /// What of a packet goes past the headers.
    TxTag {
        /// Queue pair.
        qpn: Bits<16>,
        /// BTH PSN.
        psn: Bits<24>,
        /// MSN of the responder.
        msn: Bits<24>,
        /// As in [`TxHeader`].
        notify: Bit,
        /// As in [`TxHeader`].
        round: Bits<2>,
        /// As in [`TxHeader`].
        incarnation: Bits<2>,
        /// As in [`TxHeader`].
        next_psn: Bits<24>,
        /// As in [`TxHeader`].
        ack_req: Bit,
        /// An acknowledgement.
        ack: Bit,
        /// There is payload.
        payload: Bit,
    }

    /// A packet is in this stage of the pipeline.
    TxSlot {
        /// There is one.
        valid: Bit,
        /// Its lane is 1.
        lane: Bit,
        /// It is a CNP, of neither lane.
        bare: Bit,
    }

    /// Payload bytes.
    TxBody {
        /// Without pad.
        plen: Bits<13>,
        /// With pad.
        padded: Bits<13>,
    }

    /// Lengths before the address vector is there.
    TxSizes {
        /// Payload bytes without pad.
        plen: Bits<13>,
        /// With pad.
        padded: Bits<13>,
        /// Bytes of the extension headers.
        ext_len: Bits<5>,
        /// UDP length.
        udp_length: Bits<13>,
    }

    /// Lengths in the headers.
    TxLengths {
        /// UDP length.
        udp_length: Bits<13>,
        /// IPv4 total length or IPv6 payload length.
        ip_length: Bits<13>,
    }

    /// Places in the frame, in bytes.
    TxPlaces {
        /// As in [`TxHeader`].
        header_len: Bits<7>,
        /// As in [`TxHeader`].
        payload_last: Bits<13>,
        /// As in [`TxHeader`].
        covered: Bits<13>,
        /// As in [`TxHeader`].
        length: Bits<13>,
    }
}
