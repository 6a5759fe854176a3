//! Path MTU: the most payload bytes of a packet (codes of `enum ibv_mtu`).

/// Path maximum transfer unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Mtu {
    /// 256 bytes.
    Mtu256 = 1,
    /// 512 bytes.
    Mtu512 = 2,
    /// 1024 bytes.
    Mtu1024 = 3,
    /// 2048 bytes.
    Mtu2048 = 4,
    /// 4096 bytes.
    Mtu4096 = 5,
}

impl Mtu {
    /// All of them, ascending.
    pub const ALL: [Self; 5] = [
        Self::Mtu256,
        Self::Mtu512,
        Self::Mtu1024,
        Self::Mtu2048,
        Self::Mtu4096,
    ];

    /// The largest.
    pub const MAX: Self = Self::Mtu4096;

    /// InfiniBand code, 1 to 5.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Path MTU of an InfiniBand code; `None` outside 1 to 5.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1..=5 => Some(Self::ALL[code as usize - 1]),
            _ => None,
        }
    }

    /// Base-2 logarithm of the bytes, 8 to 12.
    #[must_use]
    pub const fn log2(self) -> u32 {
        7 + self as u32
    }

    /// Length in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        1 << self.log2()
    }

    /// Path MTU of a length in bytes; `None` when it is none of the five.
    #[must_use]
    pub const fn from_bytes(bytes: usize) -> Option<Self> {
        match bytes {
            256 => Some(Self::Mtu256),
            512 => Some(Self::Mtu512),
            1024 => Some(Self::Mtu1024),
            2048 => Some(Self::Mtu2048),
            4096 => Some(Self::Mtu4096),
            _ => None,
        }
    }

    /// Packets, and so PSNs, of a message of `len` bytes: one even when it is empty (IB1 9.7).
    #[must_use]
    pub const fn packets(self, len: u32) -> u32 {
        if len == 0 {
            1
        } else {
            len.div_ceil(1 << self.log2())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Mtu;

    #[test]
    fn codes_and_lengths() {
        for (code, bytes) in [(1, 256), (2, 512), (3, 1024), (4, 2048), (5, 4096)] {
            let mtu = Mtu::from_code(code).unwrap();
            assert_eq!((mtu.code(), mtu.bytes()), (code, bytes));
            assert_eq!(Mtu::from_bytes(bytes), Some(mtu));
        }
        assert_eq!(Mtu::from_code(0), None);
        assert_eq!(Mtu::from_code(6), None);
        assert_eq!(Mtu::from_bytes(1500), None);
    }

    #[test]
    fn packets_of_a_message() {
        for (len, packets) in [(0, 1), (1, 1), (1024, 1), (1025, 2), (1 << 31, 1 << 21)] {
            assert_eq!(Mtu::Mtu1024.packets(len), packets, "{len}");
        }
    }
}
