//! Counts the atomics of each queue pair that are over: a completion waits for those before it (docs/blocks/completion.md).
//!
//! Each atomic that came with a token counts once, in the order of its queue pair: when it is over in memory or, if it is
//! *void* and never runs, when those before it are. The count of `look` is shown again and again, in the cycles without a change.
//!
//! Latency: 3 cycles.
use super::atomic_types::{AtomicChange, OverState};
use crate::bus::types::AtomicsOver;
use crate::bus::valid::Valid;
use crate::prelude::*;

/// Counts of 2^Q queue pairs.
#[derive(Block)]
pub struct OverCount<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// How atomics end.
    pub change: Signal<In, Valid<AtomicChange>>,
    /// Whose count is asked for.
    pub look: Signal<In, Bits<16>>,
    /// A count.
    pub over: Signal<Out, Valid<AtomicsOver>>,
    /// The sweep after reset is done.
    pub ready: Signal<Out, Bit>,

    counts: Rmw<OverState, Q>,
    there_1: Reg<Bit>,
    change_1: Dff<AtomicChange>,
    there_2: Reg<Bit>,
    change_2: Dff<AtomicChange>,
    shows: Reg<Bit>,
    count: Dff<AtomicsOver>,
}

impl<const Q: usize> Logic for OverCount<Q> {
    describe!(
        "reply_over_count",
        format!("q{Q}"),
        "Counts the atomics of each queue pair that are over."
    );

    #[kernel]
    fn update(&mut self) {
        let mut asked = change.payload;
        if !change.valid {
            asked.qpn = look;
        }
        counts.valid = true;
        counts.addr = asked.qpn.low::<Q>();
        there_1 = change.valid;
        change_1 = asked;
        there_2 = there_1;
        change_2 = change_1;

        // X
        let state = counts.current;
        let n = change_2;
        let mut next = state;
        next.void = state.void + n.void;
        if n.starts {
            next.running = state.running + 1;
        } else if n.ends {
            next.running = state.running - 1;
            next.over = state.over + 1;
        }
        let last = n.ends & (state.running == 1);
        let none = !state.running.any() & !n.starts;
        if last | none {
            next.void = 0;
            next.over = state.over + state.void + n.void + bits::<5>(0).replace_bit(0, n.ends);
        }
        counts.write = there_2;
        counts.result = next;
        shows = counts.x_valid & !there_2;
        count.qpn = n.qpn;
        count.count = state.over;
        over.valid = shows;
        over.payload = count;
        ready = counts.ready;
    }
}
