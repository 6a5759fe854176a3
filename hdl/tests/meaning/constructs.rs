//! Slices, indices, casts, literals, choices, loops, structs and enums without a clock.
use ferroce_hdl::prelude::*;

use crate::harness::{Bench, Case, Random};

/// Bits of expressions at fixed and at run-time places.
#[derive(Block)]
struct Slices {
    a: Signal<In, Bits<64>>,
    b: Signal<In, Bits<64>>,
    odd: Signal<In, Bits<37>>,
    i: Signal<In, Bits<6>>,
    j: Signal<In, Bits<3>>,
    f: Signal<In, Bit>,
    byte: [Signal<Out, Bits<8>>; 16],
    bit: [Signal<Out, Bit>; 8],
    word: [Signal<Out, Bits<64>>; 6],
    mid: [Signal<Out, Bits<37>>; 4],
    sum: Signal<Local, Bits<64>>,
    k: Signal<Local, Bits<3>>,
}

impl Logic for Slices {
    describe!(
        "slices",
        "Bits of expressions at fixed and at run-time places."
    );
    #[kernel]
    fn update(&mut self) {
        sum = a + b;
        k = j + 1;
        byte[0] = a.slice::<8>(8 * (8 - 1));
        byte[1] = a.slice::<8>(60);
        byte[2] = a.slice::<8>(64);
        byte[3] = (a + b).slice::<8>(12);
        byte[4] = (a ^ !b).slice::<8>(12);
        byte[5] = a.slice::<20>(10).slice::<8>(5);
        byte[6] = a.resize::<90>().slice::<8>(60);
        byte[7] = a.slice::<8>(j * 8);
        byte[8] = a.slice::<8>(8 * j + 4);
        byte[9] = a.slice::<8>(i);
        byte[10] = odd.slice::<8>(i >> 1);
        byte[11] = (a - b).slice::<8>(k * 8);
        byte[12] = sum.slice::<8>(56 - j * 8);
        byte[13] = a.slice::<8>((j * 4 + 3) * 2);
        byte[14] = a.slice::<8>(j + i.low::<2>());
        byte[15] = a.slice::<8>((i & 0x38) ^ 8);
        bit[0] = a.bit(i);
        bit[1] = odd.bit(i >> 1);
        bit[2] = (a + b).bit(i);
        bit[3] = (a + b).bit(63);
        bit[4] = !a.bit(63 - i);
        bit[5] = a.slice::<8>(i).bit(j);
        bit[6] = (i + 1).bit(5);
        let before = i - 1;
        bit[7] = a.bit(before);
        word[0] = a.replace_bit(0, f);
        word[1] = a.replace_bit(63, !f);
        word[2] = (a + 1).replace_bit(31, f);
        word[3] = a.replace_bit(i, f);
        word[4] = (a & b).replace_bit(i, f ^ true);
        word[5] = a;
        word[5] = word[5].replace_bit(7, f);
        word[5] = word[5].replace_bit(i, !f);
        mid[0] = (a + b).resize::<37>();
        mid[1] = a.slice::<37>(i);
        mid[2] = a.slice::<8>(1).resize::<37>() << i;
        mid[3] = odd.slice::<37>(j);
    }
}

impl Case for Slices {
    fn drive(&mut self, _: usize, random: &mut Random) {
        self.a.next = random.bits();
        self.b.next = random.bits();
        self.odd.next = random.bits();
        self.i.next = random.bits();
        self.j.next = random.bits();
        self.f.next = random.bit();
    }
}

/// A constant of the kernel.
const MAGIC: u64 = 0x5a;
/// A constant for patterns and indices.
const THREE: usize = 3;

/// Literals, constants, casts and shifts of literals.
#[derive(Block)]
#[block(no_default)]
struct Literals<const M: usize> {
    a: Signal<In, Bits<8>>,
    s: Signal<In, Bits<6>>,
    wide: Signal<In, Bits<80>>,
    o: [Signal<Out, Bits<8>>; 9],
    t: [Signal<Out, Bit>; 8],
    long: [Signal<Out, Bits<64>>; 3],
    huge: [Signal<Out, Bits<80>>; 4],
    mask: Constant<Bits<80>>,
    lookup: Constant<Bits<64>>,
}

impl<const M: usize> Literals<M> {
    fn new() -> Self {
        Self {
            a: Default::default(),
            s: Default::default(),
            wide: Default::default(),
            o: Default::default(),
            t: Default::default(),
            long: Default::default(),
            huge: Default::default(),
            mask: Constant::new(0x1234_5678_9abc_def0_1234_u128.to_bits()),
            lookup: Constant::new(0x0706_0504_0302_0100_u64.to_bits()),
        }
    }
}

#[allow(clippy::identity_op, clippy::absurd_extreme_comparisons)]
impl<const M: usize> Logic for Literals<M> {
    describe!("literals", format!("m{M}"), "Literals and constants.");
    #[kernel]
    fn update(&mut self) {
        o[0] = 0xff;
        o[1] = a + 255;
        o[2] = 200 - a;
        o[3] = bits::<8>(17) ^ a;
        o[4] = (3 + 4 * 5).into();
        o[5] = a ^ MAGIC;
        o[6] = lookup.slice::<8>(8 * THREE);
        o[7] = lookup.slice::<8>(a.low::<3>() * 8);
        o[8] = a & 0b1010_1010;
        if M == 7 {
            o[8] = a | 0x55;
        }
        t[0] = a == MAGIC;
        t[1] = 100 < a;
        t[2] = a >= 0;
        t[3] = a <= 255;
        t[4] = (wide & mask).xor();
        t[5] = mask.bit(THREE);
        t[6] = wide > mask;
        t[7] = mask.bit(s);
        long[0] = 1 << s;
        long[1] = (0xdead_beef_u64 << s) >> 4;
        long[2] = a.resize::<64>() << 60;
        huge[0] = wide + 0x1_0000_0000_u64;
        huge[1] = (wide << 79) | (wide >> 1);
        huge[2] = wide << 80;
        huge[3] = bits::<80>(0xffff_ffff_ffff_u64) - mask;
    }
}

impl<const M: usize> Case for Literals<M> {
    fn drive(&mut self, _: usize, random: &mut Random) {
        self.a.next = if random.bit() {
            random.bits()
        } else {
            MAGIC.into()
        };
        self.s.next = random.bits();
        self.wide.next = random.bits();
    }
}

/// What is asked for.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Order {
    Idle,
    Load,
    Store,
    Swap,
    Flush,
}

/// Something with parts.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Parts {
    low: Bits<5>,
    order: Order,
    flag: Bit,
    high: Bits<40>,
}

/// `if`, `match`, enums and structs.
#[derive(Block)]
struct Choices {
    a: Signal<In, Bits<8>>,
    b: Signal<In, Bits<8>>,
    f: Signal<In, Bit>,
    order: Signal<In, Order>,
    parts: Signal<In, Parts>,
    o: [Signal<Out, Bits<8>>; 7],
    next: Signal<Out, Order>,
    out: Signal<Out, Parts>,
    raw: Signal<Out, Bits<49>>,
    t: [Signal<Out, Bit>; 3],
    work: Signal<Local, Bits<8>>,
}

#[allow(clippy::single_match)]
impl Logic for Choices {
    describe!("choices", "if, match, enums and structs.");
    #[kernel]
    fn update(&mut self) {
        // A local signal that changes between two reads.
        work = a;
        o[0] = work + 1;
        if f {
            work = work ^ b;
        }
        o[1] = work;
        if a < 10 {
            o[2] = 1;
        } else if a < b {
            o[2] = 2;
            if f {
                o[2] = 3;
            }
        } else {
            o[2] = 4;
        }
        o[3] = 0;
        match a.slice::<4>(2) {
            0 => o[3] = b,
            0x1 => o[3] = b + 1,
            0b10 => {
                o[3] = b + 2;
            }
            THREE => o[3] = 77.into(),
            1_0 => o[3] = 10.into(),
            _ => o[3] = 9.into(),
        }
        match order {
            Order::Idle => o[4] = 1.into(),
            Order::Load => o[4] = a,
            Order::Store => o[4] = b,
            Order::Swap => o[4] = a - b,
            Order::Flush => {
                o[4] = 2;
            }
        }
        match f {
            true => o[5] = a,
            false => o[5] = b,
        }
        o[6] = a;
        match parts.order {
            Order::Load => o[6] = b,
            _ => {}
        }
        next = order;
        if order == Order::Swap && parts.order != Order::Idle {
            next = Order::Flush;
        }
        out = parts;
        out.low = parts.low + 1;
        if parts.flag {
            out.high = (a + b).resize::<40>();
            out.order = Order::Store;
        } else {
            out.flag = f;
        }
        raw = parts.into();
        t[0] = out.order == Order::Store;
        t[1] = out.high.bit(parts.low);
        t[2] = (parts.high + 1).bit(39) ^ out.flag;
    }
}

impl Case for Choices {
    fn drive(&mut self, _: usize, random: &mut Random) {
        let order = |random: &mut Random| match random.below::<3>(5).to_u8() {
            0 => Order::Idle,
            1 => Order::Load,
            2 => Order::Store,
            3 => Order::Swap,
            _ => Order::Flush,
        };
        self.a.next = random.bits();
        self.b.next = random.bits();
        self.f.next = random.bit();
        self.order.next = order(random);
        let order = order(random);
        self.parts.next = Parts {
            low: random.bits(),
            order,
            flag: random.bit(),
            high: random.bits(),
        };
    }
}

/// A child without a clock.
#[derive(Block)]
struct Invert {
    x: Signal<In, Bits<8>>,
    y: Signal<Out, Bits<8>>,
}

impl Logic for Invert {
    describe!("invert", "Inverts a byte.");
    #[kernel]
    fn update(&mut self) {
        y = !x;
    }
}

/// Loops over arrays of signals and blocks.
#[derive(Block)]
struct Loops {
    a: Signal<In, Bits<32>>,
    x: [Signal<In, Bits<8>>; 4],
    y: [Signal<Out, Bits<8>>; 4],
    grid: [[Signal<Out, Bit>; 3]; 2],
    swapped: Signal<Out, Bits<32>>,
    chain: [Signal<Local, Bits<8>>; 5],
    last: Signal<Out, Bits<8>>,
    u: [Invert; 4],
    v: Invert,
    through: Signal<Out, Bits<8>>,
}

impl Logic for Loops {
    describe!("loops", "Loops over arrays of signals and blocks.");
    #[kernel]
    fn update(&mut self) {
        swapped = 0;
        for i in 0..4 {
            u[i].x = x[THREE - i];
            y[i] = u[i].y + a.slice::<8>(8 * i);
            swapped = (swapped << 8) | a.slice::<32>(8 * i) & 0xff;
        }
        for i in 0..2 {
            for j in 0..3 {
                grid[i][j] = a.bit(i * 3 + j);
                if i == 1 && j < 2 {
                    grid[i][j] = !a.bit(31 - j);
                }
            }
        }
        chain[0] = x[0];
        for i in 1..5 {
            chain[i] = (chain[i - 1] << 1) ^ x[i - 1];
        }
        last = chain[4];
        forward!(x[1] <= v.x);
        forward!(through <= v.y);
    }
}

impl Case for Loops {
    fn drive(&mut self, _: usize, random: &mut Random) {
        self.a.next = random.bits();
        for x in &mut self.x {
            x.next = random.bits();
        }
    }
}

pub(crate) fn add(bench: &mut Bench) {
    bench.add(Slices::default());
    bench.add(Literals::<7>::new());
    bench.add(Literals::<8>::new());
    bench.add(Choices::default());
    bench.add(Loops::default());
}
