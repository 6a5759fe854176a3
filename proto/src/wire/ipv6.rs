//! IPv6 header as RoCEv2 uses it: UDP inside, no extension headers.

use core::net::Ipv6Addr;

use super::{Error, ip::PROTOCOL_UDP};

header! {
    /// View of an IPv6 header.
    "IPv6 header" [40] {
        /// Version, 6.
        VERSION [4] => version / set_version: u8,
        /// Traffic class: DSCP 6 bits, ECN 2 bits; not covered by the ICRC.
        TRAFFIC_CLASS [8] => traffic_class / set_traffic_class: u8,
        /// Flow label; not covered by the ICRC.
        FLOW_LABEL [20] => flow_label / set_flow_label: u32,
        /// Bytes behind this header, the ICRC included.
        PAYLOAD_LEN [16] => payload_len / set_payload_len: u16,
        /// Next header, 17 for UDP.
        NEXT_HEADER [8] => next_header / set_next_header: u8,
        /// Hop limit; not covered by the ICRC.
        HOP_LIMIT [8] => hop_limit / set_hop_limit: u8,
        /// Source address.
        SRC [128] => src / set_src: Ipv6Addr,
        /// Destination address.
        DST [128] => dst / set_dst: Ipv6Addr,
    }
}

/// Value of an IPv6 header around UDP. The length follows from what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
    /// Traffic class: DSCP and ECN.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
}

impl Repr {
    /// Reads the value of a header and the length of the datagram's payload in bytes.
    ///
    /// Fails, in this order, with [`Error::Version`] and [`Error::Protocol`].
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Result<(Self, usize), Error> {
        if header.version() != 6 {
            return Err(Error::Version {
                expected: 6,
                found: header.version(),
            });
        }
        if header.next_header() != PROTOCOL_UDP {
            return Err(Error::Protocol(header.next_header()));
        }
        let repr = Self {
            src: header.src(),
            dst: header.dst(),
            traffic_class: header.traffic_class(),
            flow_label: header.flow_label(),
            hop_limit: header.hop_limit(),
        };
        Ok((repr, usize::from(header.payload_len())))
    }

    /// The bytes of the header of a datagram with `payload_len` bytes behind it.
    #[must_use]
    pub fn emit(&self, payload_len: u16) -> [u8; LEN] {
        let mut header = Header::new([0; LEN]);
        header.set_version(6);
        header.set_traffic_class(self.traffic_class);
        header.set_flow_label(self.flow_label);
        header.set_payload_len(payload_len);
        header.set_next_header(PROTOCOL_UDP);
        header.set_hop_limit(self.hop_limit);
        header.set_src(self.src);
        header.set_dst(self.dst);
        header.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::samples;
    use proptest::prelude::*;

    #[test]
    fn captured_header() {
        let bytes = &samples::V6_ACK[14..54];
        let expected = Repr {
            src: "fe80::5054:ff:fe00:1".parse().unwrap(),
            dst: "fe80::5054:ff:fe00:2".parse().unwrap(),
            traffic_class: 0,
            flow_label: 0,
            hop_limit: 64,
        };
        let parsed = Repr::parse(&Header::new_checked(bytes).unwrap());
        assert_eq!(parsed, Ok((expected, 28)));
        assert_eq!(expected.emit(28), bytes);
    }

    #[test]
    fn fields_across_bytes() {
        let mut header = Header::new([0; LEN]);
        header.set_version(6);
        header.set_traffic_class(0xab);
        header.set_flow_label(0x1_2345);
        assert_eq!(header.into_inner()[..4], [0x6a, 0xb1, 0x23, 0x45]);
    }

    #[test]
    fn refusals() {
        let mut header = Header::new(samples::V6_ACK[14..54].try_into().unwrap());
        // 44 is the fragment header.
        header.set_next_header(44);
        assert_eq!(Repr::parse(&header), Err(Error::Protocol(44)));
        header.set_version(4);
        assert_eq!(
            Repr::parse(&header),
            Err(Error::Version {
                expected: 6,
                found: 4
            })
        );
    }

    proptest! {
        #[test]
        fn emit_then_parse(
            src: [u8; 16], dst: [u8; 16], traffic_class: u8, flow_label in 0u32..1 << 20,
            hop_limit: u8, len: u16
        ) {
            let repr = Repr { src: src.into(), dst: dst.into(), traffic_class, flow_label, hop_limit };
            let parsed = Repr::parse(&Header::new(repr.emit(len)));
            prop_assert_eq!(parsed, Ok((repr, usize::from(len))));
        }
    }
}
