//! Every operator beside every other, in both nestings and without brackets, at widths on both sides of those
//! where rust-hdl (32) and Verilator (32, 64) change their representation.
use ferroce_hdl::prelude::*;

use crate::harness::{Bench, Case, Random};

/// Outputs for an operator `$op` on bits with the right operand `$right`; `$more` are statements for outputs 20...
macro_rules! operator {
    ($name: ident, $tag: literal, $op: tt, $right: ident, [$($slot: literal = $natural: tt),*]) => {
        #[derive(Block)]
#[block(no_default)]
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
            #[kernel]
            fn update(&mut self) {
                o[0] = (a $op self.$right) + c;
                o[1] = (a $op self.$right) - c;
                o[2] = (a $op self.$right) & c;
                o[3] = (a $op self.$right) | c;
                o[4] = (a $op self.$right) ^ c;
                o[5] = (a $op self.$right) << s;
                o[6] = (a $op self.$right) >> s;
                o[7] = c + (a $op self.$right);
                o[8] = c - (a $op self.$right);
                o[9] = c & (a $op self.$right);
                o[10] = c ^ (a $op self.$right);
                o[11] = !a $op self.$right;
                o[12] = !(a $op self.$right);
                o[13] = a $op 1;
                o[14] = (a $op self.$right) + 1 - c;
                o[15] = (a $op self.$right) + p;
                o[16] = a $op self.$right & c;
                o[17] = c & a $op self.$right;
                $(o[$slot] = a $op self.$right $natural c;)*
                t[0] = a $op self.$right == c;
                t[1] = a $op self.$right != c;
                t[2] = a $op self.$right < c;
                t[3] = a $op self.$right <= c;
                t[4] = c > a $op self.$right;
                t[5] = c >= a $op self.$right;
                t[6] = a $op 1 == b;
                t[7] = a $op self.$right < 1;
                t[8] = (a $op self.$right).any();
                t[9] = (a $op self.$right).all();
                t[10] = (a $op self.$right).xor();
                t[11] = (a $op self.$right).bit(0);
                t[12] = a $op self.$right == c && a < b
                    || !p;
                wide[0] = (a $op self.$right).resize::<90>();
                wide[1] = (!(a $op self.$right)).resize::<90>() + 1;
                wide[2] = !(a $op self.$right).resize::<90>();
                narrow[0] = (a $op self.$right).resize::<3>();
                narrow[1] = (a $op self.$right).slice::<3>(1);
                narrow[2] = ((a $op self.$right) + c).resize::<3>();
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
#[derive(Block)]
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
    #[kernel]
    fn update(&mut self) {
        o[0] = x && y || z;
        o[1] = x || y && z;
        o[2] = x & y | z;
        o[3] = x | y & z;
        o[4] = x ^ y & z;
        o[5] = x ^ y | z;
        o[6] = x & y == z;
        o[7] = x == y & z;
        o[8] = x | y != z;
        o[9] = x ^ y == z;
        o[10] = (x == y) == z;
        o[11] = (x < y) ^ z;
        o[12] = x <= y && !z;
        o[13] = !x == y;
        o[14] = !(x == y) | z;
        o[15] = x && true || z == false;
        o[16] = !(x || !y) && !(z & x);
        o[17] = b == x;
        o[18] = b.into();
        o[19] = (b + 1).into();
        o[20] = (b + x).bit(0);
        o[21] = !b.any() ^ b.all();
        o[22] = x >= y && y > z;
        o[23] = b <= 1;
        o[24] = b >= 0;
        o[25] = b > 0;
        o[26] = b < 1;
        o[27] = (x != y) != z;
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
}
