//! The dynamic state of all receive queues and the rules that change it.
//!
//! One [`RqEvent`] a cycle enters, with the packet beside it if it is one; 6 cycles later its results leave, registered:
//! at most one decision, one entry for the flush list, one answer to a command. Consumers have room by
//! construction: the parent admits an event only when they do, and a queue pair stands in the flush list at most once.
//!
//! ```text
//!  cycle n      n+1, n+2     n+3          n+4            n+5 (X)      n+6
//!  event ─► delay ─────────► state read ─► rkey verdict ─► decision ─► out
//! ```
//!
//! The memory region check of an rkey is asked for in cycle n by the parent, so its verdict arrives one
//! cycle before stage X. Stage X sees the state after all earlier events ([`Rmw`]): packets of one queue pair may
//! follow each other in every cycle.
//!
//! A queue pair takes its receive WQEs from its own ring or from a shared receive queue, whose indices stand in
//! [`SrqTable`] beside. One that it took is its own until it is completed (`held`): a message that UC or UD drops leaves it
//! to the next, a failure flushes it.
//!
//! What a packet meets is in [`rq_rules`](super::rq_rules), what becomes of the state here.
use ferroce_proto::abi::qpc::state;

use super::event::reason::GOOD;
use super::event::*;
use super::rq_rules::{RqFate, RqNotes, RqRules};
use super::srq_table::{SrqLimit, SrqTable};
use crate::bus::dma::MR_LATENCY;
use crate::bus::types::image::{QpState, SrqCtx};
use crate::cell::delay::Delay;
use crate::prelude::*;

const _: () = assert!(MR_LATENCY == 4, "the delay before stage X is made for it");

const RESET: u64 = state::RESET as u64;
const ERR: u64 = state::ERR as u64;

/// State of 2^Q receive queues and 2^S shared receive queues.
#[derive(LogicBlock, Default)]
pub struct RqStateTable<const Q: usize, const S: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// An event enters; 0 in reset.
    pub valid: Signal<In, Bit>,
    /// The event.
    pub entry: Signal<In, RqEvent>,
    /// The packet, if it is one.
    pub request: Signal<In, RqRequest>,
    /// Verdict on the rkey of the packet that entered [`MR_LATENCY`] cycles ago.
    pub rkey_ok: Signal<In, Bit>,
    /// A command writes what the flush knows of queue pair `image_qpn`.
    pub image_we: Signal<In, Bit>,
    /// Queue pair.
    pub image_qpn: Signal<In, Bits<Q>>,
    /// See there.
    pub image: Signal<In, RqFlush>,
    /// A command writes the image of shared receive queue `srq_srqn`.
    pub srq_we: Signal<In, Bit>,
    /// Shared receive queue.
    pub srq_srqn: Signal<In, Bits<S>>,
    /// Its image.
    pub srq_image: Signal<In, SrqCtx>,
    /// A shared receive queue fell below its limit.
    pub limit_valid: Signal<Out, Bit>,
    /// Which.
    pub limit: Signal<Out, SrqLimit>,
    /// A decision.
    pub decision_valid: Signal<Out, Bit>,
    /// The decision.
    pub decision: Signal<Out, RqDecision>,
    /// The packet it is on, if it is on one.
    pub decided: Signal<Out, RqRequest>,
    /// The queue pair has receive WQEs to flush.
    pub flush_valid: Signal<Out, Bit>,
    /// Which.
    pub flush_qpn: Signal<Out, Bits<16>>,
    /// Answer to Command or SrqCommand.
    pub query_valid: Signal<Out, Bit>,
    /// Answer to Command: responder's part of the state, before the command.
    pub query: Signal<Out, QpState>,
    /// The table is swept after reset.
    pub ready: Signal<Out, Bit>,

    table: Rmw<RqState, Q>,
    flushes: Ram<RqFlush, Q>,
    srqs: SrqTable<S>,
    valid_3: Delay<Bit, 3>,
    event_3: Delay<RqEvent, 3>,
    event_5: Delay<RqEvent, 2>,
    request_4: Delay<RqRequest, 4>,
    request_5: Dff<RqRequest>,

    // prepared for stage X
    q: Signal<Local, RqRequest>,
    r: Signal<Local, RqRequest>,
    behind: Signal<Local, Bits<24>>,
    notes_5: Dff<RqNotes>,
    ring_5: Dff<Bits<16>>,
    flush_5: Dff<RqFlush>,

    // stage X
    x: Signal<Local, RqEvent>,
    p: Signal<Local, RqRequest>,
    c: Signal<Local, RqState>,
    n: Signal<Local, RqState>,
    write: Signal<Local, Bit>,
    packet: Signal<Local, Bit>,
    rules: RqRules,
    f: Signal<Local, RqFate>,
    stale: Signal<Local, Bit>,
    fail: Signal<Local, Bit>,
    misplaced: Signal<Local, Bit>,
    wake: Signal<Local, Bit>,
    restart: Signal<Local, Bit>,
    posted: Signal<Local, Bit>,
    shared: Signal<Local, Bit>,
    flushing: Signal<Local, Bit>,
    own: Signal<Local, Bits<16>>,

    // stage W
    w_decision_valid: Reg<Bit>,
    w_decision: Dff<RqDecision>,
    w_request: Dff<RqRequest>,
    w_flush: Reg<Bit>,
    w_query: Reg<Bit>,
    w_state: Dff<QpState>,
    w_qpn: Dff<Bits<16>>,
}

impl<const Q: usize, const S: usize> Logic for RqStateTable<Q, S> {
    describe!(
        "rq_state",
        format!("q{Q}_s{S}"),
        "Dynamic state of all receive queues: one event a cycle.";
        RESET, ERR, GOOD
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(
            self, clock, table, flushes, srqs, valid_3, event_3, event_5, request_4
        );
        dff_setup!(self, clock, request_5, notes_5, ring_5, flush_5);
        dff_setup!(self, clock, w_decision_valid, w_decision, w_request);
        dff_setup!(self, clock, w_flush, w_query, w_state, w_qpn);

        // stages 1 to 5
        self.valid_3.d.next = self.valid.val();
        self.event_3.d.next = self.entry.val();
        self.event_5.d.next = self.event_3.q.val();
        self.request_4.d.next = self.request.val();
        self.ready.next = self.table.ready.val() & self.srqs.ready.val();
        self.table.valid.next = self.valid_3.q.val();
        self.table.addr.next = self.event_3.q.val().qpn.get_bits::<Q>(0);
        self.flushes.we.next = self.image_we.val();
        self.flushes.waddr.next = self.image_qpn.val();
        self.flushes.wdata.next = self.image.val();
        self.flushes.re.next = true;
        self.flushes.raddr.next = self.event_3.q.val().qpn.get_bits::<Q>(0);
        self.flush_5.d.next = self.flushes.rdata.val();
        self.srqs.valid.next = self.valid_3.q.val();
        self.srqs.srqn.next = self.event_3.q.val().srqn;
        self.srqs.x.next = self.event_5.q.val();
        self.srqs.image_we.next = self.srq_we.val();
        self.srqs.image_srqn.next = self.srq_srqn.val();
        self.srqs.image.next = self.srq_image.val();
        self.limit_valid.next = self.srqs.limit_valid.val();
        self.limit.next = self.srqs.limit.val();
        self.q.next = self.request_4.q.val();
        // the ring of the shared receive queue in place of the own; its protection domain is that of the scatter list
        self.r.next = self.request_4.q.val();
        if self.q.val().srq_valid {
            self.r.next.rq_base = self.srqs.shape.val().base;
            self.r.next.rq_log = self.srqs.shape.val().log;
            self.r.next.rq_stride = self.srqs.shape.val().stride;
            if self.q.val().send {
                self.r.next.pd = self.srqs.shape.val().pd;
            }
        }
        self.request_5.d.next = self.r.val();
        self.notes_5.d.next.good = self.q.val().reason == GOOD;
        self.notes_5.d.next.denied = self.q.val().checked & !self.rkey_ok.val();
        self.notes_5.d.next.needs = (self.q.val().send & self.q.val().first)
            | (self.q.val().write & self.q.val().last & self.q.val().with_imm);
        self.notes_5.d.next.asks = self.q.val().read | self.q.val().atomic;
        self.behind.next = self.q.val().psn + 1;
        if self.q.val().read {
            self.behind.next = self.q.val().psn + 1 + bit_cast::<24, 23>(self.q.val().more);
        }
        self.notes_5.d.next.behind = self.behind.val();
        self.ring_5.d.next = (bits::<16>(1) << self.r.val().rq_log) - 1;

        // stage X
        self.x.next = self.event_5.q.val();
        self.p.next = self.request_5.q.val();
        self.c.next = self.table.current.val();
        self.n.next = self.table.current.val();
        self.write.next = true;
        self.fail.next = false;
        self.misplaced.next = false;
        self.wake.next = false;
        self.restart.next = (self.x.val().kind == RqEventKind::Command) & self.x.val().reset;
        self.packet.next = self.table.x_valid.val() & (self.x.val().kind == RqEventKind::Packet);
        self.rules.packet.next = self.packet.val();
        self.rules.request.next = self.request_5.q.val();
        self.rules.notes.next = self.notes_5.q.val();
        self.rules.state.next = self.table.current.val();
        // the next receive WQE: one held, of the shared queue, or of the own
        self.shared.next = self.packet.val() & self.p.val().srq_valid;
        self.posted.next = self.c.val().held | (self.c.val().producer != self.c.val().index);
        self.own.next = self.c.val().index;
        if self.shared.val() {
            self.posted.next = self.c.val().held | self.srqs.posted.val();
            self.own.next = self.srqs.ordinal.val();
        }
        if self.c.val().held {
            self.own.next = self.c.val().own;
        }
        self.rules.posted.next = self.posted.val();
        self.f.next = self.rules.fate.val();
        self.srqs.take.next = self.f.val().accepted & self.f.val().takes & self.p.val().srq_valid;
        self.stale.next =
            (self.x.val().incarnation != self.c.val().incarnation) | !self.c.val().replies.any();
        self.flushing.next = (self.c.val().state == ERR)
            & self.c.val().known
            & (self.c.val().held
                | (!self.flush_5.q.val().shared & (self.c.val().producer != self.c.val().index)));

        // what becomes of the state
        match self.x.val().kind {
            RqEventKind::Packet => {
                if self.f.val().accepted {
                    self.n.next.silent = false;
                    self.n.next.open = !self.p.val().last;
                    self.n.next.write = self.p.val().write;
                    self.n.next.done = self.c.val().done + bit_cast::<32, 13>(self.p.val().plen);
                    self.n.next.more = self.c.val().more - 1;
                    self.n.next.ends = self.c.val().more == 2;
                    if self.p.val().first {
                        self.n.next.done = bit_cast::<32, 13>(self.p.val().plen);
                        self.n.next.more = self.p.val().more;
                        self.n.next.ends = self.p.val().more == 1;
                        self.n.next.tail = self.p.val().tail;
                        self.n.next.va = self.p.val().va;
                        self.n.next.rkey = self.p.val().rkey;
                    }
                    if self.p.val().last & !self.p.val().datagram {
                        self.n.next.msn = self.c.val().msn + 1;
                    }
                    if self.f.val().takes & !self.p.val().srq_valid {
                        self.n.next.index = self.c.val().index + 1;
                    }
                    if self.notes_5.q.val().needs | self.p.val().send {
                        self.n.next.held = !self.p.val().last;
                        self.n.next.own = self.own.val();
                    }
                    if self.notes_5.q.val().asks {
                        self.n.next.replies = self.c.val().replies + 1;
                    }
                } else if self.f.val().drops {
                    self.n.next.open = false;
                }
                if self.f.val().moves {
                    self.n.next.psn = self.notes_5.q.val().behind;
                }
                if self.f.val().duplicate {
                    self.n.next.silent = false;
                }
                if self.f.val().gap | self.f.val().rnr {
                    self.n.next.silent = true;
                }
                self.fail.next = self.f.val().fails;
            }
            RqEventKind::Doorbell => {
                self.n.next.producer = self.x.val().index;
                self.wake.next = self.c.val().state == ERR;
            }
            RqEventKind::PlaceError => {
                self.misplaced.next =
                    self.f.val().usable & (self.x.val().incarnation == self.c.val().incarnation);
                self.fail.next = self.misplaced.val() & !self.x.val().spared;
            }
            RqEventKind::SqFailed => {
                self.fail.next = (self.c.val().state != RESET) & (self.c.val().state != ERR);
            }
            RqEventKind::Command => {
                self.n.next.known = self.c.val().known | self.x.val().image;
                if self.x.val().set {
                    self.n.next.state = self.x.val().state;
                    self.fail.next = self.x.val().state == ERR;
                    if self.x.val().state == RESET {
                        self.n.next.known = false;
                    }
                }
                // the producer index is the host's and stays
                if self.restart.val() {
                    self.n.next.incarnation = self.c.val().incarnation + 1;
                    self.n.next.silent = false;
                    self.n.next.open = false;
                    self.n.next.held = false;
                    self.n.next.index = bits::<16>(0);
                    self.n.next.psn = self.x.val().psn;
                    self.n.next.msn = bits::<24>(0);
                    self.n.next.replies = bits::<5>(0);
                }
            }
            RqEventKind::Flush => {
                self.n.next.queued = self.flushing.val();
                if self.flushing.val() & self.c.val().held {
                    self.n.next.held = false;
                } else if self.flushing.val() {
                    self.n.next.index = self.c.val().index + 1;
                }
            }
            RqEventKind::Replied => {
                self.n.next.replies = self.c.val().replies - 1;
                self.write.next = !self.stale.val();
            }
            _ => {
                self.write.next = false;
            }
        }
        if self.fail.val() {
            self.n.next.state = ERR.into();
            self.n.next.open = false;
            self.wake.next = true;
        }
        if self.wake.val() {
            self.n.next.queued = true;
        }
        self.table.write.next = self.write.val();
        self.table.result.next = self.n.val();

        // stage W
        self.w_decision_valid.d.next =
            self.table.x_valid.val() & (self.x.val().kind != RqEventKind::Doorbell);
        self.w_decision.d.next.qpn = self.x.val().qpn;
        self.w_decision.d.next.packet = self.packet.val();
        self.w_decision.d.next.known = self.c.val().known;
        self.w_decision.d.next.usable = self.f.val().usable;
        self.w_decision.d.next.silent = self.c.val().silent;
        self.w_decision.d.next.accepted = self.f.val().accepted;
        self.w_decision.d.next.duplicate = self.f.val().duplicate;
        self.w_decision.d.next.gap = self.f.val().gap;
        self.w_decision.d.next.skipped = self.f.val().skipped;
        self.w_decision.d.next.reply = self.f.val().reply;
        self.w_decision.d.next.rnr = self.f.val().rnr;
        self.w_decision.d.next.invalid = self.f.val().invalid;
        self.w_decision.d.next.denied = self.f.val().denied;
        self.w_decision.d.next.misplaced = self.misplaced.val();
        self.w_decision.d.next.spared = self.x.val().spared;
        self.w_decision.d.next.syndrome = self.x.val().syndrome;
        self.w_decision.d.next.status = self.x.val().status;
        self.w_decision.d.next.flush =
            (self.x.val().kind == RqEventKind::Flush) & self.flushing.val();
        self.w_decision.d.next.reset = self.restart.val();
        self.w_decision.d.next.halt = self.fail.val()
            & !self.restart.val()
            & ((self.x.val().kind == RqEventKind::Command)
                | (self.x.val().kind == RqEventKind::SqFailed));
        self.w_decision.d.next.incarnation = self.c.val().incarnation;
        self.w_decision.d.next.index = self.own.val();
        self.w_decision.d.next.slot = self.own.val() & self.ring_5.q.val();
        self.w_decision.d.next.psn = self.c.val().psn;
        self.w_decision.d.next.msn = self.c.val().msn;
        self.w_decision.d.next.done = self.c.val().done;
        self.w_decision.d.next.va = self.c.val().va;
        self.w_decision.d.next.rkey = self.c.val().rkey;
        self.w_decision.d.next.cqn = self.flush_5.q.val().cqn;
        self.w_request.d.next = self.p.val();

        self.w_qpn.d.next = self.x.val().qpn;
        self.w_flush.d.next = self.table.x_valid.val()
            & ((self.wake.val() & !self.c.val().queued)
                | ((self.x.val().kind == RqEventKind::Flush) & self.flushing.val()));
        self.w_query.d.next = self.table.x_valid.val()
            & ((self.x.val().kind == RqEventKind::Command)
                | (self.x.val().kind == RqEventKind::SrqCommand));
        self.w_state.d.next.rq_state = bit_cast::<4, 3>(self.c.val().state);
        self.w_state.d.next.rq_psn = self.c.val().psn;
        self.w_state.d.next.msn = self.c.val().msn;
        self.w_state.d.next.rq_index = self.c.val().index;

        self.decision_valid.next = self.w_decision_valid.q.val();
        self.decision.next = self.w_decision.q.val();
        self.decided.next = self.w_request.q.val();
        self.flush_valid.next = self.w_flush.q.val();
        self.flush_qpn.next = self.w_qpn.q.val();
        self.query_valid.next = self.w_query.q.val();
        self.query.next = self.w_state.q.val();
    }
}
