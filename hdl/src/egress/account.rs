//! Bytes that a queue may still send before the others have had their share (deficit round robin).
//!
//! `credit` is signed: a frame that has begun is sent to its end, and what it takes too much is a debt. A refill gives a
//! queue in debt its quantum, 128 bytes times its weight, and one that is not in debt no more than that.
use crate::prelude::*;

/// Account of one queue.
#[derive(Clone, Debug, Block)]
pub struct Account {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Quantum, in units of 128 bytes.
    pub weight: Signal<In, Bits<7>>,
    /// The quantum is due.
    pub refill: Signal<In, Bit>,
    /// `charge` bytes were sent.
    pub charged: Signal<In, Bit>,
    /// With `charged`: how many.
    pub charge: Signal<In, Bits<7>>,
    /// It is not in debt.
    pub rich: Signal<Out, Bit>,
    /// Nor will it be behind a refill.
    pub near: Signal<Out, Bit>,
    credit: Reg<Bits<16>>,
}

impl Logic for Account {
    describe!(
        "class_account",
        "Bytes that a queue may send, deficit round robin."
    );

    #[kernel]
    fn update(&mut self) {
        let quantum = weight.resize::<16>() << 7;
        let sum = credit + quantum;
        rich = !credit.bit(15);
        near = !sum.bit(15);
        // `refill` comes late: what it chooses between is there
        let spent = if charged { charge.resize::<16>() } else { 0 };
        let filled = if credit.bit(15) { sum } else { quantum };
        let with = filled - spent;
        let without = credit - spent;
        credit = if refill { with } else { without };
    }
}
