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
use super::rq_rules::{RqNotes, RqRules};
use super::srq_table::{SrqLimit, SrqTable};
use crate::bus::dma::MR_LATENCY;
use crate::bus::types::image::{QpState, SrqCtx};
use crate::cell::delay::Delay;
use crate::prelude::*;

const _: () = assert!(MR_LATENCY == 4, "the delay before stage X is made for it");

const RESET: u64 = state::RESET as u64;
const ERR: u64 = state::ERR as u64;

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
        let q = request_4.q;
        // the ring of the shared receive queue in place of the own; its protection domain is that of the scatter list
        let mut r = request_4.q;
        if q.srq_valid {
            r.rq_base = srqs.shape.base;
            r.rq_log = srqs.shape.log;
            r.rq_stride = srqs.shape.stride;
            if q.send {
                r.pd = srqs.shape.pd;
            }
        }
        request_5 = r;
        notes_5.good = q.reason == GOOD;
        notes_5.denied = q.checked & !rkey_ok;
        notes_5.needs = (q.send & q.first) | (q.write & q.last & q.with_imm);
        notes_5.asks = q.read | q.atomic;
        let mut behind = q.psn + 1;
        if q.read {
            behind = q.psn + 1 + q.more.resize::<24>();
        }
        notes_5.behind = behind;
        ring_5 = (bits::<16>(1) << r.rq_log) - 1;

        // stage X
        let x = event_5.q;
        let p = request_5;
        let c = table.current;
        let mut n = table.current;
        let mut write = true;
        let mut fail = false;
        let mut misplaced = false;
        let mut wake = false;
        let restart = (x.kind == RqEventKind::Command) & x.reset;
        let packet = table.x_valid & (x.kind == RqEventKind::Packet);
        rules.packet = packet;
        rules.request = request_5;
        rules.notes = notes_5;
        rules.state = table.current;
        // the next receive WQE: one held, of the shared queue, or of the own
        let shared = packet & p.srq_valid;
        let mut posted = c.held | (c.producer != c.index);
        let mut own = c.index;
        if shared {
            posted = c.held | srqs.posted;
            own = srqs.ordinal;
        }
        if c.held {
            own = c.own;
        }
        rules.posted = posted;
        let f = rules.fate;
        srqs.take = f.accepted & f.takes & p.srq_valid;
        let stale = (x.incarnation != c.incarnation) | !c.replies.any();
        let flushing =
            (c.state == ERR) & c.known & (c.held | (!flush_5.shared & (c.producer != c.index)));

        // what becomes of the state
        match x.kind {
            RqEventKind::Packet => {
                if f.accepted {
                    n.silent = false;
                    n.open = !p.last;
                    n.write = p.write;
                    n.done = c.done + p.plen.resize::<32>();
                    n.more = c.more - 1;
                    n.ends = c.more == 2;
                    if p.first {
                        n.done = p.plen.resize::<32>();
                        n.more = p.more;
                        n.ends = p.more == 1;
                        copy!(n <= p; tail, va, rkey);
                    }
                    if p.last & !p.datagram {
                        n.msn = c.msn + 1;
                    }
                    if f.takes & !p.srq_valid {
                        n.index = c.index + 1;
                    }
                    if notes_5.needs | p.send {
                        n.held = !p.last;
                        n.own = own;
                    }
                    if notes_5.asks {
                        n.replies = c.replies + 1;
                    }
                } else if f.drops {
                    n.open = false;
                }
                if f.moves {
                    n.psn = notes_5.behind;
                }
                if f.duplicate {
                    n.silent = false;
                }
                if f.gap | f.rnr {
                    n.silent = true;
                }
                fail = f.fails;
            }
            RqEventKind::Doorbell => {
                n.producer = x.index;
                wake = c.state == ERR;
            }
            RqEventKind::PlaceError => {
                misplaced = f.usable & (x.incarnation == c.incarnation);
                fail = misplaced & !x.spared;
            }
            RqEventKind::SqFailed => {
                fail = (c.state != RESET) & (c.state != ERR);
            }
            RqEventKind::Command => {
                n.known = c.known | x.image;
                if x.set {
                    n.state = x.state;
                    fail = x.state == ERR;
                    if x.state == RESET {
                        n.known = false;
                    }
                }
                // the producer index is the host's and stays
                if restart {
                    n.incarnation = c.incarnation + 1;
                    n.silent = false;
                    n.open = false;
                    n.held = false;
                    n.index = bits::<16>(0);
                    n.psn = x.psn;
                    n.msn = bits::<24>(0);
                    n.replies = bits::<5>(0);
                }
            }
            RqEventKind::Flush => {
                n.queued = flushing;
                if flushing & c.held {
                    n.held = false;
                } else if flushing {
                    n.index = c.index + 1;
                }
            }
            RqEventKind::Replied => {
                n.replies = c.replies - 1;
                write = !stale;
            }
            _ => {
                write = false;
            }
        }
        if fail {
            n.state = ERR;
            n.open = false;
            wake = true;
        }
        if wake {
            n.queued = true;
        }
        table.write = write;
        table.result = n;

        // stage W
        w_decision_valid = table.x_valid & (x.kind != RqEventKind::Doorbell);
        w_decision.qpn = x.qpn;
        w_decision.packet = packet;
        w_decision.known = c.known;
        w_decision.usable = f.usable;
        w_decision.silent = c.silent;
        copy!(w_decision <= f; accepted, duplicate, gap, skipped, reply, rnr, invalid, denied);
        w_decision.misplaced = misplaced;
        copy!(w_decision <= x; spared, syndrome, status);
        w_decision.flush = (x.kind == RqEventKind::Flush) & flushing;
        w_decision.reset = restart;
        w_decision.halt = fail
            & !restart
            & ((x.kind == RqEventKind::Command) | (x.kind == RqEventKind::SqFailed));
        w_decision.incarnation = c.incarnation;
        w_decision.index = own;
        w_decision.slot = own & ring_5;
        copy!(w_decision <= c; psn, msn, done, va, rkey);
        w_decision.cqn = flush_5.cqn;
        w_request = p;

        w_qpn = x.qpn;
        w_flush =
            table.x_valid & ((wake & !c.queued) | ((x.kind == RqEventKind::Flush) & flushing));
        w_query = table.x_valid
            & ((x.kind == RqEventKind::Command) | (x.kind == RqEventKind::SrqCommand));
        w_state.rq_state = c.state.resize::<4>();
        w_state.rq_psn = c.psn;
        w_state.msn = c.msn;
        w_state.rq_index = c.index;

        decision_valid = w_decision_valid;
        decision = w_decision;
        decided = w_request;
        flush_valid = w_flush;
        flush_qpn = w_qpn;
        query_valid = w_query;
        query = w_state;
    }
}
