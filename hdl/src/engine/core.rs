//! Core: all of the engine that CONTROL.engine_reset resets. Wiring only.
use super::control::Control;
use super::egress::EgressSide;
use super::receive::ReceiveSide;
use super::sections::Sections;
use super::transmit::TransmitSide;
use crate::bus::dma_client::*;
use crate::control::counters::Counters;
use crate::control::drain::ELSEWHERE;
use crate::control::exception_csr::ExceptionStatus;
use crate::control::restart::{CONTROL, PARTS, RECEIVE, TRANSMIT};
use crate::egress::types::ClassSetup;
use crate::eth::exception_types::ExceptionSetup;
use crate::eth::exceptions::Exceptions;
use crate::eth::return_path::ReturnPath;
use crate::memory::host_port::HostPort;
use crate::memory::mr_table::MrTable;
use crate::prelude::*;
use crate::queue::cq_write::CqArm;
use crate::transport::congestion::notify_types::NotifySetup;
use crate::transport::congestion::pace_types::CongestionSetup;
use crate::transport::requester::event::{SqEvent, starts_afresh};
use crate::transport::responder::event::RqEvent;

/// Checkers of memory regions: `scatter`, responder, requester, replies.
const CHECKERS: usize = 4;

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
    const R: usize,
    const B: usize,
    const A: usize,
    const E: usize,
    const F: usize,
    const T: usize,
> {
    /// Clock, and the reset of the core.
    pub clock: ClkRst,
    /// The same reset for each part: all else, `receive`, `transmit`, `control`.
    pub resets: Signal<In, Bits<PARTS>>,
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
    /// What the host says of congestion control.
    pub congestion: Signal<In, CongestionSetup>,
    /// What the host says of classes.
    pub classes: Signal<In, ClassSetup>,
    /// Priorities that the peer pauses, in this clock.
    pub pause_req: Signal<In, Bits<8>>,
    /// Priorities whose pause time runs in the MAC, see [`PauseIn`](crate::egress::pause_in::PauseIn).
    pub pause_ack: Signal<Out, Bits<8>>,
    /// Much waits in front of `s_axis_rx`: each class that sends pauses asks for one.
    pub rx_backlog: Signal<In, Bit>,
    /// Priorities that the peer is to pause.
    pub pause_send: Signal<Out, Bits<8>>,
    /// Arm doorbells of completion queues.
    pub cq_doorbell: StreamIn<CqArm>,
    /// Counter to read.
    pub stat_index: Signal<In, Bits<7>>,
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
    /// No DMA is under way and no frame leaves; what waits in the queues would be lost.
    pub idle: Signal<Out, Bit>,
    /// A DMA access failed in this cycle.
    pub dma_error: Signal<Out, Bit>,
    /// The write of a CQE, an event or the completion of a command was refused; one cycle.
    pub ring_error: Signal<Out, Bit>,
    /// All tables are swept after reset.
    pub ready: Signal<Out, Bit>,

    receive: ReceiveSide<W, K, Q, R>,
    transmit: TransmitSide<W, K, Q, O, G>,
    host: HostPort<W, K>,
    exceptions: Exceptions<W, K, B>,
    egress: EgressSide<W, K, A, E, F, T>,
    return_path: ReturnPath<W, K, B>,
    regions: MrTable<M, CHECKERS>,
    control: Control<W, K, Q, M, C, O>,
    counters: Counters,
    sections: Sections,
}

impl<
    const W: usize,
    const K: usize,
    const Q: usize,
    const M: usize,
    const C: usize,
    const O: usize,
    const G: usize,
    const R: usize,
    const B: usize,
    const A: usize,
    const E: usize,
    const F: usize,
    const T: usize,
> Logic for Core<W, K, Q, M, C, O, G, R, B, A, E, F, T>
{
    describe!(
        "core",
        format!("w{W}_q{Q}_m{M}_c{C}_o{O}_g{G}_r{R}_b{B}_e{A}_{E}_{T}"),
        "All of the engine that CONTROL.engine_reset resets."
    );

    #[kernel]
    fn update(&mut self) {
        // resets: the largest parts have their own
        receive.clock.clk = clock.clk;
        receive.clock.rst = resets.bit(RECEIVE);
        transmit.clock.clk = clock.clk;
        transmit.clock.rst = resets.bit(TRANSMIT);
        control.clock.clk = clock.clk;
        control.clock.rst = resets.bit(CONTROL);

        // network
        forward!(s_axis_rx <= return_path.s_axis);
        forward!(return_path.own <= egress.own);
        forward!(receive.s_axis_rx <= return_path.m_axis);
        forward!(exceptions.s_axis <= transmit.m_axis_tx);
        exceptions.s_mark = transmit.mark;
        forward!(egress.s_axis <= exceptions.m_axis);
        forward!(m_axis_tx <= egress.m_axis_tx);
        copy!(egress <= self; classes, notify, pause_req, stall);
        pause_ack = egress.pause_ack;
        copy!(receive <= egress; closed, acks_wait);
        egress.mac = control.tables.mac;
        copy!(egress <= transmit; started_valid, started, assembling, enters, left_room, ahead);
        copy!(transmit <= egress; closed, cnps_wait, left_valid, left);
        egress.note = control.note;
        return_path.overflow = receive.stats.rx_overflow;
        exceptions.setup = exception;
        copy!(exceptions <= self; enable, classes);
        copy!(exceptions <= receive; raw, raw_data);
        exceptions.other = transmit.tx_frames;
        copy!(egress <= exceptions; mark, host_waits, host_class, host_beats);
        exceptions.host_may_leave = egress.host_may_leave;
        exception_status.tx_consumer = exceptions.consumer;
        exception_status.busy = exceptions.busy;

        // between the sides
        copy!(receive <= self; enable, notify, classes, rx_backlog);
        copy!(self <= receive; pause_send);
        copy!(transmit <= self; notify, congestion, classes);
        copy!(transmit <= receive; cnp_received, response_sent, response_reserve, response_give_back, placed, accesses);
        forward!(sq_doorbell <= transmit.doorbell);
        forward!(rq_doorbell <= receive.doorbells);
        forward!(transmit.answer <= receive.answer);
        forward!(receive.issue <= transmit.issue);
        forward!(transmit.cnp <= receive.cnp);
        forward!(transmit.response <= receive.response);
        forward!(transmit.response_payload <= receive.response_payload);
        copy!(receive <= transmit; response_rate, response_room, response_read_done, response_lost, response_lost_qpn, response_lost_psn, response_lost_msn, close_valid, close_qpn);
        receive.sq_reset = transmit.sq_query_valid & control.sq_command.payload.reset;
        receive.sq_starts = transmit.sq_query_valid & starts_afresh(control.sq_command.payload);

        // host memory
        forward!(m_axi <= host.m_axi);
        forward!(host.read[READ_COMMAND] <= control.cmd_read);
        forward!(host.beat[READ_COMMAND] <= control.cmd_beat);
        forward!(host.read[READ_SEND_WQE] <= transmit.wqe_read);
        forward!(host.beat[READ_SEND_WQE] <= transmit.wqe_beat);
        forward!(host.read[READ_PAYLOAD] <= transmit.payload_read);
        forward!(host.beat[READ_PAYLOAD] <= transmit.payload_beat);
        forward!(host.read[READ_RESPONSE] <= transmit.response_read);
        forward!(host.beat[READ_RESPONSE] <= transmit.response_beat);
        forward!(host.read[READ_LIST] <= receive.wqe_read);
        forward!(host.beat[READ_LIST] <= receive.wqe_beat);
        forward!(host.read[READ_CQ_RECORD] <= control.cq_read);
        forward!(host.beat[READ_CQ_RECORD] <= control.cq_beat);
        forward!(host.read[READ_ATOMIC] <= receive.atomic_read);
        forward!(host.beat[READ_ATOMIC] <= receive.atomic_beat);
        forward!(host.read[READ_EXCEPTION] <= exceptions.read);
        forward!(host.beat[READ_EXCEPTION] <= exceptions.beat);
        forward!(host.read[READ_EQ_RECORD] <= control.eq_read);
        forward!(host.beat[READ_EQ_RECORD] <= control.eq_beat);
        forward!(host.write[WRITE_PAYLOAD] <= receive.write);
        forward!(host.beats[WRITE_PAYLOAD] <= receive.beats);
        forward!(host.write[WRITE_CQE] <= control.cqe_write);
        forward!(host.beats[WRITE_CQE] <= control.cqe_beats);
        forward!(host.write[WRITE_COMMAND] <= control.cpl_write);
        forward!(host.beats[WRITE_COMMAND] <= control.cpl_beats);
        forward!(host.write[WRITE_EQE] <= control.eqe_write);
        forward!(host.beats[WRITE_EQE] <= control.eqe_beats);
        forward!(host.write[WRITE_ATOMIC] <= receive.atomic_write);
        forward!(host.beats[WRITE_ATOMIC] <= receive.atomic_beats);
        forward!(host.write[WRITE_EXCEPTION] <= exceptions.write);
        forward!(host.beats[WRITE_EXCEPTION] <= exceptions.beats);
        receive.payload_issued = host.issued[WRITE_PAYLOAD];
        receive.payload_done = host.done[WRITE_PAYLOAD];
        receive.payload_refused = host.refused[WRITE_PAYLOAD];
        receive.atomic_written = host.done[WRITE_ATOMIC];
        receive.atomic_refused = host.refused[WRITE_ATOMIC];
        exceptions.written = host.done[WRITE_EXCEPTION];
        exceptions.write_refused = host.refused[WRITE_EXCEPTION];
        cmd_ci = host.done[WRITE_COMMAND];
        for i in 0..WRITERS {
            control.issued[i] = host.issued[i];
            control.written[i] = host.done[i];
        }
        host.stall = stall;
        idle = host.idle & egress.stalled;
        copy!(self <= host; dma_error, ring_error);

        // memory regions
        forward!(regions.check[0] <= receive.mr);
        forward!(regions.check[1] <= receive.rkey);
        forward!(regions.check[2] <= transmit.mr);
        forward!(regions.check[3] <= receive.response_mr);
        forward!(regions.inv <= receive.inv);
        forward!(regions.change <= transmit.change);
        transmit.payload_issued = host.issued[WRITE_PAYLOAD];
        transmit.payload_done = host.done[WRITE_PAYLOAD];
        regions.write = control.tables.mr_we;
        regions.index = control.tables.mr_index;
        regions.entry = control.tables.mr;

        // control
        copy!(control <= self; enable, cmd_base, cpl_base, cmd_log_size, cmd_pi, irq_ready);
        forward!(cq_doorbell <= control.cq_doorbell);
        copy!(receive <= control; tables, outcome, look, awaited);
        copy!(transmit <= control; tables, lost_hold);
        forward!(transmit.command <= control.sq_command);
        forward!(transmit.failure <= control.sq_failure);
        forward!(control.sq_down <= transmit.down);
        copy!(control <= transmit; sq_query_valid, sq_query, sq_failed, sq_failed_qpn, sq_failed_status, lost, lost_qpn, lost_psn, lost_incarnation);
        forward!(receive.events <= control.rq_events);
        copy!(control <= receive; rq_query_valid, rq_query, refused_since, judged, accesses, over);
        forward!(control.rq_failures <= receive.failures);
        forward!(control.srq_limits <= receive.limits);
        control.exception = exceptions.notify;
        forward!(control.recv <= receive.cq);
        forward!(control.send <= transmit.cq);
        copy!(self <= control; irq_vector, irq_valid);
        copy!(sections <= transmit; fetches, wqes, keys, pieces, parts, retired, held, response_pieces, requests, responses, cnps, departed);
        copy!(sections <= receive; requested, tracked, decided, placed, acks, fenced, turns, atomics, waiting, losing, faulted);
        copy!(sections <= egress; passage, queued);
        copy!(sections <= control; cq_activity);
        for i in 0..ELSEWHERE {
            control.activity[i] = sections.activity[i];
        }

        // counters
        counters.port = receive.stats;
        counters.responder = receive.counts;
        counters.requester = transmit.counts;
        counters.overflow = return_path.overflows;
        copy!(counters <= receive; rx_bytes, notified, pauses);
        copy!(counters <= transmit; retransmission, tx_frames, tx_bytes, tx_roce_packets, tx_acks, tx_cnps, cnp_lost, feedback, feedback_lost);
        copy!(counters <= exceptions; stored, dropped, refused, sent, sent_bytes);
        counters.paused = egress.paused;
        copy!(counters <= control; cq_overflow, cmd_done, cmd_failed);
        copy!(counters <= self; stat_index, stat_read);
        copy!(self <= counters; stat_value, stat_valid);
        ready = receive.ready & transmit.ready & regions.ready & control.ready & counters.ready;
    }
}
