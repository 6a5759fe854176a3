//! Services of IP port spaces, and the addresses of both ends in the private data (IB1 A11).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of the header, in front of the private data of the program.
pub const IP_BYTES: usize = 36;

/// Port spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortSpace {
    /// RDMA_PS_TCP: connections.
    Tcp,
    /// RDMA_PS_UDP: datagrams.
    Udp,
}

impl PortSpace {
    /// The service ID of a port.
    pub fn service(self, port: u16) -> u64 {
        let space: u64 = match self {
            Self::Tcp => 0x0106,
            Self::Udp => 0x0111,
        };
        space << 16 | u64::from(port)
    }

    /// The port of a service ID of this space.
    pub fn port(self, service: u64) -> Option<u16> {
        let port = service as u16;
        (self.service(port) == service).then_some(port)
    }
}

/// The GID of an address.
pub fn gid(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

/// Where the two ends are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpHeader {
    /// Port of the sender.
    pub port: u16,
    /// Address of the sender.
    pub from: IpAddr,
    /// Address of the receiver.
    pub to: IpAddr,
}

impl IpHeader {
    /// Reads the header; `None` if it is of another version.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let b: &[u8; IP_BYTES] = bytes.first_chunk()?;
        // The version of the header, of which there is one, comes first.
        let address: fn(&[u8]) -> Option<IpAddr> = match (b[0], b[1] >> 4) {
            (0, 4) => |b| Some(Ipv4Addr::from(*b.last_chunk::<4>()?).into()),
            (0, 6) => |b| Some(Ipv6Addr::from(*b.last_chunk::<16>()?).into()),
            _ => return None,
        };
        Some(Self {
            port: u16::from_be_bytes([b[2], b[3]]),
            from: address(&b[4..20])?,
            to: address(&b[20..36])?,
        })
    }

    /// Writes the header into the front of the private data. Both addresses are of one version.
    pub fn emit(&self, private: &mut [u8]) {
        let version = if self.from.is_ipv4() { 4 } else { 6 };
        private[0] = 0;
        private[1] = version << 4;
        private[2..4].copy_from_slice(&self.port.to_be_bytes());
        for (at, ip) in [(4, self.from), (20, self.to)] {
            let place = &mut private[at..at + 16];
            match ip {
                IpAddr::V4(ip) => place[12..].copy_from_slice(&ip.octets()),
                IpAddr::V6(ip) => place.copy_from_slice(&ip.octets()),
            }
        }
    }
}
