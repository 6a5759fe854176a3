//! Send queues: everything of the requester that has state, from doorbells to WQE slots, from responses to completions.
//!
//! The block that takes slots out of `slots` assembles WQEs, sends a Start event (or Refetch) for each in their order,
//! and gets a grant for each Start, in their order too.
use super::ack_merge::AckMerge;
use super::completion_hold::CompletionHold;
use super::decision::SqCounts;
use super::event::{SentPacket, SqEvent};
use super::grant::{SendCompletion, StartGrant};
use super::retire::Retire;
use super::scheduler::Scheduler;
use super::sq_events::SqEvents;
use super::sq_state::SqStateTable;
use super::timer::Timer;
use super::wqe_fetch::WqeFetch;
use crate::bus::dma::ReadBeatIn;
use crate::bus::types::image::{QpState, SqCtx};
use crate::bus::types::{Activity, Answer, CqToken, Departure, FetchedWqe, ReadReq, Recall};
use crate::bus::valid::Valid;
use crate::egress::CLASSES;
use crate::egress::passage::DEPARTURES;
use crate::prelude::*;
use crate::transport::congestion::pace_types::{CongestionSetup, PaceGrant, PaceRate};
use crate::transport::congestion::send_pace::SendPace;
use crate::transport::congestion::types::CongestionEvent;

/// Messages of which the departure waits, of 256, below which eight more may leave.
const SENT_MOST: u64 = 248;

/// Send queues of 2^Q queue pairs with a pool of 2^O outstanding messages, on a memory bus of W bits.
#[derive(Block)]
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
    /// A request leaves; one cycle.
    pub left_valid: Signal<In, Bit>,
    /// Which.
    pub left: Signal<In, Departure>,
    /// Eight more may leave.
    pub left_room: Signal<Out, Bit>,
    /// Classes whose queue pairs, once refused, are not to be read again yet.
    pub closed: Signal<In, Bits<CLASSES>>,
    /// Not even those whose part is short.
    pub closed_short: Signal<In, Bits<CLASSES>>,
    /// Start and Refetch events.
    pub start: StreamIn<SqEvent>,
    /// Answer to a Start event.
    pub grant_valid: Signal<Out, Bit>,
    /// Answer to a Start event.
    pub grant: Signal<Out, StartGrant>,
    /// What the host says of congestion control.
    pub congestion: Signal<In, CongestionSetup>,
    /// A queue pair received a CNP of its peer.
    pub cnp: Signal<In, Valid<Bits<16>>>,
    /// A CNP found no room; one cycle.
    pub cnp_lost: Signal<Out, Bit>,
    /// Feedback of a queue pair of Swift found no room; one cycle.
    pub feedback_lost: Signal<Out, Bit>,
    /// What the network did to a send queue.
    pub feedback: Signal<Out, Valid<CongestionEvent>>,
    /// Responses of a queue pair were granted.
    pub responses: Signal<In, Valid<PaceGrant>>,
    /// The rate of a queue pair changes, for its responses.
    pub rate: Signal<Out, Valid<PaceRate>>,
    /// Payload bursts issued, modulo 2^16.
    pub payload_issued: Signal<In, Bits<16>>,
    /// Of these, those that have their response.
    pub payload_done: Signal<In, Bits<16>>,
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
    /// A send queue entered error: `track` answers `closed` when no write of its queue pair is pending.
    pub close_valid: Signal<Out, Bit>,
    /// Its queue pair.
    pub close_qpn: Signal<Out, Bits<16>>,
    /// Counter pulses.
    pub counts: Signal<Out, SqCounts>,
    /// Send WQEs being read.
    pub fetches: Signal<Out, Activity>,
    /// Messages being taken off the outstanding table.
    pub retired: Signal<Out, Activity>,
    /// Completions that wait for payload to be read.
    pub held: Signal<Out, Activity>,
    /// UC and UD messages that left, and are not complete.
    pub departed: Signal<Out, Activity>,
    /// Tables are swept after reset.
    pub ready: Signal<Out, Bit>,

    acks: AckMerge,
    events: SqEvents,
    sent: Deep<SentPacket, 8>,
    sent_room: Reg<Bit>,
    state: SqStateTable<Q>,
    pace: SendPace<Q>,
    scheduler: Scheduler<Q, 7>,
    fetch: WqeFetch<W, 7>,
    retire: Retire<Q, O>,
    hold: CompletionHold<Q>,
    timer: Timer<Q>,
}

impl<const W: usize, const Q: usize, const O: usize> SendQueues<W, Q, O> {
    /// The 8 slots of a FETCH take a quarter to a half of host memory's time in as many cycles.
    const APART: u64 = 16 * 512 / W as u64;
}

impl<const W: usize, const Q: usize, const O: usize> Logic for SendQueues<W, Q, O> {
    describe!(
        "send_queues",
        format!("w{W}_q{Q}_o{O}"),
        "State of all send queues, from doorbell to slot and from response to completion."
    );

    #[kernel]
    fn update(&mut self) {
        // events
        sent_room = sent.level < SENT_MOST;
        left_room = sent_room;
        let completes = left_valid & left.notify;
        sent.s.valid = completes;
        assert!(!completes | sent.s.ready, "a message that left is lost");
        departed = Activity {
            busy: sent.level.any(),
            moved: sent.m.valid & events.sent.ready,
            level: sent.level + DEPARTURES,
        };
        copy!(sent.s.payload <= left; qpn, incarnation);
        sent.s.payload.psn = left.next_psn - 1;
        state.left_valid = left_valid;
        state.left = left;
        forward!(command <= events.command);
        events.command_waits = pace.busy | hold.drains_wait;
        forward!(answer <= acks.s);
        forward!(events.answer <= acks.m);
        forward!(events.retire <= retire.event);
        forward!(events.timeout <= timer.m);
        forward!(start <= events.start);
        forward!(events.fetch <= scheduler.m);
        forward!(doorbell <= scheduler.doorbell);
        forward!(events.doorbell <= scheduler.rung);
        forward!(failure <= events.failure);
        forward!(events.sent <= sent.m);
        forward!(state.s <= events.m);

        state.image_we = sq_we;
        state.image_qpn = image_qpn;
        state.image = sq_image;
        grant_valid = state.start_valid;
        grant = state.start;

        // pace
        pace.setup = congestion;
        pace.cnp = cnp;
        pace.granted = state.sent;
        copy!(pace <= self; responses);
        rate = pace.rate;
        copy!(pace <= state; order, renewal);
        copy!(state <= pace; paced_valid, paced_qpn, pace_class);
        state.pause = pace.crowded;
        copy!(state <= self; payload_issued, payload_done);
        cnp_lost = pace.lost;
        feedback_lost = pace.feedback_lost;
        feedback = state.feedback;
        pace.feedback = state.feedback;

        // from ready queue pair to slot
        scheduler.push = state.ready_valid;
        scheduler.push_qpn = state.list_qpn;
        scheduler.push_held = state.ready_held;
        scheduler.push_class = state.ready_class;
        scheduler.push_short = state.ready_short;
        copy!(scheduler <= self; closed, closed_short);
        scheduler.apart = bits::<8>(Self::APART);
        forward!(scheduler.released <= pace.m);
        scheduler.credit = fetch.credit;
        fetch.grant_valid = state.fetch_valid;
        fetch.grant = state.fetch;
        forward!(read <= fetch.read);
        forward!(beat <= fetch.beat);
        forward!(slots <= fetch.m);

        // from acknowledged message to completion
        retire.push = state.list_valid;
        retire.push_qpn = state.list_qpn;
        retire.grant_valid = state.retire_valid;
        retire.grant = state.retire;
        copy!(retire <= state; entry_valid, entry_addr, entry);
        forward!(hold.retired <= retire.done);
        forward!(flushed <= hold.flushed);
        hold.drained = state.drained_valid;
        hold.drained_qpn = state.drained_qpn;
        hold.start_valid = state.start_valid;
        hold.action = state.start.action;
        hold.granted = state.granted;
        hold.part_cut = part_cut;
        hold.piece_cut = piece_cut;
        hold.piece_read = piece_read;
        state.room = hold.room;
        state.shared = scheduler.shared;
        retired = retire.activity;
        held = hold.activity;
        forward!(cq <= hold.cq);

        state.now = timer.now;
        timer.order_valid = state.timer_valid;
        timer.order = state.timer;
        recall_valid = state.recall_valid;
        recall = state.recall;
        query_valid = state.query_valid;
        query = state.query;
        failed_valid = state.failed_valid;
        failed_qpn = state.failed_qpn;
        failed_status = state.failed_status;
        forward!(down <= hold.failed);
        close_valid = state.close_valid;
        close_qpn = state.close_qpn;
        counts = state.counts;
        fetches = fetch.activity;
        ready = state.ready & pace.ready;
    }
}
