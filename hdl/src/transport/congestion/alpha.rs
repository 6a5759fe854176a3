//! Alpha after any number of ticks.
//!
//! A tick makes alpha * g >> 10 of alpha. What 2^k ticks make of it stands in table k, so n ticks are as many look-ups as n has ones. Ten
//! tables are enough: a tick takes off 1 at least, so 1024 leave nothing.
//!
//! The tables are made after reset, and when g changes: table 0 by sums, each other by looking twice into the one before. That takes some
//! 29,000 cycles, in which `ready` is 0.
use super::periods::Periods;
use crate::prelude::*;

/// What the block is doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum AlphaStep {
    /// Fills table 0.
    Base,
    /// Looks an entry up for another table.
    Read,
    /// Looks up what it found.
    Again,
    /// Writes it.
    Write,
    /// The tables stand.
    Ready,
}

/// Ticks of alpha. `start` in a cycle in which it is `ready` and not busy.
#[derive(Block)]
pub struct Alpha {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What a tick leaves, 1/1024.
    pub g: Signal<In, Bits<10>>,
    /// No queue pair is about to start: the tables may be made again.
    pub idle: Signal<In, Bit>,
    /// Ticks are due.
    pub start: Signal<In, Bit>,
    /// Alpha before them, 1/1024.
    pub alpha: Signal<In, Bits<10>>,
    /// At the first of them alpha rises.
    pub rises: Signal<In, Bit>,
    /// Time since that one, microseconds.
    pub late: Signal<In, Bits<20>>,
    /// From a tick to the next.
    pub period: Signal<In, Bits<17>>,
    /// Not done.
    pub busy: Signal<Out, Bit>,
    /// When done: alpha behind them.
    pub result: Signal<Out, Bits<10>>,
    /// When done: time from the first of them to the first that is not due.
    pub passed: Signal<Out, Bits<20>>,
    /// The tables stand, and are those of `g`.
    pub ready: Signal<Out, Bit>,

    periods: Periods,
    tables: Ram<Bits<10>, 14>,
    step: Reg<AlphaStep>,
    table: Reg<Bits<4>>,
    entry: Reg<Bits<10>>,
    product: Reg<Bits<20>>,
    /// The g of the tables.
    made_of: Dff<Bits<10>>,
    first: Reg<Bit>,
    value: Dff<Bits<10>>,
    /// Alpha is what was looked up, else `value`.
    found: Reg<Bit>,
    rise: Dff<Bits<11>>,
}

impl Logic for Alpha {
    describe!("alpha", "Alpha of DCQCN after any number of ticks.");

    #[kernel]
    fn update(&mut self) {
        periods.start = start;
        periods.late = late;
        periods.period = period;
        let current = if found { tables.rdata } else { value };
        result = current;
        passed = periods.passed;
        busy = periods.busy;
        ready = (step == AlphaStep::Ready) & (g == made_of);

        let place = (table.resize::<14>() << 10) | entry.resize::<14>();
        let source = (table - 1).resize::<14>() << 10;
        tables.we = false;
        tables.waddr = place;
        tables.wdata = product.slice::<10>(10);
        tables.re = false;
        tables.raddr = source | entry.resize::<14>();

        // behind the first tick
        first = start;
        let risen = tables.rdata.resize::<12>() + rise.resize::<12>();
        if first {
            found = false;
            value = if risen.slice::<2>(10).any() {
                bits::<10>(1023)
            } else {
                risen.low::<10>()
            };
        }
        match step {
            AlphaStep::Base => {
                tables.we = true;
                entry = entry + 1;
                product = product + made_of.resize::<20>();
                if !entry.any() {
                    made_of = g;
                    product = g.resize::<20>();
                }
                if entry.all() {
                    table = bits::<4>(1);
                    step = AlphaStep::Read;
                }
            }
            AlphaStep::Read => {
                tables.re = true;
                step = AlphaStep::Again;
            }
            AlphaStep::Again => {
                tables.re = true;
                tables.raddr = source | tables.rdata.resize::<14>();
                step = AlphaStep::Write;
            }
            AlphaStep::Write => {
                tables.we = true;
                tables.wdata = tables.rdata;
                entry = entry + 1;
                step = AlphaStep::Read;
                if entry.all() {
                    table = table + 1;
                    if table == 9 {
                        step = AlphaStep::Ready;
                    }
                }
            }
            _ => {
                tables.raddr = (periods.log.resize::<14>() << 10) | current.resize::<14>();
                if start {
                    tables.re = true;
                    tables.raddr = alpha.resize::<14>();
                    rise = bits::<11>(0);
                    if rises {
                        rise = bits::<11>(1024) - made_of.resize::<11>();
                    }
                } else if periods.jump & (periods.log >= 10) {
                    value = bits::<10>(0);
                    found = false;
                } else if periods.jump {
                    tables.re = true;
                    found = true;
                } else if idle & (g != made_of) {
                    table = bits::<4>(0);
                    product = bits::<20>(0);
                    step = AlphaStep::Base;
                }
            }
        }
    }
}
