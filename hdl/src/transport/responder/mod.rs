//! The responder: everything the receive side of a queue pair does.
//!
//! ```text
//!  RxMeta ─► rx_check ─► RqRequest ─┐                          ┌─► place ─► placements (scatter), WQE reads (rq_fetch),
//!                 └► responses      │                          │             READs and atomics (reply)
//!                                   ├─► admitted ─► rq_state ──┴─► report ─► failures, counters
//!  doorbells, events, failed places ─┤                  │
//!                       flush list ─┘◄─────────────────┘
//! ```
//!
//! All dynamic state stands in one table behind one pipeline ([`rq_state`]) that takes one event a cycle ([`event`]).
//! [`Responder`] admits doorbells at once, then failed placements, then answered READs and atomics, then round robin over
//! the other sources, while its output queues have room for all that is under way. A doorbell must not wait for that room:
//! behind a PCIe bridge the data of reads, which make room, do not pass the host's writes. Nor may an answered READ: the
//! peer has the response and may send the next.

pub mod ack_hold;
pub mod event;
pub mod place;
pub mod reply;
pub mod report;
pub mod rq_next;
pub mod rq_rules;
pub mod rq_state;
pub mod rx_check;
pub mod rx_decode;
pub mod srq_table;

use crate::bus::types::image::{QpState, RqCtx, SrqCtx};
use crate::bus::types::{Activity, MrReq, Place, PlaceError, Reply, RqRead};
use crate::prelude::*;
use crate::transport::place_queue::PlaceQueue;
use event::*;
use place::PlaceBuilder;
use report::Reporter;
use rq_state::RqStateTable;
use srq_table::SrqLimit;

/// The responder of 2^Q queue pairs and 2^S shared receive queues.
///
/// Rate: an event a cycle. Latency: 9 cycles from a request to its placement. When an output queue is nearly full
/// events wait, but failed placements only for the queue of failures, which holds 16: `scatter` may stop for them.
/// Doorbells and answered READs, which lead to no output, wait for no queue; doorbells come at most every second cycle.
#[derive(Block)]
pub struct Responder<const Q: usize, const S: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Packets from `rx_check`.
    pub s: StreamIn<RqRequest>,
    /// Doorbells, of shared receive queues too.
    pub doorbells: StreamIn<RqEvent>,
    /// Failed send queues, commands and refused payload writes.
    pub events: StreamIn<RqEvent>,
    /// Answered READs and atomics.
    pub replied: StreamIn<RqEvent>,
    /// Placements that failed.
    pub errors: StreamIn<PlaceError>,
    /// Check of an rkey.
    pub check: MrCheckOut,
    /// A command writes the static image of queue pair `image_qpn`.
    pub image_we: Signal<In, Bit>,
    /// Queue pair of that image.
    pub image_qpn: Signal<In, Bits<Q>>,
    /// The image.
    pub image: Signal<In, RqCtx>,
    /// A command writes the image of shared receive queue `srq_srqn`.
    pub srq_we: Signal<In, Bit>,
    /// Shared receive queue.
    pub srq_srqn: Signal<In, Bits<S>>,
    /// Its image.
    pub srq_image: Signal<In, SrqCtx>,
    /// Placements, in the order of the packets.
    pub m: StreamOut<Place>,
    /// Receive WQEs to read, in order.
    pub reads: StreamOut<RqRead>,
    /// READs and atomics to answer, one a placement with `reply`, in order.
    pub replies: StreamOut<Reply>,
    /// Queue pairs that went into error because of a request, for the requester and the event queue.
    pub failures: StreamOut<RqFailure>,
    /// Shared receive queues that fell below their limits.
    pub limits: StreamOut<SrqLimit>,
    /// Answer to a command, also on a shared receive queue.
    pub query_valid: Signal<Out, Bit>,
    /// Answer to a command: responder's part of the state, before the command.
    pub query: Signal<Out, QpState>,
    /// Counter pulses.
    pub counts: Signal<Out, RqCounts>,
    /// Placements that are decided.
    pub activity: Signal<Out, Activity>,
    /// Ready after reset.
    pub ready: Signal<Out, Bit>,

    arbiter: Arbiter<3>,
    table: RqStateTable<Q, S>,
    builder: PlaceBuilder,
    reporter: Reporter,
    places: PlaceQueue<6>,
    wqes: Fifo<RqRead, 6>,
    answers: Fifo<Reply, 6>,
    failed: Fifo<RqFailure, 5>,
    /// Their report may wait for the host, packets do not: while 2^S wait a further one is dropped.
    low: Fifo<SrqLimit, S>,
    flush: Fifo<Bits<16>, Q>,
    /// Keeps the grant away from the FIFO's counters.
    flush_next: Skid<Bits<16>>,
    /// All output queues have room for 16 events more.
    room: Reg<Bit>,
    /// That of the failures has.
    failure_room: Reg<Bit>,
    rkey: Signal<Local, MrReq>,
}

impl<const Q: usize, const S: usize> Logic for Responder<Q, S> {
    describe!(
        "responder",
        format!("q{Q}_s{S}"),
        "Decides on requests: placement, acknowledgement, completion."
    );

    #[kernel]
    fn update(&mut self) {
        // 48 of 64, 16 of 32
        failure_room = table.ready & !failed.level.slice::<2>(4).any();
        room = table.ready
            & !(places.level.bit(6) | (places.level.bit(5) & places.level.bit(4)))
            & !(wqes.level.bit(6) | (wqes.level.bit(5) & wqes.level.bit(4)))
            & !(answers.level.bit(6) | (answers.level.bit(5) & answers.level.bit(4)))
            & !failed.level.slice::<2>(4).any();

        // its flush, if one follows, has a place in the list
        let rung = doorbells.valid & table.ready;
        doorbells.ready = table.ready;
        // a failed placement leads to none, and must not wait for those that scatter holds behind it
        let errors_ready = failure_room & !doorbells.valid;
        let take_error = errors.valid & errors_ready;
        let replied_ready = table.ready & !doorbells.valid & !take_error;
        let take_replied = replied.valid & replied_ready;
        let take = room & !doorbells.valid & !take_error & !take_replied;
        let requests = bits::<3>(0)
            .replace_bit(0, s.valid)
            .replace_bit(1, events.valid)
            .replace_bit(2, flush_next.m.valid);
        arbiter.request = requests;
        arbiter.take = take;
        let grant = arbiter.grant;
        errors.ready = errors_ready;
        s.ready = take & grant.bit(0);
        replied.ready = replied_ready;
        events.ready = take & grant.bit(1);
        flush_next.m.ready = take & grant.bit(2);

        table.valid = rung | take_error | take_replied | (take & requests.any());
        table.request = s.payload;
        table.entry = events.payload;
        if grant.bit(0) {
            table.entry.kind = RqEventKind::Packet;
            table.entry.qpn = s.payload.qpn;
            table.entry.srqn = s.payload.srqn;
        }
        if grant.bit(2) {
            table.entry.kind = RqEventKind::Flush;
            table.entry.qpn = flush_next.m.payload;
        }
        if take_replied {
            copy!(table.entry <= replied.payload; kind, qpn, incarnation);
        }
        if take_error {
            table.entry.kind = RqEventKind::PlaceError;
            copy!(table.entry <= errors.payload; qpn, incarnation, syndrome, status, spared);
            table.entry.late = false;
        }
        if rung {
            copy!(table.entry <= doorbells.payload; kind, qpn, srqn, index);
        }

        // asked for while the packet waits too: the answer that counts is the one behind its admission
        rkey.key = s.payload.rkey;
        rkey.pd = s.payload.pd;
        rkey.addr = s.payload.va;
        rkey.len = s.payload.length;
        rkey.right = s.payload.right;
        rkey.qpn = s.payload.qpn;
        check.request = rkey;
        check.valid = s.valid & s.payload.checked;
        table.rkey_ok = check.ok & check.done;

        table.image_we = image_we;
        table.image_qpn = image_qpn;
        table.image.cqn = image.cqn;
        table.image.shared = image.srq_valid;
        table.srq_we = srq_we;
        table.srq_srqn = srq_srqn;
        table.srq_image = srq_image;
        low.s.valid = table.limit_valid;
        low.s.payload = table.limit;

        builder.valid = table.decision_valid;
        builder.decision = table.decision;
        builder.request = table.decided;
        places.s.valid = builder.place_valid;
        places.s.payload = builder.place;
        wqes.s.valid = builder.read_valid;
        wqes.s.payload = builder.read;
        answers.s.valid = builder.reply_valid;
        answers.s.payload = builder.reply;
        reporter.valid = table.decision_valid;
        reporter.decision = table.decision;
        reporter.request = table.decided;
        failed.s.valid = reporter.failed_valid;
        failed.s.payload = reporter.failed;
        flush.s.valid = table.flush_valid;
        flush.s.payload = table.flush_qpn;
        forward!(flush_next.s <= flush.m);
        forward!(m <= places.m);
        forward!(reads <= wqes.m);
        forward!(replies <= answers.m);
        forward!(failures <= failed.m);
        forward!(limits <= low.m);
        query_valid = table.query_valid;
        query = table.query;
        counts = reporter.counts;
        activity.busy = places.m.valid;
        activity.moved = places.m.valid & m.ready;
        activity.level = places.level;
        ready = table.ready;
    }
}
