//! The verdict on placements: memory regions, receive buffers, poisoned queue pairs.
//!
//! Every piece is looked up in the memory region table; what is wrong with any piece of a placement is wrong with the
//! placement, and nothing of it is written. A placement of a poisoned queue pair is void (see
//! [`Place`](crate::bus::types::Place)). Poison stands in a table of its own, read and changed in the cycle of the
//! verdict.
//!
//! A WRITE of an unreliable queue pair (kind 1) that fails is dropped, and the rest of its message with it: the queue pair
//! is not poisoned, and the failure is reported once. One that completes a receive WQE poisons it nevertheless, for a WQE
//! that is taken cannot be given back.
//!
//! A placement that invalidates a key is judged alone: its last piece waits until those before it are judged, is looked up,
//! and if nothing is wrong the region table is asked to invalidate the key; then the piece goes its way. A key that cannot
//! be invalidated fails the placement as an rkey does, but its payload is written.
//!
//! Throughput: a piece a cycle, a placement with a key to invalidate about 20 cycles. Latency: the verdict comes
//! [`MR_LATENCY`] cycles after the last piece. Runs leave before their verdict. `plan` and `verdict` do not wait for ready: there is room for every placement under way.
//! Nothing is taken before the table is swept after reset.
use super::types::{Pending, Poison, Run, Target, Verdict, cause};
use crate::bus::dma::MR_LATENCY;
use crate::bus::types::MrReq;
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
#[derive(LogicBlock)]
pub struct Judge<const Q: usize> {
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
    pub verdict: StreamOut<Verdict>,
    poison: Rmw<Poison, Q>,
    pending: [Dff<Pending>; MR_LATENCY],
    under_way: Reg<Bits<MR_LATENCY>>,
    denied: Reg<Bit>,
    short: Reg<Bit>,
    broken: Reg<Bit>,
    guard: Reg<Guard>,
    refused: Reg<Bit>,
    void: Reg<Bit>,
    guarded: Signal<Local, Bit>,
    probe: Signal<Local, Bit>,
    spoiled: Signal<Local, Bit>,
    no_request: Zero<MrReq>,
    accept: Signal<Local, Bit>,
    go: Signal<Local, Bit>,
    enters: Signal<Local, Pending>,
    reading: Signal<Local, Pending>,
    /// The piece whose answer is there.
    judged: Signal<Local, Pending>,
    is_denied: Signal<Local, Bit>,
    is_short: Signal<Local, Bit>,
    is_broken: Signal<Local, Bit>,
    /// It is a WRITE of an unreliable queue pair.
    is_plain: Signal<Local, Bit>,
    /// Of a message of which a packet before it failed.
    is_late: Signal<Local, Bit>,
    ruled: Signal<Local, Bit>,
    written: Signal<Local, Bit>,
    found: Signal<Local, Poison>,
    left: Signal<Local, Poison>,
    ruling: Signal<Local, Verdict>,
}

impl<const Q: usize> Default for Judge<Q> {
    fn default() -> Self {
        assert!(
            MR_LATENCY == 4,
            "the poison table is read two cycles before the answer of the region table"
        );
        Self {
            clock: ClkRst::default(),
            s: StreamIn::default(),
            mr: MrCheckOut::default(),
            inv: MrCheckOut::default(),
            runs: StreamOut::default(),
            plan: StreamOut::default(),
            verdict: StreamOut::default(),
            poison: Rmw::default(),
            pending: Default::default(),
            under_way: Reg::default(),
            denied: Reg::default(),
            short: Reg::default(),
            broken: Reg::default(),
            guard: Reg::default(),
            refused: Reg::default(),
            void: Reg::default(),
            guarded: Signal::default(),
            probe: Signal::default(),
            spoiled: Signal::default(),
            no_request: Zero::default(),
            accept: Signal::default(),
            go: Signal::default(),
            enters: Signal::default(),
            reading: Signal::default(),
            judged: Signal::default(),
            is_denied: Signal::default(),
            is_short: Signal::default(),
            is_broken: Signal::default(),
            is_plain: Signal::default(),
            is_late: Signal::default(),
            ruled: Signal::default(),
            written: Signal::default(),
            found: Signal::default(),
            left: Signal::default(),
            ruling: Signal::default(),
        }
    }
}

impl<const Q: usize> Logic for Judge<Q> {
    describe!("scatter_judge", format!("{}", 1usize << Q), "Decides which placements are written.";
        FLUSH, LENGTH, PROTECTION, OPERATION);

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, poison);
        dff_setup!(
            self, clock, under_way, denied, short, broken, guard, refused, void
        );
        for i in 0..4 {
            ClkRst::link(&mut self.clock, &mut self.pending[i].clock);
        }

        // A piece enters, a guarded one when it was looked at before.
        self.guarded.next = self.s.payload.val().inv & self.s.payload.val().last;
        self.go.next = self.runs.ready.val()
            & self.poison.ready.val()
            & (!self.guarded.val() | (self.guard.q.val() == Guard::Pass));
        self.s.ready.next = self.go.val();
        self.accept.next = self.s.valid.val() & self.go.val();
        self.probe.next = self.s.valid.val()
            & self.guarded.val()
            & self.poison.ready.val()
            & !self.under_way.q.val().any()
            & (self.guard.q.val() == Guard::Idle);
        self.runs.valid.next = self.accept.val();
        self.runs.payload.next.addr = self.s.payload.val().addr;
        self.runs.payload.next.len = self.s.payload.val().len;
        self.runs.payload.next.last = self.s.payload.val().last;
        self.runs.payload.next.lane = self.s.payload.val().lane;
        self.runs.payload.next.beats = self.s.payload.val().beats;
        self.mr.valid.next = self.accept.val() | self.probe.val();
        self.mr.request.next.key = self.s.payload.val().key;
        self.mr.request.next.pd = self.s.payload.val().pd;
        self.mr.request.next.qpn = self.s.payload.val().qpn;
        self.mr.request.next.addr = self.s.payload.val().addr;
        self.mr.request.next.len = bit_cast::<32, 13>(self.s.payload.val().len);
        self.mr.request.next.right = bits::<3>(1);
        if self.s.payload.val().kind == 1 {
            self.mr.request.next.right = bits::<3>(2);
        }
        self.enters.next.last = self.s.payload.val().last;
        self.enters.next.short = self.s.payload.val().short;
        self.enters.next.broken = self.s.payload.val().broken;
        self.enters.next.qpn = self.s.payload.val().qpn;
        self.enters.next.kind = self.s.payload.val().kind;
        self.enters.next.unreliable = self.s.payload.val().unreliable;
        self.enters.next.opens = self.s.payload.val().opens;
        self.enters.next.complete = self.s.payload.val().complete;
        self.enters.next.reset = self.s.payload.val().reset;
        self.enters.next.answer = self.s.payload.val().answer;
        self.enters.next.closed = self.s.payload.val().closed;
        self.enters.next.inv = self.guarded.val();
        self.enters.next.refused = self.guarded.val() & self.refused.q.val();
        self.under_way.d.next = (self.under_way.q.val() << 1).replace_bit(0, self.accept.val());
        self.pending[0].d.next = self.enters.val();
        for i in 1..4 {
            self.pending[i].d.next = self.pending[i - 1].q.val();
        }

        // Two cycles before the answer.
        self.reading.next = self.pending[1].q.val();
        self.poison.valid.next =
            self.probe.val() | (self.under_way.q.val().get_bit(1) & self.reading.val().last);
        self.poison.addr.next = self.reading.val().qpn.get_bits::<Q>(0);
        if self.probe.val() {
            self.poison.addr.next = self.s.payload.val().qpn.get_bits::<Q>(0);
        }

        // The answer, and with the last piece the verdict.
        self.judged.next = self.pending[3].q.val();
        self.is_denied.next = self.denied.q.val() | (!self.mr.ok.val() & !self.judged.val().inv);
        self.is_short.next = self.short.q.val() | self.judged.val().short;
        self.is_broken.next = self.broken.q.val() | self.judged.val().broken;
        self.ruled.next =
            self.mr.done.val() & self.judged.val().last & (self.guard.q.val() != Guard::Probe);
        if self.mr.done.val() & (self.guard.q.val() != Guard::Probe) {
            self.denied.d.next = self.is_denied.val() & !self.judged.val().last;
            self.short.d.next = self.is_short.val() & !self.judged.val().last;
            self.broken.d.next = self.is_broken.val() & !self.judged.val().last;
        }
        self.found.next = self.poison.current.val();
        self.is_plain.next = self.judged.val().unreliable & (self.judged.val().kind == 1);
        self.is_late.next =
            self.is_plain.val() & !self.judged.val().opens & self.found.val().dropping;

        self.inv.valid.next = false;
        self.inv.request.next = self.no_request.val();
        self.inv.request.next.key = self.s.payload.val().inv_key;
        self.inv.request.next.pd = self.s.payload.val().pd;
        self.inv.request.next.qpn = self.s.payload.val().qpn;
        self.spoiled.next = self.void.q.val()
            | self.denied.q.val()
            | self.short.q.val()
            | self.broken.q.val()
            | self.s.payload.val().short
            | self.s.payload.val().broken;
        match self.guard.q.val() {
            Guard::Idle => {
                self.refused.d.next = false;
                if self.probe.val() {
                    self.guard.d.next = Guard::Probe;
                }
            }
            Guard::Probe => {
                if self.poison.x_valid.val() {
                    self.void.d.next = self.found.val().poisoned;
                }
                if self.mr.done.val() {
                    self.denied.d.next = self.denied.q.val() | !self.mr.ok.val();
                    self.guard.d.next = Guard::Ask;
                    if self.spoiled.val() | !self.mr.ok.val() {
                        self.guard.d.next = Guard::Pass;
                    }
                }
            }
            Guard::Ask => {
                self.inv.valid.next = true;
                self.guard.d.next = Guard::Wait;
            }
            Guard::Wait => {
                if self.inv.done.val() {
                    self.refused.d.next = !self.inv.ok.val();
                    self.guard.d.next = Guard::Pass;
                }
            }
            Guard::Pass => {
                if self.accept.val() {
                    self.guard.d.next = Guard::Idle;
                }
            }
            _ => {}
        }

        self.left.next = self.found.val();
        self.ruling.next.good = false;
        self.ruling.next.nak = bits::<2>(0);
        self.ruling.next.complete = self.judged.val().complete;
        self.ruling.next.cause = FLUSH.into();
        self.ruling.next.answer = self.judged.val().answer;
        self.ruling.next.spared = false;
        self.written.next = false;
        if self.judged.val().reset {
            self.left.next.poisoned = false;
            self.left.next.dropping = false;
            self.left.next.cause = FLUSH.into();
            self.ruling.next.complete = false;
            self.ruling.next.answer = false;
        } else if self.found.val().poisoned {
            self.ruling.next.cause = self.found.val().cause;
            self.ruling.next.answer = self.judged.val().answer & self.judged.val().closed;
            if self.judged.val().complete {
                self.left.next.cause = FLUSH.into();
            }
        } else if self.is_plain.val()
            & !self.judged.val().complete
            & (self.is_denied.val() | self.is_late.val())
        {
            // told once a message
            if !self.is_late.val() {
                self.ruling.next.nak = bits::<2>(2);
            }
            self.ruling.next.spared = true;
            self.left.next.dropping = true;
        } else if self.is_broken.val()
            | self.is_short.val()
            | self.is_denied.val()
            | self.is_late.val()
        {
            // The NAK codes of IBA vol. 1, 9.7.5.2.8: 1 invalid request, 2 remote access, 3 remote operational.
            if self.judged.val().kind == 1 {
                self.ruling.next.nak = bits::<2>(2);
            } else if self.judged.val().kind == 3 {
                // The list was good when the request was sent.
                self.ruling.next.cause = PROTECTION.into();
                if self.is_broken.val() | self.is_short.val() {
                    self.ruling.next.cause = OPERATION.into();
                }
            } else if self.is_broken.val() {
                self.ruling.next.nak = bits::<2>(3);
                self.ruling.next.cause = OPERATION.into();
            } else if self.is_short.val() {
                self.ruling.next.nak = bits::<2>(1);
                self.ruling.next.cause = LENGTH.into();
            } else {
                self.ruling.next.nak = bits::<2>(3);
                self.ruling.next.cause = PROTECTION.into();
            }
            self.left.next.poisoned = true;
            self.left.next.cause = FLUSH.into();
            if !self.judged.val().complete & (self.judged.val().kind != 3) {
                self.left.next.cause = self.ruling.val().cause;
            }
        } else if self.judged.val().refused {
            self.ruling.next.nak = bits::<2>(2);
            self.left.next.poisoned = true;
            self.left.next.cause = FLUSH.into();
            self.written.next = true;
        } else {
            self.written.next = true;
            self.ruling.next.good = true;
            self.ruling.next.complete = false;
            if self.judged.val().kind == 1 {
                self.left.next.dropping = false;
            }
        }
        self.poison.write.next = self.ruled.val();
        self.poison.result.next = self.left.val();
        self.plan.valid.next = self.ruled.val();
        self.plan.payload.next = self.written.val();
        self.verdict.valid.next = self.ruled.val();
        self.verdict.payload.next = self.ruling.val();
    }
}
