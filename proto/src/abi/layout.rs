//! Bit-field layouts: one declaration for software and hardware.

/// Place of a field inside its structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the field.
    pub name: &'static str,
    /// Lowest bit, counted from bit 0 of byte 0.
    pub lsb: usize,
    /// Width in bits, 1 to 128.
    pub width: usize,
    /// What it is.
    pub doc: &'static str,
}

/// A structure as a page or a header of another language describes it.
#[derive(Clone, Copy, Debug)]
pub struct Structure {
    /// Name of the structure.
    pub name: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// Size in bytes.
    pub bytes: usize,
    /// The fields in order, from bit 0.
    pub fields: &'static [Field],
}

/// A named value of a field.
#[derive(Clone, Copy, Debug)]
pub struct Code {
    /// Name of the value.
    pub name: &'static str,
    /// The value.
    pub value: u32,
    /// What it stands for.
    pub doc: &'static str,
}

/// Declares a module of constants and `CODES`, the list of them.
macro_rules! codes {
    ($(#[doc = $mdoc:literal])* pub mod $module:ident { $( $(#[doc = $doc:literal])* pub const $name:ident: $t:ty = $value:expr; )* }) => {
        $(#[doc = $mdoc])*
        pub mod $module {
            $( $(#[doc = $doc])* pub const $name: $t = $value; )*
            /// All of them, in order.
            pub const CODES: &[$crate::abi::Code] = &[
                $( $crate::abi::Code { name: stringify!($name), value: $name as u32, doc: concat!($($doc),*) } ),*
            ];
        }
    };
}
pub(crate) use codes;

/// Reads `width` (1 to 128) bits starting at bit `lsb` of a little-endian byte string.
///
/// Inlined with a constant place it is a load, a shift and a mask: rings are read with it.
#[inline(always)]
#[must_use]
pub fn get_bits(bytes: &[u8], lsb: usize, width: usize) -> u128 {
    if lsb % 8 + width <= 128 {
        return get_word(bytes, lsb, width);
    }
    get_word(bytes, lsb, 64) | (get_word(bytes, lsb + 64, width - 64) << 64)
}

/// Writes the low `width` (1 to 128) bits of `value` at bit `lsb` of a little-endian byte string.
#[inline(always)]
pub fn set_bits(bytes: &mut [u8], lsb: usize, width: usize, value: u128) {
    if lsb % 8 + width <= 128 {
        return set_word(bytes, lsb, width, value);
    }
    set_word(bytes, lsb, 64, value);
    set_word(bytes, lsb + 64, width - 64, value >> 64);
}

/// [`get_bits`] within 16 bytes.
#[inline(always)]
fn get_word(bytes: &[u8], lsb: usize, width: usize) -> u128 {
    let len = (lsb % 8 + width).div_ceil(8);
    let mut word = [0; 16];
    word[..len].copy_from_slice(&bytes[lsb / 8..][..len]);
    (u128::from_le_bytes(word) >> (lsb % 8)) & (u128::MAX >> (128 - width))
}

/// [`set_bits`] within 16 bytes.
#[inline(always)]
fn set_word(bytes: &mut [u8], lsb: usize, width: usize, value: u128) {
    let bytes = &mut bytes[lsb / 8..][..(lsb % 8 + width).div_ceil(8)];
    let mask = u128::MAX >> (128 - width);
    let mut word = [0; 16];
    word[..bytes.len()].copy_from_slice(bytes);
    let kept = u128::from_le_bytes(word) & !(mask << (lsb % 8));
    let word = (kept | ((value & mask) << (lsb % 8))).to_le_bytes();
    bytes.copy_from_slice(&word[..bytes.len()]);
}

/// A value that a bit field can hold.
pub(crate) trait Bits: Copy {
    fn into_bits(self) -> u128;
    fn from_bits(v: u128) -> Self;
}

impl Bits for bool {
    #[inline(always)]
    fn into_bits(self) -> u128 {
        u128::from(self)
    }
    #[inline(always)]
    fn from_bits(v: u128) -> Self {
        v & 1 == 1
    }
}

macro_rules! bits_uint {
    ($($t:ty),*) => {$(
        impl Bits for $t {
            #[inline(always)]
            fn into_bits(self) -> u128 {
                self as u128
            }
            #[inline(always)]
            fn from_bits(v: u128) -> Self {
                v as $t
            }
        }
    )*};
}
bits_uint!(u8, u16, u32, u64, u128);

/// Declares a structure of `BYTES` bytes as an ordered list of `name: type [width]` bit fields.
///
/// Bits behind the last field are reserved, 0. Generates the value type with `FIELDS`, `BYTES`, `parse`
/// and `emit`, asserts that the fields fit, and exports `with_<name>!(callback)`, which calls `callback!{ name: type [width], .. }`
/// so that the hardware declares its packed type from the same list.
macro_rules! layout {
    ($d:tt $(#[doc = $doc:literal])* $vis:vis struct $name:ident ($with:ident) [$bytes:literal] {
        $( $(#[doc = $fdoc:literal])* $f:ident : $t:tt [$w:literal] ),* $(,)?
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $vis struct $name { $( $(#[doc = $fdoc])* pub $f: $t ),* }

        #[allow(clippy::int_plus_one, reason = "the last width may be 1")]
        const _: () = assert!(0 $(+ $w)* <= 8 * $bytes, "fields must fit the structure");

        impl $name {
            /// Size in bytes.
            pub const BYTES: usize = $bytes;

            /// The fields in order, from bit 0.
            pub const FIELDS: &'static [$crate::abi::Field] = &{
                let mut fields = [$( $crate::abi::Field { name: stringify!($f), lsb: 0, width: $w, doc: concat!($($fdoc),*) } ),*];
                let mut i = 1;
                while i < fields.len() {
                    fields[i].lsb = fields[i - 1].lsb + fields[i - 1].width;
                    i += 1;
                }
                fields
            };

            /// The structure as a page or a header describes it.
            pub const STRUCTURE: $crate::abi::Structure = $crate::abi::Structure {
                name: stringify!($name),
                doc: concat!($($doc),*),
                bytes: $bytes,
                fields: Self::FIELDS,
            };

            /// Reads the structure from its bytes.
            #[inline]
            #[must_use]
            pub fn parse(bytes: &[u8; $bytes]) -> Self {
                let mut fields = Self::FIELDS.iter();
                $( let f = fields.next().unwrap(); let $f = $crate::abi::layout::Bits::from_bits($crate::abi::get_bits(bytes, f.lsb, f.width)); )*
                Self { $($f),* }
            }

            /// Writes the structure into its bytes; bits of a value above its field's width are cut off.
            #[inline]
            #[must_use]
            pub fn emit(&self) -> [u8; $bytes] {
                let mut bytes = [0; $bytes];
                let mut fields = Self::FIELDS.iter();
                $( let f = fields.next().unwrap(); $crate::abi::set_bits(&mut bytes, f.lsb, f.width, $crate::abi::layout::Bits::into_bits(self.$f)); )*
                bytes
            }
        }

        /// Calls a macro with the fields of the structure of the same name.
        #[macro_export]
        macro_rules! $with {
            ($d ($d cb:ident)::+) => { $d ($d cb)::+! { $name { $( $(#[doc = $fdoc])* $f: $t [$w] ),* } } };
        }
    };
}
pub(crate) use layout;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{cq::Cqe, qpc::AvCtx, wqe::SendWqe};

    #[test]
    fn fields_stand_at_their_bytes() {
        let w = SendWqe {
            opcode: 3,
            signaled: true,
            slots: 1,
            imm: 0x0403_0201,
            remote_addr: 0x1122_3344_5566_7788,
            length: 9,
            ..Default::default()
        };
        let b = w.emit();
        assert_eq!(b[..8], [3, 1, 0, 1, 1, 2, 3, 4]);
        assert_eq!(b[8..16], 0x1122_3344_5566_7788u64.to_le_bytes());
        assert_eq!(b[20..24], [9, 0, 0, 0]);
        assert_eq!(SendWqe::parse(&b), w);
    }

    #[test]
    fn any_place_and_width() {
        let old: [u8; 20] = core::array::from_fn(|i| (i * 37 + 11) as u8);
        let bit = |bytes: &[u8; 20], i: usize| bytes[i / 8] >> (i % 8) & 1;
        let value = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3211;
        for (lsb, width) in (0..32).flat_map(|lsb| (1..=128).map(move |width| (lsb, width))) {
            let mut new = old;
            set_bits(&mut new, lsb, width, value);
            assert_eq!(
                get_bits(&new, lsb, width),
                value & (u128::MAX >> (128 - width))
            );
            for i in (0..lsb).chain(lsb + width..160) {
                assert_eq!(bit(&new, i), bit(&old, i), "bit {i} of {lsb}+{width}");
            }
            for i in 0..width {
                assert_eq!(
                    bit(&new, lsb + i),
                    (value >> i & 1) as u8,
                    "bit {i} of {lsb}+{width}"
                );
            }
        }
    }

    #[test]
    fn owner_is_the_last_bit_of_a_cqe() {
        assert_eq!(
            Cqe {
                owner: true,
                ..Default::default()
            }
            .emit()[31],
            0x80
        );
    }

    #[test]
    fn fields_follow_each_other() {
        for w in AvCtx::FIELDS.windows(2) {
            assert_eq!(w[0].lsb + w[0].width, w[1].lsb, "{}", w[1].name);
        }
    }
}
