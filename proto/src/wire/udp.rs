//! UDP header of RoCEv2 (A17.3.2), and the choice of its source port.

use super::Error;

header! {
    /// View of a UDP header.
    "UDP header" [8] {
        /// Source port: opaque, fixed for a connected queue pair, spreads flows over paths.
        SRC_PORT [16] => src_port / set_src_port: u16,
        /// Destination port, [`ROCE_PORT`](crate::wire::udp::ROCE_PORT).
        DST_PORT [16] => dst_port / set_dst_port: u16,
        /// Bytes of this header and all behind it, the ICRC included.
        LENGTH [16] => length / set_length: u16,
        /// Checksum, 0 on transmit; not covered by the ICRC.
        CHECKSUM [16] => checksum / set_checksum: u16,
    }
}

/// UDP destination port of RoCEv2.
pub const ROCE_PORT: u16 = 4791;

/// Source ports are at least this (the top two bits are set), as Linux chooses them.
pub const MIN_SRC_PORT: u16 = 0xc000;

/// Value of the UDP header of a RoCEv2 packet. The rest is fixed or follows from the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Source port.
    pub src_port: u16,
}

impl Repr {
    /// Reads the header of an IP payload of `ip_payload_len` bytes.
    ///
    /// Fails with [`Error::Port`] or [`Error::UdpLength`]. The checksum should be 0 (A17.3.2.4) and
    /// is not verified when it is not: the ICRC covers the datagram.
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>, ip_payload_len: usize) -> Result<Self, Error> {
        if header.dst_port() != ROCE_PORT {
            return Err(Error::Port(header.dst_port()));
        }
        let udp = usize::from(header.length());
        if udp != ip_payload_len {
            return Err(Error::UdpLength {
                udp,
                ip: ip_payload_len,
            });
        }
        Ok(Self {
            src_port: header.src_port(),
        })
    }

    /// The bytes of the header of a datagram of `len` bytes, this header included.
    #[must_use]
    pub fn emit(&self, len: u16) -> [u8; LEN] {
        let mut header = Header::new([0; LEN]);
        header.set_src_port(self.src_port);
        header.set_dst_port(ROCE_PORT);
        header.set_length(len);
        header.into_inner()
    }
}

/// Source port of a connection, by the rule of Linux (`rdma_get_udp_sport`): a hash of the flow
/// label, or of the two queue pair numbers when it is 0. At least [`MIN_SRC_PORT`].
#[must_use]
pub const fn source_port(flow_label: u32, local_qpn: u32, remote_qpn: u32) -> u16 {
    let label = match flow_label {
        0 => qpn_flow_label(local_qpn, remote_qpn),
        label => label,
    };
    label_port(label)
}

/// Source port of datagrams by address handle `handle`: that of the flow label. When that is 0 each handle has its own, as
/// Linux has it for hns (`get_ah_udp_sport`, at random); here by the hash that soft-RoCE makes of the number of a queue pair
/// (`hash_32` of 14 bits). At least [`MIN_SRC_PORT`].
#[must_use]
pub const fn datagram_source_port(flow_label: u32, handle: u32) -> u16 {
    /// `GOLDEN_RATIO_32` of Linux.
    const GOLDEN_RATIO: u32 = 0x61c8_8647;
    match flow_label {
        0 => (handle.wrapping_mul(GOLDEN_RATIO) >> 18) as u16 | MIN_SRC_PORT,
        label => label_port(label),
    }
}

/// Source port of a flow label (`rdma_flow_label_to_udp_sport`).
const fn label_port(label: u32) -> u16 {
    let hash = (label & 0x3fff) ^ ((label & 0xf_c000) >> 14);
    hash as u16 | MIN_SRC_PORT
}

/// Flow label of a connection that has none (`rdma_calc_flow_label`), 20 bits; equal at both ends.
#[must_use]
pub const fn qpn_flow_label(local_qpn: u32, remote_qpn: u32) -> u32 {
    let mut label = local_qpn as u64 * remote_qpn as u64;
    label ^= label >> 20;
    label ^= label >> 40;
    label as u32 & 0xf_ffff
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::samples;
    use proptest::prelude::*;

    #[test]
    fn captured_header() {
        let bytes = &samples::RC_ACK[34..42];
        let header = Header::new_checked(bytes).unwrap();
        let repr = Repr::parse(&header, 28).unwrap();
        assert_eq!(repr, Repr { src_port: 0xccb1 });
        assert_eq!(repr.emit(28), bytes);
        assert_eq!(
            Repr::parse(&header, 30),
            Err(Error::UdpLength { udp: 28, ip: 30 })
        );
    }

    #[test]
    fn other_ports_are_refused() {
        let mut header = Header::new(Repr { src_port: 1 }.emit(28));
        header.set_dst_port(4790);
        assert_eq!(Repr::parse(&header, 28), Err(Error::Port(4790)));
    }

    #[test]
    fn source_ports() {
        assert_eq!(source_port(0x1_2345, 0, 0), 0xe341);
        assert_eq!(source_port(0xf_ffff, 0, 0), 0xffc0);
        // 0x11 * 0x12 = 0x132
        assert_eq!(source_port(0, 0x11, 0x12), 0xc132);
        assert_eq!(qpn_flow_label(0x12_3456, 0x65_4321), 0xa_77ae);
        assert_eq!(source_port(0, 0x12_3456, 0x65_4321), 0xf787);
    }

    proptest! {
        #[test]
        fn source_ports_are_dynamic(label in 0u32..1 << 20, a in 0u32..1 << 24, b in 0u32..1 << 24) {
            prop_assert!(source_port(label, a, b) >= MIN_SRC_PORT);
            prop_assert_eq!(source_port(0, a, b), source_port(0, b, a));
        }
    }
}
