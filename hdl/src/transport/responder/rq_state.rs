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
//! [`rq_rules`](super::rq_rules) decides how a packet is treated, [`rq_next`](super::rq_next) what an event makes of the
//! state.

use super::event::reason::GOOD;
use super::event::*;
use super::rq_next::RqNext;
use super::rq_rules::{RqNotes, RqRules};
use super::srq_table::{SrqLimit, SrqTable};
use crate::bus::dma::MR_LATENCY;
use crate::bus::qp_state::RTR;
use crate::bus::types::image::{QpState, SrqCtx};
use crate::cell::delay::Delay;
use crate::prelude::*;

const _: () = assert!(MR_LATENCY == 4, "the delay before stage X is made for it");

/// State of 2^Q receive queues and 2^S shared receive queues.
#[derive(Block)]
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
    notes_5: Dff<RqNotes>,
    ring_5: Dff<Bits<16>>,
    flush_5: Dff<RqFlush>,

    // stage X
    rules: RqRules,
    after: RqNext,

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
        "Dynamic state of all receive queues: one event a cycle."
    );

    #[kernel]
    fn update(&mut self) {
        // stages 1 to 5
        valid_3.d = valid;
        event_3.d = entry;
        event_5.d = event_3.q;
        request_4.d = request;
        ready = table.ready & srqs.ready;
        table.valid = valid_3.q;
        table.addr = event_3.q.qpn.low::<Q>();
        flushes.we = image_we;
        flushes.waddr = image_qpn;
        flushes.wdata = image;
        flushes.re = true;
        flushes.raddr = event_3.q.qpn.low::<Q>();
        flush_5 = flushes.rdata;
        srqs.valid = valid_3.q;
        srqs.srqn = event_3.q.srqn;
        srqs.x = event_5.q;
        srqs.image_we = srq_we;
        srqs.image_srqn = srq_srqn;
        srqs.image = srq_image;
        limit_valid = srqs.limit_valid;
        limit = srqs.limit;
        let head = request_4.q;
        // the ring of the shared receive queue in place of the own; its protection domain is that of the scatter list
        let mut taken = request_4.q;
        if head.send {
            // the domain of a key to invalidate
            taken.rkey = head.pd.resize::<32>();
        }
        if head.srq_valid {
            taken.rq_base = srqs.shape.numbers;
            taken.rq_log = srqs.shape.log;
            taken.rq_stride = srqs.shape.stride;
            if head.send {
                taken.pd = srqs.shape.pd;
                taken.va = srqs.shape.base;
            }
        }
        request_5 = taken;
        notes_5.good = head.reason == GOOD;
        notes_5.denied = head.checked & !rkey_ok;
        notes_5.needs = (head.send & head.first) | (head.write & head.last & head.with_imm);
        notes_5.asks = head.read | head.atomic;
        let mut psn_after = head.psn + 1;
        if head.read {
            psn_after = head.psn + 1 + head.more.resize::<24>();
        }
        notes_5.psn_after = psn_after;
        ring_5 = (bits::<16>(1) << taken.rq_log) - 1;

        // stage X
        let event = event_5.q;
        let current = table.current;
        let packet = table.x_valid & (event.kind == RqEventKind::Packet);
        rules.packet = packet;
        rules.request = request_5;
        rules.notes = notes_5;
        rules.state = table.current;
        // the next receive WQE: one held, of the shared queue, or of the own
        let shared = packet & request_5.srq_valid;
        let mut posted = current.held | (current.producer != current.index);
        let mut own = current.index;
        if shared {
            posted = current.held | srqs.posted;
            own = srqs.ordinal;
        }
        if current.held {
            own = current.own;
        }
        rules.posted = posted;
        let outcome = rules.outcome;
        srqs.take = outcome.accepted & outcome.takes & request_5.srq_valid;
        after.rq_event = event;
        after.request = request_5;
        after.notes = notes_5;
        after.outcome = outcome;
        after.own = own;
        after.shared = flush_5.shared;
        after.state = current;
        let effects = after.effects;
        table.write = effects.write;
        table.result = after.next_state;

        // stage W
        w_decision_valid = table.x_valid & (event.kind != RqEventKind::Doorbell);
        w_decision.qpn = event.qpn;
        w_decision.packet = packet;
        w_decision.known = current.known;
        w_decision.usable = outcome.usable;
        w_decision.nak_sent = current.nak_sent;
        copy!(w_decision <= outcome; accepted, duplicate, gap, skipped, reply, rnr, invalid, denied);
        w_decision.establishes =
            outcome.accepted & !current.established & (current.state == RTR) & !request_5.datagram;
        copy!(w_decision <= event; spared, syndrome, status);
        copy!(w_decision <= effects; misplaced, last_wqe);
        w_decision.late = effects.misplaced & event.late;
        w_decision.flush = effects.flushes;
        w_decision.reset = effects.restarts;
        w_decision.rsp_flush = effects.fails
            & !effects.restarts
            & ((event.kind == RqEventKind::Command) | (event.kind == RqEventKind::SqFailed));
        w_decision.incarnation = current.incarnation;
        w_decision.index = own;
        w_decision.slot = own & ring_5;
        w_decision.takes = outcome.takes;
        w_decision.shared = if packet {
            request_5.srq_valid
        } else {
            flush_5.shared
        };
        copy!(w_decision <= current; psn, asked, asked_psn, msn, done, va, rkey);
        w_decision.cqn = flush_5.cqn;
        w_request = request_5;

        w_qpn = event.qpn;
        w_flush = table.x_valid & ((effects.wakes & !current.queued) | effects.flushes);
        w_query = table.x_valid
            & ((event.kind == RqEventKind::Command) | (event.kind == RqEventKind::SrqCommand));
        w_state.rq_state = current.state.resize::<4>();
        w_state.rq_psn = current.psn;
        w_state.msn = current.msn;
        w_state.rq_index = current.index;

        decision_valid = w_decision_valid;
        decision = w_decision;
        decided = w_request;
        flush_valid = w_flush;
        flush_qpn = w_qpn;
        query_valid = w_query;
        query = w_state;
    }
}
