//! Every operator beside every other, in both nestings and without brackets, at widths on both sides of those
//! where rust-hdl (32) and Verilator (32, 64) change their representation.
use ferroce_hdl::prelude::*;

use crate::harness::{Bench, Case, Random};

/// Outputs for an operator `$op` on bits with the right operand `$right`; `$more` are statements for outputs 20...
macro_rules! operator {
    ($name: ident, $tag: literal, $op: tt, $right: ident, [$($slot: literal = $natural: tt),*]) => {
        #[derive(LogicBlock)]
        struct $name<const N: usize> {
            a: Signal<In, Bits<N>>,
            b: Signal<In, Bits<N>>,
            c: Signal<In, Bits<N>>,
            s: Signal<In, Bits<7>>,
            p: Signal<In, Bit>,
            o: [Signal<Out, Bits<N>>; 24],
            t: [Signal<Out, Bit>; 13],
            wide: [Signal<Out, Bits<90>>; 3],
            narrow: [Signal<Out, Bits<3>>; 3],
        }

        impl<const N: usize> Default for $name<N> {
            fn default() -> Self {
                Self {
                    a: Default::default(),
                    b: Default::default(),
                    c: Default::default(),
                    s: Default::default(),
                    p: Default::default(),
                    o: std::array::from_fn(|_| Default::default()),
                    t: Default::default(),
                    wide: Default::default(),
                    narrow: Default::default(),
                }
            }
        }

        #[allow(clippy::precedence)]
        impl<const N: usize> Logic for $name<N> {
            describe!($tag, format!("w{N}"), "Operator beside operator.");
            #[hdl_gen]
            fn update(&mut self) {
                self.o[0].next = (self.a.val() $op self.$right.val()) + self.c.val();
                self.o[1].next = (self.a.val() $op self.$right.val()) - self.c.val();
                self.o[2].next = (self.a.val() $op self.$right.val()) & self.c.val();
                self.o[3].next = (self.a.val() $op self.$right.val()) | self.c.val();
                self.o[4].next = (self.a.val() $op self.$right.val()) ^ self.c.val();
                self.o[5].next = (self.a.val() $op self.$right.val()) << self.s.val();
                self.o[6].next = (self.a.val() $op self.$right.val()) >> self.s.val();
                self.o[7].next = self.c.val() + (self.a.val() $op self.$right.val());
                self.o[8].next = self.c.val() - (self.a.val() $op self.$right.val());
                self.o[9].next = self.c.val() & (self.a.val() $op self.$right.val());
                self.o[10].next = self.c.val() ^ (self.a.val() $op self.$right.val());
                self.o[11].next = !self.a.val() $op self.$right.val();
                self.o[12].next = !(self.a.val() $op self.$right.val());
                self.o[13].next = self.a.val() $op 1;
                self.o[14].next = (self.a.val() $op self.$right.val()) + 1 - self.c.val();
                self.o[15].next = (self.a.val() $op self.$right.val()) + self.p.val();
                self.o[16].next = self.a.val() $op self.$right.val() & self.c.val();
                self.o[17].next = self.c.val() & self.a.val() $op self.$right.val();
                $(self.o[$slot].next = self.a.val() $op self.$right.val() $natural self.c.val();)*
                self.t[0].next = self.a.val() $op self.$right.val() == self.c.val();
                self.t[1].next = self.a.val() $op self.$right.val() != self.c.val();
                self.t[2].next = self.a.val() $op self.$right.val() < self.c.val();
                self.t[3].next = self.a.val() $op self.$right.val() <= self.c.val();
                self.t[4].next = self.c.val() > self.a.val() $op self.$right.val();
                self.t[5].next = self.c.val() >= self.a.val() $op self.$right.val();
                self.t[6].next = self.a.val() $op 1 == self.b.val();
                self.t[7].next = self.a.val() $op self.$right.val() < 1;
                self.t[8].next = (self.a.val() $op self.$right.val()).any();
                self.t[9].next = (self.a.val() $op self.$right.val()).all();
                self.t[10].next = (self.a.val() $op self.$right.val()).xor();
                self.t[11].next = (self.a.val() $op self.$right.val()).get_bit(0);
                self.t[12].next = self.a.val() $op self.$right.val() == self.c.val() && self.a.val() < self.b.val()
                    || !self.p.val();
                self.wide[0].next = bit_cast::<90, N>(self.a.val() $op self.$right.val());
                self.wide[1].next = bit_cast::<90, N>(!(self.a.val() $op self.$right.val())) + 1;
                self.wide[2].next = !bit_cast::<90, N>(self.a.val() $op self.$right.val());
                self.narrow[0].next = bit_cast::<3, N>(self.a.val() $op self.$right.val());
                self.narrow[1].next = (self.a.val() $op self.$right.val()).get_bits::<3>(1);
                self.narrow[2].next = bit_cast::<3, N>((self.a.val() $op self.$right.val()) + self.c.val());
            }
        }

        impl<const N: usize> Case for $name<N> {
            fn drive(&mut self, _: usize, random: &mut Random) {
                self.a.next = random.bits();
                self.b.next = if random.bit() { random.bits() } else { self.a.next };
                self.c.next = if random.bit() { random.bits() } else { self.a.next + 1 };
                self.s.next = if random.bit() { random.below(N as u64 + 1) } else { random.bits() };
                self.p.next = random.bit();
            }
        }
    };
}

operator!(Add, "op_add", +, b, [18 = +, 19 = -, 20 = &, 21 = |, 22 = ^, 23 = -]);
operator!(Sub, "op_sub", -, b, [18 = +, 19 = -, 20 = &, 21 = |, 22 = ^, 23 = -]);
operator!(And, "op_and", &, b, [18 = +, 19 = -, 20 = &, 21 = |, 22 = ^, 23 = -]);
operator!(Or, "op_or", |, b, [18 = +, 19 = -, 20 = &, 21 = |, 22 = ^, 23 = -]);
operator!(Xor, "op_xor", ^, b, [18 = +, 19 = -, 20 = &, 21 = |, 22 = ^, 23 = -]);
// `a << s + c` is `a << (s + c)` in Rust, which has no type here.
operator!(Shl, "op_shl", <<, s, [18 = &, 19 = |, 20 = ^, 21 = &, 22 = |, 23 = ^]);
operator!(Shr, "op_shr", >>, s, [18 = &, 19 = |, 20 = ^, 21 = &, 22 = |, 23 = ^]);

/// Operators on truth values.
#[derive(LogicBlock, Default)]
struct Truth {
    x: Signal<In, Bit>,
    y: Signal<In, Bit>,
    z: Signal<In, Bit>,
    b: Signal<In, Bits<1>>,
    o: [Signal<Out, Bit>; 28],
}

#[allow(
    clippy::precedence,
    clippy::overly_complex_bool_expr,
    clippy::nonminimal_bool,
    clippy::bool_comparison
)]
impl Logic for Truth {
    describe!("op_truth", "Operators on truth values.");
    #[hdl_gen]
    fn update(&mut self) {
        self.o[0].next = self.x.val() && self.y.val() || self.z.val();
        self.o[1].next = self.x.val() || self.y.val() && self.z.val();
        self.o[2].next = self.x.val() & self.y.val() | self.z.val();
        self.o[3].next = self.x.val() | self.y.val() & self.z.val();
        self.o[4].next = self.x.val() ^ self.y.val() & self.z.val();
        self.o[5].next = self.x.val() ^ self.y.val() | self.z.val();
        self.o[6].next = self.x.val() & self.y.val() == self.z.val();
        self.o[7].next = self.x.val() == self.y.val() & self.z.val();
        self.o[8].next = self.x.val() | self.y.val() != self.z.val();
        self.o[9].next = self.x.val() ^ self.y.val() == self.z.val();
        self.o[10].next = (self.x.val() == self.y.val()) == self.z.val();
        self.o[11].next = (self.x.val() < self.y.val()) ^ self.z.val();
        self.o[12].next = self.x.val() <= self.y.val() && !self.z.val();
        self.o[13].next = !self.x.val() == self.y.val();
        self.o[14].next = !(self.x.val() == self.y.val()) | self.z.val();
        self.o[15].next = self.x.val() && true || self.z.val() == false;
        self.o[16].next = !(self.x.val() || !self.y.val()) && !(self.z.val() & self.x.val());
        self.o[17].next = self.b.val() == self.x.val();
        self.o[18].next = self.b.val().into();
        self.o[19].next = (self.b.val() + 1).into();
        self.o[20].next = (self.b.val() + self.x.val()).get_bit(0);
        self.o[21].next = !self.b.val().any() ^ self.b.val().all();
        self.o[22].next = self.x.val() >= self.y.val() && self.y.val() > self.z.val();
        self.o[23].next = self.b.val() <= 1;
        self.o[24].next = self.b.val() >= 0;
        self.o[25].next = self.b.val() > 0;
        self.o[26].next = self.b.val() < 1;
        self.o[27].next = (self.x.val() != self.y.val()) != self.z.val();
    }
}

impl Case for Truth {
    fn drive(&mut self, _: usize, random: &mut Random) {
        self.x.next = random.bit();
        self.y.next = random.bit();
        self.z.next = random.bit();
        self.b.next = random.bits();
    }
}

/// Signed numbers: what rust-hdl defines of them.
#[derive(LogicBlock, Default)]
struct Signs {
    a: Signal<In, Signed<16>>,
    b: Signal<In, Signed<16>>,
    raw: Signal<In, Bits<16>>,
    o: [Signal<Out, Signed<16>>; 5],
    t: [Signal<Out, Bit>; 8],
    product: [Signal<Out, Signed<32>>; 2],
    bits: [Signal<Out, Bits<16>>; 2],
    part: Signal<Out, Signed<5>>,
}

impl Logic for Signs {
    describe!("op_signed", "Signed numbers.");
    #[hdl_gen]
    fn update(&mut self) {
        self.o[0].next = self.a.val() + self.b.val();
        self.o[1].next = self.a.val() - self.b.val();
        self.o[2].next = -self.a.val();
        self.o[3].next = -(self.a.val() + self.b.val()) - self.b.val();
        self.o[4].next = signed_cast(self.raw.val()) + self.a.val();
        self.t[0].next = self.a.val() < self.b.val();
        self.t[1].next = self.a.val() <= self.b.val();
        self.t[2].next = self.a.val() > self.b.val() - self.a.val();
        self.t[3].next = self.a.val() >= -self.b.val();
        self.t[4].next = self.a.val() == self.b.val();
        self.t[5].next = self.a.val() + self.b.val() != self.b.val();
        self.t[6].next = self.a.val().get_bit(15);
        self.t[7].next = signed_cast(self.raw.val()) < self.b.val();
        self.product[0].next = self.a.val() * self.b.val();
        self.product[1].next = (self.a.val() + self.b.val()) * signed_cast(self.raw.val());
        self.bits[0].next = unsigned_cast(self.a.val());
        self.bits[1].next = unsigned_cast(self.a.val() - self.b.val()) >> 3;
        self.part.next = self.a.val().get_bits::<5>(4);
    }
}

impl Case for Signs {
    fn drive(&mut self, _: usize, random: &mut Random) {
        self.a.next = signed_cast(random.bits());
        self.b.next = if random.bit() {
            signed_cast(random.bits())
        } else {
            self.a.next
        };
        self.raw.next = random.bits();
    }
}

pub(crate) fn add(bench: &mut Bench) {
    fn width<const N: usize>(bench: &mut Bench) {
        bench.add(Add::<N>::default());
        bench.add(Sub::<N>::default());
        bench.add(And::<N>::default());
        bench.add(Or::<N>::default());
        bench.add(Xor::<N>::default());
        bench.add(Shl::<N>::default());
        bench.add(Shr::<N>::default());
    }
    width::<1>(bench);
    width::<8>(bench);
    width::<33>(bench);
    width::<70>(bench);
    bench.add(Truth::default());
    bench.add(Signs::default());
}
