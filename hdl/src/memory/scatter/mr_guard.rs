//! Checks of placements: memory regions, receive buffers, poisoned queue pairs.
//!
//! Every piece is looked up in the memory region table. One bad piece fails the whole placement, and nothing of it is
//! written. A placement of a poisoned queue pair is void (see
//! [`Place`](crate::bus::types::Place)). Poison stands in a table of its own, read and changed in the cycle of the
//! verdict.
//!
//! [`guard_rules`](super::guard_rules) decides what follows from it.
//!
//! A placement that invalidates a key is judged alone: its last piece waits until those before it are judged, is looked up,
//! and if nothing is wrong the region table is asked to invalidate the key; then the piece goes its way. A key that cannot
//! be invalidated fails the placement as an rkey does, but its payload is written.
//!
//! Throughput: a piece a cycle, a placement with a key to invalidate about 20 cycles. Latency: the verdict comes
//! [`MR_LATENCY`] cycles after the last piece. Runs leave before their verdict. `plan` and `mr_result` do not wait for ready: there is room for every placement under way.
//! Nothing is taken before the table is swept after reset.
use super::guard_rules::GuardRules;
use super::types::{MrResult, Pending, Poison, Run, Target};
use crate::bus::dma::MR_LATENCY;
use crate::bus::types::{MrReq, MrRight, PlaceKind, WriteOwner};
use crate::memory::split::Fits;
use crate::prelude::*;

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
pub struct MrGuard<const K: usize, const Q: usize> {
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
    /// With `mr_result`: whose placement it is; `end` is not known yet.
    pub owner: Signal<Out, WriteOwner>,
    /// Placements with payload may go on.
    pub room: Signal<In, Bit>,
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
    no_owner: Zero<WriteOwner>,
    enters: Signal<Local, Pending>,
    rules: GuardRules,
    fits: Fits<K>,
}

// the poison table is read two cycles before the answer of the region table
const _: () = assert!(MR_LATENCY == 4);

impl<const K: usize, const Q: usize> Logic for MrGuard<K, Q> {
    describe!(
        "scatter_judge",
        format!("{K}_{}", 1usize << Q),
        "Decides which placements are written."
    );

    #[kernel]
    fn update(&mut self) {
        // A piece enters, a guarded one when it was looked at before.
        let guarded = s.payload.inv & s.payload.last;
        let go = runs.ready & poison.ready & room & (!guarded | (guard == Guard::Pass));
        s.ready = go;
        let accept = s.valid & go;
        let probe = s.valid & guarded & poison.ready & !under_way.any() & (guard == Guard::Idle);
        runs.valid = accept;
        fits.range.addr = s.payload.addr;
        fits.range.len = s.payload.len;
        copy!(runs.payload <= s.payload; addr, len, last, lane, beats);
        runs.payload.fits = fits.fits;
        mr.valid = accept | probe;
        copy!(mr.request <= s.payload; key, pd, addr);
        mr.request.qpn = s.payload.packet.qpn;
        mr.request.len = s.payload.len.resize::<32>();
        mr.request.right = if s.payload.packet.kind == PlaceKind::Write {
            MrRight::RemoteWrite
        } else {
            MrRight::LocalWrite
        };
        copy!(enters <= s.payload; last, short, broken, packet);
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
        poison.addr = reading.packet.qpn.low::<Q>();
        if probe {
            poison.addr = s.payload.packet.qpn.low::<Q>();
        }

        // The answer, and with the last piece the verdict.
        // The piece whose answer is there.
        let checked = pending[3];
        let is_denied = denied | (!mr.ok & !checked.inv);
        // The packet, with what is wrong with any of its pieces.
        let mut whole = checked;
        whole.short = short | checked.short;
        whole.broken = broken | checked.broken;
        let answered = mr.done & (guard != Guard::Probe);
        let ruled = answered & checked.last;
        if answered {
            denied = is_denied & !checked.last;
            short = whole.short & !checked.last;
            broken = whole.broken & !checked.last;
        }
        let found = poison.current;

        inv.valid = false;
        inv.request = no_request;
        inv.request.key = s.payload.inv_key;
        inv.request.pd = s.payload.inv_pd;
        inv.request.qpn = s.payload.packet.qpn;
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

        rules.checked = whole;
        rules.denied = is_denied;
        rules.poison = found;
        poison.write = ruled;
        poison.result = rules.next_poison;
        plan.valid = ruled;
        plan.payload = rules.written;
        mr_result.valid = ruled;
        mr_result.payload = rules.ruling;
        owner = no_owner;
        copy!(owner <= checked.packet; qpn, incarnation, unreliable);
        owner.response = checked.packet.kind == PlaceKind::Response;
    }
}
