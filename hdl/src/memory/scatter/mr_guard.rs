//! Checks of placements: memory regions, receive buffers, poisoned queue pairs.
//!
//! Every piece is looked up in the memory region table. One bad piece fails the whole placement, and nothing of it is
//! written. A placement of a poisoned queue pair is void (see
//! [`Place`](crate::bus::types::Place)). Poison stands in a table of its own, read and changed in the cycle of the
//! verdict.
//!
//! A WRITE of an unreliable queue pair (kind 1) that fails is dropped, and the rest of its message with it: the queue pair
//! is not poisoned, and the failure is reported once. One that completes a receive WQE poisons it nevertheless, for a WQE
//! that is taken cannot be given back. Nor does a message of such a queue pair that is longer than its receive buffer poison
//! it (kind 2): the rest of it is dropped, and its receive WQE completes with a length error.
//!
//! A placement that invalidates a key is judged alone: its last piece waits until those before it are judged, is looked up,
//! and if nothing is wrong the region table is asked to invalidate the key; then the piece goes its way. A key that cannot
//! be invalidated fails the placement as an rkey does, but its payload is written.
//!
//! Throughput: a piece a cycle, a placement with a key to invalidate about 20 cycles. Latency: the verdict comes
//! [`MR_LATENCY`] cycles after the last piece. Runs leave before their verdict. `plan` and `mr_result` do not wait for ready: there is room for every placement under way.
//! Nothing is taken before the table is swept after reset.
use super::types::{MrResult, Pending, Poison, Run, Target, cause};
use crate::bus::dma::MR_LATENCY;
use crate::bus::types::{MrReq, MrRight};
use crate::prelude::*;

const FLUSH: u64 = cause::FLUSH;
const LENGTH: u64 = cause::LENGTH;
const PROTECTION: u64 = cause::PROTECTION;
const OPERATION: u64 = cause::OPERATION;

/// The last piece of a placement with a key to invalidate.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum Guard {
    /// There is none, or it waits.
    Idle,
    /// It is looked up.
    Probe,
    /// The key is to be invalidated.
    Ask,
    /// It is being invalidated.
    Wait,
    /// The piece may go.
    Pass,
}

/// Verdicts for 2^Q queue pairs.
#[derive(Block)]
#[block(no_default)]
pub struct MrGuard<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Pieces.
    pub s: StreamIn<Target>,
    /// Memory region checks.
    pub mr: MrCheckOut,
    /// Keys to invalidate, one at a time: of the request `key` and `pd` count.
    pub inv: MrCheckOut,
    /// Pieces on their way to the data mover.
    pub runs: StreamOut<Run>,
    /// For the data mover: the packet is to be written.
    pub plan: StreamOut<Bit>,
    /// For the report.
    pub mr_result: StreamOut<MrResult>,
    poison: Rmw<Poison, Q>,
    pending: [Dff<Pending>; MR_LATENCY],
    under_way: Reg<Bits<MR_LATENCY>>,
    denied: Reg<Bit>,
    short: Reg<Bit>,
    broken: Reg<Bit>,
    guard: Reg<Guard>,
    refused: Reg<Bit>,
    void: Reg<Bit>,
    no_request: Zero<MrReq>,
    enters: Signal<Local, Pending>,
    ruling: Signal<Local, MrResult>,
}

// the poison table is read two cycles before the answer of the region table
const _: () = assert!(MR_LATENCY == 4);

impl<const Q: usize> Default for MrGuard<Q> {
    fn default() -> Self {
        Self {
            clock: ClkRst::default(),
            s: StreamIn::default(),
            mr: MrCheckOut::default(),
            inv: MrCheckOut::default(),
            runs: StreamOut::default(),
            plan: StreamOut::default(),
            mr_result: StreamOut::default(),
            poison: Rmw::default(),
            pending: Default::default(),
            under_way: Reg::default(),
            denied: Reg::default(),
            short: Reg::default(),
            broken: Reg::default(),
            guard: Reg::default(),
            refused: Reg::default(),
            void: Reg::default(),
            no_request: Zero::default(),
            enters: Signal::default(),
            ruling: Signal::default(),
        }
    }
}

impl<const Q: usize> Logic for MrGuard<Q> {
    describe!(
        "scatter_judge",
        format!("{}", 1usize << Q),
        "Decides which placements are written."
    );

    #[kernel]
    fn update(&mut self) {
        // A piece enters, a guarded one when it was looked at before.
        let guarded = s.payload.inv & s.payload.last;
        let go = runs.ready & poison.ready & (!guarded | (guard == Guard::Pass));
        s.ready = go;
        let accept = s.valid & go;
        let probe = s.valid & guarded & poison.ready & !under_way.any() & (guard == Guard::Idle);
        runs.valid = accept;
        copy!(runs.payload <= s.payload; addr, len, last, lane, beats);
        mr.valid = accept | probe;
        copy!(mr.request <= s.payload; key, pd, qpn, addr);
        mr.request.len = s.payload.len.resize::<32>();
        mr.request.right = MrRight::LocalWrite;
        if s.payload.kind == 1 {
            mr.request.right = MrRight::RemoteWrite;
        }
        copy!(enters <= s.payload;
            last, short, broken, qpn, kind, unreliable, opens, complete, reset, answer, closed);
        enters.inv = guarded;
        enters.refused = guarded & refused;
        under_way = (under_way << 1).replace_bit(0, accept);
        pending[0] = enters;
        for i in 1..4 {
            pending[i] = pending[i - 1];
        }

        // Two cycles before the answer.
        let reading = pending[1];
        poison.valid = probe | (under_way.bit(1) & reading.last);
        poison.addr = reading.qpn.low::<Q>();
        if probe {
            poison.addr = s.payload.qpn.low::<Q>();
        }

        // The answer, and with the last piece the verdict.
        // The piece whose answer is there.
        let judged = pending[3];
        let is_denied = denied | (!mr.ok & !judged.inv);
        let is_short = short | judged.short;
        let is_broken = broken | judged.broken;
        let ruled = mr.done & judged.last & (guard != Guard::Probe);
        if mr.done & (guard != Guard::Probe) {
            denied = is_denied & !judged.last;
            short = is_short & !judged.last;
            broken = is_broken & !judged.last;
        }
        let found = poison.current;
        // It is a WRITE of an unreliable queue pair.
        let is_plain = judged.unreliable & (judged.kind == 1);
        // Of a message of which a packet before it failed.
        let is_scattered = judged.unreliable & (judged.kind == 2);
        let is_late = (is_plain | is_scattered) & !judged.opens & found.dropping;
        let is_long = is_scattered & (is_late | (is_short & !is_broken));

        inv.valid = false;
        inv.request = no_request;
        inv.request.key = s.payload.inv_key;
        inv.request.pd = s.payload.pd;
        inv.request.qpn = s.payload.qpn;
        let spoiled = void | denied | short | broken | s.payload.short | s.payload.broken;
        match guard {
            Guard::Idle => {
                refused = false;
                if probe {
                    guard = Guard::Probe;
                }
            }
            Guard::Probe => {
                if poison.x_valid {
                    void = found.poisoned;
                }
                if mr.done {
                    denied = denied | !mr.ok;
                    guard = Guard::Ask;
                    if spoiled | !mr.ok {
                        guard = Guard::Pass;
                    }
                }
            }
            Guard::Ask => {
                inv.valid = true;
                guard = Guard::Wait;
            }
            Guard::Wait => {
                if inv.done {
                    refused = !inv.ok;
                    guard = Guard::Pass;
                }
            }
            Guard::Pass => {
                if accept {
                    guard = Guard::Idle;
                }
            }
            _ => {}
        }

        let mut left = found;
        ruling.good = false;
        ruling.nak = bits::<2>(0);
        ruling.complete = judged.complete;
        ruling.cause = FLUSH;
        ruling.answer = judged.answer;
        ruling.spared = false;
        let mut written = false;
        if judged.reset {
            left.poisoned = false;
            left.dropping = false;
            left.cause = FLUSH;
            ruling.complete = false;
            ruling.answer = false;
        } else if found.poisoned {
            ruling.cause = found.cause;
            ruling.answer = judged.answer & judged.closed;
            if judged.complete {
                left.cause = FLUSH;
            }
        } else if is_plain & !judged.complete & (is_denied | is_late) {
            // one NAK a message
            if !is_late {
                ruling.nak = bits::<2>(2);
            }
            ruling.spared = true;
            left.dropping = true;
        } else if is_long {
            // one NAK a message too
            if !is_late {
                ruling.nak = bits::<2>(1);
            }
            ruling.cause = LENGTH;
            ruling.spared = true;
            left.dropping = true;
        } else if is_broken | is_short | is_denied | is_late {
            // The NAK codes of IBA vol. 1, 9.7.5.2.8: 1 invalid request, 2 remote access, 3 remote operational.
            if judged.kind == 1 {
                ruling.nak = bits::<2>(2);
            } else if judged.kind == 3 {
                // The list was good when the request was sent.
                ruling.cause = PROTECTION;
                if is_broken | is_short {
                    ruling.cause = OPERATION;
                }
            } else if is_broken {
                ruling.nak = bits::<2>(3);
                ruling.cause = OPERATION;
            } else if is_short {
                ruling.nak = bits::<2>(1);
                ruling.cause = LENGTH;
            } else {
                ruling.nak = bits::<2>(3);
                ruling.cause = PROTECTION;
            }
            left.poisoned = true;
            left.cause = FLUSH;
            if !judged.complete & (judged.kind != 3) {
                left.cause = ruling.cause;
            }
        } else if judged.refused {
            ruling.nak = bits::<2>(2);
            left.poisoned = true;
            left.cause = FLUSH;
            written = true;
        } else {
            written = true;
            ruling.good = true;
            ruling.complete = false;
            if (judged.kind == 1) | is_scattered {
                left.dropping = false;
            }
        }
        poison.write = ruled;
        poison.result = left;
        plan.valid = ruled;
        plan.payload = written;
        mr_result.valid = ruled;
        mr_result.payload = ruling;
    }
}
