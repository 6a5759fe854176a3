//! Orders to the timer, its entries and its reports.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::prelude::*;

payload! {
    /// Order to the timer.
    TimerSet {
        /// Queue pair.
        qpn: Bits<16>,
        /// Run; else stop.
        on: Bit,
        /// Generation.
        generation: Bits<2>,
        /// An RNR timer; else an ACK timeout.
        rnr: Bit,
        /// Timer code.
        code: Bits<5>,
    }

    /// Entry of the timer table.
    TimerEntry {
        /// Runs.
        on: Bit,
        /// Generation.
        generation: Bits<2>,
        /// Tick at which it has run out.
        deadline: Bits<36>,
    }

    /// A timer ran out.
    TimerEnd {
        /// Queue pair.
        qpn: Bits<16>,
        /// Generation.
        generation: Bits<2>,
    }
}
