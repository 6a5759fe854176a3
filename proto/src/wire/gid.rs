//! Global identifier (GID) of a RoCEv2 port: its IP address in 128 bits.

use core::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::Mac;

/// Global identifier, 16 bytes in network order. An IPv4 address is `::ffff:a.b.c.d`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// The IP address it stands for.
    #[must_use]
    pub fn ip(self) -> IpAddr {
        Ipv6Addr::from(self.0).to_canonical()
    }

    /// Stands for an IPv4 address.
    #[must_use]
    pub fn is_ipv4(self) -> bool {
        self.ip().is_ipv4()
    }

    /// All zero: an empty entry of the GID table.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.0 == [0; 16]
    }

    /// The link-local GID of a MAC address, by its modified EUI-64 (RFC 4291, appendix A).
    #[must_use]
    pub const fn link_local(Mac([a, b, c, d, e, f]): Mac) -> Self {
        Self([
            0xfe,
            0x80,
            0,
            0,
            0,
            0,
            0,
            0,
            a ^ 2,
            b,
            c,
            0xff,
            0xfe,
            d,
            e,
            f,
        ])
    }

    /// As a number with the first byte in the lowest bits: the form of the host contract (`abi`).
    #[must_use]
    pub const fn to_le_bits(self) -> u128 {
        u128::from_le_bytes(self.0)
    }

    /// From a number with the first byte in the lowest bits.
    #[must_use]
    pub const fn from_le_bits(bits: u128) -> Self {
        Self(bits.to_le_bytes())
    }
}

impl From<Ipv4Addr> for Gid {
    fn from(ip: Ipv4Addr) -> Self {
        Self(ip.to_ipv6_mapped().octets())
    }
}

impl From<Ipv6Addr> for Gid {
    fn from(ip: Ipv6Addr) -> Self {
        Self(ip.octets())
    }
}

impl From<IpAddr> for Gid {
    fn from(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => ip.into(),
            IpAddr::V6(ip) => ip.into(),
        }
    }
}

impl fmt::Display for Gid {
    /// Eight groups of four hex digits, none left out, as the verbs tools print it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, segment) in Ipv6Addr::from(self.0).segments().iter().enumerate() {
            let colon = if i == 0 { "" } else { ":" };
            write!(f, "{colon}{segment:04x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::ToString;

    #[test]
    fn ipv4_is_mapped() {
        let gid = Gid::from(Ipv4Addr::new(10, 0, 0, 2));
        assert_eq!(
            gid.0,
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2]
        );
        assert_eq!(gid.ip(), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)));
        assert_eq!(gid.to_string(), "0000:0000:0000:0000:0000:ffff:0a00:0002");
        assert!(gid.is_ipv4());
    }

    #[test]
    fn link_local_of_a_captured_mac() {
        let gid = Gid::link_local(Mac([0x52, 0x54, 0, 0, 0, 2]));
        let ip: Ipv6Addr = "fe80::5054:ff:fe00:2".parse().unwrap();
        assert_eq!(gid, Gid::from(ip));
        assert!(!gid.is_ipv4());
        assert_eq!(Gid::from_le_bits(gid.to_le_bits()), gid);
        assert_eq!(gid.to_le_bits() & 0xffff, 0x80fe);
    }
}
