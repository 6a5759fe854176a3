//! The C ABI of verbs: structures and values of `infiniband/verbs.h`, under their names there.
//!
//! Each declaration also tells its own layout, which a test compares with the header of the system.

mod attr;
mod device;
mod extended;
mod object;
mod value;
mod work;

pub(crate) use attr::*;
pub(crate) use device::*;
pub(crate) use extended::*;
pub(crate) use object::*;
pub(crate) use value::*;
pub use work::NESTED;
pub(crate) use work::*;

/// A structure: its name, its bytes, and the offset of each field.
pub struct Layout {
    /// Name after `struct`.
    pub name: &'static str,
    /// Bytes.
    pub size: usize,
    /// Names of fields and their offsets in bytes.
    pub fields: &'static [(&'static str, usize)],
}

/// Declares structures of the header and a table of their layouts.
macro_rules! structures {
    ($table:ident: $($(#[$meta:meta])* struct $name:ident { $($field:ident: $type:ty,)* })*) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            #[allow(non_camel_case_types, non_snake_case, reason = "the names of the header")]
            #[derive(Clone, Copy)]
            pub(crate) struct $name {
                $(pub(crate) $field: $type,)*
            }
        )*

        /// Layouts of the structures above.
        pub(super) const $table: &[crate::abi::Layout] = &[$(crate::abi::Layout {
            name: stringify!($name),
            size: size_of::<$name>(),
            fields: &[$((stringify!($field), std::mem::offset_of!($name, $field)),)*],
        }),*];
    };
}
use structures;

/// A C structure whose fields start as zeros and null pointers.
///
/// # Safety
/// All zero bits are a value of the type.
pub(crate) unsafe trait Zero: Sized {
    /// All zero bits.
    fn zero() -> Self {
        // SAFETY: by the promise of the trait.
        unsafe { std::mem::zeroed() }
    }
}

macro_rules! zero {
    ($($name:ident),*) => {$(
        // SAFETY: integers, pointers that may be null, and functions in an `Option`.
        unsafe impl crate::abi::Zero for $name {}
    )*};
}
use zero;

/// Layouts of all structures.
#[must_use]
pub fn layouts() -> Vec<&'static Layout> {
    [
        device::LAYOUTS,
        object::LAYOUTS,
        work::LAYOUTS,
        attr::LAYOUTS,
        extended::LAYOUTS,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Names and values of all enumerators and macros.
#[must_use]
pub fn values() -> &'static [(&'static str, i64)] {
    value::VALUES
}
