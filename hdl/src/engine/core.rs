//! Core: all of the engine that CONTROL.reset resets. Wiring only.
use ferroce_proto::abi::eq::event;

use super::{LOG_EQ, LOG_SRQ};
use crate::control::command::Command;
use crate::control::drain::Drain;
use crate::control::exception_csr::ExceptionStatus;
use crate::control::stats::{StatPulses, Stats, sum};
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
use crate::queue::cq_write::{CqArm, CqWrite};
use crate::queue::eq_write::notice::EqNotice;
use crate::queue::eq_write::qp_events::QpEvents;
use crate::queue::eq_write::{EqEvent, EqWrite};
use crate::transport::congestion::notify_types::NotifySetup;
use crate::transport::requester::event::SqEvent;
use crate::transport::responder::event::RqEvent;

/// Checkers of memory regions: `scatter`, responder, requester, replies.
const CHECKERS: usize = 4;

const SRQ_LIMIT: u64 = event::SRQ_LIMIT as u64;

/// Features as a parameter of blocks.
const F: usize = super::FEATURES as usize;

/// The core; parameters as in [`super::Engine`].
#[derive(Block)]
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
    /// Commands whose completion is in host memory, modulo 2^16.
    pub cmd_ci: Signal<Out, Bits<16>>,
    /// Send doorbells.
    pub sq_doorbell: StreamIn<SqEvent>,
    /// Receive doorbells.
    pub rq_doorbell: StreamIn<RqEvent>,
    /// What the host says about the exception queue.
    pub exception: Signal<In, ExceptionSetup>,
    /// What the card says about it.
    pub exception_status: Signal<Out, ExceptionStatus>,
    /// What the host says of CNPs.
    pub notify: Signal<In, NotifySetup>,
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
    pub stall: Signal<In, Bit>,
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
    rq_events: Merge<RqEvent, 2>,
    no_event: Zero<EqEvent>,
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
        "All of the engine that CONTROL.reset resets."
    );

    #[kernel]
    fn update(&mut self) {
        // network
        forward!(s_axis_rx <= return_path.s_axis);
        forward!(return_path.own <= loopback.own);
        forward!(receive.s_axis_rx <= return_path.m_axis);
        forward!(exceptions.s_axis <= transmit.m_axis_tx);
        forward!(loopback.s <= exceptions.m_axis);
        forward!(m_axis_tx <= loopback.m);
        loopback.mac = command.port_mac;
        return_path.overflow = receive.stats.rx_overflow;
        exceptions.setup = exception;
        exceptions.enable = enable;
        exceptions.raw = receive.raw;
        exceptions.raw_data = receive.raw_data;
        exceptions.other = transmit.tx_frames;
        exceptions.written = host.done[5];
        exception_status.tx_consumer = exceptions.consumer;
        exception_status.busy = exceptions.busy;
        forward!(transmit.answer <= receive.answer);
        receive.sq_failed = transmit.close_valid;
        // both of the stage that does the command, which is answered before the next one comes
        receive.sq_reset = transmit.query_valid & command.sq_event.payload.reset;
        receive.sq_qpn = transmit.close_qpn;
        forward!(receive.issue <= transmit.issue);
        receive.notify = notify;
        transmit.notify = notify;
        forward!(transmit.cnp <= receive.cnp);
        forward!(transmit.response <= receive.response);
        forward!(transmit.response_payload <= receive.response_payload);
        copy!(receive <= transmit;
            response_lost, response_lost_qpn, response_lost_psn, response_lost_msn);

        // host memory; clients as in `dma_read` and `dma_write`
        forward!(m_axi <= host.m_axi);
        forward!(host.read[0] <= command.read);
        forward!(host.read[1] <= transmit.wqe_read);
        forward!(host.read[2] <= transmit.payload_read);
        forward!(host.read[3] <= transmit.response_read);
        forward!(host.read[4] <= receive.wqe_read);
        forward!(host.read[5] <= completions.read);
        forward!(host.read[6] <= receive.atomic_read);
        forward!(host.read[8] <= events.read);
        forward!(host.beat[8] <= events.beat);
        forward!(host.write[3] <= events.write);
        forward!(host.beats[3] <= events.beats);
        forward!(host.beat[0] <= command.beat);
        forward!(host.beat[1] <= transmit.wqe_beat);
        forward!(host.beat[2] <= transmit.payload_beat);
        forward!(host.beat[3] <= transmit.response_beat);
        forward!(host.beat[4] <= receive.wqe_beat);
        forward!(host.beat[5] <= completions.beat);
        forward!(host.beat[6] <= receive.atomic_beat);
        forward!(host.write[0] <= receive.write);
        forward!(host.write[1] <= completions.write);
        forward!(host.write[2] <= command.write);
        forward!(host.write[4] <= receive.atomic_write);
        forward!(host.beats[0] <= receive.beats);
        forward!(host.beats[1] <= completions.beats);
        forward!(host.beats[2] <= command.beats);
        forward!(host.beats[4] <= receive.atomic_beats);
        receive.payload_done = host.done[0];
        receive.atomic_written = host.done[4];
        forward!(host.read[7] <= exceptions.read);
        forward!(host.beat[7] <= exceptions.beat);
        forward!(host.write[5] <= exceptions.write);
        forward!(host.beats[5] <= exceptions.beats);
        host.stall = stall;
        idle = host.idle & !exceptions.m_axis.tvalid & !loopback.m.tvalid;
        dma_error = host.error;

        // memory regions
        forward!(regions.check[0] <= receive.mr);
        forward!(regions.inv <= receive.inv);
        forward!(regions.check[1] <= receive.rkey);
        forward!(regions.check[2] <= transmit.mr);
        forward!(regions.check[3] <= receive.response_mr);

        // completions
        forward!(completions.recv <= receive.cq);
        forward!(completions.send <= transmit.cq);
        completions.issued = host.issued[0];
        completions.done = host.done[0];
        completions.cqe_done = host.done[1];
        forward!(cq_doorbell <= completions.arm);

        // commands
        command.enable = enable;
        command.cmd_base = cmd_base;
        command.cpl_base = cpl_base;
        command.cmd_log_size = cmd_log_size;
        command.cmd_pi = cmd_pi;
        // client 2 writes the completions, each as one burst
        cmd_ci = host.done[2];
        copy!(transmit <= command; sq_we, av_we, ah_we, image_qpn, sq_image, av_image);
        copy!(receive <= command;
            rq_we, sq_we, sq_image, image_qpn, rq_image, srq_we, srq_srqn, srq_image, av_we,
            av_image);
        regions.write = command.mr_we;
        regions.index = command.mr_index.resize::<16>();
        regions.entry = command.mr_image;
        forward!(completions.command <= command.cq);
        command.cq_refused = completions.refused;
        command.cq_switched = completions.switched;
        receive.gid_write = command.gid_we;
        receive.gid = command.gid;
        transmit.gid_we = command.gid_we;
        transmit.gid_index = command.gid.index;
        transmit.gid = command.gid.gid;
        receive.enable = enable;
        receive.mac = command.port_mac;
        receive.promiscuous = command.promiscuous;
        transmit.mac = command.port_mac;
        forward!(transmit.command <= command.sq_event);
        command.sq_query_valid = transmit.query_valid;
        command.sq_query = transmit.query;
        command.rq_query_valid = receive.query_valid;
        command.rq_query = receive.query;

        // doorbells and failures
        forward!(sq_doorbell <= transmit.doorbell);
        forward!(rq_doorbell <= receive.doorbells);
        forward!(rq_events.s[0] <= command.rq_event);
        forward!(rq_events.s[1] <= failures.rq);
        forward!(receive.events <= rq_events.m);
        forward!(failures.sq_down <= transmit.down);
        failures.lost = transmit.lost;
        failures.lost_qpn = transmit.lost_qpn;
        forward!(failures.responder <= receive.failures);
        forward!(failures.lost_cqe <= completions.lost);
        forward!(transmit.failure <= failures.sq);

        // events
        forward!(events.command <= command.eq);
        forward!(event_sources.s[0] <= completions.events);
        forward!(event_sources.s[1] <= qp_events.events);
        notice.notify = exceptions.notify;
        forward!(event_sources.s[2] <= notice.events);
        forward!(events.events <= event_sources.m);
        event_sources.s[3].valid = receive.limits.valid;
        event_sources.s[3].payload = no_event;
        event_sources.s[3].payload.event = SRQ_LIMIT;
        event_sources.s[3].payload.eqn = receive.limits.payload.eqn;
        event_sources.s[3].payload.object = receive.limits.payload.srqn;
        receive.limits.ready = event_sources.s[3].ready;
        events.done = host.done[3];
        irq_vector = events.irq_vector;
        irq_valid = events.irq_valid;
        events.irq_ready = irq_ready;
        qp_events.sq_we = command.sq_we;
        qp_events.sq_qpn = command.image_qpn;
        qp_events.sq_cqn = command.sq_image.cqn;
        qp_events.cq_we = command.cq.valid & completions.command.ready;
        qp_events.cq_cqn = command.cq.payload.cqn;
        qp_events.cq_open = command.cq.payload.open;
        let cq_image = command.cq.payload.image;
        qp_events.cq_eqn = cq_image.eqn;
        qp_events.answered = transmit.query_valid;
        qp_events.command_qpn = command.sq_event.payload.qpn;
        qp_events.command_set = command.sq_event.payload.set;
        qp_events.command_state = command.sq_event.payload.state;
        qp_events.sq_failed = transmit.failed_valid;
        qp_events.sq_failed_qpn = transmit.failed_qpn;
        qp_events.sq_failed_status = transmit.failed_status;
        forward!(qp_events.marks <= completions.marks);
        forward!(qp_events.responder <= failures.err_report);

        // what is under way
        drain.start = command.drain_start;
        command.drain_done = drain.done;
        drain.activity[0] = transmit.fetches;
        drain.activity[1] = transmit.wqes;
        drain.activity[2] = transmit.pieces;
        drain.activity[3] = receive.decided;
        drain.activity[4] = receive.placed;
        drain.activity[5] = transmit.held;
        drain.activity[6] = completions.activity;
        drain.activity[7] = receive.replies;
        drain.activity[8] = transmit.response_pieces;
        drain.activity[9] = transmit.requests;
        drain.activity[10] = transmit.responses;
        drain.activity[11] = transmit.cnps;
        drain.activity[12] = events.activity;
        drain.eqe_issued = host.issued[3];
        drain.eqe_done = host.done[3];
        drain.payload_issued = host.issued[0];
        drain.payload_done = host.done[0];
        drain.cqe_issued = host.issued[1];
        drain.cqe_done = host.done[1];

        let mut tx_bytes: Bits<14> = 0;
        if exceptions.sent {
            tx_bytes = exceptions.sent_bytes;
        }
        if transmit.tx_frames {
            tx_bytes = transmit.tx_bytes.resize::<14>();
        }
        stats.pulses = StatPulses {
            rx_frames: receive.stats.rx_frames,
            rx_roce_packets: receive.stats.rx_roce_packets,
            rx_bad_frames: receive.stats.rx_bad_frames,
            rx_icrc_errors: receive.stats.rx_icrc_errors,
            rx_malformed: receive.stats.rx_malformed,
            rx_bytes: receive.rx_bytes,
            rx_not_roce: exceptions.refused,
            rx_overflow: return_path.overflows,
            // a frame at the port and a packet at the responder may meet
            rx_wrong_address: sum(
                receive.stats.rx_wrong_address,
                receive.counts.rx_wrong_address,
            ),
            rx_unknown_qp: receive.counts.rx_unknown_qp,
            rx_qp_state: receive.counts.rx_qp_state,
            rx_wrong_transport: receive.counts.rx_wrong_transport,
            rx_pkey_violations: receive.counts.rx_pkey_violations,
            rx_qkey_violations: receive.counts.rx_qkey_violations,
            rx_read_requests: receive.counts.rx_read_requests,
            rx_atomic_requests: receive.counts.rx_atomic_requests,
            rx_write_requests: receive.counts.rx_write_requests,
            rx_send_requests: receive.counts.rx_send_requests,
            out_of_sequence: receive.counts.out_of_sequence,
            duplicate_request: receive.counts.duplicate_request,
            rnr_nak_sent: receive.counts.rnr_nak_sent,
            invalid_request_errors: receive.counts.invalid_request_errors,
            access_errors: receive.counts.access_errors,
            operational_errors: receive.counts.operational_errors,
            packet_seq_err: transmit.counts.packet_seq_err,
            rnr_nak_received: transmit.counts.rnr_nak_received,
            remote_errors: transmit.counts.remote_errors,
            local_ack_timeout_err: transmit.counts.local_ack_timeout_err,
            implied_nak_seq_err: transmit.counts.implied_nak_seq_err,
            retry_exceeded_err: transmit.counts.retry_exceeded_err,
            rnr_nak_retry_err: transmit.counts.rnr_nak_retry_err,
            rx_acks: sum(transmit.counts.rx_acks, transmit.counts.rx_acks_earlier),
            rx_ghost_acks: sum(
                transmit.counts.rx_ghost_acks,
                transmit.counts.rx_ghost_acks_earlier,
            ),
            retransmissions: transmit.retransmission,
            tx_frames: transmit.tx_frames | exceptions.sent,
            tx_bytes: tx_bytes,
            tx_roce_packets: transmit.tx_roce_packets,
            tx_acks: transmit.tx_acks,
            cq_overflows: completions.overflow,
            commands: command.done,
            command_errors: command.failed,
            rx_exceptions: exceptions.stored,
            rx_exception_drops: exceptions.dropped,
            tx_exceptions: exceptions.sent,
            np_ecn_marked_roce_packets: receive.notified.marked,
            np_cnp_sent: transmit.tx_cnps,
            rp_cnp_handled: receive.notified.handled,
            rp_cnp_ignored: receive.notified.ignored,
        };
        stats.index = stat_index;
        stats.read = stat_read;
        stat_value = stats.value;
        stat_valid = stats.valid;
        let sides = receive.ready & transmit.ready & regions.ready & completions.ready;
        ready = sides & command.ready & events.ready & qp_events.ready & stats.ready;
    }
}
