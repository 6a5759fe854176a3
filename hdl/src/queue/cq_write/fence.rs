//! Fence: holds a completion back until the payload it stands for is in host memory.
//!
//! Rate: a token in two cycles. Latency: 2 cycles. A token whose fence was passed once stays free to go: however long it
//! is not taken, `done` may run on.
use crate::bus::types::CqToken;
use crate::prelude::*;

/// Fence of completions.
#[derive(Block)]
pub struct CqFence {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Completions.
    pub s: StreamIn<CqToken>,
    /// Payload bursts that have their response, modulo 2^16.
    pub done: Signal<In, Bits<16>>,
    /// Completions whose payload is there.
    pub m: StreamOut<CqToken>,
    /// A completion is held.
    pub busy: Signal<Out, Bit>,

    skid: SkidRam<CqToken>,
    due: Reg<Bit>,
}

impl Logic for CqFence {
    describe!(
        "cq_fence",
        "Holds completions back until their payload is in host memory."
    );

    #[kernel]
    fn update(&mut self) {
        forward!(s <= skid.s);
        // Negative while a burst issued before the fence has no response.
        let age = done - skid.m.payload.fence;
        let leaves = due & m.ready;
        due = skid.m.valid & !leaves & (due | !skid.m.payload.fenced | !age.bit(15));
        skid.m.ready = leaves;
        busy = skid.m.valid;
        m.valid = due;
        m.payload = skid.m.payload;
    }
}
