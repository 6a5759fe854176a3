//! Alpha of DCQCN: ticks are counted, and taken off only when alpha rises or is asked for.
//!
//! A tick leaves alpha * g / 1024. What 2^k ticks leave stands in a table, made by squaring after reset and when g changes (60 cycles, in
//! which `ready` is 0); so n ticks are as many products as n has ones. In whole 1/1024 each tick is rounded, and takes a product.
//!
//! ```text
//!          ┌───────── ticks without a rise ─────────┐
//!          │                                        ▼
//!  Ready ──┴─► Fall ──► Rise ──► Lift ──────────► Count ──► Begin, Fall ──► Ready
//!           alpha so far     and its rise       ticks since   alpha now, if asked for
//! ```
//!
//! A one of n takes 5 cycles, a zero 1; `Periods` counts beside it.
use super::periods::Periods;
use crate::prelude::*;

/// What the block is doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum AlphaStep {
    /// Begins the table.
    Base,
    /// The next power of it.
    Square,
    /// The table stands.
    Ready,
    /// All ticks since the rise are to be taken off.
    Begin,
    /// Looks for the next power that is.
    Fall,
    /// A product.
    Multiply,
    /// The tick in which alpha rises.
    Rise,
    /// Its product.
    Lift,
    /// Ticks are counted.
    Count,
}

/// Ticks of alpha. `start` in a cycle in which it is `ready` and not busy.
#[derive(Block)]
pub struct Alpha {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What a tick leaves, 1/1024.
    pub g: Signal<In, Bits<10>>,
    /// Alpha is in whole 1/1024.
    pub whole: Signal<In, Bit>,
    /// No queue pair is about to start: the table may be made again.
    pub idle: Signal<In, Bit>,
    /// There is something to do.
    pub start: Signal<In, Bit>,
    /// Ticks are due.
    pub due: Signal<In, Bit>,
    /// At the first of them alpha rises.
    pub rises: Signal<In, Bit>,
    /// Alpha now is asked for.
    pub wanted: Signal<In, Bit>,
    /// Alpha behind its last rise, 1/65536.
    pub alpha: Signal<In, Bits<16>>,
    /// Ticks since.
    pub ticks: Signal<In, Bits<14>>,
    /// Time since the first tick that is due, microseconds.
    pub late: Signal<In, Bits<20>>,
    /// From a tick to the next.
    pub period: Signal<In, Bits<17>>,
    /// Not done.
    pub busy: Signal<Out, Bit>,
    /// When done: alpha behind its last rise,
    pub risen: Signal<Out, Bits<16>>,
    /// the ticks since,
    pub since: Signal<Out, Bits<14>>,
    /// alpha now, if it was asked for,
    pub level: Signal<Out, Bits<16>>,
    /// and the time from the first tick that was due to the first that is not.
    pub passed: Signal<Out, Bits<20>>,
    /// It is not busy, and the table is that of `g`.
    pub ready: Signal<Out, Bit>,
    /// The table is that of `g`.
    pub stands: Signal<Out, Bit>,

    periods: Periods,
    product: Product<17, 17, 34>,
    powers: Ram<Bits<17>, 4>,
    step: Reg<AlphaStep>,
    /// The g of the table.
    made_of: Dff<Bits<10>>,
    /// What a rise adds.
    rise: Dff<Bits<18>>,
    /// The power at hand.
    place: Dff<Bits<4>>,
    wait: Dff<Bits<2>>,
    /// A power of the table, or alpha.
    value: Dff<Bits<17>>,
    /// Ticks that are to be taken off.
    left: Dff<Bits<14>>,
    base: Dff<Bits<16>>,
    count: Dff<Bits<14>>,
    /// Ticks that are due, behind the first.
    more: Dff<Bits<20>>,
    /// The first of them counts: alpha did not rise in it.
    first: Dff<Bit>,
    /// A rise is to come.
    rising: Dff<Bit>,
    asked: Dff<Bit>,
}

impl Logic for Alpha {
    describe!("alpha", "Alpha of DCQCN: its rises, its ticks, its level.");

    #[kernel]
    fn update(&mut self) {
        periods.start = start & due;
        periods.late = late;
        periods.period = period;
        busy = step != AlphaStep::Ready;
        let same = g == made_of;
        ready = (step == AlphaStep::Ready) & same;
        stands = (step != AlphaStep::Base) & (step != AlphaStep::Square) & same;
        risen = base;
        since = count;
        level = value.low::<16>();
        passed = periods.passed;

        let squares = step == AlphaStep::Square;
        powers.we = squares & !wait.any();
        powers.waddr = place;
        powers.wdata = value;
        powers.re = (step == AlphaStep::Fall) | (step == AlphaStep::Rise);
        powers.raddr = place;
        if whole | (step == AlphaStep::Rise) {
            powers.raddr = bits::<4>(0);
        }
        product.a = value;
        product.b = powers.rdata;
        if squares {
            product.b = value;
        }
        wait = bits::<2>(0);
        if squares | (step == AlphaStep::Multiply) | (step == AlphaStep::Lift) {
            wait = wait + 1;
        }

        // behind a tick, and behind one with a rise
        let mut fallen = product.product.slice::<17>(17);
        let mut most = bits::<18>(0xffff);
        if whole {
            most = bits::<18>(1023 << 6);
            if !squares {
                fallen = (fallen >> 6) << 6;
            }
        }
        rise = (bits::<18>(1024) - made_of.resize::<18>()) << 6;
        let sum = fallen.resize::<18>() + rise;
        let lifted = if sum > most { most } else { sum };
        if periods.jump {
            more = more | (bits::<20>(1) << periods.log);
        }
        let mut total = count.resize::<21>() + more.resize::<21>();
        if first {
            total = total + 1;
        }
        let counted = if total.slice::<7>(14).any() {
            bits::<14>(0x3fff)
        } else {
            total.low::<14>()
        };

        match step {
            AlphaStep::Base => {
                made_of = g;
                value = g.resize::<17>() << 7;
                place = bits::<4>(0);
                step = AlphaStep::Square;
            }
            AlphaStep::Square => {
                if wait.all() {
                    value = fallen;
                    place = place + 1;
                    if place == 13 {
                        step = AlphaStep::Ready;
                    }
                }
            }
            AlphaStep::Ready => {
                if start {
                    value = alpha.resize::<17>();
                    base = alpha;
                    count = ticks;
                    left = ticks;
                    place = bits::<4>(0);
                    more = bits::<20>(0);
                    first = true;
                    rising = due & rises;
                    asked = wanted;
                    step = AlphaStep::Fall;
                    if due & !rises {
                        step = AlphaStep::Count;
                    }
                    if due & rises & !ticks.any() {
                        step = AlphaStep::Rise;
                    }
                } else if idle & !same {
                    step = AlphaStep::Base;
                }
            }
            AlphaStep::Begin => {
                left = count;
                place = bits::<4>(0);
                step = AlphaStep::Fall;
            }
            AlphaStep::Fall => {
                place = place + 1;
                left = left >> 1;
                if whole {
                    left = left - 1;
                }
                if !left.any() | !value.any() {
                    step = AlphaStep::Ready;
                    if rising {
                        step = AlphaStep::Rise;
                    }
                } else if whole | left.bit(0) {
                    step = AlphaStep::Multiply;
                }
            }
            AlphaStep::Multiply => {
                if wait.all() {
                    value = fallen;
                    step = AlphaStep::Fall;
                }
            }
            AlphaStep::Rise => step = AlphaStep::Lift,
            AlphaStep::Lift => {
                if wait.all() {
                    rising = false;
                    first = false;
                    value = lifted.low::<17>();
                    base = lifted.low::<16>();
                    count = bits::<14>(0);
                    step = AlphaStep::Count;
                }
            }
            AlphaStep::Count => {
                if !periods.busy {
                    count = counted;
                    step = AlphaStep::Ready;
                    if asked {
                        step = AlphaStep::Begin;
                    }
                }
            }
        }
    }
}
