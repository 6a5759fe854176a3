//! The responder: everything the receive side of a queue pair does.
//!
//! ```text
//!  RxMeta ─► rx_check ─► RqRequest ─┐                          ┌─► place ─► placements (scatter), WQE reads (rq_fetch),
//!                 └► responses      │                          │             READs and atomics (reply)
//!                                   ├─► admitted ─► rq_state ──┴─► report ─► failures, counters
//!  events, failed placements ───────┤                  │
//!                       flush list ─┘◄─────────────────┘
//! ```
//!
//! All dynamic state stands in one table behind one pipeline ([`rq_state`]) that takes one event a cycle ([`event`]).
//! [`Responder`] admits the events, failed placements first, then round robin over their sources, while its output
//! queues have room for all that is under way.

pub mod event;
pub mod place;
pub mod reply;
pub mod report;
pub mod rq_rules;
pub mod rq_state;
pub mod rx_check;
pub mod rx_decode;
pub mod srq_table;

use crate::bus::types::image::{QpState, RqCtx, SrqCtx};
use crate::bus::types::{MrReq, Place, PlaceError, Reply, RqRead};
use crate::prelude::*;
use event::*;
use place::PlaceBuilder;
use report::Reporter;
use rq_state::RqStateTable;
use srq_table::SrqLimit;

/// The responder of 2^Q queue pairs and 2^S shared receive queues.
///
/// Rate: an event a cycle. Latency: 9 cycles from a request to its placement. When an output queue is nearly full
/// events wait, but failed placements only for the queue of failures, which holds 16: `scatter` may stop for them.
#[derive(LogicBlock, Default)]
pub struct Responder<const Q: usize, const S: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Packets from `rx_check`.
    pub s: StreamIn<RqRequest>,
    /// Doorbells, failed send queues, commands and answered READs and atomics.
    pub events: StreamIn<RqEvent>,
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
    /// Ready after reset.
    pub ready: Signal<Out, Bit>,

    arbiter: Arbiter<3>,
    table: RqStateTable<Q, S>,
    builder: PlaceBuilder,
    reporter: Reporter,
    places: Fifo<Place, 6>,
    wqes: Fifo<RqRead, 6>,
    answers: Fifo<Reply, 6>,
    failed: Fifo<RqFailure, 5>,
    /// Who reports them may wait for the host, packets do not: while 2^S wait a further one is forgotten.
    low: Fifo<SrqLimit, S>,
    flush: Fifo<Bits<16>, Q>,
    /// Keeps the grant away from the FIFO's counters.
    flush_next: Skid<Bits<16>>,
    /// All output queues have room for 16 events more.
    room: Reg<Bit>,
    /// That of the failures has.
    failure_room: Reg<Bit>,
    requests: Signal<Local, Bits<3>>,
    grant: Signal<Local, Bits<3>>,
    take_error: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
    rkey: Signal<Local, MrReq>,
}

impl<const Q: usize, const S: usize> Logic for Responder<Q, S> {
    describe!(
        "responder",
        format!("q{Q}_s{S}"),
        "Decides what becomes of requests: placement, acknowledgement, completion."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(
            self, clock, arbiter, table, builder, reporter, places, wqes, answers, failed, low,
            flush, flush_next
        );
        dff_setup!(self, clock, room, failure_room);

        // 48 of 64, 16 of 32
        self.failure_room.d.next =
            self.table.ready.val() & !self.failed.level.val().get_bits::<2>(4).any();
        self.room.d.next = self.table.ready.val()
            & !(self.places.level.val().get_bit(6)
                | (self.places.level.val().get_bit(5) & self.places.level.val().get_bit(4)))
            & !(self.wqes.level.val().get_bit(6)
                | (self.wqes.level.val().get_bit(5) & self.wqes.level.val().get_bit(4)))
            & !(self.answers.level.val().get_bit(6)
                | (self.answers.level.val().get_bit(5) & self.answers.level.val().get_bit(4)))
            & !self.failed.level.val().get_bits::<2>(4).any();

        // a failed placement leads to none, and must not wait for those that scatter holds behind it
        self.take_error.next = self.errors.valid.val() & self.failure_room.q.val();
        self.take.next = self.room.q.val() & !self.take_error.val();
        self.requests.next = bits::<3>(0)
            .replace_bit(0, self.s.valid.val())
            .replace_bit(1, self.events.valid.val())
            .replace_bit(2, self.flush_next.m.valid.val());
        self.arbiter.request.next = self.requests.val();
        self.arbiter.take.next = self.take.val();
        self.grant.next = self.arbiter.grant.val();
        self.errors.ready.next = self.failure_room.q.val();
        self.s.ready.next = self.take.val() & self.grant.val().get_bit(0);
        self.events.ready.next = self.take.val() & self.grant.val().get_bit(1);
        self.flush_next.m.ready.next = self.take.val() & self.grant.val().get_bit(2);

        self.table.valid.next =
            self.take_error.val() | (self.take.val() & self.requests.val().any());
        self.table.request.next = self.s.payload.val();
        self.table.entry.next = self.events.payload.val();
        if self.grant.val().get_bit(0) {
            self.table.entry.next.kind = RqEventKind::Packet;
            self.table.entry.next.qpn = self.s.payload.val().qpn;
            self.table.entry.next.srqn = self.s.payload.val().srqn;
        }
        if self.grant.val().get_bit(2) {
            self.table.entry.next.kind = RqEventKind::Flush;
            self.table.entry.next.qpn = self.flush_next.m.payload.val();
        }
        if self.take_error.val() {
            self.table.entry.next.kind = RqEventKind::PlaceError;
            self.table.entry.next.qpn = self.errors.payload.val().qpn;
            self.table.entry.next.incarnation = self.errors.payload.val().incarnation;
            self.table.entry.next.syndrome = self.errors.payload.val().syndrome;
            self.table.entry.next.status = self.errors.payload.val().status;
            self.table.entry.next.spared = self.errors.payload.val().spared;
        }

        // asked for while the packet waits too: the answer that counts is the one behind its admission
        self.rkey.next.key = self.s.payload.val().rkey;
        self.rkey.next.pd = self.s.payload.val().pd;
        self.rkey.next.addr = self.s.payload.val().va;
        self.rkey.next.len = self.s.payload.val().length;
        self.rkey.next.right = self.s.payload.val().right;
        self.rkey.next.qpn = self.s.payload.val().qpn;
        self.check.request.next = self.rkey.val();
        self.check.valid.next = self.s.valid.val() & self.s.payload.val().checked;
        self.table.rkey_ok.next = self.check.ok.val() & self.check.done.val();

        self.table.image_we.next = self.image_we.val();
        self.table.image_qpn.next = self.image_qpn.val();
        self.table.image.next.cqn = self.image.val().cqn;
        self.table.image.next.shared = self.image.val().srq_valid;
        self.table.srq_we.next = self.srq_we.val();
        self.table.srq_srqn.next = self.srq_srqn.val();
        self.table.srq_image.next = self.srq_image.val();
        self.low.s.valid.next = self.table.limit_valid.val();
        self.low.s.payload.next = self.table.limit.val();

        self.builder.valid.next = self.table.decision_valid.val();
        self.builder.decision.next = self.table.decision.val();
        self.builder.request.next = self.table.decided.val();
        self.places.s.valid.next = self.builder.place_valid.val();
        self.places.s.payload.next = self.builder.place.val();
        self.wqes.s.valid.next = self.builder.read_valid.val();
        self.wqes.s.payload.next = self.builder.read.val();
        self.answers.s.valid.next = self.builder.reply_valid.val();
        self.answers.s.payload.next = self.builder.reply.val();
        self.reporter.valid.next = self.table.decision_valid.val();
        self.reporter.decision.next = self.table.decision.val();
        self.reporter.request.next = self.table.decided.val();
        self.failed.s.valid.next = self.reporter.failed_valid.val();
        self.failed.s.payload.next = self.reporter.failed.val();
        self.flush.s.valid.next = self.table.flush_valid.val();
        self.flush.s.payload.next = self.table.flush_qpn.val();
        StreamOut::<Bits<16>>::join(&mut self.flush.m, &mut self.flush_next.s);
        StreamOut::<Place>::link(&mut self.m, &mut self.places.m);
        StreamOut::<RqRead>::link(&mut self.reads, &mut self.wqes.m);
        StreamOut::<Reply>::link(&mut self.replies, &mut self.answers.m);
        StreamOut::<RqFailure>::link(&mut self.failures, &mut self.failed.m);
        StreamOut::<SrqLimit>::link(&mut self.limits, &mut self.low.m);
        self.query_valid.next = self.table.query_valid.val();
        self.query.next = self.table.query.val();
        self.counts.next = self.reporter.counts.val();
        self.ready.next = self.table.ready.val();
    }
}
