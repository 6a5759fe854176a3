//! Counters: which pulse of the engine each of them counts.
use super::stats::{StatPulses, Stats, sum};
use crate::bus::valid::Valid;
use crate::egress::types::PauseCounts;
use crate::eth::packet_buffer::RxStats;
use crate::prelude::*;
use crate::transport::congestion::notify_types::NotifyCounts;
use crate::transport::congestion::types::CongestionEvent;
use crate::transport::requester::decision::SqCounts;
use crate::transport::responder::event::RqCounts;

/// The counters of the engine, by the side that raises them.
#[derive(Block)]
pub struct Counters {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Receive front: what became of each frame.
    pub port: Signal<In, RxStats>,
    /// Bytes that arrived.
    pub rx_bytes: Signal<In, Bits<7>>,
    /// A frame was dropped for want of room.
    pub overflow: Signal<In, Bit>,
    /// Responder.
    pub responder: Signal<In, RqCounts>,
    /// Requester.
    pub requester: Signal<In, SqCounts>,
    /// A packet leaves that was sent before.
    pub retransmission: Signal<In, Bit>,
    /// Notification point.
    pub notified: Signal<In, NotifyCounts>,
    /// A frame of the transport was sent.
    pub tx_frames: Signal<In, Bit>,
    /// With `tx_frames`: its bytes.
    pub tx_bytes: Signal<In, Bits<13>>,
    /// It is a RoCEv2 packet.
    pub tx_roce_packets: Signal<In, Bit>,
    /// It is an acknowledgement.
    pub tx_acks: Signal<In, Bit>,
    /// A CNP leaves.
    pub tx_cnps: Signal<In, Bit>,
    /// Congestion control had no room for a CNP.
    pub cnp_lost: Signal<In, Bit>,
    /// Feedback found no room at Swift.
    pub feedback_lost: Signal<In, Bit>,
    /// What the network did to a send queue.
    pub feedback: Signal<In, Valid<CongestionEvent>>,
    /// Exception queue: a received frame was handed to the host.
    pub stored: Signal<In, Bit>,
    /// One was dropped for lack of room.
    pub dropped: Signal<In, Bit>,
    /// One was dropped because the queue is off.
    pub refused: Signal<In, Bit>,
    /// A frame of the host has left, never together with `tx_frames`.
    pub sent: Signal<In, Bit>,
    /// With `sent`: its bytes.
    pub sent_bytes: Signal<In, Bits<14>>,
    /// A completion queue overflowed.
    pub cq_overflow: Signal<In, Bit>,
    /// A command was answered.
    pub cmd_done: Signal<In, Bit>,
    /// With `cmd_done`: it failed.
    pub cmd_failed: Signal<In, Bit>,
    /// Priorities of which a pause begins.
    pub paused: Signal<In, Bits<8>>,
    /// Pauses that are asked for.
    pub pauses: Signal<In, PauseCounts>,
    /// Counter to read.
    pub stat_index: Signal<In, Bits<7>>,
    /// It is asked for in this cycle.
    pub stat_read: Signal<In, Bit>,
    /// Its value.
    pub stat_value: Signal<Out, Bits<64>>,
    /// The value is there.
    pub stat_valid: Signal<Out, Bit>,
    /// All counters start from 0.
    pub ready: Signal<Out, Bit>,

    stats: Stats,
}

impl Logic for Counters {
    describe!("counters", "Which pulse of the engine each counter counts.");

    #[kernel]
    fn update(&mut self) {
        let transport_bytes: Bits<14> = if tx_frames {
            tx_bytes.resize::<14>()
        } else {
            0
        };
        let rtt: Bits<24> = if feedback.valid {
            feedback.payload.rtt
        } else {
            0
        };
        stats.pulses = StatPulses {
            rx_frames: port.rx_frames,
            rx_roce_packets: port.rx_roce_packets,
            rx_bad_frames: port.rx_bad_frames,
            rx_icrc_errors: port.rx_icrc_errors,
            rx_malformed: port.rx_malformed,
            rx_bytes: rx_bytes,
            rx_not_roce: refused,
            rx_overflow: overflow,
            // a frame at the port and a packet at the responder may meet
            rx_wrong_address: sum(port.rx_wrong_address, responder.rx_wrong_address),
            rx_unknown_qp: responder.rx_unknown_qp,
            rx_qp_state: responder.rx_qp_state,
            rx_wrong_transport: responder.rx_wrong_transport,
            rx_pkey_violations: responder.rx_pkey_violations,
            rx_qkey_violations: responder.rx_qkey_violations,
            rx_read_requests: responder.rx_read_requests,
            rx_atomic_requests: responder.rx_atomic_requests,
            rx_write_requests: responder.rx_write_requests,
            rx_send_requests: responder.rx_send_requests,
            out_of_sequence: responder.out_of_sequence,
            duplicate_request: responder.duplicate_request,
            rnr_nak_sent: responder.rnr_nak_sent,
            invalid_request_errors: responder.invalid_request_errors,
            access_errors: responder.access_errors,
            operational_errors: responder.operational_errors,
            packet_seq_err: requester.packet_seq_err,
            rnr_nak_received: requester.rnr_nak_received,
            remote_errors: requester.remote_errors,
            local_ack_timeout_err: requester.local_ack_timeout_err,
            implied_nak_seq_err: requester.implied_nak_seq_err,
            retry_exceeded_err: requester.retry_exceeded_err,
            rnr_nak_retry_err: requester.rnr_nak_retry_err,
            rx_acks: sum(requester.rx_acks, requester.rx_acks_earlier),
            rx_ghost_acks: sum(requester.rx_ghost_acks, requester.rx_ghost_acks_earlier),
            retransmissions: retransmission,
            tx_frames: tx_frames | sent,
            tx_bytes: if sent & !tx_frames {
                sent_bytes
            } else {
                transport_bytes
            },
            tx_roce_packets: tx_roce_packets,
            tx_acks: tx_acks,
            cq_overflows: cq_overflow,
            commands: cmd_done,
            command_errors: cmd_failed,
            rx_exceptions: stored,
            rx_exception_drops: dropped,
            tx_exceptions: sent,
            np_ecn_marked_roce_packets: notified.marked,
            np_cnp_sent: tx_cnps,
            rp_cnp_handled: notified.handled,
            rp_cnp_ignored: sum(notified.ignored, cnp_lost),
            rx_prio0_pause: paused.bit(0),
            rx_prio1_pause: paused.bit(1),
            rx_prio2_pause: paused.bit(2),
            rx_prio3_pause: paused.bit(3),
            rx_prio4_pause: paused.bit(4),
            rx_prio5_pause: paused.bit(5),
            rx_prio6_pause: paused.bit(6),
            rx_prio7_pause: paused.bit(7),
            tx_prio0_pause: pauses.begun.bit(0),
            tx_prio1_pause: pauses.begun.bit(1),
            tx_prio2_pause: pauses.begun.bit(2),
            tx_prio3_pause: pauses.begun.bit(3),
            tx_prio4_pause: pauses.begun.bit(4),
            tx_prio5_pause: pauses.begun.bit(5),
            tx_prio6_pause: pauses.begun.bit(6),
            tx_prio7_pause: pauses.begun.bit(7),
            tx_pause_storm_warning_events: pauses.warning,
            tx_pause_storm_error_events: pauses.error,
            rp_rtt_samples: rtt.any(),
            rp_rtt_cycles: rtt,
            rp_swift_lost: feedback_lost,
        };
        stats.index = stat_index;
        stats.read = stat_read;
        stat_value = stats.value;
        stat_valid = stats.valid;
        ready = stats.ready;
    }
}
