//! The statistics of a card.

/// The statistics, in order: what each counts, its name as operators know it from Linux (`rdma statistic`, `ethtool -S`), the
/// constant of that name, and the bits of what the engine may add to it in a cycle.
///
/// `counters!(then)` calls the macro `then` with the list. A counter stands here and where it is raised.
#[macro_export]
macro_rules! counters {
    ($then:ident) => {
        $then! {
            /// All frames received, dropped ones included: from the port, and from the loopback to the port's own MAC address.
            rx_frames RX_FRAMES 1,
            /// Bytes of the frames in `rx_frames`: headers and padding included, preamble and FCS not.
            rx_bytes RX_BYTES 7,
            /// RoCEv2 packets that are well formed, addressed to the port, and have a good ICRC. Packets that a queue pair refuses are included.
            rx_roce_packets RX_ROCE_PACKETS 1,
            /// Frames that the MAC marked as bad (FCS error).
            rx_bad_frames RX_BAD_FRAMES 1,
            /// RoCEv2 packets with a wrong ICRC.
            rx_icrc_errors RX_ICRC_ERRORS 1,
            /// Frames too short for their headers, wrong IPv4 header checksum, lengths that disagree, a reserved opcode.
            rx_malformed RX_MALFORMED 1,
            /// Frames for this port that are not RoCEv2, while the exception queue is off.
            rx_not_roce RX_NOT_ROCE 1,
            /// Good frames dropped because the packet buffer was full.
            rx_overflow RX_OVERFLOW 1,
            /// Packets to queue pair 0, to a number beyond the build, or to a queue pair without a responder image (states RESET and INIT).
            rx_unknown_qp RX_UNKNOWN_QP 1,
            /// Requests to a responder whose state does not receive (INIT with an image, ERR), and packets to such a one that fail the checks of transport, P_Key or address.
            rx_qp_state RX_QP_STATE 1,
            /// Packets whose opcode class (RC, UC, UD) is not that of the queue pair.
            rx_wrong_transport RX_WRONG_TRANSPORT 1,
            /// Packets whose P_Key does not match that of the queue pair.
            rx_pkey_violations RX_PKEY_VIOLATIONS 1,
            /// Frames to another MAC address or to an address that is not in the GID table; packets from or to an address that is not that of the connection.
            rx_wrong_address RX_WRONG_ADDRESS 2,
            /// WRITE messages begun: counted with their first packet, after it passed all checks.
            rx_write_requests RX_WRITE_REQUESTS 1,
            /// SEND messages begun: counted with their first packet, after a receive WQE was found; of UD, every datagram.
            rx_send_requests RX_SEND_REQUESTS 1,
            /// READ requests accepted. Repeated ones are in `duplicate_request`.
            rx_read_requests RX_READ_REQUESTS 1,
            /// Atomics executed. Repeated ones are in `duplicate_request`.
            rx_atomic_requests RX_ATOMIC_REQUESTS 1,
            /// Request packets with a PSN after the expected one: RC answers the first with a NAK, UC drops the message.
            out_of_sequence OUT_OF_SEQUENCE 1,
            /// Request packets with a PSN before the expected one: answered again, not executed again (RC).
            duplicate_request DUPLICATE_REQUEST 1,
            /// RNR NAKs decided on: no receive WQE was there.
            rnr_nak_sent RNR_NAK_SENT 1,
            /// Requests refused as invalid (opcode sequence, length, too many READs); RC sends a NAK, code 1.
            invalid_request_errors INVALID_REQUEST_ERRORS 1,
            /// Requests refused for key, rights, protection domain or bounds; RC sends a NAK, code 2.
            access_errors ACCESS_ERRORS 1,
            /// Requests that the responder could not execute (its own WQE or memory is wrong); RC sends a NAK, code 3.
            operational_errors OPERATIONAL_ERRORS 1,
            /// Positive acknowledgements within the window. READ and atomic responses are not included.
            rx_acks RX_ACKS 2,
            /// Responses outside the window, or to a send queue that does not run. They have no effect.
            rx_ghost_acks RX_GHOST_ACKS 2,
            /// NAKs for a PSN sequence error received.
            packet_seq_err PACKET_SEQ_ERR 1,
            /// Responses that showed that an earlier READ or atomic response was lost.
            implied_nak_seq_err IMPLIED_NAK_SEQ_ERR 1,
            /// RNR NAKs received.
            rnr_nak_received RNR_NAK_RECEIVED 1,
            /// NAKs received that end the queue pair: invalid request, remote access, remote operational, reserved.
            remote_errors REMOTE_ERRORS 1,
            /// Expiries of the ACK timer.
            local_ack_timeout_err LOCAL_ACK_TIMEOUT_ERR 1,
            /// Queue pairs that failed because `retry_cnt` was used up.
            retry_exceeded_err RETRY_EXCEEDED_ERR 1,
            /// Queue pairs that failed because `rnr_retry` was used up.
            rnr_nak_retry_err RNR_NAK_RETRY_ERR 1,
            /// Request packets sent again: their PSN was sent before.
            retransmissions RETRANSMISSIONS 1,
            /// Frames sent, to the port and to the loopback.
            tx_frames TX_FRAMES 1,
            /// Bytes of the frames in `tx_frames`: headers and ICRC included, MAC padding, preamble and FCS not.
            tx_bytes TX_BYTES 14,
            /// RoCEv2 packets sent.
            tx_roce_packets TX_ROCE_PACKETS 1,
            /// Acknowledge packets sent: ACK, NAK and RNR NAK. Several acknowledgements may leave as one packet.
            tx_acks TX_ACKS 1,
            /// Completion queues that overflowed: each once, until it is created again.
            cq_overflows CQ_OVERFLOWS 1,
            /// Commands completed.
            commands COMMANDS 1,
            /// Commands completed with a status that is not OK.
            command_errors COMMAND_ERRORS 1,
            /// Datagrams with a wrong Q_Key.
            rx_qkey_violations RX_QKEY_VIOLATIONS 1,
            /// Frames written to the receive ring of the exception queue.
            rx_exceptions RX_EXCEPTIONS 1,
            /// Frames for the exception queue that were longer than a slot, found no room, or whose write host memory refused.
            rx_exception_drops RX_EXCEPTION_DROPS 1,
            /// Frames sent from the transmit ring of the exception queue.
            tx_exceptions TX_EXCEPTIONS 1,
            /// Packets marked CE of a connected queue pair (RC, UC). CNPs are not included.
            np_ecn_marked_roce_packets NP_ECN_MARKED_ROCE_PACKETS 1,
            /// CNPs sent.
            np_cnp_sent NP_CNP_SENT 1,
            /// CNPs received for a connected queue pair from its peer.
            rp_cnp_handled RP_CNP_HANDLED 1,
            /// CNPs received for no connected queue pair, of another partition, or from or to an address that is not that of the connection; and CNPs in `rp_cnp_handled` that found the queue of congestion control full. They have no effect.
            rp_cnp_ignored RP_CNP_IGNORED 2,
            /// Pauses of priority 0 that began, of those that are obeyed. A pause that is asked for again before it ends is one.
            rx_prio0_pause RX_PRIO0_PAUSE 1,
            /// Pauses of priority 1 that began, of those that are obeyed. A pause that is asked for again before it ends is one.
            rx_prio1_pause RX_PRIO1_PAUSE 1,
            /// Pauses of priority 2 that began, of those that are obeyed. A pause that is asked for again before it ends is one.
            rx_prio2_pause RX_PRIO2_PAUSE 1,
            /// Pauses of priority 3 that began, of those that are obeyed. A pause that is asked for again before it ends is one.
            rx_prio3_pause RX_PRIO3_PAUSE 1,
            /// Pauses of priority 4 that began, of those that are obeyed. A pause that is asked for again before it ends is one.
            rx_prio4_pause RX_PRIO4_PAUSE 1,
            /// Pauses of priority 5 that began, of those that are obeyed. A pause that is asked for again before it ends is one.
            rx_prio5_pause RX_PRIO5_PAUSE 1,
            /// Pauses of priority 6 that began, of those that are obeyed. A pause that is asked for again before it ends is one.
            rx_prio6_pause RX_PRIO6_PAUSE 1,
            /// Pauses of priority 7 that began, of those that are obeyed. A pause that is asked for again before it ends is one.
            rx_prio7_pause RX_PRIO7_PAUSE 1,
            /// Pauses of priority 0 that were asked of the peer. One is counted when it begins, however often the MAC repeats it.
            tx_prio0_pause TX_PRIO0_PAUSE 1,
            /// Pauses of priority 1 that were asked of the peer. One is counted when it begins, however often the MAC repeats it.
            tx_prio1_pause TX_PRIO1_PAUSE 1,
            /// Pauses of priority 2 that were asked of the peer. One is counted when it begins, however often the MAC repeats it.
            tx_prio2_pause TX_PRIO2_PAUSE 1,
            /// Pauses of priority 3 that were asked of the peer. One is counted when it begins, however often the MAC repeats it.
            tx_prio3_pause TX_PRIO3_PAUSE 1,
            /// Pauses of priority 4 that were asked of the peer. One is counted when it begins, however often the MAC repeats it.
            tx_prio4_pause TX_PRIO4_PAUSE 1,
            /// Pauses of priority 5 that were asked of the peer. One is counted when it begins, however often the MAC repeats it.
            tx_prio5_pause TX_PRIO5_PAUSE 1,
            /// Pauses of priority 6 that were asked of the peer. One is counted when it begins, however often the MAC repeats it.
            tx_prio6_pause TX_PRIO6_PAUSE 1,
            /// Pauses of priority 7 that were asked of the peer. One is counted when it begins, however often the MAC repeats it.
            tx_prio7_pause TX_PRIO7_PAUSE 1,
            /// Times that a class had asked for a pause for 85 % of PFC_STORM while nothing of it left the receive buffer.
            tx_pause_storm_warning_events TX_PAUSE_STORM_WARNING_EVENTS 1,
            /// Times that a class had done so for longer than PFC_STORM: it asks no more until it holds less than PFC_XON.
            tx_pause_storm_error_events TX_PAUSE_STORM_ERROR_EVENTS 1,
            /// Round trips measured: of requests, one of a queue pair at a time, from the departure to the acknowledgement of it alone.
            rp_rtt_samples RP_RTT_SAMPLES 1,
            /// Sum of the round trips in `rp_rtt_samples`, in cycles of 4 ns.
            rp_rtt_cycles RP_RTT_CYCLES 24,
            /// Acknowledgements, NAKs and timeouts of queue pairs of Swift that found its queue full. They change no window.
            rp_swift_lost RP_SWIFT_LOST 1,
        }
    };
}

macro_rules! names_and_docs {
    ($( $(#[doc = $doc:literal])* $name:ident $constant:ident $bits:literal, )*) => {
        /// Names of the statistics, in order.
        pub const STATS: &[&str] = &[$(stringify!($name)),*];
        /// What each of [`STATS`] counts.
        pub const STAT_DOCS: &[&str] = &[$(concat!($($doc),*)),*];
    };
}
counters!(names_and_docs);
