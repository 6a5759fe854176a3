//! The IP header of a RoCEv2 packet, of either version.

use core::net::IpAddr;

use super::{Error, Gid, eth, ipv4, ipv6};

/// Protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;

/// ECN, the low two bits of type of service and traffic class: not capable (RFC 3168).
pub const ECN_NOT_ECT: u8 = 0b00;
/// ECN: capable.
pub const ECN_ECT1: u8 = 0b01;
/// ECN: capable.
pub const ECN_ECT0: u8 = 0b10;
/// ECN: congestion experienced, the mark that calls for a CNP.
pub const ECN_CE: u8 = 0b11;

/// Bytes at the start of a UD receive buffer that hold the IP header (IB1's global route header): an
/// IPv6 header whole, an IPv4 header in the last 20.
pub const GRH_LEN: usize = 40;

/// IP header, of either version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ip {
    /// IPv4.
    V4(ipv4::Repr),
    /// IPv6.
    V6(ipv6::Repr),
}

impl Ip {
    /// The header between two GIDs; `None` when one is IPv4 and the other IPv6.
    ///
    /// `flow_label` is dropped for IPv4, whose identification is 0.
    #[must_use]
    pub fn between(
        src: Gid,
        dst: Gid,
        traffic_class: u8,
        flow_label: u32,
        hop_limit: u8,
    ) -> Option<Self> {
        match (src.ip(), dst.ip()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => Some(Self::V4(ipv4::Repr {
                src,
                dst,
                tos: traffic_class,
                ident: 0,
                ttl: hop_limit,
            })),
            (IpAddr::V6(src), IpAddr::V6(dst)) => Some(Self::V6(ipv6::Repr {
                src,
                dst,
                traffic_class,
                flow_label,
                hop_limit,
            })),
            _ => None,
        }
    }

    /// Reads the header at the start of a datagram that follows `ethertype`, and the length of its
    /// payload in bytes.
    pub fn parse(ethertype: u16, datagram: &[u8]) -> Result<(Self, usize), Error> {
        match ethertype {
            eth::ETHERTYPE_IPV4 => {
                let (repr, len) = ipv4::Repr::parse(&ipv4::Header::new_checked(datagram)?)?;
                Ok((Self::V4(repr), len))
            }
            eth::ETHERTYPE_IPV6 => {
                let (repr, len) = ipv6::Repr::parse(&ipv6::Header::new_checked(datagram)?)?;
                Ok((Self::V6(repr), len))
            }
            other => Err(Error::EtherType(other)),
        }
    }

    /// EtherType that announces the header.
    #[must_use]
    pub const fn ethertype(&self) -> u16 {
        match self {
            Self::V4(_) => eth::ETHERTYPE_IPV4,
            Self::V6(_) => eth::ETHERTYPE_IPV6,
        }
    }

    /// Length of the header in bytes.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        match self {
            Self::V4(_) => ipv4::LEN,
            Self::V6(_) => ipv6::LEN,
        }
    }

    /// Source address as a GID.
    #[must_use]
    pub fn src_gid(&self) -> Gid {
        match self {
            Self::V4(ip) => ip.src.into(),
            Self::V6(ip) => ip.src.into(),
        }
    }

    /// Destination address as a GID.
    #[must_use]
    pub fn dst_gid(&self) -> Gid {
        match self {
            Self::V4(ip) => ip.dst.into(),
            Self::V6(ip) => ip.dst.into(),
        }
    }

    /// Type of service or traffic class: DSCP and ECN.
    #[must_use]
    pub const fn traffic_class(&self) -> u8 {
        match self {
            Self::V4(ip) => ip.tos,
            Self::V6(ip) => ip.traffic_class,
        }
    }

    /// ECN bits, 2.
    #[must_use]
    pub const fn ecn(&self) -> u8 {
        self.traffic_class() & 0b11
    }

    /// Writes the header of a datagram with `payload_len` bytes behind it to the start of `datagram`.
    ///
    /// Panics when `datagram` is shorter than the header.
    pub fn emit(&self, payload_len: u16, datagram: &mut [u8]) {
        match self {
            Self::V4(ip) => datagram[..ipv4::LEN].copy_from_slice(&ip.emit(payload_len)),
            Self::V6(ip) => datagram[..ipv6::LEN].copy_from_slice(&ip.emit(payload_len)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::samples;
    use core::net::Ipv4Addr;

    #[test]
    fn either_version() {
        let (v4, len) = Ip::parse(0x0800, &samples::RC_ACK[14..]).unwrap();
        assert_eq!((v4.header_len(), len, v4.ethertype()), (20, 28, 0x0800));
        assert_eq!(v4.src_gid(), Gid::from(Ipv4Addr::new(10, 0, 0, 1)));
        let (v6, len) = Ip::parse(0x86dd, &samples::V6_ACK[14..]).unwrap();
        assert_eq!((v6.header_len(), len, v6.ethertype()), (40, 28, 0x86dd));
        assert_eq!(Ip::parse(0x0806, &[]), Err(Error::EtherType(0x0806)));
        assert_eq!(
            Ip::between(v4.src_gid(), v6.dst_gid(), 0, 0, 64),
            None,
            "versions differ"
        );
    }

    #[test]
    fn between_gids() {
        let (v6, _) = Ip::parse(0x86dd, &samples::V6_ACK[14..]).unwrap();
        assert_eq!(Ip::between(v6.src_gid(), v6.dst_gid(), 0, 0, 64), Some(v6));
        let gid = Gid::from(Ipv4Addr::LOCALHOST);
        assert_eq!(Ip::between(gid, gid, 0x6b, 7, 64).unwrap().ecn(), ECN_CE);
    }
}
