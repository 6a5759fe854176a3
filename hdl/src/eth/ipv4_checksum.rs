//! IPv4 header checksum (RFC 791): four cycles from a header to the answer, a header a cycle.
//!
//! The ones' complement sum of the ten 16-bit words of a correct header is 0xffff. That sum does not depend on the
//! order of the bytes in a word but for a swap of its result, which 0xffff does not show: words are taken as they lie.
use crate::prelude::*;

/// Checks the checksum of an IPv4 header without options.
#[derive(Clone, Debug, Block)]
pub struct Ipv4Checksum {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// The 20 bytes of the header, the first in the lowest bits.
    pub header: Signal<In, Bits<160>>,
    /// The checksum is right.
    pub good: Signal<Out, Bit>,
    pair: [Dff<Bits<17>>; 5],
    half: [Dff<Bits<20>>; 2],
    sum: Dff<Bits<20>>,
    good_q: Dff<Bit>,
}

impl Logic for Ipv4Checksum {
    describe!(
        "ipv4_checksum",
        "IPv4 header checksum, four cycles of latency."
    );

    #[kernel]
    fn update(&mut self) {
        for i in 0..5 {
            // A loop variable may not stand in a cast: a word and the next bit, and the bit taken off.
            pair[i] =
                (header.slice::<17>(32 * i) & 0xffff) + (header.slice::<17>(32 * i + 16) & 0xffff);
        }

        half[0] = pair[0].resize::<20>() + pair[1].resize::<20>();
        half[1] = pair[2].resize::<20>() + pair[3].resize::<20>() + pair[4].resize::<20>();
        sum = half[0] + half[1];
        // Ten words carry at most 9: a second fold could not give 0xffff.
        let folded = sum.low::<16>().resize::<17>() + sum.slice::<4>(16).resize::<17>();
        good_q = folded == 0xffff;
        good = good_q;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroce_proto::wire::ipv4;

    #[test]
    fn agrees_with_the_wire_module() {
        let mut u = Ipv4Checksum::default();
        u.connect_all();
        let mut seed = 0x9e37_79b9_u32;
        for i in 0..400 {
            let mut bytes = [0; 20];
            for byte in &mut bytes {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Runs of ones and zeros give the carries at the ends.
                *byte = if i % 4 == 0 { 0xff } else { (seed >> 24) as u8 };
            }
            let mut header = ipv4::Header::new(bytes);
            let sum = header.computed_checksum();
            header.set_checksum(if i % 3 == 0 { sum ^ 1 << (i % 16) } else { sum });
            let good = header.checksum() % 0xffff == header.computed_checksum() % 0xffff;
            let bytes = header.into_inner();
            for (i, byte) in bytes.into_iter().enumerate() {
                u.header.next.set_bits::<8>(8 * i, byte.to_bits());
            }
            for _ in 0..4 {
                u.clock.drive(false, false);
                assert!(simulate(&mut u, 50));
                u.clock.drive(true, false);
                assert!(simulate(&mut u, 50));
            }
            assert_eq!(u.good.val(), good, "{bytes:02x?}");
        }
    }
}
