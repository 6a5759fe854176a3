//! Constants, literals and offsets among `Bits`.
use rust_hdl_core::prelude::*;

/// Constants that a kernel may name.
pub trait Konst {
    /// What it is among `Bits`.
    type Out;
    /// Its value there.
    fn konst(self) -> Self::Out;
    /// Its number.
    fn number(self) -> u64;
}

macro_rules! konst {
    ($($int: ty),+) => {
        $(impl Konst for $int {
            type Out = u64;
            fn konst(self) -> u64 {
                self as u64
            }
            fn number(self) -> u64 {
                self as u64
            }
        })+
    };
}
konst!(u8, u16, u32, u64, usize, i32);

impl Konst for bool {
    type Out = bool;
    fn konst(self) -> bool {
        self
    }
    fn number(self) -> u64 {
        self.into()
    }
}

/// A constant among `Bits`.
pub fn konst<C: Konst>(constant: C) -> C::Out {
    constant.konst()
}

/// Its number, for the emission.
pub fn known<C: Konst>(constant: C) -> u64 {
    constant.number()
}

/// A literal or constant where the surroundings tell the type.
pub trait Fit<T> {
    /// In that type.
    fn fit(self) -> T;
}

impl<const N: usize> Fit<Bits<N>> for u64 {
    fn fit(self) -> Bits<N> {
        self.into()
    }
}

impl Fit<bool> for bool {
    fn fit(self) -> bool {
        self
    }
}

/// See [`Fit`].
pub fn fit<T, F: Fit<T>>(value: F) -> T {
    value.fit()
}

/// What may choose a bit.
pub trait Offset {
    /// Its number.
    fn offset(self) -> usize;
}

impl Offset for u64 {
    fn offset(self) -> usize {
        self as usize
    }
}

impl<const N: usize> Offset for Bits<N> {
    fn offset(self) -> usize {
        self.index()
    }
}

impl Offset for bool {
    fn offset(self) -> usize {
        self.into()
    }
}

/// See [`Offset`].
pub fn offset<O: Offset>(value: O) -> usize {
    value.offset()
}

/// Short names for what kernels do with bits.
pub trait BitsExt: Sized {
    /// Bit `at`.
    fn bit(self, at: usize) -> bool;
    /// `W` bits from `at` up.
    fn slice<const W: usize>(self, at: usize) -> Bits<W>;
    /// The lowest `W` bits.
    fn low<const W: usize>(self) -> Bits<W> {
        self.slice::<W>(0)
    }
    /// Cut at the top or filled with zeros.
    fn resize<const W: usize>(self) -> Bits<W>;
}

impl<const N: usize> BitsExt for Bits<N> {
    fn bit(self, at: usize) -> bool {
        self.get_bit(at)
    }
    fn slice<const W: usize>(self, at: usize) -> Bits<W> {
        self.get_bits::<W>(at)
    }
    fn resize<const W: usize>(self) -> Bits<W> {
        bit_cast::<W, N>(self)
    }
}
