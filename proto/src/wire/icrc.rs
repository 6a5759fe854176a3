//! Invariant CRC (ICRC): the end-to-end check of a packet (IB1 7.8.1, A17 CA17-22).
//!
//! CRC-32 of Ethernet over eight bytes of ones (in place of the InfiniBand local route header), then
//! the IP datagram from the first byte of its IP header to its last pad byte. Fields that change on
//! the way count as ones: those of [`IPV4_MASK`] and [`IPV6_MASK`]. Ethernet header and VLAN tag are
//! never covered. The ICRC follows the pad, least significant byte first; its place is given by the
//! IP length, never by the end of the frame, which may be padded.

use crc::{CRC_32_ISO_HDLC, Crc, Table};

use super::{Error, bth, field::Field, ipv4, ipv6, udp};

/// Length in bytes.
pub const LEN: usize = 4;

/// State of the reflected CRC register, before the final inversion, behind the eight bytes of ones.
pub const SEED: u32 = 0xdebb_20e3;

/// Bytes from an IPv4 header to the end of the BTH.
const IPV4_LEN: usize = ipv4::LEN + udp::LEN + bth::LEN;
/// Bytes from an IPv6 header to the end of the BTH.
const IPV6_LEN: usize = ipv6::LEN + udp::LEN + bth::LEN;

/// Bits, by byte from the start of an IPv4 header, that count as ones: a byte of the ICRC's input is
/// the byte of the packet OR its mask.
pub const IPV4_MASK: [u8; IPV4_LEN] = mask(
    &[ipv4::field::TOS, ipv4::field::TTL, ipv4::field::CHECKSUM],
    ipv4::LEN,
);

/// As [`IPV4_MASK`], from the start of an IPv6 header.
pub const IPV6_MASK: [u8; IPV6_LEN] = mask(
    &[
        ipv6::field::TRAFFIC_CLASS,
        ipv6::field::FLOW_LABEL,
        ipv6::field::HOP_LIMIT,
    ],
    ipv6::LEN,
);

const fn mask<const N: usize>(ip_fields: &[Field], ip_len: usize) -> [u8; N] {
    let mut mask = [0; N];
    let mut i = 0;
    while i < ip_fields.len() {
        ip_fields[i].set(&mut mask, u128::MAX);
        i += 1;
    }
    let (_, behind_ip) = mask.split_at_mut(ip_len);
    udp::field::CHECKSUM.set(behind_ip, u128::MAX);
    let (_, bth) = behind_ip.split_at_mut(udp::LEN);
    bth::field::FECN.set(bth, u128::MAX);
    bth::field::BECN.set(bth, u128::MAX);
    bth::field::RESV6.set(bth, u128::MAX);
    mask
}

const CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);

/// ICRC of a datagram: from its IP header to its last pad byte, without the ICRC itself.
///
/// Fails with [`Error::Version`] when the version is neither 4 nor 6, with [`Error::HeaderLength`]
/// when an IPv4 header has options, with [`Error::Truncated`] when the datagram ends before the BTH.
pub fn compute(datagram: &[u8]) -> Result<u32, Error> {
    let truncated = |need| Error::Truncated {
        header: "IP header to BTH",
        need,
        have: datagram.len(),
    };
    match datagram.first() {
        Some(0x45) => masked(datagram, &IPV4_MASK).ok_or(truncated(IPV4_LEN)),
        Some(first) if first >> 4 == 4 => Err(Error::HeaderLength(first & 0xf)),
        Some(first) if first >> 4 == 6 => masked(datagram, &IPV6_MASK).ok_or(truncated(IPV6_LEN)),
        Some(first) => Err(Error::Version {
            expected: 4,
            found: first >> 4,
        }),
        None => Err(truncated(IPV4_LEN)),
    }
}

fn masked<const N: usize>(datagram: &[u8], mask: &[u8; N]) -> Option<u32> {
    let (head, tail) = datagram.split_first_chunk::<N>()?;
    let mut digest = CRC.digest();
    digest.update(&[0xff; 8]);
    digest.update(&core::array::from_fn::<u8, N, _>(|i| head[i] | mask[i]));
    digest.update(tail);
    Some(digest.finalize())
}

/// Checks the ICRC that ends a datagram. `datagram` runs from the IP header to the ICRC, cut to the
/// IP length.
///
/// Fails with [`Error::Icrc`] when it does not match, else as [`compute`].
pub fn check(datagram: &[u8]) -> Result<(), Error> {
    let (covered, icrc) = datagram.split_last_chunk().ok_or(Error::Truncated {
        header: "ICRC",
        need: LEN,
        have: datagram.len(),
    })?;
    let (found, computed) = (u32::from_le_bytes(*icrc), compute(covered)?);
    if found == computed {
        Ok(())
    } else {
        Err(Error::Icrc { found, computed })
    }
}

/// Writes the ICRC into the last four bytes of a datagram. Fails as [`compute`].
pub fn seal(datagram: &mut [u8]) -> Result<(), Error> {
    let have = datagram.len();
    let (covered, icrc) = datagram.split_last_chunk_mut().ok_or(Error::Truncated {
        header: "ICRC",
        need: LEN,
        have,
    })?;
    *icrc = compute(covered)?.to_le_bytes();
    Ok(())
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::wire::samples;
    use proptest::prelude::*;

    #[test]
    fn captured_packets() {
        for frame in samples::ALL {
            assert_eq!(check(&frame[14..]), Ok(()));
        }
        let covered = &samples::RC_ACK[14..58];
        assert_eq!(compute(covered), Ok(0x22d7_f249));
    }

    #[test]
    fn masks_of_the_specification() {
        let at = |mask: &[u8], at: &[(usize, u8)]| {
            for (i, &m) in mask.iter().enumerate() {
                let expected = at.iter().find(|x| x.0 == i).map_or(0, |x| x.1);
                assert_eq!(m, expected, "byte {i}");
            }
        };
        at(
            &IPV4_MASK,
            &[
                (1, 0xff),
                (8, 0xff),
                (10, 0xff),
                (11, 0xff),
                (26, 0xff),
                (27, 0xff),
                (32, 0xff),
            ],
        );
        at(
            &IPV6_MASK,
            &[
                (0, 0x0f),
                (1, 0xff),
                (2, 0xff),
                (3, 0xff),
                (7, 0xff),
                (46, 0xff),
                (47, 0xff),
                (52, 0xff),
            ],
        );
    }

    #[test]
    fn seed_is_the_state_after_eight_bytes_of_ones() {
        assert_eq!(!CRC.checksum(&[0xff; 8]), SEED);
    }

    #[test]
    fn refusals() {
        let mut datagram = samples::RC_ACK[14..].to_vec();
        datagram[0] = 0x46;
        assert_eq!(check(&datagram), Err(Error::HeaderLength(6)));
        datagram[0] = 0x55;
        assert!(matches!(check(&datagram), Err(Error::Version { .. })));
        assert!(matches!(check(&[]), Err(Error::Truncated { .. })));
        assert!(matches!(
            compute(&samples::V6_ACK[14..73]),
            Err(Error::Truncated {
                need: 60,
                have: 59,
                ..
            })
        ));
    }

    proptest! {
        #[test]
        fn every_bit_counts_but_the_masked(which in 0..samples::ALL.len(), bit: prop::sample::Index) {
            let mut datagram = samples::ALL[which][14..].to_vec();
            let bit = bit.index(datagram.len() * 8);
            let (byte, flip) = (bit / 8, 0x80 >> (bit % 8));
            let mask: &[u8] = if datagram[0] == 0x45 { &IPV4_MASK } else { &IPV6_MASK };
            let free = mask.get(byte).is_some_and(|m| m & flip != 0);
            datagram[byte] ^= flip;
            prop_assert_eq!(check(&datagram).is_ok(), free);
        }

        #[test]
        fn seal_then_check(mut datagram in prop::collection::vec(any::<u8>(), 64..300), v6: bool) {
            datagram[0] = if v6 { 0x60 } else { 0x45 };
            seal(&mut datagram).unwrap();
            prop_assert_eq!(check(&datagram), Ok(()));
        }
    }
}
