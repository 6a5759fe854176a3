//! Send queues: everything of the requester that has state, from doorbells to WQE slots, from responses to completions.
//!
//! Who takes the slots out of `slots` assembles WQEs, asks with a Start event (or Refetch) for each in their order, and
//! gets a grant for each Start, in their order too.
use super::ack_merge::AckMerge;
use super::completion_hold::CompletionHold;
use super::event::{SendCompletion, SentPacket, SqEvent, StartGrant};
use super::retire::Retire;
use super::sq_events::SqEvents;
use super::sq_state::SqStateTable;
use super::timer::Timer;
use crate::bus::dma::ReadBeatIn;
use crate::bus::types::image::{QpState, SqCtx};
use crate::bus::types::{Activity, Answer, CqToken, FetchedWqe, ReadReq, Recall};
use crate::prelude::*;
use crate::queue::scheduler::Scheduler;
use crate::queue::wqe_fetch::WqeFetch;

/// Send queues of 2^Q queue pairs with a pool of 2^O outstanding messages, on a memory bus of W bits.
#[derive(LogicBlock, Default)]
pub struct SendQueues<const W: usize, const Q: usize, const O: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Doorbell events.
    pub doorbell: StreamIn<SqEvent>,
    /// Command events.
    pub command: StreamIn<SqEvent>,
    /// Failures elsewhere.
    pub failure: StreamIn<SqEvent>,
    /// Responses.
    pub answer: StreamIn<Answer>,
    /// The last packet of a message that nobody acknowledges has all of its payload, in this cycle.
    pub sent_valid: Signal<In, Bit>,
    /// Its queue pair.
    pub sent_qpn: Signal<In, Bits<16>>,
    /// Its PSN.
    pub sent_psn: Signal<In, Bits<24>>,
    /// Start and Refetch events.
    pub start: StreamIn<SqEvent>,
    /// Answer to a Start event.
    pub grant_valid: Signal<Out, Bit>,
    /// Answer to a Start event.
    pub grant: Signal<Out, StartGrant>,
    /// A command writes the requester image of `image_qpn`.
    pub sq_we: Signal<In, Bit>,
    /// Queue pair of the image.
    pub image_qpn: Signal<In, Bits<Q>>,
    /// Requester image.
    pub sq_image: Signal<In, SqCtx>,
    /// Reads of WQEs.
    pub read: StreamOut<ReadReq>,
    /// Their answers.
    pub beat: ReadBeatIn<W>,
    /// Slots of WQEs.
    pub slots: StreamOut<FetchedWqe>,
    /// Completions of flushed WQEs.
    pub flushed: StreamIn<SendCompletion>,
    /// A grant is cut to its end, or dropped.
    pub part_cut: Signal<In, Bit>,
    /// A piece of payload is to be read.
    pub piece_cut: Signal<In, Bit>,
    /// A piece of payload was read; in their order.
    pub piece_read: Signal<In, Bit>,
    /// Completions.
    pub cq: StreamOut<CqToken>,
    /// A send queue goes back: packets of another round are not to be sent any more.
    pub recall_valid: Signal<Out, Bit>,
    /// Which, and its round.
    pub recall: Signal<Out, Recall>,
    /// Answer to a command event.
    pub query_valid: Signal<Out, Bit>,
    /// Answer to a command event.
    pub query: Signal<Out, QpState>,
    /// A send queue went into error.
    pub failed_valid: Signal<Out, Bit>,
    /// Its queue pair.
    pub failed_qpn: Signal<Out, Bits<16>>,
    /// Status behind it; 0 if the cause is not in the send queue.
    pub failed_status: Signal<Out, Bits<8>>,
    /// Queue pairs in error whose completions with the failure have left: their responder is to fail.
    pub down: StreamOut<Bits<16>>,
    /// A send queue went into error, or was sent there: once nothing of it is on its way to memory a `closed` answer is due.
    pub close_valid: Signal<Out, Bit>,
    /// Its queue pair.
    pub close_qpn: Signal<Out, Bits<16>>,
    /// In SQD nothing of the send queue is outstanding any more.
    pub drained_valid: Signal<Out, Bit>,
    /// Its queue pair.
    pub drained_qpn: Signal<Out, Bits<16>>,
    /// Counter pulses: packet_seq_err, rnr_nak_received, remote_errors, rx_acks, rx_ghost_acks, local_ack_timeout_err, retry_exceeded_err, rnr_nak_retry_err, implied_nak_seq_err, a second rx_acks, a second rx_ghost_acks.
    pub counts: Signal<Out, Bits<11>>,
    /// Send WQEs being read.
    pub fetches: Signal<Out, Activity>,
    /// Completions that wait for payload to be read.
    pub held: Signal<Out, Activity>,
    /// Tables are swept after reset.
    pub ready: Signal<Out, Bit>,

    acks: AckMerge,
    events: SqEvents,
    /// More than the packets under way to the wire.
    sent: Fifo<SentPacket, 8>,
    state: SqStateTable<Q>,
    scheduler: Scheduler<Q, 7>,
    fetch: WqeFetch<W, 7>,
    retire: Retire<Q, O>,
    hold: CompletionHold,
    timer: Timer<Q>,
}

impl<const W: usize, const Q: usize, const O: usize> Logic for SendQueues<W, Q, O> {
    describe!(
        "send_queues",
        format!("w{W}_q{Q}_o{O}"),
        "State of all send queues, from doorbell to slot and from response to completion."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(
            self, clock, acks, events, sent, state, scheduler, fetch, retire, hold, timer
        );

        // events
        self.sent.s.valid.next = self.sent_valid.val();
        self.sent.s.payload.next.qpn = self.sent_qpn.val();
        self.sent.s.payload.next.psn = self.sent_psn.val();
        StreamIn::<SqEvent>::link(&mut self.command, &mut self.events.command);
        StreamIn::<Answer>::link(&mut self.answer, &mut self.acks.s);
        StreamOut::<SqEvent>::join(&mut self.acks.m, &mut self.events.answer);
        StreamOut::<SqEvent>::join(&mut self.retire.event, &mut self.events.retire);
        StreamOut::<SqEvent>::join(&mut self.timer.m, &mut self.events.timeout);
        StreamIn::<SqEvent>::link(&mut self.start, &mut self.events.start);
        StreamOut::<SqEvent>::join(&mut self.scheduler.m, &mut self.events.fetch);
        StreamIn::<SqEvent>::link(&mut self.doorbell, &mut self.scheduler.doorbell);
        StreamOut::<SqEvent>::join(&mut self.scheduler.rung, &mut self.events.doorbell);
        StreamIn::<SqEvent>::link(&mut self.failure, &mut self.events.failure);
        StreamOut::<SentPacket>::join(&mut self.sent.m, &mut self.events.sent);
        StreamOut::<SqEvent>::join(&mut self.events.m, &mut self.state.s);

        self.state.image_we.next = self.sq_we.val();
        self.state.image_qpn.next = self.image_qpn.val();
        self.state.image.next = self.sq_image.val();
        self.grant_valid.next = self.state.start_valid.val();
        self.grant.next = self.state.start.val();

        // from ready queue pair to slot
        self.scheduler.push.next = self.state.ready_valid.val();
        self.scheduler.push_qpn.next = self.state.list_qpn.val();
        self.scheduler.credit.next = self.fetch.credit.val();
        self.fetch.grant_valid.next = self.state.fetch_valid.val();
        self.fetch.grant.next = self.state.fetch.val();
        StreamOut::<ReadReq>::link(&mut self.read, &mut self.fetch.read);
        ReadBeatIn::<W>::link(&mut self.beat, &mut self.fetch.beat);
        StreamOut::<FetchedWqe>::link(&mut self.slots, &mut self.fetch.m);

        // from acknowledged message to completion
        self.retire.push.next = self.state.list_valid.val();
        self.retire.push_qpn.next = self.state.list_qpn.val();
        self.retire.grant_valid.next = self.state.retire_valid.val();
        self.retire.grant.next = self.state.retire.val();
        self.retire.entry_valid.next = self.state.entry_valid.val();
        self.retire.entry_addr.next = self.state.entry_addr.val();
        self.retire.entry.next = self.state.entry.val();
        StreamOut::<SendCompletion>::join(&mut self.retire.done, &mut self.hold.retired);
        StreamIn::<SendCompletion>::link(&mut self.flushed, &mut self.hold.flushed);
        self.hold.granted.next = self.state.granted.val();
        self.hold.part_cut.next = self.part_cut.val();
        self.hold.piece_cut.next = self.piece_cut.val();
        self.hold.piece_read.next = self.piece_read.val();
        self.state.room.next = self.hold.room.val();
        self.state.shared.next = self.scheduler.shared.val();
        self.held.next = self.hold.activity.val();
        StreamOut::<CqToken>::link(&mut self.cq, &mut self.hold.cq);

        self.timer.order_valid.next = self.state.timer_valid.val();
        self.timer.order.next = self.state.timer.val();
        self.recall_valid.next = self.state.recall_valid.val();
        self.recall.next = self.state.recall.val();
        self.query_valid.next = self.state.query_valid.val();
        self.query.next = self.state.query.val();
        self.failed_valid.next = self.state.failed_valid.val();
        self.failed_qpn.next = self.state.failed_qpn.val();
        self.failed_status.next = self.state.failed_status.val();
        StreamOut::<Bits<16>>::link(&mut self.down, &mut self.hold.failed);
        self.close_valid.next = self.state.close_valid.val();
        self.close_qpn.next = self.state.close_qpn.val();
        self.drained_valid.next = self.state.drained_valid.val();
        self.drained_qpn.next = self.state.drained_qpn.val();
        self.counts.next = self.state.counts.val();
        self.fetches.next = self.fetch.activity.val();
        self.ready.next = self.state.ready.val();
    }
}
