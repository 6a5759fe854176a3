//! Carry out of a sum, as a tree of logic. Combinational.
//!
//! For a comparison in front of deep logic: mappers take a carry chain for the end of a path, and use up what slack
//! they see on either side of it. A tree is one path with what follows.
use crate::prelude::*;

/// Says whether `a` + `b` has more than `N` bits, `N` up to 16: with `b` the complement of a number, whether `a` is larger.
#[derive(Clone, Debug, LogicBlock)]
pub struct Carry<const N: usize> {
    /// A number.
    pub a: Signal<In, Bits<N>>,
    /// The other.
    pub b: Signal<In, Bits<N>>,
    /// The sum is 2^N or more.
    pub carry: Signal<Out, Bit>,
    /// The bits up to this one make a carry; or would hand one on.
    makes: Signal<Local, Bits<N>>,
    hands_on: Signal<Local, Bits<N>>,
    top: Constant<Bits<N>>,
}

impl<const N: usize> Default for Carry<N> {
    fn default() -> Self {
        assert!((1..=16).contains(&N), "carry of {N} bits: 1 to 16");
        Self {
            a: Signal::default(),
            b: Signal::default(),
            carry: Signal::default(),
            makes: Signal::default(),
            hands_on: Signal::default(),
            top: Constant::new((1u64 << (N - 1)).to_bits()),
        }
    }
}

impl<const N: usize> Logic for Carry<N> {
    describe!(
        "carry",
        format!("{N}"),
        "Carry out of a sum, without a chain."
    );

    #[hdl_gen]
    fn update(&mut self) {
        self.makes.next = self.a.val() & self.b.val();
        self.hands_on.next = self.a.val() | self.b.val();
        // by doubling: 2, 4, 8, 16 bits
        self.makes.next = self.makes.val() | (self.hands_on.val() & (self.makes.val() << 1));
        self.hands_on.next = self.hands_on.val() & (self.hands_on.val() << 1);
        self.makes.next = self.makes.val() | (self.hands_on.val() & (self.makes.val() << 2));
        self.hands_on.next = self.hands_on.val() & (self.hands_on.val() << 2);
        self.makes.next = self.makes.val() | (self.hands_on.val() & (self.makes.val() << 4));
        self.hands_on.next = self.hands_on.val() & (self.hands_on.val() << 4);
        self.makes.next = self.makes.val() | (self.hands_on.val() & (self.makes.val() << 8));
        self.carry.next = (self.makes.val() & self.top.val()).any();
    }
}
