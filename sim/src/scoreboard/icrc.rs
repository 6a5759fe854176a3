//! The invariant CRC once more, bit by bit from the specification (A17 17.3.3, IB1 7.8.1) and without any code of
//! `ferroce_proto`: what it accepts is checked by two implementations.

const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ 0xedb8_8320
            } else {
                crc >> 1
            };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
};

/// Ethernet CRC-32 of bytes, from all ones and without the final inversion.
fn crc(bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(u32::MAX, |crc, byte| {
        crc >> 8 ^ CRC_TABLE[usize::from(crc as u8 ^ byte)]
    })
}

/// Ethernet CRC-32 of `bytes`.
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    !crc(bytes.iter().copied())
}

/// Where the parts of a RoCEv2 frame stand, in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roce {
    ip: usize,
    bth: usize,
    icrc: usize,
}

impl Roce {
    /// Finds them; `None` if the frame is not UDP to port 4791, or is too short for a BTH.
    #[must_use]
    pub fn locate(frame: &[u8]) -> Option<Self> {
        let u16_at = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
        let mut ip = 14;
        while matches!(u16_at(ip - 2)?, 0x8100 | 0x88a8) {
            ip += 4;
        }
        let (protocol, udp) = match u16_at(ip - 2)? {
            0x0800 => (
                *frame.get(ip + 9)?,
                ip + usize::from(frame.get(ip)? & 15) * 4,
            ),
            0x86dd => (*frame.get(ip + 6)?, ip + 40),
            _ => return None,
        };
        if protocol != 17 || u16_at(udp + 2)? != 4791 {
            return None;
        }
        let end = udp + usize::from(u16_at(udp + 4)?);
        let bth = udp + 8;
        (end <= frame.len() && end >= bth + 16).then_some(Self {
            ip,
            bth,
            icrc: end - 4,
        })
    }

    /// First byte of the BTH.
    #[must_use]
    pub fn bth(&self) -> usize {
        self.bth
    }

    /// Destination queue pair of the BTH.
    #[must_use]
    pub fn dest_qp(&self, frame: &[u8]) -> u32 {
        let at = self.bth + 5;
        u32::from_be_bytes([0, frame[at], frame[at + 1], frame[at + 2]])
    }

    /// The ICRC the frame should carry.
    #[must_use]
    pub fn expected(&self, frame: &[u8]) -> u32 {
        let bytes = (self.ip..self.icrc).map(|at| frame[at] | self.variant(frame, at));
        !crc([0xff; 8].into_iter().chain(bytes))
    }

    /// The ICRC it carries, least significant byte first.
    #[must_use]
    pub fn carried(&self, frame: &[u8]) -> u32 {
        let at = self.icrc;
        u32::from_le_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]])
    }

    /// Gives the frame the ICRC it should carry.
    pub fn seal(&self, frame: &mut [u8]) {
        let icrc = self.expected(frame).to_le_bytes();
        frame[self.icrc..self.icrc + 4].copy_from_slice(&icrc);
    }

    /// Bits of byte `at` that may change on the way and count as ones.
    fn variant(&self, frame: &[u8], at: usize) -> u8 {
        let v4 = frame[self.ip] >> 4 == 4;
        match (v4, at - self.ip) {
            // Type of service, time to live, header checksum.
            (true, 1 | 8 | 10 | 11) => 0xff,
            // Traffic class and flow label, hop limit.
            (false, 0) => 0x0f,
            (false, 1 | 2 | 3 | 7) => 0xff,
            // UDP checksum; FECN, BECN and reserved bits of the BTH.
            _ if at + 1 == self.bth || at + 2 == self.bth || at == self.bth + 4 => 0xff,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_crc32_is_met() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn the_state_after_the_dummy_header_is_the_known_one() {
        assert_eq!(crc([0xff; 8].into_iter()), 0xdebb_20e3);
    }
}
