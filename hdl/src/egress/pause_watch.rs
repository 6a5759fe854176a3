//! How long the peer holds a class; one that it held for too long is held no more.
//!
//! A count of the time goes up while the class is asked to pause. It goes down, 128 times as fast, while the class is `free`: not
//! asked for, and it sends or has nothing to send. At `limit` the class has **expired**. From then on all time counts as free in
//! which it is not asked for, and at 0 the class is held again.
//!
//! So a class may be held for `limit` at once, and for 128/129 of the time for ever, whichever of its priorities is paused, and
//! however often the pause ends. The watchdogs of switches look at the queue too: it is stuck when nothing left it for a while.
//!
//! The time is counted to the cycle; a millisecond has 0.05 % more. Latency: a cycle.
use crate::bus::time::CLOCK_MHZ;
use crate::prelude::*;

/// log2 of the cycles of a part of a millisecond; as many times as fast goes the count down.
const LOG_PART: usize = 7;
/// The last part of a millisecond.
const LAST_PART: u64 = (1000 * CLOCK_MHZ as u64).div_ceil(1 << LOG_PART) - 1;

/// The block.
#[derive(Clone, Debug, Block)]
pub struct PauseWatch {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Milliseconds; 0: for ever.
    pub limit: Signal<In, Bits<14>>,
    /// The peer pauses a priority of the class.
    pub asked: Signal<In, Bit>,
    /// The class sends, or has nothing to send.
    pub free: Signal<In, Bit>,
    /// It was held for too long.
    pub expired: Signal<Out, Bit>,
    cycles: Reg<Bits<LOG_PART>>,
    parts: Reg<Bits<12>>,
    age: Reg<Bits<14>>,
    over: Reg<Bit>,
}

impl Logic for PauseWatch {
    describe!("pause_watch", "How long a class is held.");

    #[kernel]
    fn update(&mut self) {
        expired = over;
        if !limit.any() {
            parts = bits::<12>(0);
            age = bits::<14>(0);
            over = false;
        } else if asked {
            if !over {
                cycles = cycles + 1;
                if cycles.all() {
                    parts = parts + 1;
                    if parts == LAST_PART {
                        parts = bits::<12>(0);
                        age = age + 1;
                    }
                }
                over = age >= limit;
            }
        } else if free | over {
            if parts.any() {
                parts = parts - 1;
            } else if age.any() {
                parts = bits::<12>(LAST_PART);
                age = age - 1;
            } else {
                over = false;
            }
        }
    }
}
