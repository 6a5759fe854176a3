//! Slices, indices, casts, literals, choices, loops, structs and enums without a clock.
use ferroce_hdl::prelude::*;

use crate::harness::{Bench, Case, Random};

/// Bits of expressions at fixed and at run-time places.
#[derive(LogicBlock, Default)]
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
    #[hdl_gen]
    fn update(&mut self) {
        self.sum.next = self.a.val() + self.b.val();
        self.k.next = self.j.val() + 1;
        self.byte[0].next = self.a.val().get_bits::<8>(8 * (8 - 1));
        self.byte[1].next = self.a.val().get_bits::<8>(60);
        self.byte[2].next = self.a.val().get_bits::<8>(64);
        self.byte[3].next = (self.a.val() + self.b.val()).get_bits::<8>(12);
        self.byte[4].next = (self.a.val() ^ !self.b.val()).get_bits::<8>(12);
        self.byte[5].next = self.a.val().get_bits::<20>(10).get_bits::<8>(5);
        self.byte[6].next = bit_cast::<90, 64>(self.a.val()).get_bits::<8>(60);
        self.byte[7].next = self.a.val().get_bits::<8>(self.j.val().index() * 8);
        self.byte[8].next = self.a.val().get_bits::<8>(8 * self.j.val().index() + 4);
        self.byte[9].next = self.a.val().get_bits::<8>(self.i.val().index());
        self.byte[10].next = self.odd.val().get_bits::<8>((self.i.val() >> 1).index());
        self.byte[11].next = (self.a.val() - self.b.val()).get_bits::<8>(self.k.val().index() * 8);
        self.byte[12].next = self.sum.val().get_bits::<8>(56 - self.j.val().index() * 8);
        self.byte[13].next = self
            .a
            .val()
            .get_bits::<8>((self.j.val().index() * 4 + 3) * 2);
        self.byte[14].next = self
            .a
            .val()
            .get_bits::<8>(self.j.val().index() + self.i.val().get_bits::<2>(0).index());
        self.byte[15].next = self
            .a
            .val()
            .get_bits::<8>((self.i.val() & 0x38).index() ^ 8);
        self.bit[0].next = self.a.val().get_bit(self.i.val().index());
        self.bit[1].next = self.odd.val().get_bit((self.i.val() >> 1).index());
        self.bit[2].next = (self.a.val() + self.b.val()).get_bit(self.i.val().index());
        self.bit[3].next = (self.a.val() + self.b.val()).get_bit(63);
        self.bit[4].next = !self.a.val().get_bit(63 - self.i.val().index());
        self.bit[5].next = self
            .a
            .val()
            .get_bits::<8>(self.i.val().index())
            .get_bit(self.j.val().index());
        self.bit[6].next = (self.i.val() + 1).get_bit(5);
        self.bit[7].next = self.a.val().get_bit((self.i.val() - 1).index());
        self.word[0].next = self.a.val().replace_bit(0, self.f.val());
        self.word[1].next = self.a.val().replace_bit(63, !self.f.val());
        self.word[2].next = (self.a.val() + 1).replace_bit(31, self.f.val());
        self.word[3].next = self.a.val().replace_bit(self.i.val().index(), self.f.val());
        self.word[4].next =
            (self.a.val() & self.b.val()).replace_bit(self.i.val().index(), self.f.val() ^ true);
        self.word[5].next = self.a.val();
        self.word[5].next = self.word[5].val().replace_bit(7, self.f.val());
        self.word[5].next = self.word[5]
            .val()
            .replace_bit(self.i.val().index(), !self.f.val());
        self.mid[0].next = bit_cast::<37, 64>(self.a.val() + self.b.val());
        self.mid[1].next = self.a.val().get_bits::<37>(self.i.val().index());
        self.mid[2].next = bit_cast::<37, 8>(self.a.val().get_bits::<8>(1)) << self.i.val();
        self.mid[3].next = self.odd.val().get_bits::<37>(self.j.val().index());
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
#[derive(LogicBlock)]
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
    describe!("literals", format!("m{M}"), "Literals and constants."; MAGIC, THREE, M);
    #[hdl_gen]
    fn update(&mut self) {
        self.o[0].next = 0xff.into();
        self.o[1].next = self.a.val() + 255;
        self.o[2].next = 200 - self.a.val();
        self.o[3].next = bits::<8>(17) ^ self.a.val();
        self.o[4].next = (3 + 4 * 5).into();
        self.o[5].next = self.a.val() ^ MAGIC;
        self.o[6].next = self.lookup.val().get_bits::<8>(8 * THREE);
        self.o[7].next = self
            .lookup
            .val()
            .get_bits::<8>(self.a.val().get_bits::<3>(0).index() * 8);
        self.o[8].next = self.a.val() & 0b1010_1010;
        if M == 7 {
            self.o[8].next = self.a.val() | 0x55;
        }
        self.t[0].next = self.a.val() == MAGIC;
        self.t[1].next = 100 < self.a.val();
        self.t[2].next = self.a.val() >= 0;
        self.t[3].next = self.a.val() <= 255;
        self.t[4].next = (self.wide.val() & self.mask.val()).xor();
        self.t[5].next = self.mask.val().get_bit(THREE);
        self.t[6].next = self.wide.val() > self.mask.val();
        self.t[7].next = self.mask.val().get_bit(self.s.val().index());
        self.long[0].next = 1 << self.s.val();
        self.long[1].next = (0xdead_beef_u64 << self.s.val()) >> 4;
        self.long[2].next = bit_cast::<64, 8>(self.a.val()) << 60;
        self.huge[0].next = self.wide.val() + 0x1_0000_0000_u64;
        self.huge[1].next = (self.wide.val() << 79) | (self.wide.val() >> 1);
        self.huge[2].next = self.wide.val() << 80;
        self.huge[3].next = bits::<80>(0xffff_ffff_ffff_u64) - self.mask.val();
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
#[derive(LogicBlock, Default)]
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
    describe!("choices", "if, match, enums and structs."; THREE);
    #[hdl_gen]
    fn update(&mut self) {
        // A local signal that changes between two reads.
        self.work.next = self.a.val();
        self.o[0].next = self.work.val() + 1;
        if self.f.val() {
            self.work.next = self.work.val() ^ self.b.val();
        }
        self.o[1].next = self.work.val();
        if self.a.val() < 10 {
            self.o[2].next = 1.into();
        } else if self.a.val() < self.b.val() {
            self.o[2].next = 2.into();
            if self.f.val() {
                self.o[2].next = 3.into();
            }
        } else {
            self.o[2].next = 4.into();
        }
        self.o[3].next = 0.into();
        match self.a.val().get_bits::<4>(2).index() {
            0 => self.o[3].next = self.b.val(),
            0x1 => self.o[3].next = self.b.val() + 1,
            0b10 => {
                self.o[3].next = self.b.val() + 2;
            }
            THREE => self.o[3].next = 77.into(),
            1_0 => self.o[3].next = 10.into(),
            _ => self.o[3].next = 9.into(),
        }
        match self.order.val() {
            Order::Idle => self.o[4].next = 1.into(),
            Order::Load => self.o[4].next = self.a.val(),
            Order::Store => self.o[4].next = self.b.val(),
            Order::Swap => self.o[4].next = self.a.val() - self.b.val(),
            Order::Flush => {
                self.o[4].next = 2.into();
            }
        }
        match self.f.val() {
            true => self.o[5].next = self.a.val(),
            false => self.o[5].next = self.b.val(),
        }
        self.o[6].next = self.a.val();
        match self.parts.val().order {
            Order::Load => self.o[6].next = self.b.val(),
            _ => {}
        }
        self.next.next = self.order.val();
        if self.order.val() == Order::Swap && self.parts.val().order != Order::Idle {
            self.next.next = Order::Flush;
        }
        self.out.next = self.parts.val();
        self.out.next.low = self.parts.val().low + 1;
        if self.parts.val().flag {
            self.out.next.high = bit_cast::<40, 8>(self.a.val() + self.b.val());
            self.out.next.order = Order::Store;
        } else {
            self.out.next.flag = self.f.val();
        }
        self.raw.next = self.parts.val().into();
        self.t[0].next = self.out.val().order == Order::Store;
        self.t[1].next = self.out.val().high.get_bit(self.parts.val().low.index());
        self.t[2].next = (self.parts.val().high + 1).get_bit(39) ^ self.out.val().flag;
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
#[derive(LogicBlock, Default)]
struct Invert {
    x: Signal<In, Bits<8>>,
    y: Signal<Out, Bits<8>>,
}

impl Logic for Invert {
    describe!("invert", "Inverts a byte.");
    #[hdl_gen]
    fn update(&mut self) {
        self.y.next = !self.x.val();
    }
}

/// Loops over arrays of signals and blocks.
#[derive(LogicBlock, Default)]
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
    describe!("loops", "Loops over arrays of signals and blocks."; THREE);
    #[hdl_gen]
    fn update(&mut self) {
        self.swapped.next = 0.into();
        for i in 0..4 {
            self.u[i].x.next = self.x[THREE - i].val();
            self.y[i].next = self.u[i].y.val() + self.a.val().get_bits::<8>(8 * i);
            self.swapped.next =
                (self.swapped.val() << 8) | self.a.val().get_bits::<32>(8 * i) & 0xff;
        }
        for i in 0..2 {
            for j in 0..3 {
                self.grid[i][j].next = self.a.val().get_bit(i * 3 + j);
                if i == 1 && j < 2 {
                    self.grid[i][j].next = !self.a.val().get_bit(31 - j);
                }
            }
        }
        self.chain[0].next = self.x[0].val();
        for i in 1..5 {
            self.chain[i].next = (self.chain[i - 1].val() << 1) ^ self.x[i - 1].val();
        }
        self.last.next = self.chain[4].val();
        Signal::<In, Bits<8>>::link(&mut self.x[1], &mut self.v.x);
        Signal::<Out, Bits<8>>::link(&mut self.through, &mut self.v.y);
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
