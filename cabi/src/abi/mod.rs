//! The C ABI of verbs: structures and values of `infiniband/verbs.h`, under their names there.
//!
//! Each declaration also tells its own layout, which a test compares with the header of the system.

mod attr;
mod device;
mod extended;
mod object;
mod value;
mod work;

pub use attr::*;
pub use device::*;
pub use extended::*;
pub use object::*;
pub use value::*;
pub use work::*;

/// A structure: its name, its bytes, and the offset of each field.
pub struct Layout {
    /// Name after `struct`.
    pub name: &'static str,
    /// Bytes.
    pub size: usize,
    /// Names of fields and their offsets in bytes.
    pub fields: &'static [(&'static str, usize)],
}

/// Declares structures of a header and a table of their layouts.
#[macro_export]
macro_rules! structures {
    ($vis:vis $table:ident: $($(#[$meta:meta])* struct $name:ident { $($field:ident: $type:ty,)* })*) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            #[allow(missing_docs, non_camel_case_types, non_snake_case, reason = "the names of the header")]
            #[derive(Clone, Copy)]
            pub struct $name {
                $(pub $field: $type,)*
            }
        )*

        /// Layouts of the structures above.
        $vis const $table: &[$crate::abi::Layout] = &[$($crate::abi::Layout {
            name: stringify!($name),
            size: size_of::<$name>(),
            fields: &[$((stringify!($field), std::mem::offset_of!($name, $field)),)*],
        }),*];
    };
}
pub use structures;

/// A C structure whose fields start as zeros and null pointers.
///
/// # Safety
/// All zero bits are a value of the type.
pub unsafe trait Zero: Sized {
    /// All zero bits.
    fn zero() -> Self {
        // SAFETY: by the promise of the trait.
        unsafe { std::mem::zeroed() }
    }
}

/// Declares that structures may start as zeros.
#[macro_export]
macro_rules! zero {
    ($($name:ident),*) => {$(
        // SAFETY: integers, pointers that may be null, and functions in an `Option`.
        unsafe impl $crate::abi::Zero for $name {}
    )*};
}
pub use zero;

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
