//! Receive side: from frames to host memory, completions and acknowledgements. Wiring only.
use ferroce_proto::abi::classes::{BUFFER_PACKETS, BUFFER_UNITS};
use ferroce_proto::abi::cq::status::GENERAL_ERR;

use super::LOG_SRQ;
use crate::bus::qp_state::RESET;
use crate::bus::syndrome::NAK_OPERATIONAL;
use crate::bus::types::image::QpState;
use crate::bus::types::{
    AccessCounts, Activity, Answer, AtomicsOver, CqOutcome, CqToken, GatherCmd, PayloadSize,
    PlaceError, ReadIssue, ReadReq, TxDesc, WriteCmd, WriteMarks,
};
use crate::bus::valid::Valid;
use crate::control::table_writes::TableWrites;
use crate::egress::CLASSES;
use crate::egress::types::{ClassSetup, ClosedClasses, PauseCounts};
use crate::eth::exception_types::RawBeat;
use crate::eth::packet_buffer::RxStats;
use crate::eth::rx_front::RxFront;
use crate::memory::scatter::Scatter;
use crate::memory::write_faults::WriteFaults;
use crate::prelude::*;
use crate::queue::rq_fetch::RqFetch;
use crate::transport::congestion::notify::Notify;
use crate::transport::congestion::notify_types::{NotifyCounts, NotifySetup};
use crate::transport::congestion::pace_types::{PaceGrant, PaceRate};
use crate::transport::place_order::PlaceOrder;
use crate::transport::requester::track::Track;
use crate::transport::responder::Responder;
use crate::transport::responder::ack_hold::AckHold;
use crate::transport::responder::event::{RqCounts, RqEvent, RqEventKind, RqFailure};
use crate::transport::responder::reply::ReplyQueue;
use crate::transport::responder::rx_check::RxCheck;
use crate::transport::responder::srq_table::SrqLimit;

/// log2 of the packets in the packet buffer.
const PACKETS: usize = BUFFER_PACKETS.ilog2() as usize;

/// Receive side with a packet buffer of 2^R beats.
#[derive(Block)]
#[block(check)]
pub struct ReceiveSide<const W: usize, const K: usize, const Q: usize, const R: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Frames.
    pub s_axis_rx: AxisIn<W, K>,
    /// Frames are accepted.
    pub enable: Signal<In, Bit>,
    /// What the host says of classes.
    pub classes: Signal<In, ClassSetup>,
    /// Classes of which no turn of responses is to start.
    pub closed: Signal<In, ClosedClasses>,
    /// Classes of which no acknowledgement is to leave.
    pub acks_wait: Signal<In, Bits<CLASSES>>,
    /// Much waits in front of `s_axis_rx`: each class that sends pauses asks for one.
    pub rx_backlog: Signal<In, Bit>,
    /// Priorities that the peer is to pause.
    pub pause_send: Signal<Out, Bits<8>>,
    /// Counter pulses of these.
    pub pauses: Signal<Out, PauseCounts>,
    /// What commands write into tables.
    pub tables: Signal<In, TableWrites>,
    /// Doorbells of receive queues, shared ones too: taken whatever host memory does.
    pub doorbells: StreamIn<RqEvent>,
    /// Failed send queues and commands.
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
    /// READs and atomics about to be sent.
    pub issue: StreamIn<ReadIssue>,
    /// The send queue of `close_qpn` went into error.
    pub close_valid: Signal<In, Bit>,
    /// The send queue of `close_qpn` starts afresh, or ends by RESET: in the stage that does the command, before the next comes.
    pub sq_reset: Signal<In, Bit>,
    /// Of these: it starts.
    pub sq_starts: Signal<In, Bit>,
    /// See there.
    pub close_qpn: Signal<In, Bits<16>>,
    /// Responses, for the requester.
    pub answer: StreamOut<Answer>,
    /// Responses to the wire.
    pub response: StreamOut<TxDesc>,
    /// Payload of READ responses to fetch.
    pub response_payload: StreamOut<GatherCmd>,
    /// Responses of a queue pair leave; one cycle.
    pub response_sent: Signal<Out, Valid<PaceGrant>>,
    /// The rate of a queue pair changes, for its responses.
    pub response_rate: Signal<In, Valid<PaceRate>>,
    /// Room for it that is taken ahead.
    pub response_reserve: Signal<Out, Valid<PayloadSize>>,
    /// Of this, what is not asked for.
    pub response_give_back: Signal<Out, Valid<PayloadSize>>,
    /// There is room ahead.
    pub response_room: Signal<In, Bit>,
    /// A piece of it was read.
    pub response_read_done: Signal<In, Bit>,
    /// Accesses to memory for peers.
    pub accesses: Signal<Out, AccessCounts>,
    /// A READ response was not sent because its payload could not be read.
    pub response_lost: Signal<In, Bit>,
    /// Its queue pair.
    pub response_lost_qpn: Signal<In, Bits<16>>,
    /// Its PSN.
    pub response_lost_psn: Signal<In, Bits<24>>,
    /// Its MSN.
    pub response_lost_msn: Signal<In, Bits<24>>,
    /// Checks of what is read for responses.
    pub response_mr: MrCheckOut,
    /// Payload bursts issued, modulo 2^16.
    pub payload_issued: Signal<In, Bits<16>>,
    /// Of these, those that are done.
    pub payload_done: Signal<In, Bits<16>>,
    /// The last one done was refused.
    pub payload_refused: Signal<In, Bit>,
    /// Payload bursts done, of which it is known whose they are, modulo 2^16.
    pub judged: Signal<Out, Bits<16>>,
    /// Queue pair of a completion.
    pub look: Signal<In, Bits<16>>,
    /// A cycle later: since when its payload was refused.
    pub refused_since: Signal<Out, WriteMarks>,
    /// The queue pair whose atomics a completion waits for.
    pub awaited: Signal<In, Bits<16>>,
    /// Atomics of a queue pair that are over.
    pub over: Signal<Out, Valid<AtomicsOver>>,
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
    /// The last one done was refused.
    pub atomic_refused: Signal<In, Bit>,
    /// Completions.
    pub cq: StreamOut<CqToken>,
    /// What became of those that an acknowledgement waits for.
    pub outcome: Signal<In, Valid<CqOutcome>>,
    /// Queue pairs that went into error because of a request.
    pub failures: StreamOut<RqFailure>,
    /// Shared receive queues that fell below their limits.
    pub limits: StreamOut<SrqLimit>,
    /// What the host says of CNPs.
    pub notify: Signal<In, NotifySetup>,
    /// Queue pairs whose peer is due a CNP.
    pub cnp: StreamOut<Bits<16>>,
    /// A queue pair received a CNP of its peer.
    pub cnp_received: Signal<Out, Valid<Bits<16>>>,
    /// Counter pulses of the notification point.
    pub notified: Signal<Out, NotifyCounts>,
    /// Answer to a command.
    pub rq_query_valid: Signal<Out, Bit>,
    /// Responder's part of the state, before the command.
    pub rq_query: Signal<Out, QpState>,
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
    /// Placements of requests that are decided.
    pub requested: Signal<Out, Activity>,
    /// Responses that are looked at or decided.
    pub tracked: Signal<Out, Activity>,
    /// Placements in the order of the packets.
    pub decided: Signal<Out, Activity>,
    /// Placements being checked and moved.
    pub placed: Signal<Out, Activity>,
    /// Acknowledgements that wait for a completion.
    pub acks: Signal<Out, Activity>,
    /// Replies that wait for payload to be written.
    pub fenced: Signal<Out, Activity>,
    /// Turns of replies.
    pub turns: Signal<Out, Activity>,
    /// Atomics under way.
    pub atomics: Signal<Out, Activity>,
    /// Queue pairs whose received data was refused.
    pub faulted: Signal<Out, Activity>,
    /// No fewer responses wait for `response`.
    pub waiting: Signal<Out, Bits<16>>,
    /// A lost response waits to end its queue pair.
    pub losing: Signal<Out, Bit>,
    /// Tables are swept after reset.
    pub ready: Signal<Out, Bit>,

    front: RxFront<W, K, R, PACKETS>,
    check: RxCheck<Q, K, 1>,
    notification: Notify<Q>,
    responder: Responder<Q, LOG_SRQ>,
    track: Track<Q>,
    order: PlaceOrder,
    fetch: RqFetch<W, Q>,
    scatter: Scatter<W, K, Q>,
    faults: WriteFaults<Q>,
    hold: AckHold<Q>,
    reply: ReplyQueue<W, K, Q>,
    rung: Slice<RqEvent>,
    rq_events: Merge<RqEvent, 2>,
    no_event: Zero<RqEvent>,
    errors: Merge<PlaceError, 3>,
}

impl<const W: usize, const K: usize, const Q: usize, const R: usize> ReceiveSide<W, K, Q, R> {
    fn check() {
        const {
            assert!(
                K << R == 64 * BUFFER_UNITS,
                "the packet buffer holds what the driver counts with"
            );
        }
    }
}

impl<const W: usize, const K: usize, const Q: usize, const R: usize> Logic
    for ReceiveSide<W, K, Q, R>
{
    describe!(
        "receive_side",
        format!("w{W}_q{Q}_r{R}"),
        "From frames to host memory, completions and acknowledgements."
    );

    #[kernel]
    fn update(&mut self) {
        forward!(s_axis_rx <= front.s_axis_rx);
        copy!(front <= tables; mac, promiscuous, gid);
        front.gid_write = tables.gid_we;
        copy!(front <= self; enable, classes, rx_backlog);
        copy!(self <= front; pause_send, pauses);
        stats = front.stats;
        rx_bytes = front.rx_bytes;
        raw = front.raw;
        raw_data = front.raw_data;

        forward!(check.s <= front.meta);
        check.image_we = tables.rq_we;
        check.image_qpn = tables.qpn.low::<Q>();
        check.image = tables.rq;
        let command = events.valid & (events.payload.kind == RqEventKind::Command);
        let ends = events.payload.set & (events.payload.state == RESET);
        check.known_we = command & (events.payload.image | ends);
        check.known_qpn = events.payload.qpn.low::<Q>();
        check.known = !ends;
        forward!(track.s <= check.responses);
        forward!(order.order <= check.order);
        notification.notice = check.notice;
        notification.command_valid = command;
        notification.command = events.payload;
        notification.setup = notify;
        forward!(cnp <= notification.cnp);
        cnp_received = notification.received;
        notified = notification.counts;

        forward!(responder.s <= check.m);
        forward!(doorbells <= rung.s);
        forward!(responder.doorbells <= rung.m);
        forward!(events <= rq_events.s[0]);
        rq_events.s[1].valid = faults.failed.valid;
        rq_events.s[1].payload = no_event;
        rq_events.s[1].payload.kind = RqEventKind::PlaceError;
        copy!(rq_events.s[1].payload <= faults.failed.payload; qpn, incarnation);
        rq_events.s[1].payload.syndrome = NAK_OPERATIONAL;
        rq_events.s[1].payload.status = GENERAL_ERR;
        rq_events.s[1].payload.late = !faults.failed.payload.unreliable;
        faults.failed.ready = rq_events.s[1].ready;
        forward!(responder.events <= rq_events.m);
        forward!(responder.replied <= reply.events);
        forward!(rkey <= responder.check);
        responder.image_we = tables.rq_we;
        responder.image_qpn = tables.qpn.low::<Q>();
        responder.image = tables.rq;
        responder.srq_we = tables.srq_we;
        responder.srq_srqn = tables.srqn.low::<LOG_SRQ>();
        responder.srq_image = tables.srq;
        forward!(limits <= responder.limits);
        forward!(failures <= responder.failures);
        rq_query_valid = responder.query_valid;
        rq_query = responder.query;
        counts = responder.counts;
        ready = check.ready
            & responder.ready
            & track.ready
            & reply.ready
            & notification.ready
            & faults.ready;

        forward!(issue <= track.issue);
        track.failed = close_valid;
        track.reset = sq_reset;
        track.starts = sq_starts;
        track.control_qpn = close_qpn;
        track.image_we = tables.sq_we;
        track.image_qpn = tables.qpn.low::<Q>();
        track.image = tables.sq;

        forward!(order.s[0] <= responder.m);
        forward!(order.s[1] <= track.m);
        forward!(order.reads[0] <= responder.reads);
        forward!(order.reads[1] <= track.reads);
        forward!(fetch.s <= order.read);
        requested = responder.activity;
        tracked = track.activity;
        decided = order.activity;

        forward!(wqe_read <= fetch.read);
        forward!(wqe_beat <= fetch.beats);

        forward!(scatter.place <= order.m);
        forward!(scatter.slots <= fetch.m);
        forward!(scatter.numbers <= fetch.numbers);
        forward!(scatter.payload <= front.beats);
        forward!(mr <= scatter.mr);
        forward!(inv <= scatter.inv);
        forward!(answer <= scatter.answer);
        forward!(write <= scatter.command);
        forward!(beats <= scatter.beats);
        forward!(cq <= scatter.cq);
        forward!(errors.s[0] <= scatter.error);
        forward!(errors.s[1] <= reply.errors);
        forward!(errors.s[2] <= hold.errors);
        forward!(responder.errors <= errors.m);
        placed = scatter.activity;

        faults.owner = scatter.owner;
        scatter.room = faults.room;
        faults.done = payload_done;
        faults.refused = payload_refused;
        copy!(self <= faults; judged, faulted);
        faults.starts_recv = command & rq_events.s[0].ready & events.payload.reset & !ends;
        faults.recv_qpn = events.payload.qpn;
        faults.starts_send = sq_starts;
        faults.send_qpn = close_qpn;
        faults.look = look;
        refused_since = faults.marks;

        forward!(hold.s <= scatter.ack);
        hold.outcome = outcome;
        acks = hold.activity;
        forward!(reply.tokens <= hold.m);
        forward!(reply.replies <= responder.replies);
        reply.issued = payload_issued;
        reply.done = payload_done;
        reply.av_we = tables.av_we;
        reply.image_qpn = tables.qpn.low::<Q>();
        reply.av_image = tables.av;
        reply.mac = tables.mac;
        copy!(reply <= self; classes, acks_wait);
        reply.closed = closed.turns;
        forward!(response_mr <= reply.mr);
        forward!(response <= reply.desc);
        forward!(response_payload <= reply.gather);
        response_reserve = reply.reserve;
        response_sent = reply.sent;
        reply.rate = response_rate;
        response_give_back = reply.give_back;
        reply.payload_room = response_room;
        reply.payload_read = response_read_done;
        reply.awaited = awaited;
        copy!(self <= reply; accesses, over, fenced, turns, atomics, waiting, losing);
        reply.lost = response_lost;
        reply.lost_qpn = response_lost_qpn;
        reply.lost_psn = response_lost_psn;
        reply.lost_msn = response_lost_msn;
        forward!(atomic_read <= reply.read);
        forward!(atomic_beat <= reply.beat);
        forward!(atomic_write <= reply.write);
        forward!(atomic_beats <= reply.beats);
        reply.written = atomic_written;
        reply.refused = atomic_refused;
    }
}
