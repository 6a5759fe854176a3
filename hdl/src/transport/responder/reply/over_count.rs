//! Counts the atomics of each queue pair that are over: a completion waits for those before it (docs/blocks/completion.md).
//!
//! Each atomic that came with a token counts once, in the order of its queue pair: when it is over in memory, or when it is
//! known not to run. The count of `look` is told again and again, in the cycles in which none changes.
//!
//! Latency: 3 cycles.
use crate::bus::types::AtomicsOver;
use crate::bus::valid::Valid;
use crate::prelude::*;

/// Counts of 2^Q queue pairs.
#[derive(Block)]
pub struct OverCount<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// So many more are over.
    pub more: Signal<In, Valid<AtomicsOver>>,
    /// Whose count is asked for.
    pub look: Signal<In, Bits<16>>,
    /// A count.
    pub over: Signal<Out, Valid<AtomicsOver>>,
    /// The sweep after reset is done.
    pub ready: Signal<Out, Bit>,

    counts: Rmw<Bits<5>, Q>,
    adds_1: Reg<Bit>,
    more_1: Dff<AtomicsOver>,
    adds_2: Reg<Bit>,
    more_2: Dff<AtomicsOver>,
    told: Reg<Bit>,
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
        let qpn = if more.valid { more.payload.qpn } else { look };
        counts.valid = true;
        counts.addr = qpn.low::<Q>();
        adds_1 = more.valid;
        more_1.qpn = qpn;
        more_1.count = more.payload.count;
        adds_2 = adds_1;
        more_2 = more_1;
        counts.write = adds_2;
        counts.result = counts.current + more_2.count;
        told = counts.x_valid & !adds_2;
        count.qpn = more_2.qpn;
        count.count = counts.current;
        over.valid = told;
        over.payload = count;
        ready = counts.ready;
    }
}
