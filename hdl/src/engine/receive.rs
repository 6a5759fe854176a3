//! Receive side: from frames to host memory, completions and acknowledgements. Wiring only.
use crate::bus::types::image::{QpState, RqCtx, SqCtx};
use crate::bus::types::{
    Activity, Answer, CqToken, Place, PlaceError, ReadIssue, ReadReq, Response, RqRead, RqSlot,
    RxMeta, TxDesc, WriteCmd,
};
use crate::eth::gid_table::GidWrite;
use crate::eth::packet_buffer::RxStats;
use crate::eth::rx_front::RxFront;
use crate::memory::scatter::Scatter;
use crate::prelude::*;
use crate::queue::rq_fetch::RqFetch;
use crate::transport::place_order::PlaceOrder;
use crate::transport::requester::track::Track;
use crate::transport::responder::Responder;
use crate::transport::responder::ack::AckQueue;
use crate::transport::responder::event::{RqCounts, RqEvent, RqFailure, RqRequest};
use crate::transport::responder::rx_check::RxCheck;

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
    /// Completions.
    pub cq: StreamOut<CqToken>,
    /// Queue pairs that went into error because of a request.
    pub failures: StreamOut<RqFailure>,
    /// Answer to a command.
    pub query_valid: Signal<Out, Bit>,
    /// Responder's part of the state, before the command.
    pub query: Signal<Out, QpState>,
    /// What became of each frame.
    pub stats: Signal<Out, RxStats>,
    /// Bytes that arrived, 0 to K in every cycle.
    pub rx_bytes: Signal<Out, Bits<7>>,
    /// Counter pulses of the responder.
    pub counts: Signal<Out, RqCounts>,
    /// Placements that are decided.
    pub decided: Signal<Out, Activity>,
    /// Placements being checked and moved.
    pub placed: Signal<Out, Activity>,
    /// Tables are swept after reset.
    pub ready: Signal<Out, Bit>,

    front: RxFront<W, K, B, PACKETS>,
    check: RxCheck<Q, K, 1>,
    responder: Responder<Q>,
    track: Track<Q>,
    order: PlaceOrder,
    fetch: RqFetch<W>,
    scatter: Scatter<W, K, Q>,
    ack: AckQueue<Q>,
    no_ack: Signal<Local, Bit>,
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
            self, clock, front, check, responder, track, order, fetch, scatter, ack
        );

        AxisIn::<W, K>::link(&mut self.s_axis_rx, &mut self.front.s_axis_rx);
        self.front.enable.next = self.enable.val();
        self.front.mac.next = self.mac.val();
        self.front.promiscuous.next = self.promiscuous.val();
        self.front.gid_write.next = self.gid_write.val();
        self.front.gid.next = self.gid.val();
        self.stats.next = self.front.stats.val();
        self.rx_bytes.next = self.front.rx_bytes.val();

        StreamOut::<RxMeta>::join(&mut self.front.meta, &mut self.check.s);
        self.check.image_we.next = self.rq_we.val();
        self.check.image_qpn.next = self.image_qpn.val();
        // nothing answers READs and atomics yet
        self.check.image.next = self.rq_image.val();
        self.check.image.next.remote_read = false;
        self.check.image.next.remote_atomic = false;
        StreamOut::<Response>::join(&mut self.check.responses, &mut self.track.s);
        StreamOut::<Bit>::join(&mut self.check.order, &mut self.order.order);
        self.responder.replies.ready.next = true;

        StreamOut::<RqRequest>::join(&mut self.check.m, &mut self.responder.s);
        StreamIn::<RqEvent>::link(&mut self.events, &mut self.responder.events);
        MrCheckOut::link(&mut self.rkey, &mut self.responder.check);
        self.responder.image_we.next = self.rq_we.val();
        self.responder.image_qpn.next = self.image_qpn.val();
        self.responder.image.next = self.rq_image.val();
        StreamOut::<RqFailure>::link(&mut self.failures, &mut self.responder.failures);
        self.query_valid.next = self.responder.query_valid.val();
        self.query.next = self.responder.query.val();
        self.counts.next = self.responder.counts.val();
        self.ready.next = self.responder.ready.val() & self.track.ready.val();

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
        // of 256 that leave, the last came behind all that were here
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
        // `ack` knows acknowledgements alone
        self.ack.s.payload.next = self.scatter.ack.payload.val();
        self.no_ack.next =
            self.scatter.ack.payload.val().reset | self.scatter.ack.payload.val().reply;
        self.ack.s.valid.next = self.scatter.ack.valid.val() & !self.no_ack.val();
        self.scatter.ack.ready.next = self.ack.s.ready.val() | self.no_ack.val();
        StreamOut::<CqToken>::link(&mut self.cq, &mut self.scatter.cq);
        StreamOut::<PlaceError>::join(&mut self.scatter.error, &mut self.responder.errors);
        self.placed.next = self.scatter.activity.val();

        StreamOut::<TxDesc>::link(&mut self.response, &mut self.ack.m);
    }
}
