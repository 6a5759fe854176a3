//! Receive side: from frames to host memory, completions and acknowledgements. Wiring only.
use super::LOG_SRQ;
use crate::bus::types::image::{AvCtx, QpState, RqCtx, SqCtx, SrqCtx};
use crate::bus::types::{
    AckToken, Activity, Answer, CqToken, GatherCmd, Place, PlaceError, ReadIssue, ReadReq, Reply,
    Response, RqRead, RqSlot, RxMeta, TxDesc, WriteCmd,
};
use crate::eth::exception_types::RawBeat;
use crate::eth::gid_table::GidWrite;
use crate::eth::packet_buffer::RxStats;
use crate::eth::rx_front::RxFront;
use crate::memory::scatter::Scatter;
use crate::prelude::*;
use crate::queue::rq_fetch::RqFetch;
use crate::transport::place_order::PlaceOrder;
use crate::transport::requester::track::Track;
use crate::transport::responder::Responder;
use crate::transport::responder::event::{RqCounts, RqEvent, RqFailure, RqRequest};
use crate::transport::responder::reply::ReplyQueue;
use crate::transport::responder::rx_check::RxCheck;
use crate::transport::responder::srq_table::SrqLimit;

/// log2 of the packets in the packet buffer.
const PACKETS: usize = 9;

/// Receive side with a packet buffer of 2^B beats.
#[derive(LogicBlock, Default)]
pub struct ReceiveSide<const W: usize, const K: usize, const Q: usize, const B: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Frames.
    pub s_axis_rx: AxisIn<W, K>,
    /// Frames are accepted.
    pub enable: Signal<In, Bit>,
    /// MAC address of the port, first byte in the lowest bits.
    pub mac: Signal<In, Bits<48>>,
    /// Every destination MAC address is accepted.
    pub promiscuous: Signal<In, Bit>,
    /// A command writes `gid` into the GID table.
    pub gid_write: Signal<In, Bit>,
    /// Entry of the GID table.
    pub gid: Signal<In, GidWrite>,
    /// A command writes the responder image of `image_qpn`.
    pub rq_we: Signal<In, Bit>,
    /// Queue pair of the image.
    pub image_qpn: Signal<In, Bits<Q>>,
    /// Responder image.
    pub rq_image: Signal<In, RqCtx>,
    /// A command writes the image of shared receive queue `srq_srqn`.
    pub srq_we: Signal<In, Bit>,
    /// Shared receive queue.
    pub srq_srqn: Signal<In, Bits<LOG_SRQ>>,
    /// Its image.
    pub srq_image: Signal<In, SrqCtx>,
    /// Doorbells, failed send queues and commands.
    pub events: StreamIn<RqEvent>,
    /// Checks of rkeys.
    pub rkey: MrCheckOut,
    /// Checks of what is written.
    pub mr: MrCheckOut,
    /// Keys to invalidate.
    pub inv: MrCheckOut,
    /// Reads of receive WQEs.
    pub wqe_read: StreamOut<ReadReq>,
    /// Their answers.
    pub wqe_beat: ReadBeatIn<W>,
    /// Payload bursts.
    pub write: StreamOut<WriteCmd>,
    /// Their beats.
    pub beats: WriteBeatOut<W, K>,
    /// A command writes the requester image of `image_qpn`.
    pub sq_we: Signal<In, Bit>,
    /// Requester image.
    pub sq_image: Signal<In, SqCtx>,
    /// READs and atomics about to be sent.
    pub issue: StreamIn<ReadIssue>,
    /// The send queue of `sq_qpn` went into error.
    pub sq_failed: Signal<In, Bit>,
    /// The send queue of `sq_qpn` starts afresh.
    pub sq_reset: Signal<In, Bit>,
    /// See there.
    pub sq_qpn: Signal<In, Bits<16>>,
    /// Responses, for the requester.
    pub answer: StreamOut<Answer>,
    /// Responses to the wire.
    pub response: StreamOut<TxDesc>,
    /// Payload of READ responses to fetch.
    pub response_payload: StreamOut<GatherCmd>,
    /// A READ response was not sent because its payload could not be read.
    pub response_lost: Signal<In, Bit>,
    /// Its queue pair.
    pub response_lost_qpn: Signal<In, Bits<16>>,
    /// Its PSN.
    pub response_lost_psn: Signal<In, Bits<24>>,
    /// Its MSN.
    pub response_lost_msn: Signal<In, Bits<24>>,
    /// A command writes the address vector of `image_qpn`.
    pub av_we: Signal<In, Bit>,
    /// Address vector.
    pub av_image: Signal<In, AvCtx>,
    /// Checks of what is read for responses.
    pub response_mr: MrCheckOut,
    /// Payload bursts done, modulo 2^16.
    pub payload_done: Signal<In, Bits<16>>,
    /// Reads of atomics.
    pub atomic_read: StreamOut<ReadReq>,
    /// Their answers.
    pub atomic_beat: ReadBeatIn<W>,
    /// Writes of atomics.
    pub atomic_write: StreamOut<WriteCmd>,
    /// Their beats.
    pub atomic_beats: WriteBeatOut<W, K>,
    /// Writes of atomics done, modulo 2^16.
    pub atomic_written: Signal<In, Bits<16>>,
    /// Completions.
    pub cq: StreamOut<CqToken>,
    /// Queue pairs that went into error because of a request.
    pub failures: StreamOut<RqFailure>,
    /// Shared receive queues that fell below their limits.
    pub limits: StreamOut<SrqLimit>,
    /// Answer to a command.
    pub query_valid: Signal<Out, Bit>,
    /// Responder's part of the state, before the command.
    pub query: Signal<Out, QpState>,
    /// What became of each frame.
    pub stats: Signal<Out, RxStats>,
    /// Received beats for the exception queue.
    pub raw: Signal<Out, RawBeat>,
    /// Their bytes.
    pub raw_data: Signal<Out, Bits<W>>,
    /// Bytes that arrived, 0 to K in every cycle.
    pub rx_bytes: Signal<Out, Bits<7>>,
    /// Counter pulses of the responder.
    pub counts: Signal<Out, RqCounts>,
    /// Placements that are decided.
    pub decided: Signal<Out, Activity>,
    /// Placements being checked and moved.
    pub placed: Signal<Out, Activity>,
    /// Checked responses and atomics under way.
    pub replies: Signal<Out, Activity>,
    /// Tables are swept after reset.
    pub ready: Signal<Out, Bit>,

    front: RxFront<W, K, B, PACKETS>,
    check: RxCheck<Q, K, 1>,
    responder: Responder<Q, LOG_SRQ>,
    track: Track<Q>,
    order: PlaceOrder,
    fetch: RqFetch<W>,
    scatter: Scatter<W, K, Q>,
    reply: ReplyQueue<W, K, Q>,
    rq_events: Merge<RqEvent, 2>,
    errors: Merge<PlaceError, 2>,
}

impl<const W: usize, const K: usize, const Q: usize, const B: usize> Logic
    for ReceiveSide<W, K, Q, B>
{
    describe!(
        "receive_side",
        format!("w{W}_q{Q}_b{B}"),
        "From frames to host memory, completions and acknowledgements."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(
            self, clock, front, check, responder, track, order, fetch, scatter, reply, rq_events,
            errors
        );

        AxisIn::<W, K>::link(&mut self.s_axis_rx, &mut self.front.s_axis_rx);
        self.front.enable.next = self.enable.val();
        self.front.mac.next = self.mac.val();
        self.front.promiscuous.next = self.promiscuous.val();
        self.front.gid_write.next = self.gid_write.val();
        self.front.gid.next = self.gid.val();
        self.stats.next = self.front.stats.val();
        self.rx_bytes.next = self.front.rx_bytes.val();
        self.raw.next = self.front.raw.val();
        self.raw_data.next = self.front.raw_data.val();

        StreamOut::<RxMeta>::join(&mut self.front.meta, &mut self.check.s);
        self.check.image_we.next = self.rq_we.val();
        self.check.image_qpn.next = self.image_qpn.val();
        self.check.image.next = self.rq_image.val();
        StreamOut::<Response>::join(&mut self.check.responses, &mut self.track.s);
        StreamOut::<Bit>::join(&mut self.check.order, &mut self.order.order);

        StreamOut::<RqRequest>::join(&mut self.check.m, &mut self.responder.s);
        StreamIn::<RqEvent>::link(&mut self.events, &mut self.rq_events.s[0]);
        StreamOut::<RqEvent>::join(&mut self.reply.events, &mut self.rq_events.s[1]);
        StreamOut::<RqEvent>::join(&mut self.rq_events.m, &mut self.responder.events);
        MrCheckOut::link(&mut self.rkey, &mut self.responder.check);
        self.responder.image_we.next = self.rq_we.val();
        self.responder.image_qpn.next = self.image_qpn.val();
        self.responder.image.next = self.rq_image.val();
        self.responder.srq_we.next = self.srq_we.val();
        self.responder.srq_srqn.next = self.srq_srqn.val();
        self.responder.srq_image.next = self.srq_image.val();
        StreamOut::<SrqLimit>::link(&mut self.limits, &mut self.responder.limits);
        StreamOut::<RqFailure>::link(&mut self.failures, &mut self.responder.failures);
        self.query_valid.next = self.responder.query_valid.val();
        self.query.next = self.responder.query.val();
        self.counts.next = self.responder.counts.val();
        self.ready.next =
            self.responder.ready.val() & self.track.ready.val() & self.reply.ready.val();

        StreamIn::<ReadIssue>::link(&mut self.issue, &mut self.track.issue);
        self.track.failed.next = self.sq_failed.val();
        self.track.reset.next = self.sq_reset.val();
        self.track.control_qpn.next = self.sq_qpn.val();
        self.track.image_we.next = self.sq_we.val();
        self.track.image_qpn.next = self.image_qpn.val();
        self.track.image.next = self.sq_image.val();

        StreamOut::<Place>::join(&mut self.responder.m, &mut self.order.s[0]);
        StreamOut::<Place>::join(&mut self.track.m, &mut self.order.s[1]);
        StreamOut::<RqRead>::join(&mut self.responder.reads, &mut self.order.reads[0]);
        StreamOut::<RqRead>::join(&mut self.track.reads, &mut self.order.reads[1]);
        StreamOut::<RqRead>::join(&mut self.order.read, &mut self.fetch.s);
        // of 512 that leave, the last came behind all that were here
        self.decided.next.busy = self.order.activity.val().busy | self.track.activity.val().busy;
        self.decided.next.moved = self.order.activity.val().moved;

        StreamOut::<ReadReq>::link(&mut self.wqe_read, &mut self.fetch.read);
        ReadBeatIn::<W>::link(&mut self.wqe_beat, &mut self.fetch.beats);

        StreamOut::<Place>::join(&mut self.order.m, &mut self.scatter.place);
        StreamOut::<RqSlot>::join(&mut self.fetch.m, &mut self.scatter.slots);
        PayloadOut::<W>::join(&mut self.front.beats, &mut self.scatter.payload);
        MrCheckOut::link(&mut self.mr, &mut self.scatter.mr);
        MrCheckOut::link(&mut self.inv, &mut self.scatter.inv);
        StreamOut::<Answer>::link(&mut self.answer, &mut self.scatter.answer);
        StreamOut::<WriteCmd>::link(&mut self.write, &mut self.scatter.command);
        WriteBeatOut::<W, K>::link(&mut self.beats, &mut self.scatter.beats);
        StreamOut::<CqToken>::link(&mut self.cq, &mut self.scatter.cq);
        StreamOut::<PlaceError>::join(&mut self.scatter.error, &mut self.errors.s[0]);
        StreamOut::<PlaceError>::join(&mut self.reply.errors, &mut self.errors.s[1]);
        StreamOut::<PlaceError>::join(&mut self.errors.m, &mut self.responder.errors);
        self.placed.next = self.scatter.activity.val();

        StreamOut::<AckToken>::join(&mut self.scatter.ack, &mut self.reply.tokens);
        StreamOut::<Reply>::join(&mut self.responder.replies, &mut self.reply.replies);
        self.reply.done.next = self.payload_done.val();
        self.reply.av_we.next = self.av_we.val();
        self.reply.image_qpn.next = self.image_qpn.val();
        self.reply.av_image.next = self.av_image.val();
        MrCheckOut::link(&mut self.response_mr, &mut self.reply.mr);
        StreamOut::<TxDesc>::link(&mut self.response, &mut self.reply.desc);
        StreamOut::<GatherCmd>::link(&mut self.response_payload, &mut self.reply.gather);
        self.reply.lost.next = self.response_lost.val();
        self.reply.lost_qpn.next = self.response_lost_qpn.val();
        self.reply.lost_psn.next = self.response_lost_psn.val();
        self.reply.lost_msn.next = self.response_lost_msn.val();
        StreamOut::<ReadReq>::link(&mut self.atomic_read, &mut self.reply.read);
        ReadBeatIn::<W>::link(&mut self.atomic_beat, &mut self.reply.beat);
        StreamOut::<WriteCmd>::link(&mut self.atomic_write, &mut self.reply.write);
        WriteBeatOut::<W, K>::link(&mut self.atomic_beats, &mut self.reply.beats);
        self.reply.written.next = self.atomic_written.val();
        self.replies.next = self.reply.activity.val();
    }
}
