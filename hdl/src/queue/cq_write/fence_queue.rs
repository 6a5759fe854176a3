//! Fence with a queue: many completions wait at once for the payload they stand for.
//!
//! ```text
//!  s ─┬─────────── nothing waits ───────────────────────────────┬─► fence ─► m
//!     ├─► queue of 256 tokens ─────────── while `passed` is not 0 ─┘
//!     └─► their fences ─► oldest one passed? ─► passed
//! ```
//!
//! One that invalidated a key, or is behind an atomic of its queue pair, goes through the queue. How many atomics of the queue
//! pair of the oldest fence are over is asked for all the time.
//!
//! Fences are passed in their order, whether the tokens are taken or not, so `done` may run on while a token waits.
//! Rate: a token in two cycles. Latency: 2 cycles while nothing waits.
use super::fence::CqFence;
use crate::bus::types::{AccessCounts, AtomicsOver, CqToken, waits_for};
use crate::bus::valid::Valid;
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
    /// It waits for the atomics of its queue pair.
    after_atomics: Bit,
    /// Its queue pair.
    qpn: Bits<16>,
    /// The atomics of that up to it, modulo 2^5.
    own: Bits<5>,
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
    /// The queue pair whose atomics are awaited, if any are.
    pub awaited: Signal<Out, Bits<16>>,
    /// Atomics of a queue pair that are over: of that one, now and then.
    pub over: Signal<In, Valid<AtomicsOver>>,
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
        let apart = s.payload.with_inv | s.payload.after_atomics;
        let direct = empty & front.s.ready & !apart;
        tokens.s.valid = s.valid & !direct;
        tokens.s.payload = s.payload;
        tokens.s.payload.after_atomics = false;
        tokens.s.payload.atomics = bits::<5>(0);
        waits.s.valid = s.valid & tokens.s.ready & !direct;
        waits.s.payload.fence = s.payload.fence;
        waits.s.payload.fenced = s.payload.fenced;
        waits.s.payload.invalidates = s.payload.with_inv;
        waits.s.payload.reads = accesses.reads_begun;
        waits.s.payload.atomics = accesses.atomics_begun;
        copy!(waits.s.payload <= s.payload; after_atomics, qpn);
        waits.s.payload.own = s.payload.atomics;

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
        awaited = waits.m.payload.qpn;
        // at most 16 are not over
        let left = waits.m.payload.own - over.payload.count;
        let counted = over.valid & (over.payload.qpn == waits.m.payload.qpn);
        let all_over = counted & (!left.any() | (left.bit(4) & left.low::<4>().any()));
        let unread = waits.m.payload.invalidates & accessed;
        let not_run = waits.m.payload.after_atomics & !all_over;
        let held = unwritten | unread | not_run;
        due = waits.m.valid & !due & !held;
        waits.m.ready = due;

        front.issued = issued;
        front.done = done;
        front.s.valid = (s.valid & empty & !apart) | ready;
        front.s.payload = s.payload;
        front.s.payload.after_atomics = false;
        front.s.payload.atomics = bits::<5>(0);
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
