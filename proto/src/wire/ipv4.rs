//! IPv4 header as RoCEv2 uses it: no options, no fragments, UDP inside (A17 CA17-3 to CA17-8).

use core::net::Ipv4Addr;

use super::{Error, ip::PROTOCOL_UDP};

header! {
    /// View of an IPv4 header without options.
    "IPv4 header" [20] {
        /// Version, 4.
        VERSION [4] => version / set_version: u8,
        /// Header length in words of 4 bytes, 5.
        IHL [4] => ihl / set_ihl: u8,
        /// Type of service: DSCP 6 bits, ECN 2 bits; not covered by the ICRC.
        TOS [8] => tos / set_tos: u8,
        /// Length of the datagram in bytes, this header and the ICRC included.
        TOTAL_LEN [16] => total_len / set_total_len: u16,
        /// Identification.
        IDENT [16] => ident / set_ident: u16,
        /// Reserved flag, 0.
        FLAG_RESERVED [1],
        /// Do not fragment.
        DF [1] => df / set_df: bool,
        /// More fragments follow.
        MF [1] => mf / set_mf: bool,
        /// Offset of the fragment in units of 8 bytes.
        FRAG_OFFSET [13] => frag_offset / set_frag_offset: u16,
        /// Time to live; not covered by the ICRC.
        TTL [8] => ttl / set_ttl: u8,
        /// Protocol, 17 for UDP.
        PROTOCOL [8] => protocol / set_protocol: u8,
        /// Header checksum; not covered by the ICRC.
        CHECKSUM [16] => checksum / set_checksum: u16,
        /// Source address.
        SRC [32] => src / set_src: Ipv4Addr,
        /// Destination address.
        DST [32] => dst / set_dst: Ipv4Addr,
    }
}

impl<T: AsRef<[u8]>> Header<T> {
    /// The checksum this header should carry (RFC 791): ones' complement of the ones' complement
    /// sum of its 16-bit words, the checksum field taken as 0.
    #[must_use]
    pub fn computed_checksum(&self) -> u16 {
        let words = self.buffer.as_ref()[..LEN].chunks_exact(2);
        let sum: u32 = words
            .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
            .sum::<u32>()
            - u32::from(self.checksum());
        // Two folds bring a sum of ten words into 16 bits.
        let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
        !(fold(fold(sum)) as u16)
    }
}

/// Value of an IPv4 header around UDP. Lengths and checksum follow from the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Type of service: DSCP and ECN.
    pub tos: u8,
    /// Identification.
    pub ident: u16,
    /// Time to live.
    pub ttl: u8,
}

impl Repr {
    /// Reads the value of a header and the length of the datagram's payload in bytes.
    ///
    /// Fails, in this order, with [`Error::Version`], [`Error::HeaderLength`],
    /// [`Error::HeaderChecksum`], [`Error::Fragment`], [`Error::Protocol`] and, when the total length
    /// is below that of the header, [`Error::Truncated`].
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Result<(Self, usize), Error> {
        if header.version() != 4 {
            return Err(Error::Version {
                expected: 4,
                found: header.version(),
            });
        }
        if header.ihl() != 5 {
            return Err(Error::HeaderLength(header.ihl()));
        }
        let (found, computed) = (header.checksum(), header.computed_checksum());
        // 0 has two forms in ones' complement: a router that updates the sum may write the other (RFC 1624 3)
        if found % 0xffff != computed % 0xffff {
            return Err(Error::HeaderChecksum { found, computed });
        }
        if header.mf() || header.frag_offset() != 0 {
            return Err(Error::Fragment {
                offset: header.frag_offset(),
                more: header.mf(),
            });
        }
        if header.protocol() != PROTOCOL_UDP {
            return Err(Error::Protocol(header.protocol()));
        }
        let total = usize::from(header.total_len());
        let payload = total.checked_sub(LEN).ok_or(Error::Truncated {
            header: "IPv4 header",
            need: LEN,
            have: total,
        })?;
        let repr = Self {
            src: header.src(),
            dst: header.dst(),
            tos: header.tos(),
            ident: header.ident(),
            ttl: header.ttl(),
        };
        Ok((repr, payload))
    }

    /// The bytes of the header of a datagram with `payload_len` bytes behind it, at most 65515.
    ///
    /// The flags are '010', do not fragment (A17 CA17-7).
    #[must_use]
    pub fn emit(&self, payload_len: u16) -> [u8; LEN] {
        let mut header = Header::new([0; LEN]);
        header.set_version(4);
        header.set_ihl(5);
        header.set_tos(self.tos);
        header.set_total_len(payload_len + LEN as u16);
        header.set_ident(self.ident);
        header.set_df(true);
        header.set_ttl(self.ttl);
        header.set_protocol(PROTOCOL_UDP);
        header.set_src(self.src);
        header.set_dst(self.dst);
        header.set_checksum(header.computed_checksum());
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
        let bytes = &samples::RC_ACK[14..34];
        let expected = Repr {
            src: Ipv4Addr::new(10, 0, 0, 1),
            dst: Ipv4Addr::new(10, 0, 0, 2),
            tos: 0,
            ident: 0x18c6,
            ttl: 64,
        };
        let parsed = Repr::parse(&Header::new_checked(bytes).unwrap());
        assert_eq!(parsed, Ok((expected, 28)));
        assert_eq!(expected.emit(28), bytes);
    }

    #[test]
    fn both_zeros_are_good() {
        let mut header = Header::new(samples::RC_ACK[14..34].try_into().unwrap());
        // all words but the checksum sum up to ones
        header.set_ident(0);
        header.set_ident(header.computed_checksum());
        assert_eq!(header.computed_checksum(), 0);
        for checksum in [0, 0xffff] {
            header.set_checksum(checksum);
            assert!(Repr::parse(&header).is_ok(), "{checksum:#x}");
        }
    }

    fn refusal(change: impl Fn(&mut Header<[u8; LEN]>)) -> Error {
        let mut header = Header::new(samples::RC_ACK[14..34].try_into().unwrap());
        change(&mut header);
        header.set_checksum(header.computed_checksum());
        Repr::parse(&header).unwrap_err()
    }

    #[test]
    fn refusals() {
        assert_eq!(
            refusal(|h| h.set_version(6)),
            Error::Version {
                expected: 4,
                found: 6
            }
        );
        assert_eq!(refusal(|h| h.set_ihl(6)), Error::HeaderLength(6));
        assert_eq!(
            refusal(|h| h.set_mf(true)),
            Error::Fragment {
                offset: 0,
                more: true
            }
        );
        assert_eq!(
            refusal(|h| h.set_frag_offset(3)),
            Error::Fragment {
                offset: 3,
                more: false
            }
        );
        assert_eq!(refusal(|h| h.set_protocol(6)), Error::Protocol(6));
        assert_eq!(
            refusal(|h| h.set_total_len(19)),
            Error::Truncated {
                header: "IPv4 header",
                need: 20,
                have: 19
            }
        );
        let mut header = Header::new(samples::RC_ACK[14..34].try_into().unwrap());
        header.set_ttl(63);
        assert_eq!(
            Repr::parse(&header),
            Err(Error::HeaderChecksum {
                found: 0x0df5,
                computed: 0x0ef5
            })
        );
    }

    proptest! {
        #[test]
        fn emit_then_parse(src: [u8; 4], dst: [u8; 4], tos: u8, ident: u16, ttl: u8, len in 0u16..=65515) {
            let repr = Repr { src: src.into(), dst: dst.into(), tos, ident, ttl };
            let header = Header::new(repr.emit(len));
            prop_assert!(header.df());
            prop_assert_eq!(Repr::parse(&header), Ok((repr, usize::from(len))));
        }
    }
}
