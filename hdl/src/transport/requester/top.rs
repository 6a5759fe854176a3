//! The requester: wires its blocks together.
use super::event::{SentPacket, SqEvent, SqEventKind};
use super::retire::Retire;
use super::segmenter::Segmenter;
use super::sq_state::SqStateTable;
use super::timer::Timer;
use super::wqe_check::WqeCheck;
use crate::bus::dma::{MrCheckOut, ReadBeatIn};
use crate::bus::types::image::{AvCtx, QpState, SqCtx};
use crate::bus::types::{Activity, Answer, CqToken, FetchedWqe, GatherCmd, ReadReq, TxDesc};
use crate::prelude::*;
use crate::queue::scheduler::Scheduler;
use crate::queue::wqe_fetch::WqeFetch;
use crate::transport::requester::event::CheckedWqe;

/// Requester of 2^Q queue pairs with a pool of 2^O outstanding messages, on a memory bus of W bits.
#[derive(LogicBlock)]
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
    /// The last packet of a message that nobody acknowledges has all of its payload, in this cycle.
    pub sent_valid: Signal<In, Bit>,
    /// Its queue pair.
    pub sent_qpn: Signal<In, Bits<16>>,
    /// Its PSN.
    pub sent_psn: Signal<In, Bits<24>>,
    /// A command writes the requester image of `image_qpn`.
    pub sq_we: Signal<In, Bit>,
    /// A command writes the address vector of `image_qpn`.
    pub av_we: Signal<In, Bit>,
    /// Queue pair of the images.
    pub image_qpn: Signal<In, Bits<Q>>,
    /// Requester image.
    pub sq_image: Signal<In, SqCtx>,
    /// Address vector.
    pub av_image: Signal<In, AvCtx>,
    /// Reads of WQEs.
    pub read: StreamOut<ReadReq>,
    /// Their answers.
    pub beat: ReadBeatIn<W>,
    /// Memory region checks.
    pub mr: MrCheckOut,
    /// Packets.
    pub desc: StreamOut<TxDesc>,
    /// Pieces of payload.
    pub gather: StreamOut<GatherCmd>,
    /// Completions.
    pub cq: StreamOut<CqToken>,
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
    /// The responder of the queue pair goes on (state SQE).
    pub failed_alone: Signal<Out, Bit>,
    /// A send queue went into error, or was sent there: once nothing of it is on its way to memory a `closed` answer is due.
    pub close_valid: Signal<Out, Bit>,
    /// Its queue pair.
    pub close_qpn: Signal<Out, Bits<16>>,
    /// In SQD nothing of the send queue is outstanding any more.
    pub drained_valid: Signal<Out, Bit>,
    /// Its queue pair.
    pub drained_qpn: Signal<Out, Bits<16>>,
    /// Counter pulses: packet_seq_err, rnr_nak_received, remote_errors, rx_acks, rx_ghost_acks, local_ack_timeout_err, retry_exceeded_err, rnr_nak_retry_err, implied_nak_seq_err.
    pub counts: Signal<Out, Bits<9>>,
    /// A packet leaves that was sent before.
    pub retransmission: Signal<Out, Bit>,
    /// Send WQEs being read.
    pub fetches: Signal<Out, Activity>,
    /// Send WQEs on their way to packets.
    pub wqes: Signal<Out, Activity>,
    /// Tables are swept after reset.
    pub ready: Signal<Out, Bit>,

    events: Merge<SqEvent, 10>,
    /// More than the packets under way to the wire.
    sent: Fifo<SentPacket, 8>,
    state: SqStateTable<Q>,
    scheduler: Scheduler<Q, 7>,
    fetch: WqeFetch<W, 7>,
    check: WqeCheck<Q>,
    segmenter: Segmenter,
    retire: Retire<Q, O>,
    timer: Timer<Q>,
    completions: Merge<CqToken, 2>,
    no_event: Zero<SqEvent>,
}

impl<const W: usize, const Q: usize, const O: usize> Default for Requester<W, Q, O> {
    fn default() -> Self {
        assert!(
            (4..=14).contains(&Q),
            "2^{Q} queue pairs: 2^4 to 2^14 can be built"
        );
        Self {
            clock: ClkRst::default(),
            doorbell: StreamIn::default(),
            command: StreamIn::default(),
            failure: StreamIn::default(),
            answer: StreamIn::default(),
            sent_valid: Signal::default(),
            sent_qpn: Signal::default(),
            sent_psn: Signal::default(),
            sq_we: Signal::default(),
            av_we: Signal::default(),
            image_qpn: Signal::default(),
            sq_image: Signal::default(),
            av_image: Signal::default(),
            read: StreamOut::default(),
            beat: ReadBeatIn::default(),
            mr: MrCheckOut::default(),
            desc: StreamOut::default(),
            gather: StreamOut::default(),
            cq: StreamOut::default(),
            query_valid: Signal::default(),
            query: Signal::default(),
            failed_valid: Signal::default(),
            failed_qpn: Signal::default(),
            failed_status: Signal::default(),
            failed_alone: Signal::default(),
            close_valid: Signal::default(),
            close_qpn: Signal::default(),
            drained_valid: Signal::default(),
            drained_qpn: Signal::default(),
            counts: Signal::default(),
            retransmission: Signal::default(),
            fetches: Signal::default(),
            wqes: Signal::default(),
            ready: Signal::default(),
            events: Merge::default(),
            sent: Fifo::default(),
            state: SqStateTable::default(),
            scheduler: Scheduler::default(),
            fetch: WqeFetch::default(),
            check: WqeCheck::default(),
            segmenter: Segmenter::default(),
            retire: Retire::default(),
            timer: Timer::default(),
            completions: Merge::default(),
            no_event: Zero::default(),
        }
    }
}

impl<const W: usize, const Q: usize, const O: usize> Logic for Requester<W, Q, O> {
    describe!(
        "requester",
        format!("w{W}_q{Q}_o{O}"),
        "Send side of all queue pairs."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(
            self,
            clock,
            events,
            sent,
            state,
            scheduler,
            fetch,
            check,
            segmenter,
            retire,
            timer,
            completions
        );

        // events
        self.sent.s.valid.next = self.sent_valid.val();
        self.sent.s.payload.next.qpn = self.sent_qpn.val();
        self.sent.s.payload.next.psn = self.sent_psn.val();
        StreamIn::<SqEvent>::link(&mut self.command, &mut self.events.s[0]);
        self.events.s[1].valid.next = self.answer.valid.val();
        self.events.s[1].payload.next = self.no_event.val();
        self.events.s[1].payload.next.kind = SqEventKind::Answer;
        self.events.s[1].payload.next.qpn = self.answer.payload.val().qpn;
        self.events.s[1].payload.next.psn = self.answer.payload.val().psn;
        self.events.s[1].payload.next.una_psn = self.answer.payload.val().missing;
        self.events.s[1].payload.next.syndrome = self.answer.payload.val().syndrome;
        self.events.s[1].payload.next.status = self.answer.payload.val().status;
        self.events.s[1].payload.next.data = self.answer.payload.val().data;
        self.events.s[1].payload.next.implied = self.answer.payload.val().implied;
        self.events.s[1].payload.next.closed = self.answer.payload.val().closed;
        self.events.s[1].payload.next.writes = self.answer.payload.val().fence;
        self.answer.ready.next = self.events.s[1].ready.val();
        StreamOut::<SqEvent>::join(&mut self.retire.event, &mut self.events.s[2]);
        StreamOut::<SqEvent>::join(&mut self.timer.m, &mut self.events.s[3]);
        StreamOut::<SqEvent>::join(&mut self.segmenter.start, &mut self.events.s[4]);
        StreamOut::<SqEvent>::join(&mut self.scheduler.m, &mut self.events.s[5]);
        StreamIn::<SqEvent>::link(&mut self.doorbell, &mut self.events.s[6]);
        StreamIn::<SqEvent>::link(&mut self.failure, &mut self.events.s[7]);
        self.events.s[8].valid.next = self.sent.m.valid.val();
        self.events.s[8].payload.next = self.no_event.val();
        self.events.s[8].payload.next.kind = SqEventKind::Answer;
        self.events.s[8].payload.next.qpn = self.sent.m.payload.val().qpn;
        self.events.s[8].payload.next.psn = self.sent.m.payload.val().psn;
        self.events.s[8].payload.next.sent = true;
        self.sent.m.ready.next = self.events.s[8].ready.val();
        // WQEs longer than a slot are not built: none is cut by the end of a grant
        self.events.s[9].valid.next = false;
        self.events.s[9].payload.next = self.no_event.val();
        StreamOut::<SqEvent>::join(&mut self.events.m, &mut self.state.s);

        // tables
        self.state.image_we.next = self.sq_we.val();
        self.state.image_qpn.next = self.image_qpn.val();
        self.state.image.next = self.sq_image.val();
        self.check.sq_we.next = self.sq_we.val();
        self.check.av_we.next = self.av_we.val();
        self.check.image_qpn.next = self.image_qpn.val();
        self.check.sq_image.next = self.sq_image.val();
        self.check.av_image.next = self.av_image.val();

        // from ready queue pair to packet
        self.scheduler.push.next = self.state.ready_valid.val();
        self.scheduler.push_qpn.next = self.state.list_qpn.val();
        self.scheduler.credit.next = self.fetch.credit.val();
        self.fetch.grant_valid.next = self.state.fetch_valid.val();
        self.fetch.grant.next = self.state.fetch.val();
        StreamOut::<ReadReq>::link(&mut self.read, &mut self.fetch.read);
        ReadBeatIn::<W>::link(&mut self.beat, &mut self.fetch.beat);
        StreamOut::<FetchedWqe>::join(&mut self.fetch.m, &mut self.check.s);
        MrCheckOut::link(&mut self.mr, &mut self.check.mr);
        StreamOut::<CheckedWqe>::join(&mut self.check.m, &mut self.segmenter.s);
        self.segmenter.grant_valid.next = self.state.start_valid.val();
        self.segmenter.grant.next = self.state.start.val();
        StreamOut::<TxDesc>::link(&mut self.desc, &mut self.segmenter.desc);
        StreamOut::<GatherCmd>::link(&mut self.gather, &mut self.segmenter.gather);

        // from acknowledged message to completion
        self.retire.push.next = self.state.list_valid.val();
        self.retire.push_qpn.next = self.state.list_qpn.val();
        self.retire.grant_valid.next = self.state.retire_valid.val();
        self.retire.grant.next = self.state.retire.val();
        self.retire.entry_valid.next = self.state.entry_valid.val();
        self.retire.entry_addr.next = self.state.entry_addr.val();
        self.retire.entry.next = self.state.entry.val();
        StreamOut::<CqToken>::join(&mut self.retire.cq, &mut self.completions.s[0]);
        // what `retire` completes was posted before what the segmenter flushes
        self.completions.s[1].valid.next =
            self.segmenter.cq.valid.val() & !self.retire.cq.valid.val();
        self.completions.s[1].payload.next = self.segmenter.cq.payload.val();
        self.segmenter.cq.ready.next = self.completions.s[1].ready.val();
        StreamOut::<CqToken>::link(&mut self.cq, &mut self.completions.m);

        self.timer.order_valid.next = self.state.timer_valid.val();
        self.timer.order.next = self.state.timer.val();
        self.query_valid.next = self.state.query_valid.val();
        self.query.next = self.state.query.val();
        self.failed_valid.next = self.state.failed_valid.val();
        self.failed_qpn.next = self.state.failed_qpn.val();
        self.failed_status.next = self.state.failed_status.val();
        self.failed_alone.next = self.state.failed_alone.val();
        self.close_valid.next = self.state.close_valid.val();
        self.close_qpn.next = self.state.close_qpn.val();
        self.drained_valid.next = self.state.drained_valid.val();
        self.drained_qpn.next = self.state.drained_qpn.val();
        self.counts.next = self.state.counts.val();
        self.retransmission.next = self.segmenter.retransmission.val();
        self.fetches.next = self.fetch.activity.val();
        self.wqes.next = self.segmenter.activity.val();
        self.ready.next = self.state.ready.val();
    }
}
