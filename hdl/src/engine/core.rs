//! Core: all of the engine that CONTROL.reset resets. Wiring only.
use ferroce_proto::abi::eq::event;

use super::{LOG_EQ, LOG_SRQ};
use crate::bus::types::image::CqCtx;
use crate::bus::types::{Answer, CqToken, GatherCmd, ReadIssue, ReadReq, TxDesc, WriteCmd};
use crate::control::command::Command;
use crate::control::drain::Drain;
use crate::control::exception_csr::ExceptionStatus;
use crate::control::stats::{StatPulses, Stats};
use crate::engine::failures::Failures;
use crate::engine::receive::ReceiveSide;
use crate::engine::transmit::TransmitSide;
use crate::eth::exception_types::ExceptionSetup;
use crate::eth::exceptions::Exceptions;
use crate::eth::loopback::Loopback;
use crate::eth::return_path::ReturnPath;
use crate::memory::host_port::HostPort;
use crate::memory::mr_table::MrTable;
use crate::prelude::*;
use crate::queue::cq_write::{CqArm, CqCommand, CqLost, CqWrite};
use crate::queue::eq_write::notice::EqNotice;
use crate::queue::eq_write::qp_events::QpEvents;
use crate::queue::eq_write::{EqCommand, EqEvent, EqWrite};
use crate::transport::requester::event::SqEvent;
use crate::transport::responder::event::{RqEvent, RqFailure};

/// Checkers of memory regions: `scatter`, responder, requester, replies.
const CHECKERS: usize = 4;

const SRQ_LIMIT: u64 = event::SRQ_LIMIT as u64;

/// Features as a parameter of blocks.
const F: usize = super::FEATURES as usize;

/// The core; parameters as in [`super::Engine`].
#[derive(LogicBlock, Default)]
pub struct Core<
    const W: usize,
    const K: usize,
    const Q: usize,
    const M: usize,
    const C: usize,
    const O: usize,
    const G: usize,
    const B: usize,
> {
    /// Clock, and the reset of the core.
    pub clock: ClkRst,
    /// Frames in.
    pub s_axis_rx: AxisIn<W, K>,
    /// Frames out.
    pub m_axis_tx: AxisOut<W, K>,
    /// Host memory.
    pub m_axi: AxiOut<W, K>,
    /// Frames are accepted and commands run.
    pub enable: Signal<In, Bit>,
    /// Address of the command ring.
    pub cmd_base: Signal<In, Bits<64>>,
    /// Address of the ring of command completions.
    pub cpl_base: Signal<In, Bits<64>>,
    /// Log2 of their entries.
    pub cmd_log_size: Signal<In, Bits<4>>,
    /// Command producer index.
    pub cmd_pi: Signal<In, Bits<16>>,
    /// Commands completed.
    pub cmd_ci: Signal<Out, Bits<16>>,
    /// Send doorbells.
    pub sq_doorbell: StreamIn<SqEvent>,
    /// Receive doorbells.
    pub rq_doorbell: StreamIn<RqEvent>,
    /// What the host says about the exception queue.
    pub exception: Signal<In, ExceptionSetup>,
    /// What the card says about it.
    pub exception_status: Signal<Out, ExceptionStatus>,
    /// Arm doorbells of completion queues.
    pub cq_doorbell: StreamIn<CqArm>,
    /// Counter to read.
    pub stat_index: Signal<In, Bits<6>>,
    /// It is asked for in this cycle.
    pub stat_read: Signal<In, Bit>,
    /// Its value.
    pub stat_value: Signal<Out, Bits<64>>,
    /// The value is there.
    pub stat_valid: Signal<Out, Bit>,
    /// MSI-X vector to send.
    pub irq_vector: Signal<Out, Bits<11>>,
    /// `irq_vector` is valid.
    pub irq_valid: Signal<Out, Bit>,
    /// It is taken in this cycle.
    pub irq_ready: Signal<In, Bit>,
    /// The DMA begins nothing new.
    pub halt: Signal<In, Bit>,
    /// No DMA is under way and no frame leaves.
    pub idle: Signal<Out, Bit>,
    /// A DMA access failed in this cycle.
    pub dma_error: Signal<Out, Bit>,
    /// All tables are swept after reset.
    pub ready: Signal<Out, Bit>,

    receive: ReceiveSide<W, K, Q, B>,
    transmit: TransmitSide<W, K, Q, O, G>,
    host: HostPort<W, K>,
    /// As large as the packet buffer.
    exceptions: Exceptions<W, K, B>,
    loopback: Loopback<W, K>,
    return_path: ReturnPath<W, K, B>,
    regions: MrTable<M, CHECKERS>,
    completions: CqWrite<W, K, C>,
    command: Command<W, K, Q, M, C, O, LOG_EQ, F, LOG_SRQ>,
    events: EqWrite<W, K, LOG_EQ>,
    qp_events: QpEvents<Q, C>,
    event_sources: Merge<EqEvent, 4>,
    notice: EqNotice,
    stats: Stats,
    drain: Drain,
    failures: Failures,
    rq_events: Merge<RqEvent, 3>,
    no_event: Zero<EqEvent>,
    cq_image: Signal<Local, CqCtx>,
    foreign_frame: Signal<Local, Bit>,
    foreign_packet: Signal<Local, Bit>,
    acks: Signal<Local, Bits<11>>,
    pulses: Signal<Local, StatPulses>,
    no_pulses: Zero<StatPulses>,
}

impl<
    const W: usize,
    const K: usize,
    const Q: usize,
    const M: usize,
    const C: usize,
    const O: usize,
    const G: usize,
    const B: usize,
> Logic for Core<W, K, Q, M, C, O, G, B>
{
    describe!(
        "core",
        format!("w{W}_q{Q}_m{M}_c{C}_o{O}_g{G}_b{B}"),
        "All of the engine that CONTROL.reset resets.";
        SRQ_LIMIT
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(
            self,
            clock,
            receive,
            transmit,
            host,
            exceptions,
            loopback,
            return_path,
            regions,
            completions,
            command,
            events,
            qp_events,
            event_sources,
            notice,
            stats,
            drain,
            failures,
            rq_events
        );

        // network
        AxisIn::<W, K>::link(&mut self.s_axis_rx, &mut self.return_path.s_axis);
        AxisOut::<W, K>::join(&mut self.loopback.own, &mut self.return_path.own);
        AxisOut::<W, K>::join(&mut self.return_path.m_axis, &mut self.receive.s_axis_rx);
        AxisOut::<W, K>::join(&mut self.transmit.m_axis_tx, &mut self.exceptions.s_axis);
        AxisOut::<W, K>::join(&mut self.exceptions.m_axis, &mut self.loopback.s);
        AxisOut::<W, K>::link(&mut self.m_axis_tx, &mut self.loopback.m);
        self.loopback.mac.next = self.command.port_mac.val();
        self.return_path.overflow.next = self.receive.stats.val().rx_overflow;
        self.exceptions.setup.next = self.exception.val();
        self.exceptions.enable.next = self.enable.val();
        self.exceptions.raw.next = self.receive.raw.val();
        self.exceptions.raw_data.next = self.receive.raw_data.val();
        self.exceptions.other.next = self.transmit.tx_frames.val();
        self.exceptions.written.next = self.host.done[5].val();
        self.exception_status.next.tx_consumer = self.exceptions.consumer.val();
        self.exception_status.next.busy = self.exceptions.busy.val();
        StreamOut::<Answer>::join(&mut self.receive.answer, &mut self.transmit.answer);
        self.receive.sq_failed.next = self.transmit.close_valid.val();
        // both of the stage that does the command, which is answered before the next one comes
        self.receive.sq_reset.next =
            self.transmit.query_valid.val() & self.command.sq_event.payload.val().reset;
        self.receive.sq_qpn.next = self.transmit.close_qpn.val();
        StreamOut::<ReadIssue>::join(&mut self.transmit.issue, &mut self.receive.issue);
        StreamOut::<TxDesc>::join(&mut self.receive.response, &mut self.transmit.response);
        StreamOut::<GatherCmd>::join(
            &mut self.receive.response_payload,
            &mut self.transmit.response_payload,
        );
        self.receive.response_lost.next = self.transmit.response_lost.val();
        self.receive.response_lost_qpn.next = self.transmit.response_lost_qpn.val();
        self.receive.response_lost_psn.next = self.transmit.response_lost_psn.val();
        self.receive.response_lost_msn.next = self.transmit.response_lost_msn.val();

        // host memory; clients as in `dma_read` and `dma_write`
        AxiOut::<W, K>::link(&mut self.m_axi, &mut self.host.m_axi);
        StreamOut::<ReadReq>::join(&mut self.command.read, &mut self.host.read[0]);
        StreamOut::<ReadReq>::join(&mut self.transmit.wqe_read, &mut self.host.read[1]);
        StreamOut::<ReadReq>::join(&mut self.transmit.payload_read, &mut self.host.read[2]);
        StreamOut::<ReadReq>::join(&mut self.transmit.response_read, &mut self.host.read[3]);
        StreamOut::<ReadReq>::join(&mut self.receive.wqe_read, &mut self.host.read[4]);
        StreamOut::<ReadReq>::join(&mut self.completions.read, &mut self.host.read[5]);
        StreamOut::<ReadReq>::join(&mut self.receive.atomic_read, &mut self.host.read[6]);
        StreamOut::<ReadReq>::join(&mut self.events.read, &mut self.host.read[8]);
        ReadBeatIn::<W>::join(&mut self.events.beat, &mut self.host.beat[8]);
        StreamOut::<WriteCmd>::join(&mut self.events.write, &mut self.host.write[3]);
        WriteBeatOut::<W, K>::join(&mut self.events.beats, &mut self.host.beats[3]);
        ReadBeatIn::<W>::join(&mut self.command.beat, &mut self.host.beat[0]);
        ReadBeatIn::<W>::join(&mut self.transmit.wqe_beat, &mut self.host.beat[1]);
        ReadBeatIn::<W>::join(&mut self.transmit.payload_beat, &mut self.host.beat[2]);
        ReadBeatIn::<W>::join(&mut self.transmit.response_beat, &mut self.host.beat[3]);
        ReadBeatIn::<W>::join(&mut self.receive.wqe_beat, &mut self.host.beat[4]);
        ReadBeatIn::<W>::join(&mut self.completions.beat, &mut self.host.beat[5]);
        ReadBeatIn::<W>::join(&mut self.receive.atomic_beat, &mut self.host.beat[6]);
        StreamOut::<WriteCmd>::join(&mut self.receive.write, &mut self.host.write[0]);
        StreamOut::<WriteCmd>::join(&mut self.completions.write, &mut self.host.write[1]);
        StreamOut::<WriteCmd>::join(&mut self.command.write, &mut self.host.write[2]);
        StreamOut::<WriteCmd>::join(&mut self.receive.atomic_write, &mut self.host.write[4]);
        WriteBeatOut::<W, K>::join(&mut self.receive.beats, &mut self.host.beats[0]);
        WriteBeatOut::<W, K>::join(&mut self.completions.beats, &mut self.host.beats[1]);
        WriteBeatOut::<W, K>::join(&mut self.command.beats, &mut self.host.beats[2]);
        WriteBeatOut::<W, K>::join(&mut self.receive.atomic_beats, &mut self.host.beats[4]);
        self.receive.payload_done.next = self.host.done[0].val();
        self.receive.atomic_written.next = self.host.done[4].val();
        StreamOut::<ReadReq>::join(&mut self.exceptions.read, &mut self.host.read[7]);
        ReadBeatIn::<W>::join(&mut self.exceptions.beat, &mut self.host.beat[7]);
        StreamOut::<WriteCmd>::join(&mut self.exceptions.write, &mut self.host.write[5]);
        WriteBeatOut::<W, K>::join(&mut self.exceptions.beats, &mut self.host.beats[5]);
        self.host.halt.next = self.halt.val();
        self.idle.next = self.host.idle.val()
            & !self.exceptions.m_axis.tvalid.val()
            & !self.loopback.m.tvalid.val();
        self.dma_error.next = self.host.error.val();

        // memory regions
        MrCheckOut::join(&mut self.receive.mr, &mut self.regions.check[0]);
        MrCheckOut::join(&mut self.receive.inv, &mut self.regions.inv);
        MrCheckOut::join(&mut self.receive.rkey, &mut self.regions.check[1]);
        MrCheckOut::join(&mut self.transmit.mr, &mut self.regions.check[2]);
        MrCheckOut::join(&mut self.receive.response_mr, &mut self.regions.check[3]);

        // completions
        StreamOut::<CqToken>::join(&mut self.receive.cq, &mut self.completions.recv);
        StreamOut::<CqToken>::join(&mut self.transmit.cq, &mut self.completions.send);
        self.completions.done.next = self.host.done[0].val();
        self.completions.cqe_done.next = self.host.done[1].val();
        StreamIn::<CqArm>::link(&mut self.cq_doorbell, &mut self.completions.arm);

        // commands
        self.command.enable.next = self.enable.val();
        self.command.cmd_base.next = self.cmd_base.val();
        self.command.cpl_base.next = self.cpl_base.val();
        self.command.cmd_log_size.next = self.cmd_log_size.val();
        self.command.cmd_pi.next = self.cmd_pi.val();
        self.cmd_ci.next = self.command.cmd_ci.val();
        self.transmit.sq_we.next = self.command.sq_we.val();
        self.transmit.av_we.next = self.command.av_we.val();
        self.transmit.ah_we.next = self.command.ah_we.val();
        self.transmit.image_qpn.next = self.command.image_qpn.val();
        self.transmit.sq_image.next = self.command.sq_image.val();
        self.transmit.av_image.next = self.command.av_image.val();
        self.receive.rq_we.next = self.command.rq_we.val();
        self.receive.sq_we.next = self.command.sq_we.val();
        self.receive.sq_image.next = self.command.sq_image.val();
        self.receive.image_qpn.next = self.command.image_qpn.val();
        self.receive.rq_image.next = self.command.rq_image.val();
        self.receive.srq_we.next = self.command.srq_we.val();
        self.receive.srq_srqn.next = self.command.srq_srqn.val();
        self.receive.srq_image.next = self.command.srq_image.val();
        self.receive.av_we.next = self.command.av_we.val();
        self.receive.av_image.next = self.command.av_image.val();
        self.regions.write.next = self.command.mr_we.val();
        self.regions.index.next = bit_cast::<16, M>(self.command.mr_index.val());
        self.regions.entry.next = self.command.mr_image.val();
        StreamOut::<CqCommand>::join(&mut self.command.cq, &mut self.completions.command);
        self.command.cq_refused.next = self.completions.refused.val();
        self.command.cq_switched.next = self.completions.switched.val();
        self.receive.gid_write.next = self.command.gid_we.val();
        self.receive.gid.next = self.command.gid.val();
        self.transmit.gid_we.next = self.command.gid_we.val();
        self.transmit.gid_index.next = self.command.gid.val().index;
        self.transmit.gid.next = self.command.gid.val().gid;
        self.receive.enable.next = self.enable.val();
        self.receive.mac.next = self.command.port_mac.val();
        self.receive.promiscuous.next = self.command.promiscuous.val();
        self.transmit.mac.next = self.command.port_mac.val();
        StreamOut::<SqEvent>::join(&mut self.command.sq_event, &mut self.transmit.command);
        self.command.sq_query_valid.next = self.transmit.query_valid.val();
        self.command.sq_query.next = self.transmit.query.val();
        self.command.rq_query_valid.next = self.receive.query_valid.val();
        self.command.rq_query.next = self.receive.query.val();

        // doorbells and failures
        StreamIn::<SqEvent>::link(&mut self.sq_doorbell, &mut self.transmit.doorbell);
        StreamIn::<RqEvent>::link(&mut self.rq_doorbell, &mut self.rq_events.s[0]);
        StreamOut::<RqEvent>::join(&mut self.command.rq_event, &mut self.rq_events.s[1]);
        StreamOut::<RqEvent>::join(&mut self.failures.rq, &mut self.rq_events.s[2]);
        StreamOut::<RqEvent>::join(&mut self.rq_events.m, &mut self.receive.events);
        StreamOut::<Bits<16>>::join(&mut self.transmit.down, &mut self.failures.sq_down);
        self.failures.lost.next = self.transmit.lost.val();
        self.failures.lost_qpn.next = self.transmit.lost_qpn.val();
        StreamOut::<RqFailure>::join(&mut self.receive.failures, &mut self.failures.responder);
        StreamOut::<CqLost>::join(&mut self.completions.lost, &mut self.failures.lost_cqe);
        StreamOut::<SqEvent>::join(&mut self.failures.sq, &mut self.transmit.failure);

        // events
        StreamOut::<EqCommand>::join(&mut self.command.eq, &mut self.events.command);
        StreamOut::<EqEvent>::join(&mut self.completions.events, &mut self.event_sources.s[0]);
        StreamOut::<EqEvent>::join(&mut self.qp_events.events, &mut self.event_sources.s[1]);
        self.notice.notify.next = self.exceptions.notify.val();
        StreamOut::<EqEvent>::join(&mut self.notice.events, &mut self.event_sources.s[2]);
        StreamOut::<EqEvent>::join(&mut self.event_sources.m, &mut self.events.events);
        self.event_sources.s[3].valid.next = self.receive.limits.valid.val();
        self.event_sources.s[3].payload.next = self.no_event.val();
        self.event_sources.s[3].payload.next.event = SRQ_LIMIT.into();
        self.event_sources.s[3].payload.next.eqn = self.receive.limits.payload.val().eqn;
        self.event_sources.s[3].payload.next.object = self.receive.limits.payload.val().srqn;
        self.receive.limits.ready.next = self.event_sources.s[3].ready.val();
        self.events.done.next = self.host.done[3].val();
        self.irq_vector.next = self.events.irq_vector.val();
        self.irq_valid.next = self.events.irq_valid.val();
        self.events.irq_ready.next = self.irq_ready.val();
        self.qp_events.sq_we.next = self.command.sq_we.val();
        self.qp_events.sq_qpn.next = self.command.image_qpn.val();
        self.qp_events.sq_cqn.next = self.command.sq_image.val().cqn;
        self.qp_events.cq_we.next =
            self.command.cq.valid.val() & self.completions.command.ready.val();
        self.qp_events.cq_cqn.next = self.command.cq.payload.val().cqn;
        self.qp_events.cq_open.next = self.command.cq.payload.val().open;
        self.cq_image.next = self.command.cq.payload.val().image;
        self.qp_events.cq_eqn.next = self.cq_image.val().eqn;
        self.qp_events.answered.next = self.transmit.query_valid.val();
        self.qp_events.command_qpn.next = self.command.sq_event.payload.val().qpn;
        self.qp_events.command_set.next = self.command.sq_event.payload.val().set;
        self.qp_events.command_state.next = self.command.sq_event.payload.val().state;
        self.qp_events.sq_failed.next = self.transmit.failed_valid.val();
        self.qp_events.sq_failed_qpn.next = self.transmit.failed_qpn.val();
        self.qp_events.sq_failed_status.next = self.transmit.failed_status.val();
        self.qp_events.drained.next = self.transmit.drained_valid.val();
        self.qp_events.drained_qpn.next = self.transmit.drained_qpn.val();
        StreamOut::<RqFailure>::join(&mut self.failures.told, &mut self.qp_events.responder);

        // what is under way
        self.drain.start.next = self.command.drain_start.val();
        self.command.drain_done.next = self.drain.done.val();
        self.drain.activity[0].next = self.transmit.fetches.val();
        self.drain.activity[1].next = self.transmit.wqes.val();
        self.drain.activity[2].next = self.transmit.pieces.val();
        self.drain.activity[3].next = self.receive.decided.val();
        self.drain.activity[4].next = self.receive.placed.val();
        self.drain.activity[5].next = self.transmit.held.val();
        self.drain.activity[6].next = self.completions.activity.val();
        self.drain.activity[7].next = self.receive.replies.val();
        self.drain.activity[8].next = self.transmit.response_pieces.val();
        self.drain.activity[9].next = self.events.activity.val();
        self.drain.eqe_issued.next = self.host.issued[3].val();
        self.drain.eqe_done.next = self.host.done[3].val();
        self.drain.payload_issued.next = self.host.issued[0].val();
        self.drain.payload_done.next = self.host.done[0].val();
        self.drain.cqe_issued.next = self.host.issued[1].val();
        self.drain.cqe_done.next = self.host.done[1].val();

        self.foreign_frame.next = self.receive.stats.val().rx_wrong_address;
        self.foreign_packet.next = self.receive.counts.val().rx_wrong_address;
        self.pulses.next = self.no_pulses.val();
        self.pulses.next.rx_frames = self.receive.stats.val().rx_frames;
        self.pulses.next.rx_roce_packets = self.receive.stats.val().rx_roce_packets;
        self.pulses.next.rx_bad_frames = self.receive.stats.val().rx_bad_frames;
        self.pulses.next.rx_icrc_errors = self.receive.stats.val().rx_icrc_errors;
        self.pulses.next.rx_malformed = self.receive.stats.val().rx_malformed;
        self.pulses.next.rx_not_roce = self.exceptions.refused.val();
        self.pulses.next.rx_exceptions = self.exceptions.stored.val();
        self.pulses.next.rx_exception_drops = self.exceptions.dropped.val();
        self.pulses.next.tx_exceptions = self.exceptions.sent.val();
        self.pulses.next.rx_overflow = self.return_path.overflows.val();
        self.pulses.next.rx_bytes = self.receive.rx_bytes.val();
        self.pulses.next.rx_unknown_qp = self.receive.counts.val().rx_unknown_qp;
        self.pulses.next.rx_qp_state = self.receive.counts.val().rx_qp_state;
        self.pulses.next.rx_wrong_transport = self.receive.counts.val().rx_wrong_transport;
        self.pulses.next.rx_pkey_violations = self.receive.counts.val().rx_pkey_violations;
        self.pulses.next.rx_qkey_violations = self.receive.counts.val().rx_qkey_violations;
        self.pulses.next.rx_read_requests = self.receive.counts.val().rx_read_requests;
        self.pulses.next.rx_atomic_requests = self.receive.counts.val().rx_atomic_requests;
        self.pulses.next.rx_write_requests = self.receive.counts.val().rx_write_requests;
        self.pulses.next.rx_send_requests = self.receive.counts.val().rx_send_requests;
        self.pulses.next.out_of_sequence = self.receive.counts.val().out_of_sequence;
        self.pulses.next.duplicate_request = self.receive.counts.val().duplicate_request;
        self.pulses.next.rnr_nak_sent = self.receive.counts.val().rnr_nak_sent;
        self.pulses.next.invalid_request_errors = self.receive.counts.val().invalid_request_errors;
        self.pulses.next.access_errors = self.receive.counts.val().access_errors;
        self.pulses.next.operational_errors = self.receive.counts.val().operational_errors;
        // a frame at the port and a packet at the responder may meet
        self.pulses.next.rx_wrong_address = bits::<2>(0)
            .replace_bit(0, self.foreign_frame.val() ^ self.foreign_packet.val())
            .replace_bit(1, self.foreign_frame.val() & self.foreign_packet.val());
        self.pulses.next.packet_seq_err = self.transmit.counts.val().get_bit(0);
        self.pulses.next.rnr_nak_received = self.transmit.counts.val().get_bit(1);
        self.pulses.next.remote_errors = self.transmit.counts.val().get_bit(2);
        self.acks.next = self.transmit.counts.val();
        self.pulses.next.rx_acks = bits::<2>(0)
            .replace_bit(0, self.acks.val().get_bit(3) ^ self.acks.val().get_bit(9))
            .replace_bit(1, self.acks.val().get_bit(3) & self.acks.val().get_bit(9));
        self.pulses.next.rx_ghost_acks = bits::<2>(0)
            .replace_bit(0, self.acks.val().get_bit(4) ^ self.acks.val().get_bit(10))
            .replace_bit(1, self.acks.val().get_bit(4) & self.acks.val().get_bit(10));
        self.pulses.next.local_ack_timeout_err = self.transmit.counts.val().get_bit(5);
        self.pulses.next.implied_nak_seq_err = self.transmit.counts.val().get_bit(8);
        self.pulses.next.retry_exceeded_err = self.transmit.counts.val().get_bit(6);
        self.pulses.next.rnr_nak_retry_err = self.transmit.counts.val().get_bit(7);
        self.pulses.next.retransmissions = self.transmit.retransmission.val();
        self.pulses.next.tx_frames = self.transmit.tx_frames.val() | self.exceptions.sent.val();
        if self.exceptions.sent.val() {
            self.pulses.next.tx_bytes = self.exceptions.sent_bytes.val();
        }
        if self.transmit.tx_frames.val() {
            self.pulses.next.tx_bytes = bit_cast::<14, 13>(self.transmit.tx_bytes.val());
        }
        self.pulses.next.tx_roce_packets = self.transmit.tx_roce_packets.val();
        self.pulses.next.tx_acks = self.transmit.tx_acks.val();
        self.pulses.next.cq_overflows = self.completions.overflow.val();
        self.pulses.next.commands = self.command.done.val();
        self.pulses.next.command_errors = self.command.failed.val();
        self.stats.pulses.next = self.pulses.val();
        self.stats.index.next = self.stat_index.val();
        self.stats.read.next = self.stat_read.val();
        self.stat_value.next = self.stats.value.val();
        self.stat_valid.next = self.stats.valid.val();
        self.ready.next = self.receive.ready.val()
            & self.transmit.ready.val()
            & self.regions.ready.val()
            & self.completions.ready.val()
            & self.command.ready.val()
            & self.events.ready.val()
            & self.qp_events.ready.val()
            & self.stats.ready.val();
    }
}
