//! The macro that turns a field table into places, a checked view, getters and setters.

/// Declares the header `Name` of `BYTES` bytes as its fields in wire order.
///
/// `FIELD [width] => getter / setter: type` makes a place and its accessors, `FIELD [width]` a place
/// only (reserved fields). Generates `LEN`, `field::*`, `field::ALL` and the view `Header` with the
/// field table in its documentation, and asserts that the widths fill the header exactly.
macro_rules! header {
    (
        $(#[$meta:meta])*
        $name:literal [$len:literal] {
            $( $(#[doc = $doc:literal])+ $f:ident [$w:literal] $( => $get:ident / $set:ident : $ty:ty )? ),* $(,)?
        }
    ) => {
        #[doc = concat!("Length of the ", $name, " in bytes.")]
        pub const LEN: usize = $len;

        #[doc = concat!("Places of the fields of the ", $name, ".")]
        pub mod field {
            use $crate::wire::field::Field;

            header!(@places (0) $( $(#[doc = $doc])+ $f [$w] )*);

            /// All fields in wire order; together they fill the header.
            pub const ALL: &[Field] = &[$($f),*];
        }

        const _: () = assert!(0 $(+ $w)* == 8 * $len, "fields must fill the header");

        $(#[$meta])*
        ///
        /// | field | bits | meaning |
        /// |---|---|---|
        $( #[doc = concat!("| [`", stringify!($f), "`](field::", stringify!($f), ") | ", $w, " |" $(, $doc)+, " |")] )*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Header<T: AsRef<[u8]>> {
            buffer: T,
        }

        impl Header<[u8; LEN]> {
            #[doc = concat!("Views the bytes of a whole ", $name, ".")]
            #[must_use]
            pub const fn new(buffer: [u8; LEN]) -> Self {
                Self { buffer }
            }
        }

        impl<T: AsRef<[u8]>> Header<T> {
            #[doc = concat!("Views the ", $name, " at the start of `buffer`; what follows it is left alone.")]
            ///
            /// Fails with [`Error::Truncated`](crate::wire::Error::Truncated) when the buffer is shorter than [`LEN`].
            pub fn new_checked(buffer: T) -> Result<Self, $crate::wire::Error> {
                let have = buffer.as_ref().len();
                if have < LEN {
                    return Err($crate::wire::Error::Truncated { header: $name, need: LEN, have });
                }
                Ok(Self { buffer })
            }

            /// Gives the buffer back.
            #[must_use]
            pub fn into_inner(self) -> T {
                self.buffer
            }

            $($(
                #[doc = concat!("Reads [`", stringify!($f), "`](field::", stringify!($f), ").")]
                #[must_use]
                pub fn $get(&self) -> $ty {
                    $crate::wire::field::Value::from_bits(field::$f.get(self.buffer.as_ref()))
                }
            )?)*
        }

        impl<T: AsRef<[u8]> + AsMut<[u8]>> Header<T> {
            $($(
                #[doc = concat!("Writes [`", stringify!($f), "`](field::", stringify!($f), "); bits above its width are cut off.")]
                pub fn $set(&mut self, value: $ty) {
                    field::$f.set(self.buffer.as_mut(), $crate::wire::field::Value::into_bits(value));
                }
            )?)*
        }
    };
    (@places ($bit:expr)) => {};
    (@places ($bit:expr) $(#[$fmeta:meta])* $f:ident [$w:literal] $($rest:tt)*) => {
        $(#[$fmeta])*
        pub const $f: Field = Field { bit: $bit, width: $w };
        header!(@places ($bit + $w) $($rest)*);
    };
}
