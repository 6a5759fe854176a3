//! Fence with a queue: many completions wait at once for the payload they stand for.
//!
//! ```text
//!  s ─┬─────────── nothing waits ───────────────────────────────┬─► fence ─► m
//!     ├─► queue of 256 tokens ─────────── while `passed` is not 0 ─┘
//!     └─► their fences ─► oldest one passed? ─► passed
//! ```
//!
//! Fences are passed in their order, whether the tokens are taken or not, so `done` may run on while a token waits.
//! Rate: a token in two cycles. Latency: 2 cycles while nothing waits.
use super::fence::CqFence;
use crate::bus::types::{AccessCounts, CqToken, waits_for};
use crate::prelude::*;

/// What a completion waits for. One that invalidated a key waits for the peer's reads and atomics which were checked before
/// it came: its key may have let them through.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Wait {
    /// Payload bursts issued before it, modulo 2^16.
    fence: Bits<16>,
    /// It waits for them.
    fenced: Bit,
    /// It waits for the accesses too.
    invalidates: Bit,
    /// Reads checked before it, modulo 2^16.
    reads: Bits<16>,
    /// Atomics, likewise.
    atomics: Bits<16>,
}

/// Queue of completions behind a fence.
#[derive(Block)]
pub struct CqFenceQueue {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Completions.
    pub s: StreamIn<CqToken>,
    /// Payload bursts issued, modulo 2^16.
    pub issued: Signal<In, Bits<16>>,
    /// Of these, those that have their response.
    pub done: Signal<In, Bits<16>>,
    /// Accesses to memory for peers.
    pub accesses: Signal<In, AccessCounts>,
    /// Completions whose payload is there.
    pub m: StreamOut<CqToken>,
    /// A completion is held.
    pub busy: Signal<Out, Bit>,
    /// Of these, those behind the front.
    pub level: Signal<Out, Bits<9>>,

    /// A token that comes out of the queue is through it at once.
    front: CqFence,
    tokens: Deep<CqToken, 8>,
    waits: Deep<Wait, 8>,
    due: Reg<Bit>,
    /// Bursts issued, and how many of these have no response, of one cycle.
    latest: Reg<Bits<16>>,
    under_way: Reg<Bits<16>>,
    /// Accesses checked, and how many of these are not over, of one cycle.
    reads: Reg<Bits<16>>,
    reads_under_way: Reg<Bits<16>>,
    atomics: Reg<Bits<16>>,
    atomics_under_way: Reg<Bits<16>>,
    /// Tokens whose fence is passed.
    passed: Reg<Bits<9>>,
    ready: Reg<Bit>,
}

impl Logic for CqFenceQueue {
    describe!(
        "cq_fence_queue",
        "Holds many completions back until their payload is in host memory."
    );

    #[kernel]
    fn update(&mut self) {
        // both are as deep and take the same items; the tokens leave last
        s.ready = tokens.s.ready;
        let empty = !tokens.level.any();
        let direct = empty & front.s.ready & !s.payload.with_inv;
        tokens.s.valid = s.valid & !direct;
        tokens.s.payload = s.payload;
        waits.s.valid = s.valid & tokens.s.ready & !direct;
        waits.s.payload.fence = s.payload.fence;
        waits.s.payload.fenced = s.payload.fenced;
        waits.s.payload.invalidates = s.payload.with_inv;
        waits.s.payload.reads = accesses.reads_begun;
        waits.s.payload.atomics = accesses.atomics_begun;

        let age = issued - s.payload.fence;
        let fenced = s.valid & s.payload.fenced;
        assert!(
            !fenced | !age.bit(15),
            "a fence counts bursts that were issued"
        );
        latest = issued;
        under_way = issued - done;
        reads = accesses.reads_begun;
        reads_under_way = accesses.reads_begun - accesses.reads_over;
        atomics = accesses.atomics_begun;
        atomics_under_way = accesses.atomics_begun - accesses.atomics_over;
        let unwritten =
            waits.m.payload.fenced & waits_for(waits.m.payload.fence, latest, under_way);
        let accessed = waits_for(waits.m.payload.reads, reads, reads_under_way)
            | waits_for(waits.m.payload.atomics, atomics, atomics_under_way);
        let held = unwritten | (waits.m.payload.invalidates & accessed);
        due = waits.m.valid & !due & !held;
        waits.m.ready = due;

        front.issued = issued;
        front.done = done;
        front.s.valid = (s.valid & empty & !s.payload.with_inv) | ready;
        front.s.payload = s.payload;
        if ready {
            front.s.payload = tokens.m.payload;
            front.s.payload.fenced = false;
        }
        forward!(m <= front.m);
        let leaves = ready & front.s.ready;
        tokens.m.ready = leaves;
        let mut left = passed;
        if due & !leaves {
            left = passed + 1;
        } else if leaves & !due {
            left = passed - 1;
        }
        passed = left;
        ready = left.any();
        busy = !empty | front.busy;
        level = tokens.level.resize::<9>();
    }
}
