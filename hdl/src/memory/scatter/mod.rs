//! Places the payload of received packets in host memory, and tells what is due then (docs/blocks/scatter.md).
//!
//! ```text
//!  place, slots ─► walk ─┬─ pieces ─► judge (MR check, poison) ─┬─ runs, plan ─► mover ─► command, beats (dma_write)
//!                        │                                      └─ verdict ─┐      │
//!                        └─ tail ───────────────────────────────────────────┴► report ─► ack, answer, cq, error
//!  payload ────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A packet is written whole or not at all: all its pieces pass the memory region check (local write for a receive WQE,
//! remote write for an rkey) before the first beat moves. What fails:
//!
//! | failure | NAK | CQE status, if a receive WQE fails |
//! |---|---|---|
//! | receive WQE unreadable, or its list too long for it or for a list | 0x63 | LOC_QP_OP_ERR |
//! | scatter list too short for the packet | 0x61 | LOC_LEN_ERR |
//! | region check of a scatter entry | 0x63 | LOC_PROT_ERR |
//! | region check of an rkey | 0x62 | UC: LOC_ACCESS_ERR |
//! | key to invalidate: not valid, of another protection domain, or not for peers to end | 0x62 | WR_FLUSH_ERR |
//! | send WQE (kind 3) unreadable, or its list is not as it was | none | the answer's: LOC_QP_OP_ERR |
//! | region check of an entry of that list | none | the answer's: LOC_PROT_ERR |
//!
//! A failure poisons the queue pair, but an rkey of a UC queue pair, and a list too short of UC or UD, spoil their message alone; [`Place`] says what that means. Of the answers of a poisoned queue pair only those
//! with `closed` are given; the turns of its replies are void. The acknowledgement and the completion of a
//! placement leave after its last beat was handed to `dma_write`; `fence` counts the payload bursts up to there.
//!
//! A placement whose payload is written reports itself (`owner`) with its last beat, and none is ruled on while `room` is 0.
//!
//! Throughput: a beat a cycle within a piece; a placement of one piece takes the larger one of its source and target
//! beats, one without data a cycle. Latency from `place.valid` on: `command.valid` 6 cycles, by a list 8, `beats.valid` one more (the
//! payload being there), ACK 9 or after the last beat. 64 placements are under way; receive WQEs have at most 31
//! entries in their slots. A completion that invalidates a key takes about 20 cycles alone.
//!
//! Assumes: `payload` has the beats of every placement in order; every placement with a list has its slots; the
//! memory region table is swept. Ready after reset when its own table is (2^Q cycles).
pub mod guard_rules;
pub mod move_plan;
pub mod mover;
pub mod mr_guard;
pub mod report;
pub mod types;
pub mod walk;

use crate::bus::types::{
    AckToken, Activity, Answer, CqToken, Place, PlaceError, RqSlot, WriteCmd, WriteOwner, if_there,
};
use crate::bus::valid::Valid;
use crate::prelude::*;

use mover::Mover;
use mr_guard::MrGuard;
use report::Report;
use types::{MrResult, Run, Tail};
use walk::Walk;

/// Placement of received payload, 2^Q queue pairs.
#[derive(Block)]
pub struct Scatter<const W: usize, const K: usize, const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Placements (`place_order`).
    pub place: StreamIn<Place>,
    /// WQEs of the placements with a list (`rq_fetch`).
    pub slots: StreamIn<RqSlot>,
    /// Numbers of the receive WQEs that the placements with `numbered` complete (`rq_fetch`).
    pub numbers: StreamIn<Bits<16>>,
    /// Payload (packet buffer).
    pub payload: PayloadIn<W>,
    /// Memory region check.
    pub mr: MrCheckOut,
    /// Keys to invalidate: of the request `key` and `pd` count, and the next one comes after the answer.
    pub inv: MrCheckOut,
    /// Write bursts, client 0 of `dma_write`.
    pub command: StreamOut<WriteCmd>,
    /// Their beats.
    pub beats: WriteBeatOut<W, K>,
    /// Acknowledgements and NAKs, turns of replies, ends and fresh starts of queue pairs.
    pub ack: StreamOut<AckToken>,
    /// Responses, for the requester.
    pub answer: StreamOut<Answer>,
    /// Completions of receive WQEs.
    pub cq: StreamOut<CqToken>,
    /// Failed placements (responder).
    pub error: StreamOut<PlaceError>,
    /// A placement has handed its last burst over.
    pub owner: Signal<Out, Valid<WriteOwner>>,
    /// There is room for 120 owners (`write_faults`).
    pub room: Signal<In, Bit>,
    /// Placements that are not done.
    pub activity: Signal<Out, Activity>,
    walk: Walk,
    mr_guard: MrGuard<K, Q>,
    mover: Mover<W, K>,
    report: Report,
    tails: Fifo<Tail, 6>,
    runs: Fifo<Run, 5>,
    plans: Bypass<Bit, 5>,
    mr_results: Fifo<MrResult, 6>,
    /// As deep as `tails`: the mover never waits for the report, so a burst once begun always ends.
    dones: Fifo<Bits<16>, 6>,
    /// Of each placement that is ruled on and has not ended.
    owners: Fifo<WriteOwner, 6>,
    /// Payload bursts so far.
    bursts: Reg<Bits<16>>,
}

impl<const W: usize, const K: usize, const Q: usize> Logic for Scatter<W, K, Q> {
    describe!(
        "scatter",
        format!("{W}_{}", 1usize << Q),
        "Places received payload in host memory."
    );

    #[kernel]
    fn update(&mut self) {
        forward!(place <= walk.place);
        forward!(slots <= walk.slots);
        forward!(numbers <= walk.numbers);
        forward!(mr_guard.s <= walk.m);
        forward!(tails.s <= walk.tail);
        forward!(mr <= mr_guard.mr);
        forward!(inv <= mr_guard.inv);
        forward!(runs.s <= mr_guard.runs);
        forward!(plans.s <= mr_guard.plan);
        forward!(mr_results.s <= mr_guard.mr_result);
        forward!(mover.runs <= runs.m);
        forward!(mover.plan <= plans.m);
        forward!(payload <= mover.payload);
        forward!(command <= mover.command);
        forward!(beats <= mover.beats);
        forward!(dones.s <= mover.done);
        mr_guard.room = room;
        owners.s.valid = mr_guard.mr_result.valid;
        owners.s.payload = mr_guard.owner;
        owners.m.ready = mover.done.valid;
        if mover.done.valid {
            bursts = mover.done.payload;
        }
        owner.valid = mover.done.valid & (mover.done.payload != bursts);
        owner.payload = owners.m.payload;
        owner.payload.end = mover.done.payload;
        forward!(report.done <= dones.m);
        forward!(report.tail <= tails.m);
        forward!(report.mr_result <= mr_results.m);
        forward!(ack <= report.ack);
        forward!(answer <= report.answer);
        forward!(cq <= report.cq);
        forward!(error <= report.error);
        activity.busy = place.valid | tails.m.valid;
        activity.moved = tails.m.valid & report.tail.ready;
        // the first pieces of one in the walk may be checked already
        activity.level = tails.level + if_there(place.valid, bits::<16>(1));
    }
}
