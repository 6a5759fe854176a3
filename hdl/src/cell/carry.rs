//! Carry out of a sum, as a tree of logic. Combinational.
//!
//! For a comparison in front of deep logic: mappers take a carry chain for the end of a path, and use up what slack
//! they see on either side of it. A tree is one path with what follows.
use crate::prelude::*;

/// Says whether `a` + `b` has more than `N` bits, `N` up to 16: with `b` the complement of a number, whether `a` is larger.
#[derive(Clone, Debug, Block)]
#[block(check)]
pub struct Carry<const N: usize> {
    /// A number.
    pub a: Signal<In, Bits<N>>,
    /// The other.
    pub b: Signal<In, Bits<N>>,
    /// The sum is 2^N or more.
    pub carry: Signal<Out, Bit>,
    #[init(Constant::new((1u64 << (N - 1)).to_bits()))]
    top: Constant<Bits<N>>,
}

impl<const N: usize> Carry<N> {
    fn check() {
        assert!((1..=16).contains(&N), "carry of {N} bits: 1 to 16");
    }
}

impl<const N: usize> Logic for Carry<N> {
    describe!(
        "carry",
        format!("{N}"),
        "Carry out of a sum, without a chain."
    );

    #[kernel]
    fn update(&mut self) {
        // The bits up to this one make a carry; or would hand one on.
        let mut makes = a & b;
        let mut hands_on = a | b;
        // by doubling: 2, 4, 8, 16 bits
        makes = makes | (hands_on & (makes << 1));
        hands_on = hands_on & (hands_on << 1);
        makes = makes | (hands_on & (makes << 2));
        hands_on = hands_on & (hands_on << 2);
        makes = makes | (hands_on & (makes << 4));
        hands_on = hands_on & (hands_on << 4);
        makes = makes | (hands_on & (makes << 8));
        carry = (makes & top).any();
    }
}
