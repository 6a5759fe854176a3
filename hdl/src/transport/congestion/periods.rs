//! How many whole periods a time holds, by powers of two: the quotient's bits come one after the other, highest first.
//!
//! The period is doubled while the time holds twice of it, then taken off and halved: for n periods 2 * log2(n) + 3 cycles.
use crate::prelude::*;

/// The counter. `start` in a cycle in which it is not busy.
#[derive(Block)]
pub struct Periods {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A time is to be taken apart.
    pub start: Signal<In, Bit>,
    /// The time since a tick, microseconds, less than 2^19.
    pub late: Signal<In, Bits<20>>,
    /// From a tick to the next; not 0.
    pub period: Signal<In, Bits<17>>,
    /// Not done.
    pub busy: Signal<Out, Bit>,
    /// 2^`log` periods are in it, beside those before and that tick.
    pub jump: Signal<Out, Bit>,
    /// See `jump`.
    pub log: Signal<Out, Bits<5>>,
    /// When done: the time from that tick to the first that is not due.
    pub passed: Signal<Out, Bits<20>>,

    running: Reg<Bit>,
    rising: Reg<Bit>,
    rest: Dff<Bits<20>>,
    part: Dff<Bits<20>>,
    power: Dff<Bits<5>>,
    sum: Dff<Bits<20>>,
}

impl Logic for Periods {
    describe!("periods", "Whole periods in a time, by powers of two.");

    #[kernel]
    fn update(&mut self) {
        assert!(!start | period.any(), "a time without periods");
        let twice = part << 1;
        let doubles = rest >= twice;
        let takes = running & !rising & (rest >= part);
        jump = takes;
        log = power;
        if running & rising & doubles {
            part = twice;
            power = power + 1;
        } else if running & rising {
            rising = false;
        } else if running {
            if takes {
                rest = rest - part;
                sum = sum + part;
            }
            part = part >> 1;
            power = power - 1;
            running = power.any();
        }
        if start {
            running = true;
            rising = true;
            rest = late;
            part = period.resize::<20>();
            power = bits::<5>(0);
            sum = period.resize::<20>();
        }
        busy = running;
        passed = sum;
    }
}
