//! Statistics: a 64-bit counter for every name of `ferroce_proto::abi::regs::STATS`.
//!
//! Pulses of every cycle are added to small sums in flip-flops ([`StatSums`]); one counter a cycle, round robin, has its
//! sum added to its word in a RAM. Nothing is lost at full rate on all counters. The first round after reset takes every
//! word as 0; `ready` tells when it is through, but counts before that are right too.
//!
//! A read is a level: `read` and `index` stay until `valid`, and `value` stands as long as both do. It is answered
//! when the round comes to its counter, at most 131 cycles later, with every pulse up to the start of the read in it.
//! An index without counter reads 0.
//!
//! ```text
//!  pulses ─► sums ─► sum of `turn` ─┐
//!  turn ───► RAM ──► word ──────────┴─► 64-bit sum ─► RAM, value
//!  cycle  n          n + 1              n + 2
//! ```
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use super::stat_sums::StatSums;
use crate::prelude::*;

macro_rules! pulse {
    (1) => { Bit };
    ($bits:literal) => { Bits<$bits> };
}

macro_rules! pulses {
    ($( $(#[$doc:meta])* $name:ident $constant:ident $bits:tt, )*) => {
        /// What every counter grows by in a cycle.
        #[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
        pub struct StatPulses {
            $( $(#[$doc])* pub $name: pulse!($bits), )*
        }
    };
}
ferroce_proto::counters!(pulses);

/// How many of two pulses there are.
#[kernel_fn]
pub fn sum(a: Bit, b: Bit) -> Bits<2> {
    bits::<2>(0).replace_bit(0, a ^ b).replace_bit(1, a & b)
}

/// The counters.
#[derive(Clone, Debug, Block)]
pub struct Stats {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What every counter is to grow by.
    pub pulses: Signal<In, StatPulses>,
    /// Counter to read.
    pub index: Signal<In, Bits<7>>,
    /// It is to be read; stays 1 until `valid`.
    pub read: Signal<In, Bit>,
    /// Its value.
    pub value: Signal<Out, Bits<64>>,
    /// `value` is there; 0 again behind the end of `read`.
    pub valid: Signal<Out, Bit>,
    /// All counters start from 0.
    pub ready: Signal<Out, Bit>,

    taken: Dff<StatPulses>,
    sums: StatSums,
    #[init(Ram::new(Style::Distributed))]
    words: Ram<Bits<64>, 7>,
    /// Counter whose turn it is.
    turn: Reg<Bits<7>>,
    /// Its round is not the first.
    later: Reg<Bit>,
    // behind the RAM
    turn_1: Dff<Bits<7>>,
    on_1: Reg<Bit>,
    later_1: Reg<Bit>,
    // behind the adder
    turn_2: Dff<Bits<7>>,
    on_2: Reg<Bit>,
    later_2: Reg<Bit>,
    total: Dff<Bits<64>>,
    answer: Dff<Bits<64>>,
    answered: Reg<Bit>,
    /// The read began before the turn that is now behind the adder.
    waits: Reg<Bits<2>>,
}

impl Logic for Stats {
    describe!("stats", "64-bit counters.");

    #[kernel]
    fn update(&mut self) {
        // cycle n: take the sum, read the word
        taken = pulses;
        sums.pulses = taken;
        sums.visit = turn;
        words.re = true;
        words.raddr = turn;
        turn = turn + 1;
        if turn.all() {
            later = true;
        }
        turn_1 = turn;
        on_1 = true;
        later_1 = later;

        // cycle n + 1: add
        let mut previous: Bits<64> = bits::<64>(0);
        if later_1 {
            previous = words.rdata;
        }
        total = previous + sums.sum.resize::<64>();
        turn_2 = turn_1;
        on_2 = on_1;
        later_2 = later_1;

        // cycle n + 2: write, and answer the read that asks for this counter
        words.we = on_2;
        words.waddr = turn_2;
        words.wdata = total;
        waits = bits::<2>(0);
        if read {
            waits = waits;
            if !waits.all() {
                waits = waits + 1;
            }
        }
        if !answered {
            answer = total;
        }
        answered = read & (answered | (on_2 & waits.all() & (turn_2 == index)));
        value = answer;
        valid = answered;
        ready = later_2;
    }
}

#[cfg(test)]
mod tests {
    use super::super::stat_sums::Counter;
    use ferroce_proto::abi::regs::STATS;

    #[test]
    fn counters_stand_in_the_order_of_the_contract() {
        let names: Vec<_> = Counter::all().into_iter().map(|c| c.name).collect();
        assert_eq!(names, STATS);
    }
}
