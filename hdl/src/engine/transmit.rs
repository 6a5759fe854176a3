//! Transmit side: from doorbells and acknowledgements to frames. Wiring only.
use crate::bus::types::image::{AvCtx, QpState, SqCtx};
use crate::bus::types::{
    Activity, Answer, CqToken, GatherCmd, PayloadToken, ReadIssue, ReadReq, TxDesc,
};
use crate::ib::tx_back::TxBack;
use crate::memory::gather::Gather;
use crate::prelude::*;
use crate::transport::requester::event::SqEvent;
use crate::transport::requester::recall_filter::RecallFilter;
use crate::transport::requester::top::Requester;

/// log2 of the pieces of payload under way.
const PIECES: usize = 7;
/// log2 of the packets of the requester that the header builder has and `gather` does not: more than it holds.
const VERDICTS: usize = 5;

/// Transmit side with a store of 2 * 2^G payload beats.
#[derive(LogicBlock, Default)]
pub struct TransmitSide<
    const W: usize,
    const K: usize,
    const Q: usize,
    const O: usize,
    const G: usize,
> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Doorbells.
    pub doorbell: StreamIn<SqEvent>,
    /// Commands.
    pub command: StreamIn<SqEvent>,
    /// Failures elsewhere.
    pub failure: StreamIn<SqEvent>,
    /// Responses from the wire.
    pub answer: StreamIn<Answer>,
    /// READs and atomics about to be sent.
    pub issue: StreamOut<ReadIssue>,
    /// Responses to the wire.
    pub response: StreamIn<TxDesc>,
    /// Their payload, in order.
    pub response_payload: StreamIn<GatherCmd>,
    /// A command writes the requester image of `image_qpn`.
    pub sq_we: Signal<In, Bit>,
    /// A command writes the address vector of `image_qpn`.
    pub av_we: Signal<In, Bit>,
    /// A command writes address handle `image_qpn`.
    pub ah_we: Signal<In, Bit>,
    /// Queue pair or address handle of the images.
    pub image_qpn: Signal<In, Bits<Q>>,
    /// Requester image.
    pub sq_image: Signal<In, SqCtx>,
    /// Address vector.
    pub av_image: Signal<In, AvCtx>,
    /// A command writes entry `gid_index` of the GID table.
    pub gid_we: Signal<In, Bit>,
    /// Entry of the GID table.
    pub gid_index: Signal<In, Bits<8>>,
    /// GID, first byte in the lowest bits.
    pub gid: Signal<In, Bits<128>>,
    /// MAC address of the port, first byte in the lowest bits.
    pub mac: Signal<In, Bits<48>>,
    /// Reads of send WQEs.
    pub wqe_read: StreamOut<ReadReq>,
    /// Their answers.
    pub wqe_beat: ReadBeatIn<W>,
    /// Reads of payload.
    pub payload_read: StreamOut<ReadReq>,
    /// Their answers.
    pub payload_beat: ReadBeatIn<W>,
    /// Reads of the payload of responses.
    pub response_read: StreamOut<ReadReq>,
    /// Their answers.
    pub response_beat: ReadBeatIn<W>,
    /// Memory region checks.
    pub mr: MrCheckOut,
    /// Completions.
    pub cq: StreamOut<CqToken>,
    /// Frames.
    pub m_axis_tx: AxisOut<W, K>,
    /// Answer to a command.
    pub query_valid: Signal<Out, Bit>,
    /// Requester's part of the state, before the command.
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
    /// A packet was not sent because its payload could not be read.
    pub lost: Signal<Out, Bit>,
    /// Its queue pair.
    pub lost_qpn: Signal<Out, Bits<16>>,
    /// A response was not sent because its payload could not be read.
    pub response_lost: Signal<Out, Bit>,
    /// Its queue pair.
    pub response_lost_qpn: Signal<Out, Bits<16>>,
    /// Its PSN.
    pub response_lost_psn: Signal<Out, Bits<24>>,
    /// Its MSN.
    pub response_lost_msn: Signal<Out, Bits<24>>,
    /// Counter pulses of the requester, see [`Requester::counts`].
    pub counts: Signal<Out, Bits<11>>,
    /// A packet leaves that was sent before.
    pub retransmission: Signal<Out, Bit>,
    /// A frame was sent.
    pub tx_frames: Signal<Out, Bit>,
    /// With `tx_frames`: its bytes.
    pub tx_bytes: Signal<Out, Bits<13>>,
    /// It is a RoCEv2 packet.
    pub tx_roce_packets: Signal<Out, Bit>,
    /// It is an acknowledgement.
    pub tx_acks: Signal<Out, Bit>,
    /// Send WQEs being read.
    pub fetches: Signal<Out, Activity>,
    /// Send WQEs on their way to packets.
    pub wqes: Signal<Out, Activity>,
    /// Payload being read.
    pub pieces: Signal<Out, Activity>,
    /// Completions that wait for payload to be read.
    pub held: Signal<Out, Activity>,
    /// Payload of responses being read.
    pub response_pieces: Signal<Out, Activity>,
    /// Tables are swept after reset.
    pub ready: Signal<Out, Bit>,

    requester: Requester<W, Q, O>,
    /// Payload, by lane.
    gather: Gather<W, K, G, PIECES>,
    /// Packets whose payload is under way; as many as `gather` holds, or they would bound its reads.
    descs: Bypass<TxDesc, PIECES>,
    recall: RecallFilter<Q, VERDICTS>,
    response_descs: Bypass<TxDesc, PIECES>,
    back: TxBack<W, K, Q>,
}

impl<const W: usize, const K: usize, const Q: usize, const O: usize, const G: usize> Logic
    for TransmitSide<W, K, Q, O, G>
{
    describe!(
        "transmit_side",
        format!("w{W}_q{Q}_o{O}_g{G}"),
        "From doorbells and acknowledgements to frames."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(
            self,
            clock,
            requester,
            gather,
            descs,
            recall,
            response_descs,
            back
        );

        StreamIn::<SqEvent>::link(&mut self.doorbell, &mut self.requester.doorbell);
        StreamIn::<SqEvent>::link(&mut self.command, &mut self.requester.command);
        StreamIn::<SqEvent>::link(&mut self.failure, &mut self.requester.failure);
        StreamIn::<Answer>::link(&mut self.answer, &mut self.requester.answer);
        self.requester.sent_valid.next = self.back.sent_valid.val();
        self.requester.sent_qpn.next = self.back.sent_qpn.val();
        self.requester.sent_psn.next = self.back.sent_psn.val();
        self.requester.sq_we.next = self.sq_we.val();
        self.requester.av_we.next = self.av_we.val();
        // no command writes address handles yet
        self.requester.ah_we.next = self.ah_we.val();
        StreamOut::<ReadIssue>::link(&mut self.issue, &mut self.requester.issue);
        self.requester.image_qpn.next = self.image_qpn.val();
        self.requester.sq_image.next = self.sq_image.val();
        self.requester.av_image.next = self.av_image.val();
        StreamOut::<ReadReq>::link(&mut self.wqe_read, &mut self.requester.read);
        ReadBeatIn::<W>::link(&mut self.wqe_beat, &mut self.requester.beat);
        MrCheckOut::link(&mut self.mr, &mut self.requester.mr);
        StreamOut::<CqToken>::link(&mut self.cq, &mut self.requester.cq);
        self.query_valid.next = self.requester.query_valid.val();
        self.query.next = self.requester.query.val();
        self.failed_valid.next = self.requester.failed_valid.val();
        self.failed_qpn.next = self.requester.failed_qpn.val();
        self.failed_status.next = self.requester.failed_status.val();
        StreamOut::<Bits<16>>::link(&mut self.down, &mut self.requester.down);
        self.close_valid.next = self.requester.close_valid.val();
        self.close_qpn.next = self.requester.close_qpn.val();
        self.drained_valid.next = self.requester.drained_valid.val();
        self.drained_qpn.next = self.requester.drained_qpn.val();
        self.counts.next = self.requester.counts.val();
        self.retransmission.next = self.requester.retransmission.val();
        self.fetches.next = self.requester.fetches.val();
        self.wqes.next = self.requester.wqes.val();
        self.ready.next = self.requester.ready.val();

        StreamOut::<GatherCmd>::join(&mut self.requester.gather, &mut self.gather.command[0]);
        StreamOut::<ReadReq>::link(&mut self.payload_read, &mut self.gather.request[0]);
        ReadBeatIn::<W>::link(&mut self.payload_beat, &mut self.gather.beats[0]);
        self.pieces.next = self.gather.activity[0].val();
        self.requester.piece_read.next = self.gather.activity[0].val().moved;
        self.held.next = self.requester.held.val();

        StreamIn::<GatherCmd>::link(&mut self.response_payload, &mut self.gather.command[1]);
        StreamOut::<ReadReq>::link(&mut self.response_read, &mut self.gather.request[1]);
        ReadBeatIn::<W>::link(&mut self.response_beat, &mut self.gather.beats[1]);
        self.response_pieces.next = self.gather.activity[1].val();

        // lane 0 requests; lane 1 responses
        StreamOut::<TxDesc>::join(&mut self.requester.desc, &mut self.descs.s);
        StreamOut::<TxDesc>::join(&mut self.descs.m, &mut self.recall.s);
        StreamOut::<TxDesc>::join(&mut self.recall.m, &mut self.back.desc[0]);
        self.recall.recall_valid.next = self.requester.recall_valid.val();
        self.recall.recall.next = self.requester.recall.val();
        StreamOut::<Bit>::join(&mut self.recall.payload, &mut self.gather.wanted[0]);
        StreamOut::<PayloadToken>::join(&mut self.gather.packet[0], &mut self.back.token[0]);
        PayloadOut::<W>::join(&mut self.gather.payload[0], &mut self.back.payload[0]);
        StreamIn::<TxDesc>::link(&mut self.response, &mut self.response_descs.s);
        StreamOut::<TxDesc>::join(&mut self.response_descs.m, &mut self.back.desc[1]);
        // responses are never recalled
        self.gather.wanted[1].valid.next = true;
        self.gather.wanted[1].payload.next = true;
        StreamOut::<PayloadToken>::join(&mut self.gather.packet[1], &mut self.back.token[1]);
        PayloadOut::<W>::join(&mut self.gather.payload[1], &mut self.back.payload[1]);
        self.back.av_we.next = self.av_we.val();
        self.back.ah_we.next = self.ah_we.val();
        self.back.image_qpn.next = bit_cast::<16, Q>(self.image_qpn.val());
        self.back.av_image.next = self.av_image.val();
        self.back.gid_we.next = self.gid_we.val();
        self.back.gid_index.next = self.gid_index.val();
        self.back.gid.next = self.gid.val();
        self.back.mac.next = self.mac.val();
        AxisOut::<W, K>::link(&mut self.m_axis_tx, &mut self.back.m_axis_tx);
        self.lost.next = self.back.lost[0].val();
        self.lost_qpn.next = self.back.lost_qpn[0].val();
        self.response_lost.next = self.back.lost[1].val();
        self.response_lost_qpn.next = self.back.lost_qpn[1].val();
        self.response_lost_psn.next = self.back.lost_psn[1].val();
        self.response_lost_msn.next = self.back.lost_msn[1].val();
        self.tx_frames.next = self.back.tx_frames.val();
        self.tx_bytes.next = self.back.tx_bytes.val();
        self.tx_roce_packets.next = self.back.tx_roce_packets.val();
        self.tx_acks.next = self.back.tx_acks.val();
    }
}
