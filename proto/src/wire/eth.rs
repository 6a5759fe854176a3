//! Ethernet header, with an optional 802.1Q tag.
//!
//! The frame check sequence and the padding of short frames are the MAC's business.

use core::fmt;

use super::Error;

header! {
    /// View of an Ethernet header.
    "Ethernet header" [14] {
        /// Destination MAC address.
        DST [48] => dst / set_dst: Mac,
        /// Source MAC address.
        SRC [48] => src / set_src: Mac,
        /// EtherType, or [`TPID_8021Q`](crate::wire::eth::TPID_8021Q) when a tag follows.
        ETHERTYPE [16] => ethertype / set_ethertype: u16,
    }
}

/// The rest of an 802.1Q tag: it follows an Ethernet header whose EtherType is [`TPID_8021Q`].
pub mod tag {
    header! {
        /// View of an 802.1Q tag behind its TPID.
        "802.1Q tag" [4] {
            /// Tag control information: PCP 3 bits, DEI 1 bit, VLAN identifier 12 bits.
            TCI [16] => tci / set_tci: u16,
            /// EtherType of what follows.
            ETHERTYPE [16] => ethertype / set_ethertype: u16,
        }
    }

    /// Bits of a VLAN identifier, the lowest of the tag control information.
    pub const VID_BITS: usize = 12;

    /// VLAN identifier of a frame with this tag control information, or without a tag: 0, as of a tag that has a priority alone
    /// (IEEE 802.1Q 9.6).
    #[must_use]
    pub fn vid(tci: Option<u16>) -> u16 {
        tci.unwrap_or(0) & ((1 << VID_BITS) - 1)
    }
}

/// EtherType of IPv4.
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub const ETHERTYPE_IPV6: u16 = 0x86dd;
/// Tag protocol identifier of 802.1Q.
pub const TPID_8021Q: u16 = 0x8100;

/// MAC address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// As a number with the first byte in the lowest bits: the form of the host contract (`abi`).
    #[must_use]
    pub const fn to_le_bits(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
    }

    /// From a number with the first byte in the lowest bits.
    #[must_use]
    pub const fn from_le_bits(bits: u64) -> Self {
        let [mac @ .., _, _] = bits.to_le_bytes();
        Self(mac)
    }
}

impl From<u64> for Mac {
    /// The low 48 bits, first byte in the highest.
    fn from(bits: u64) -> Self {
        let [_, _, mac @ ..] = bits.to_be_bytes();
        Self(mac)
    }
}

impl From<Mac> for u64 {
    fn from(Mac([a, b, c, d, e, f]): Mac) -> Self {
        Self::from_be_bytes([0, 0, a, b, c, d, e, f])
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Value of an Ethernet header. The EtherType follows from what it carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repr {
    /// Destination MAC address.
    pub dst: Mac,
    /// Source MAC address.
    pub src: Mac,
    /// Tag control information of an 802.1Q tag.
    pub vlan: Option<u16>,
}

impl Repr {
    /// Reads the header of a frame, and the EtherType of what follows it.
    ///
    /// Fails with [`Error::Truncated`]. A second tag is not looked into: its TPID is the EtherType.
    pub fn parse(frame: &[u8]) -> Result<(Self, u16), Error> {
        let header = Header::new_checked(frame)?;
        let mut repr = Self {
            dst: header.dst(),
            src: header.src(),
            vlan: None,
        };
        if header.ethertype() != TPID_8021Q {
            return Ok((repr, header.ethertype()));
        }
        let tag = tag::Header::new_checked(&frame[LEN..])?;
        repr.vlan = Some(tag.tci());
        Ok((repr, tag.ethertype()))
    }

    /// Length of the header in bytes: 14, with a tag 18.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        match self.vlan {
            None => LEN,
            Some(_) => LEN + tag::LEN,
        }
    }

    /// Writes the header to the start of `frame`, as that of `ethertype`.
    ///
    /// Panics when `frame` is shorter than [`Repr::header_len`].
    pub fn emit(&self, ethertype: u16, frame: &mut [u8]) {
        let mut header = Header::new([0; LEN]);
        header.set_dst(self.dst);
        header.set_src(self.src);
        header.set_ethertype(self.vlan.map_or(ethertype, |_| TPID_8021Q));
        frame[..LEN].copy_from_slice(&header.into_inner());
        if let Some(tci) = self.vlan {
            let mut tag = tag::Header::new([0; tag::LEN]);
            tag.set_tci(tci);
            tag.set_ethertype(ethertype);
            frame[LEN..LEN + tag::LEN].copy_from_slice(&tag.into_inner());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::samples;
    use proptest::prelude::*;

    const TAGGED: [u8; 18] = [
        0x52, 0x54, 0, 0, 0, 1, 0x52, 0x54, 0, 0, 0, 2, 0x81, 0x00, 0x60, 0x64, 0x08, 0x00,
    ];

    #[test]
    fn bits_of_the_host_contract() {
        let mac = Mac([1, 2, 3, 4, 5, 6]);
        assert_eq!(mac.to_le_bits(), 0x0605_0403_0201);
        assert_eq!(Mac::from_le_bits(mac.to_le_bits()), mac);
    }

    #[test]
    fn captured_header() {
        let (repr, ethertype) = Repr::parse(&samples::RC_ACK).unwrap();
        assert_eq!(ethertype, ETHERTYPE_IPV4);
        assert_eq!(repr.dst, Mac([0x52, 0x54, 0, 0, 0, 2]));
        assert_eq!(repr.src, Mac([0x52, 0x54, 0, 0, 0, 1]));
        assert_eq!((repr.vlan, repr.header_len()), (None, 14));
    }

    #[test]
    fn tagged_header() {
        let (repr, ethertype) = Repr::parse(&TAGGED).unwrap();
        assert_eq!(
            (repr.vlan, repr.header_len(), ethertype),
            (Some(0x6064), 18, ETHERTYPE_IPV4)
        );
        let mut bytes = [0; 18];
        repr.emit(ethertype, &mut bytes);
        assert_eq!(bytes, TAGGED);
    }

    #[test]
    fn a_cut_tag_is_an_error() {
        let error = Error::Truncated {
            header: "802.1Q tag",
            need: 4,
            have: 3,
        };
        assert_eq!(Repr::parse(&TAGGED[..17]), Err(error));
    }

    proptest! {
        #[test]
        fn emit_then_parse(dst: [u8; 6], src: [u8; 6], vlan: Option<u16>, ethertype in 0x0600u16..TPID_8021Q) {
            let repr = Repr { dst: Mac(dst), src: Mac(src), vlan };
            let mut frame = [0; 18];
            repr.emit(ethertype, &mut frame);
            prop_assert_eq!(Repr::parse(&frame[..repr.header_len()]), Ok((repr, ethertype)));
        }
    }
}
