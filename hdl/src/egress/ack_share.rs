//! A flood of acknowledgements leaves data half of the wire.
//!
//! Queues of control are strict over those of data. While data waits that is not paused, `lead` counts the beats of control that leave, less
//! those of data. At 64 KiB no acknowledgement is made until data has made up for it. Those that are made already still go first: 16 KiB of
//! each class at most. What of them had no room there counts as data. CNPs are few, and go on.
//!
//! Data that waits leaves while control is empty, so acknowledgements come back: their state stays with their queue pairs meanwhile.
//!
//! Latency: 2 cycles.
use super::{CLASSES, QUEUES};
use crate::prelude::*;

/// Bytes of control that may leave before data.
pub const LEAD: u64 = 1 << 16;

/// The block, for beats of `K` bytes.
#[derive(Clone, Debug, Block)]
pub struct AckShare<const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Queue of which a beat leaves, if any.
    pub pop: Signal<In, Bits<QUEUES>>,
    /// Queues that hold a beat.
    pub waiting: Signal<In, Bits<QUEUES>>,
    /// Classes that are paused.
    pub shut: Signal<In, Bits<CLASSES>>,
    /// No acknowledgement is to be made.
    pub no_acks: Signal<Out, Bit>,
    /// Data waits; a beat of it leaves; one of control does.
    waits: Reg<Bit>,
    of_data: Reg<Bit>,
    of_control: Reg<Bit>,
    /// Beats by which control is ahead of data.
    lead: Reg<Bits<14>>,
    stops: Reg<Bit>,
}

impl<const K: usize> AckShare<K> {
    const BEATS: u64 = LEAD / K as u64;
}

impl<const K: usize> Logic for AckShare<K> {
    describe!(
        "ack_share",
        format!("{K}"),
        "A flood of acknowledgements leaves data half of the wire."
    );

    #[kernel]
    fn update(&mut self) {
        if !waits {
            lead = 0;
            stops = false;
        } else if of_control & (lead != Self::BEATS) {
            lead += 1;
            stops = stops | (lead == Self::BEATS - 1);
        } else if of_data & lead.any() {
            lead -= 1;
            stops = stops & (lead != 1);
        }
        waits = (waiting.low::<CLASSES>() & !shut).any();
        of_data = pop.low::<CLASSES>().any();
        of_control = pop.any() & !pop.low::<CLASSES>().any();
        no_acks = stops;
    }
}
