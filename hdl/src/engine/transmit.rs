//! Transmit side: from doorbells and acknowledgements to frames. Wiring only.
use crate::bus::types::image::QpState;
use crate::bus::types::{
    AccessCounts, Activity, Answer, CqToken, Departure, GatherCmd, PayloadSize, ReadIssue, ReadReq,
    TxDesc, if_there,
};
use crate::bus::valid::Valid;
use crate::control::table_writes::TableWrites;
use crate::egress::types::{ClassSetup, ClosedClasses, FrameMark, RequestsAhead};
use crate::eth::tx_back::TxBack;
use crate::memory::gather::Gather;
use crate::prelude::*;
use crate::transport::congestion::notify_types::NotifySetup;
use crate::transport::congestion::pace_types::{CongestionSetup, PaceGrant, PaceRate};
use crate::transport::congestion::types::CongestionEvent;
use crate::transport::requester::decision::SqCounts;
use crate::transport::requester::event::SqEvent;
use crate::transport::requester::recall_filter::RecallFilter;
use crate::transport::requester::top::Requester;

/// log2 of the pieces of payload under way.
const PIECES: usize = 7;
/// log2 of the packets of the requester that the header builder has and `gather` does not: more than it holds.
const VERDICTS: usize = 5;

/// Transmit side with a store of 2 * 2^G payload beats.
#[derive(Block)]
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
    /// Queue pairs whose peer is due a CNP.
    pub cnp: StreamIn<Bits<16>>,
    /// No CNP is to leave.
    pub cnps_wait: Signal<In, Bit>,
    /// What the host says of CNPs.
    pub notify: Signal<In, NotifySetup>,
    /// What commands write into tables.
    pub tables: Signal<In, TableWrites>,
    /// Payload of responses for which room is taken, ahead.
    pub response_reserve: Signal<In, Valid<PayloadSize>>,
    /// Of these, what is not asked for.
    pub response_give_back: Signal<In, Valid<PayloadSize>>,
    /// There is room ahead for payload of responses.
    pub response_room: Signal<Out, Bit>,
    /// A piece of it was read.
    pub response_read_done: Signal<Out, Bit>,
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
    /// Completions.
    pub cq: StreamOut<CqToken>,
    /// Frames.
    pub m_axis_tx: AxisOut<W, K>,
    /// With each beat: what its frame is.
    pub mark: Signal<Out, FrameMark>,
    /// The frame of a request is begun; one cycle.
    pub started_valid: Signal<Out, Bit>,
    /// What is known of it when it leaves.
    pub started: Signal<Out, Departure>,
    /// Packets stand between their headers and the merge of the lanes.
    pub assembling: Signal<Out, Bit>,
    /// A frame passes the merge; one cycle.
    pub enters: Signal<Out, Bit>,
    /// A request has left; one cycle.
    pub left_valid: Signal<In, Bit>,
    /// Which.
    pub left: Signal<In, Departure>,
    /// Eight more may leave.
    pub left_room: Signal<Out, Bit>,
    /// Answer to a command.
    pub sq_query_valid: Signal<Out, Bit>,
    /// Requester's part of the state, before the command.
    pub sq_query: Signal<Out, QpState>,
    /// A send queue went into error.
    pub sq_failed: Signal<Out, Bit>,
    /// Its queue pair.
    pub sq_failed_qpn: Signal<Out, Bits<16>>,
    /// Status behind it; 0 if the cause is not in the send queue.
    pub sq_failed_status: Signal<Out, Bits<8>>,
    /// Queue pairs in error whose completions with the failure have left: their responder is to fail.
    pub down: StreamOut<Bits<16>>,
    /// A send queue entered error: `track` answers `closed` when no write of its queue pair is pending.
    pub close_valid: Signal<Out, Bit>,
    /// Its queue pair.
    pub close_qpn: Signal<Out, Bits<16>>,
    /// A packet was not sent because its payload could not be read.
    pub lost: Signal<Out, Bit>,
    /// Its queue pair.
    pub lost_qpn: Signal<Out, Bits<16>>,
    /// Its PSN.
    pub lost_psn: Signal<Out, Bits<24>>,
    /// Incarnation of its queue pair.
    pub lost_incarnation: Signal<Out, Bits<2>>,
    /// No request with payload is to start: a loss could not be reported.
    pub lost_hold: Signal<In, Bit>,
    /// A response was not sent because its payload could not be read.
    pub response_lost: Signal<Out, Bit>,
    /// Its queue pair.
    pub response_lost_qpn: Signal<Out, Bits<16>>,
    /// Its PSN.
    pub response_lost_psn: Signal<Out, Bits<24>>,
    /// Its MSN.
    pub response_lost_msn: Signal<Out, Bits<24>>,
    /// Counter pulses.
    pub counts: Signal<Out, SqCounts>,
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
    /// A CNP leaves.
    pub tx_cnps: Signal<Out, Bit>,
    /// What the host says of classes.
    pub classes: Signal<In, ClassSetup>,
    /// Classes of which no request is to start.
    pub closed: Signal<In, ClosedClasses>,
    /// Requests that are granted and not cut into packets, and those that were refused.
    pub ahead: Signal<Out, RequestsAhead>,
    /// What the host says of congestion control.
    pub congestion: Signal<In, CongestionSetup>,
    /// A queue pair received a CNP of its peer.
    pub cnp_received: Signal<In, Valid<Bits<16>>>,
    /// Congestion control had no room for a CNP; one cycle.
    pub cnp_lost: Signal<Out, Bit>,
    /// Feedback of a queue pair of Swift found no room; one cycle.
    pub feedback_lost: Signal<Out, Bit>,
    /// What the network did to a send queue.
    pub feedback: Signal<Out, Valid<CongestionEvent>>,
    /// Responses of a queue pair were granted.
    pub response_sent: Signal<In, Valid<PaceGrant>>,
    /// The rate of a queue pair changes, for its responses.
    pub response_rate: Signal<Out, Valid<PaceRate>>,
    /// Send WQEs being read.
    pub fetches: Signal<Out, Activity>,
    /// Send WQEs that wait for their checks or their grant.
    pub wqes: Signal<Out, Activity>,
    /// Requests that change keys and are not done.
    pub keys: Signal<Out, Activity>,
    /// Parts of messages that were granted and are not packets yet.
    pub parts: Signal<Out, Activity>,
    /// Payload being read.
    pub pieces: Signal<Out, Activity>,
    /// Messages being taken off the outstanding table.
    pub retired: Signal<Out, Activity>,
    /// Completions that wait for payload to be read.
    pub held: Signal<Out, Activity>,
    /// UC and UD messages that left, and are not complete.
    pub departed: Signal<Out, Activity>,
    /// Payload of responses being read.
    pub response_pieces: Signal<Out, Activity>,
    /// Requests of which no frame started yet.
    pub requests: Signal<Out, Activity>,
    /// Responses, likewise; those at the entrance are those that wait behind it.
    pub responses: Signal<Out, Activity>,
    /// CNPs, likewise.
    pub cnps: Signal<Out, Activity>,
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

    #[kernel]
    fn update(&mut self) {
        forward!(doorbell <= requester.doorbell);
        forward!(command <= requester.command);
        forward!(failure <= requester.failure);
        forward!(answer <= requester.answer);
        copy!(self <= back; started_valid, started, assembling, enters);
        copy!(requester <= self; left_valid, left);
        left_room = requester.left_room;
        copy!(requester <= tables; sq_we, av_we, ah_we);
        requester.congestion = congestion;
        requester.cnp = cnp_received;
        cnp_lost = requester.cnp_lost;
        feedback_lost = requester.feedback_lost;
        feedback = requester.feedback;
        requester.responses = response_sent;
        response_rate = requester.rate;
        requester.image_qpn = tables.qpn.low::<Q>();
        requester.sq_image = tables.sq;
        requester.av_image = tables.av;
        requester.mac = tables.mac;
        copy!(requester <= self; classes, closed);
        ahead = requester.ahead;
        forward!(issue <= requester.issue);
        forward!(wqe_read <= requester.read);
        forward!(wqe_beat <= requester.beat);
        forward!(mr <= requester.mr);
        forward!(change <= requester.change);
        copy!(requester <= self; placed, payload_issued, payload_done, accesses);
        forward!(cq <= requester.cq);
        sq_query_valid = requester.query_valid;
        sq_query = requester.query;
        sq_failed = requester.failed_valid;
        sq_failed_qpn = requester.failed_qpn;
        sq_failed_status = requester.failed_status;
        forward!(down <= requester.down);
        close_valid = requester.close_valid;
        close_qpn = requester.close_qpn;
        counts = requester.counts;
        retransmission = requester.retransmission;
        fetches = requester.fetches;
        wqes = requester.wqes;
        keys = requester.keys;
        parts = requester.parts;
        ready = requester.ready;

        forward!(gather.command[0] <= requester.gather);
        forward!(payload_read <= gather.request[0]);
        forward!(payload_beat <= gather.beats[0]);
        pieces = gather.activity[0];
        requester.piece_read = gather.activity[0].moved;
        copy!(self <= requester; retired, held, departed);

        forward!(response_payload <= gather.command[1]);
        gather.reserve = response_reserve;
        gather.give_back = response_give_back;
        response_room = gather.room;
        requester.crowded = gather.crowded;
        response_read_done = gather.activity[1].moved;
        forward!(response_read <= gather.request[1]);
        forward!(response_beat <= gather.beats[1]);
        response_pieces = gather.activity[1];

        // lane 0 requests; lane 1 responses
        forward!(descs.s <= requester.desc);
        forward!(recall.s <= descs.m);
        forward!(back.desc[0] <= recall.m);
        recall.recall_valid = requester.recall_valid;
        recall.recall = requester.recall;
        forward!(gather.wanted[0] <= recall.payload);
        forward!(back.token[0] <= gather.packet[0]);
        forward!(back.payload[0] <= gather.payload[0]);
        requests.busy = requester.desc.valid | descs.m.valid | recall.busy | back.activity[0].busy;
        requests.moved = back.activity[0].moved;
        // behind `desc` one more may wait
        requests.level = descs.level
            + back.activity[0].level
            + if_there(recall.busy, bits::<16>(1))
            + if_there(requester.desc.valid, bits::<16>(2));
        responses.busy = response.valid | response_descs.m.valid | back.activity[1].busy;
        responses.moved = back.activity[1].moved;
        responses.level = response_descs.level + back.activity[1].level;
        forward!(response <= response_descs.s);
        forward!(back.desc[1] <= response_descs.m);
        // responses are never recalled
        gather.wanted[1].valid = true;
        gather.wanted[1].payload = true;
        forward!(back.token[1] <= gather.packet[1]);
        forward!(back.payload[1] <= gather.payload[1]);
        back.cnp.valid = cnp.valid & !cnps_wait;
        back.cnp.payload = cnp.payload;
        cnp.ready = back.cnp.ready & !cnps_wait;
        back.notify = notify;
        cnps.busy = cnp.valid | back.cnp_activity.busy;
        cnps.moved = back.cnp_activity.moved;
        cnps.level = back.cnp_activity.level;
        copy!(back <= tables; av_we, ah_we, gid_we, mac);
        back.image_qpn = tables.qpn;
        back.av_image = tables.av;
        back.gid_index = tables.gid.index;
        back.gid = tables.gid.gid;
        back.classes = classes;
        forward!(m_axis_tx <= back.m_axis_tx);
        mark = back.mark;
        back.hold[0] = lost_hold;
        // `reply` has room for all that count
        back.hold[1] = false;
        lost = back.lost[0];
        lost_qpn = back.lost_qpn[0];
        lost_psn = back.lost_psn[0];
        lost_incarnation = back.lost_incarnation[0];
        response_lost = back.lost[1];
        response_lost_qpn = back.lost_qpn[1];
        response_lost_psn = back.lost_psn[1];
        response_lost_msn = back.lost_msn[1];
        tx_frames = back.tx_frames;
        tx_bytes = back.tx_bytes;
        tx_roce_packets = back.tx_roce_packets;
        tx_acks = back.tx_acks;
        tx_cnps = back.tx_cnps;
    }
}
