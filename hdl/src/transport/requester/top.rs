//! The requester: wires its blocks together.
use super::decision::SqCounts;
use super::event::SqEvent;
use super::key_work::KeyWork;
use super::send::SendPath;
use super::send_queues::SendQueues;
use crate::bus::dma::{MrCheckOut, ReadBeatIn};
use crate::bus::types::image::{AvCtx, QpState, SqCtx};
use crate::bus::types::{
    AccessCounts, Activity, Answer, CqToken, Departure, GatherCmd, ReadIssue, ReadReq, Recall,
    TxDesc,
};
use crate::bus::valid::Valid;
use crate::egress::types::{ClassSetup, ClosedClasses, RequestsAhead};
use crate::prelude::*;
use crate::transport::congestion::pace_types::{CongestionSetup, PaceGrant, PaceRate};
use crate::transport::congestion::types::CongestionEvent;

/// Requester of 2^Q queue pairs with a pool of 2^O outstanding messages, on a memory bus of W bits.
#[derive(Block)]
#[block(check)]
pub struct Requester<const W: usize, const Q: usize, const O: usize> {
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
    /// What the host says of congestion control.
    pub congestion: Signal<In, CongestionSetup>,
    /// A queue pair received a CNP of its peer.
    pub cnp: Signal<In, Valid<Bits<16>>>,
    /// Congestion control had no room for a CNP; one cycle.
    pub cnp_lost: Signal<Out, Bit>,
    /// Feedback of a queue pair of Swift found no room; one cycle.
    pub feedback_lost: Signal<Out, Bit>,
    /// What the network did to a send queue.
    pub feedback: Signal<Out, Valid<CongestionEvent>>,
    /// Responses of a queue pair were granted.
    pub responses: Signal<In, Valid<PaceGrant>>,
    /// The rate of a queue pair changes, for its responses.
    pub rate: Signal<Out, Valid<PaceRate>>,
    /// A command writes the requester image of `image_qpn`.
    pub sq_we: Signal<In, Bit>,
    /// A command writes the address vector of `image_qpn`.
    pub av_we: Signal<In, Bit>,
    /// A command writes the address handle `image_qpn`.
    pub ah_we: Signal<In, Bit>,
    /// Queue pair or address handle of the images.
    pub image_qpn: Signal<In, Bits<Q>>,
    /// Requester image.
    pub sq_image: Signal<In, SqCtx>,
    /// Address vector.
    pub av_image: Signal<In, AvCtx>,
    /// MAC address of the port, first byte in the lowest bits.
    pub mac: Signal<In, Bits<48>>,
    /// What the host says of classes.
    pub classes: Signal<In, ClassSetup>,
    /// Classes of which no request is to start.
    pub closed: Signal<In, ClosedClasses>,
    /// No more payload is to be added to what is under way.
    pub crowded: Signal<In, Bit>,
    /// Requests that are granted and not cut into packets, and those that were refused.
    pub ahead: Signal<Out, RequestsAhead>,
    /// Reads of WQEs.
    pub read: StreamOut<ReadReq>,
    /// Their answers.
    pub beat: ReadBeatIn<W>,
    /// Memory region checks.
    pub mr: MrCheckOut,
    /// READs and atomics, before their first packet.
    pub issue: StreamOut<ReadIssue>,
    /// Changes of the memory region table.
    pub change: KeyChangeOut,
    /// Placements being checked and moved.
    pub placed: Signal<In, Activity>,
    /// Payload bursts issued, modulo 2^16.
    pub payload_issued: Signal<In, Bits<16>>,
    /// Of these, those that have their response.
    pub payload_done: Signal<In, Bits<16>>,
    /// Accesses to memory for peers.
    pub accesses: Signal<In, AccessCounts>,
    /// Packets.
    pub desc: StreamOut<TxDesc>,
    /// Pieces of payload.
    pub gather: StreamOut<GatherCmd>,
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
    /// A packet leaves that was sent before.
    pub retransmission: Signal<Out, Bit>,
    /// Send WQEs being read.
    pub fetches: Signal<Out, Activity>,
    /// Send WQEs that wait for their checks or their grant.
    pub wqes: Signal<Out, Activity>,
    /// Requests that change keys and are not done.
    pub keys: Signal<Out, Activity>,
    /// Parts of messages that were granted and are not packets yet.
    pub parts: Signal<Out, Activity>,
    /// Messages being taken off the outstanding table.
    pub retired: Signal<Out, Activity>,
    /// Completions that wait for payload to be read.
    pub held: Signal<Out, Activity>,
    /// UC and UD messages that left, and are not complete.
    pub departed: Signal<Out, Activity>,
    /// Tables are swept after reset.
    pub ready: Signal<Out, Bit>,

    queues: SendQueues<W, Q, O>,
    send: SendPath<Q>,
    key_work: KeyWork<Q>,
    /// Slots are on their way.
    fetch_due: Reg<Bit>,
}

impl<const W: usize, const Q: usize, const O: usize> Requester<W, Q, O> {
    fn check() {
        assert!(
            (4..=14).contains(&Q),
            "2^{Q} queue pairs: 2^4 to 2^14 can be built"
        );
    }
}

impl<const W: usize, const Q: usize, const O: usize> Logic for Requester<W, Q, O> {
    describe!(
        "requester",
        format!("w{W}_q{Q}_o{O}"),
        "Send side of all queue pairs."
    );

    #[kernel]
    fn update(&mut self) {
        forward!(doorbell <= queues.doorbell);
        forward!(command <= queues.command);
        forward!(failure <= queues.failure);
        forward!(answer <= queues.answer);
        copy!(queues <= self; left_valid, left);
        left_room = queues.left_room;
        queues.congestion = congestion;
        queues.cnp = cnp;
        cnp_lost = queues.cnp_lost;
        feedback_lost = queues.feedback_lost;
        feedback = queues.feedback;
        copy!(queues <= self; responses);
        rate = queues.rate;
        queues.sq_we = sq_we;
        queues.image_qpn = image_qpn;
        queues.sq_image = sq_image;
        forward!(read <= queues.read);
        forward!(beat <= queues.beat);
        recall_valid = queues.recall_valid;
        recall = queues.recall;
        query_valid = queues.query_valid;
        query = queues.query;
        failed_valid = queues.failed_valid;
        failed_qpn = queues.failed_qpn;
        failed_status = queues.failed_status;
        forward!(down <= queues.down);
        close_valid = queues.close_valid;
        close_qpn = queues.close_qpn;
        counts = queues.counts;
        fetches = queues.fetches;
        ready = queues.ready;

        send.sq_we = sq_we;
        send.av_we = av_we;
        send.ah_we = ah_we;
        send.image_qpn = image_qpn;
        send.sq_image = sq_image;
        send.av_image = av_image;
        copy!(send <= self; mac, classes, closed, crowded);
        ahead = send.ahead;
        queues.closed = closed.waits;
        queues.closed_short = closed.waits_short;
        forward!(mr <= send.mr);
        forward!(send.s <= queues.slots);
        fetch_due = queues.fetches.busy;
        send.more = fetch_due;
        forward!(queues.start <= send.start);
        copy!(send <= queues; grant_valid, grant, recall_valid, recall);
        forward!(issue <= send.issue);
        forward!(desc <= send.desc);
        forward!(gather <= send.gather);
        retransmission = send.retransmission;
        wqes = send.activity;
        forward!(key_work.s <= send.key);
        forward!(send.key_done <= key_work.m);
        forward!(change <= key_work.change);
        copy!(queues <= self; payload_issued, payload_done);
        copy!(key_work <= self; placed, payload_issued, payload_done, accesses);
        keys = key_work.activity;
        parts = send.parts;

        forward!(queues.flushed <= send.flushed);
        queues.part_cut = send.part_cut;
        queues.piece_cut = send.piece_cut;
        queues.piece_read = piece_read;
        forward!(cq <= queues.cq);
        copy!(self <= queues; retired, held, departed);
    }
}
