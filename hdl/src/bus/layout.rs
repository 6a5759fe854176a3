//! Where the headers of a frame stand.

use ferroce_proto::wire::{Opcode, bth, eth, ipv4, ipv6, udp};

/// What stands in front of the BTH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// IPv6; else IPv4.
    pub ipv6: bool,
    /// An 802.1Q tag is present.
    pub vlan: bool,
}

impl Layout {
    /// All of them: number `2 * ipv6 + vlan`.
    pub const ALL: [Self; 4] = [
        Self::new(false, false),
        Self::new(false, true),
        Self::new(true, false),
        Self::new(true, true),
    ];

    const fn new(ipv6: bool, vlan: bool) -> Self {
        Self { ipv6, vlan }
    }

    /// First byte of the IP header.
    pub const fn ip(self) -> usize {
        if self.vlan {
            eth::LEN + eth::tag::LEN
        } else {
            eth::LEN
        }
    }

    /// Bytes of the IP header.
    pub const fn ip_len(self) -> usize {
        if self.ipv6 { ipv6::LEN } else { ipv4::LEN }
    }

    /// First byte of the UDP header.
    pub const fn udp(self) -> usize {
        self.ip() + self.ip_len()
    }

    /// First byte of the BTH.
    pub const fn bth(self) -> usize {
        self.udp() + udp::LEN
    }

    /// First byte behind the BTH.
    pub const fn ext(self) -> usize {
        self.bth() + bth::LEN
    }
}

/// Bytes from the start of a frame that can be headers: those of the longest opcode in the longest layout.
pub const HEADER_BYTES: usize = {
    let (mut longest, mut i) = (0, 0);
    while i < Opcode::ALL.len() {
        let len = Opcode::ALL[i].header_len();
        longest = if len > longest { len } else { longest };
        i += 1;
    }
    Layout::ALL[3].bth() + longest
};

/// Bits of [`HEADER_BYTES`].
pub const HEADER_BITS: usize = 8 * HEADER_BYTES;
