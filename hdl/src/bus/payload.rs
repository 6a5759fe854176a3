//! Declaration of packed types.

/// Declares packed structures: `/// doc` `Name { /// doc` `field: Type, .. }`, first field in the lowest bits.
macro_rules! payload {
    ($( $(#[$m:meta])* $name:ident { $( $(#[$fm:meta])* $f:ident : $t:ty ),* $(,)? } )*) => {$(
        $(#[$m])*
        #[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
        pub struct $name { $( $(#[$fm])* pub $f: $t ),* }
    )*};
}
pub(crate) use payload;
