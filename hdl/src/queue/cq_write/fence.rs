//! Fence: holds a completion back until the payload it stands for is in host memory.
//!
//! A fence is a count of bursts. It holds a token while that burst is one of those without a response; the count may be as
//! old as it likes, as one that comes round to them again waits for a few bursts that are under way.
//!
//! Rate: a token in two cycles. Latency: 2 cycles. A token whose fence was passed once stays free to go.
use crate::bus::types::{CqToken, waits_for};
use crate::prelude::*;

/// Fence of completions.
#[derive(Block)]
pub struct CqFence {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Completions.
    pub s: StreamIn<CqToken>,
    /// Payload bursts issued, modulo 2^16.
    pub issued: Signal<In, Bits<16>>,
    /// Of these, those that have their response.
    pub done: Signal<In, Bits<16>>,
    /// Completions whose payload is there.
    pub m: StreamOut<CqToken>,
    /// A completion is held.
    pub busy: Signal<Out, Bit>,

    skid: SkidRam<CqToken>,
    due: Reg<Bit>,
    /// Bursts issued, and how many of these have no response, of one cycle.
    latest: Reg<Bits<16>>,
    under_way: Reg<Bits<16>>,
}

impl Logic for CqFence {
    describe!(
        "cq_fence",
        "Holds completions back until their payload is in host memory."
    );

    #[kernel]
    fn update(&mut self) {
        forward!(s <= skid.s);
        latest = issued;
        under_way = issued - done;
        let waits = skid.m.payload.fenced & waits_for(skid.m.payload.fence, latest, under_way);
        let leaves = due & m.ready;
        due = skid.m.valid & !leaves & (due | !waits);
        skid.m.ready = leaves;
        busy = skid.m.valid;
        m.valid = due;
        m.payload = skid.m.payload;
    }
}
