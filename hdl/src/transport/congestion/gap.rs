//! From a rate to the time of a byte, and the two orders by which a planned start moves with it.
//!
//! 1 Mb/s is 2000 cycles of 4 ns a byte, so the gap is 2000 * 2^20 / rate in 2^-20 cycles: a quotient bit a cycle, 31 of them. Of a rate of
//! 100 Gb/s it is exact to 1/20000.
use super::types::RateUpdate;
use crate::prelude::*;

/// 2000 * 2^20.
const ONE: u64 = 2000 << 20;

/// What the block is doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum GapStep {
    /// Waits for a rate update.
    Idle,
    /// Divides.
    Divide,
    /// Takes back what was planned.
    Unplan,
    /// Until that is done.
    Wait,
    /// Plans it again.
    Replan,
}

/// The divider. `op_ready` takes the order that is offered; `done` answers Unplan.
#[derive(Block)]
pub struct Gap {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Rate updates.
    pub s: StreamIn<RateUpdate>,
    /// An order is due.
    pub op_valid: Signal<Out, Bit>,
    /// It is Replan, else Unplan.
    pub replans: Signal<Out, Bit>,
    /// It is taken.
    pub op_ready: Signal<In, Bit>,
    /// Queue pair.
    pub qpn: Signal<Out, Bits<16>>,
    /// Its gap from now on; 0 if nothing limits it.
    pub gap: Signal<Out, Bits<31>>,
    /// Log2 of the bytes of 1024 cycles at that gap, 0 at least.
    pub span: Signal<Out, Bits<5>>,
    /// PSNs that it may have outstanding; 0: any number.
    pub window: Signal<Out, Bits<16>>,
    /// Replan: the bytes that were planned.
    pub bytes: Signal<Out, Bits<17>>,
    /// Between the two orders nothing else may happen to the queue pair.
    pub holds: Signal<Out, Bit>,
    /// Unplan is done.
    pub done: Signal<In, Bit>,
    /// The start was planned: it had not come yet.
    pub planned: Signal<In, Bit>,
    /// Bytes that were planned.
    pub last: Signal<In, Bits<17>>,

    step: Reg<GapStep>,
    count: Dff<Bits<5>>,
    current: Dff<RateUpdate>,
    number: Dff<Bits<31>>,
    rest: Dff<Bits<21>>,
    quotient: Dff<Bits<31>>,
    kept: Dff<Bits<17>>,
}

impl Logic for Gap {
    describe!("pace_gap", "Time of a byte at a rate.");

    #[kernel]
    fn update(&mut self) {
        s.ready = step == GapStep::Idle;
        let next = (rest << 1).replace_bit(0, number.bit(30));
        let rate = current.rate.resize::<21>();
        let fits = next >= rate;
        match step {
            GapStep::Idle => {
                current = s.payload;
                number = ONE;
                rest = bits::<21>(0);
                quotient = bits::<31>(0);
                count = bits::<5>(30);
                if s.valid {
                    step = if s.payload.limited {
                        GapStep::Divide
                    } else {
                        GapStep::Unplan
                    };
                }
            }
            GapStep::Divide => {
                number = number << 1;
                rest = if fits { next - rate } else { next };
                quotient = (quotient << 1).replace_bit(0, fits);
                count = count - 1;
                if !count.any() {
                    step = GapStep::Unplan;
                }
            }
            GapStep::Unplan => {
                if op_ready {
                    step = GapStep::Wait;
                }
            }
            GapStep::Wait => {
                kept = last;
                if done {
                    step = if planned & current.limited {
                        GapStep::Replan
                    } else {
                        GapStep::Idle
                    };
                }
            }
            _ => {
                if op_ready {
                    step = GapStep::Idle;
                }
            }
        }
        op_valid = (step == GapStep::Unplan) | (step == GapStep::Replan);
        replans = step == GapStep::Replan;
        holds = (step == GapStep::Wait) | (step == GapStep::Replan);
        qpn = current.qpn;
        gap = quotient;
        window = current.window;
        span = bits::<5>(0);
        for i in 0..30 {
            if quotient.bit(i) {
                span = bits::<5>(29 - i);
            }
        }
        // a byte takes more than 1024 cycles
        if quotient.bit(30) {
            span = bits::<5>(0);
        }
        bytes = kept;
    }
}
