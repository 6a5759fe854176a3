//! Atomics to run: those whose fence is passed, whatever is to be answered before them.
//!
//! ```text
//!  state ─► list of queue pairs ─► admit ─► state (rules) ─► start ─► ring ─► region check, AtomicOp ─► outcome
//!                  ▲                                                                                       │
//!                  └───────────────────────────────── listed again ◄───────────────────────────────────────┘
//! ```
//!
//! Each queue pair is in the list once, so there is room. One with atomics left is listed again when the rkey of its latest
//! one is checked. What stands here waits for host memory alone.
//!
//! Throughput: an atomic a cycle, of one queue pair when the one before is checked. At most 16 run at once.
use super::atomic_types::*;
use crate::bus::dma::MR_LATENCY;
use crate::bus::types::{Activity, MrReq, MrRight};
use crate::bus::valid::Valid;
use crate::prelude::*;

/// Atomics to run of 2^Q queue pairs.
#[derive(Block)]
pub struct AtomicRuns<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// An atomic enters its ring, in this slot.
    pub enter: Signal<In, Valid<Bits<4>>>,
    /// Its queue pair.
    pub enter_qpn: Signal<In, Bits<Q>>,
    /// The atomic.
    pub entered: Signal<In, AtomicWord>,
    /// A queue pair is to be listed.
    pub list: Signal<In, Valid<RunEntry>>,
    /// Queue pairs whose next atomic may run.
    pub m: StreamOut<RunEntry>,
    /// The atomic that runs.
    pub start: Signal<In, Valid<RunStart>>,
    /// None ran of a queue pair.
    pub none: Signal<In, Bit>,
    /// In the next cycle an rkey is checked.
    pub ahead: Signal<Out, Bit>,
    /// An atomic leaves, and its rkey is checked.
    pub valid: Signal<Out, Bit>,
    /// The atomic.
    pub op: Signal<Out, AtomicOp>,
    /// The check.
    pub request: Signal<Out, MrReq>,
    /// The answer of a check is there, of an atomic or not.
    pub checked: Signal<In, Bit>,
    /// It passed.
    pub ok: Signal<In, Bit>,
    /// It is that of an atomic.
    pub decided: Signal<Out, Bit>,
    /// An atomic is over.
    pub over: Signal<In, Bit>,
    /// Queue pairs that are listed, and atomics that run.
    pub activity: Signal<Out, Activity>,

    ring: RingRam<AtomicWord, Q, 4>,
    listed: Fifo<RunEntry, Q>,
    /// Queue pairs whose latest atomic is checked.
    again: Fifo<RunEntry, 4>,
    /// Atomics that run, and queue pairs on their way from the list to `start` or `none`.
    running: Reg<Bits<5>>,
    there: Reg<Bit>,
    start_1: Dff<RunStart>,
    valid_q: Reg<Bit>,
    op_q: Dff<AtomicOp>,
    request_q: Dff<MrReq>,
    under_check: [Reg<Bit>; MR_LATENCY],
    checks: Fifo<RunEntry, 4>,
}

impl<const Q: usize> Logic for AtomicRuns<Q> {
    describe!(
        "reply_runs",
        format!("q{Q}"),
        "Atomics to run, apart from what is answered."
    );

    #[kernel]
    fn update(&mut self) {
        // the list: what the table says goes first
        listed.s.valid = list.valid | again.m.valid;
        listed.s.payload = if list.valid {
            list.payload
        } else {
            again.m.payload
        };
        again.m.ready = !list.valid;
        assert!(!list.valid | listed.s.ready, "a queue pair is listed twice");
        let room = !running.bit(4);
        m.valid = listed.m.valid & room;
        m.payload = listed.m.payload;
        listed.m.ready = m.ready & room;
        let comes = listed.m.valid & room & m.ready;
        let mut left = running;
        if none {
            left = left - 1;
        }
        if over {
            left = left - 1;
        }
        // `comes` is known last
        let more = left + 1;
        running = if comes { more } else { left };
        activity = Activity {
            busy: running.any() | listed.m.valid | again.m.valid,
            moved: over,
            level: running.resize::<16>() + listed.level + again.level,
        };

        // the atomic
        ring.we = enter.valid;
        ring.wring = enter_qpn;
        ring.wslot = enter.payload;
        ring.wdata = entered;
        ring.re = start.valid;
        ring.rring = start.payload.qpn.low::<Q>();
        ring.rslot = start.payload.slot;
        there = start.valid;
        start_1 = start.payload;
        ahead = there;
        let word = ring.rdata;
        valid_q = there;
        copy!(op_q <= start_1; qpn, generation, slot);
        copy!(op_q <= word; add, psn, va, swap_add, compare);
        op_q.denied = false;
        request_q = MrReq {
            key: word.rkey,
            pd: word.pd,
            qpn: start_1.qpn,
            addr: word.va,
            len: 8,
            right: MrRight::RemoteAtomic,
        };
        valid = valid_q;
        op = op_q;
        request = request_q;

        // its check
        under_check[0] = valid_q;
        for i in 1..4 {
            under_check[i] = under_check[i - 1];
        }
        checks.s.valid = valid_q;
        copy!(checks.s.payload <= op_q; qpn, generation, denied);
        let outcome = checked & under_check[3];
        decided = outcome;
        checks.m.ready = outcome;
        again.s.valid = outcome;
        again.s.payload = checks.m.payload;
        again.s.payload.denied = !ok;
    }
}
