//! Place of a field in a header, in network order.

use core::{
    net::{Ipv4Addr, Ipv6Addr},
    ops::Range,
};

use super::{Mac, Psn};

/// A run of bits in a header: bit 0 is the most significant bit of byte 0, as headers are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// First (most significant) bit, counted from the most significant bit of byte 0.
    pub bit: usize,
    /// Width in bits, 1 to 128.
    pub width: usize,
}

impl Field {
    /// The first byte the field touches.
    #[must_use]
    pub const fn byte(self) -> usize {
        self.bit / 8
    }

    /// Bit just behind the field.
    #[must_use]
    pub const fn end(self) -> usize {
        self.bit + self.width
    }

    /// The bytes the field touches.
    #[must_use]
    pub const fn bytes(self) -> Range<usize> {
        self.bit / 8..self.end().div_ceil(8)
    }

    /// Distance in bits from the field's last bit to the end of its last byte.
    #[must_use]
    pub const fn shift(self) -> usize {
        self.end().next_multiple_of(8) - self.end()
    }

    const fn mask(self) -> u128 {
        (u128::MAX >> (128 - self.width)) << self.shift()
    }

    /// Reads the field of a header. Panics when the header does not hold [`Field::bytes`], which may be
    /// 16 at most.
    #[must_use]
    pub const fn get(self, header: &[u8]) -> u128 {
        let mut word = 0u128;
        let Range { start, end } = self.bytes();
        let mut i = start;
        while i < end {
            word = (word << 8) | header[i] as u128;
            i += 1;
        }
        (word & self.mask()) >> self.shift()
    }

    /// Writes the field of a header and leaves its neighbours alone; bits of `value` above the width
    /// are cut off. Panics when the header does not hold [`Field::bytes`].
    pub const fn set(self, header: &mut [u8], value: u128) {
        let mut mask = self.mask();
        let mut word = (value << self.shift()) & mask;
        let Range { start, end } = self.bytes();
        let mut i = end;
        while i > start {
            i -= 1;
            header[i] = (header[i] & !(mask as u8)) | word as u8;
            mask >>= 8;
            word >>= 8;
        }
    }
}

/// A value that a field can hold.
pub(crate) trait Value {
    fn from_bits(bits: u128) -> Self;
    fn into_bits(self) -> u128;
}

impl Value for bool {
    fn from_bits(bits: u128) -> Self {
        bits != 0
    }
    fn into_bits(self) -> u128 {
        u128::from(self)
    }
}

macro_rules! value {
    ($($t:ty as $bits:ty),* $(,)?) => {$(
        impl Value for $t {
            fn from_bits(bits: u128) -> Self {
                Self::from(bits as $bits)
            }
            fn into_bits(self) -> u128 {
                u128::from(<$bits>::from(self))
            }
        }
    )*};
}
value! {
    u8 as u8, u16 as u16, u32 as u32, u64 as u64,
    Psn as u32, Ipv4Addr as u32, Ipv6Addr as u128, Mac as u64,
}

#[cfg(test)]
mod tests {
    use super::Field;
    use proptest::prelude::*;

    #[test]
    fn bits_count_from_the_most_significant() {
        let bytes = [0x12, 0x34, 0x56, 0x78];
        assert_eq!(Field { bit: 0, width: 4 }.get(&bytes), 0x1);
        assert_eq!(Field { bit: 4, width: 8 }.get(&bytes), 0x23);
        assert_eq!(Field { bit: 8, width: 24 }.get(&bytes), 0x34_5678);
        assert_eq!(Field { bit: 11, width: 3 }.get(&bytes), 0b101);
    }

    proptest! {
        #[test]
        fn set_then_get_and_neighbours_stay(
            mut bytes: [u8; 16], bit in 0usize..64, width in 1usize..=63, value: u128
        ) {
            let field = Field { bit, width };
            let before = bytes;
            field.set(&mut bytes, value);
            prop_assert_eq!(field.get(&bytes), value & ((1 << width) - 1));
            let outside = !(((1 << width) - 1) << (128 - field.end()));
            let word = |b| u128::from_be_bytes(b) & outside;
            prop_assert_eq!(word(bytes), word(before));
        }
    }
}
