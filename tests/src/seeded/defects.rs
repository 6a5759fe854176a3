//! The defects: each was in the engine once, and is put back by expressions of its Verilog.

use super::defect::{Defect, change};

/// A message that is read again differs from what was sent of it.
const SECOND_READING: &str =
    "out_d[SqTerms_differs] = !fresh & ((|sq_event[SqEvent_status +: 8]) | spent | is_local);";

/// Those of all but classes and what waits for them.
pub(super) const DEFECTS: &[Defect] = &[
    Defect {
        name: "second_reading",
        what: "A message whose WQE fails its check when it is read again is sent all the same",
        case: Some("gather_region_gone"),
        changes: &[change("sq_terms", SECOND_READING, "1'b0")],
    },
    Defect {
        name: "torn_packet",
        what: "A message whose WQE fails its check when it is sent again is sent, and others send its payload",
        case: Some("wqe_rewritten_shorter_list"),
        changes: &[change(
            "sq_terms",
            SECOND_READING,
            "!fresh & (spent | is_local) & !(|sq_event[SqEvent_status +: 8])",
        )],
    },
    Defect {
        name: "lost_grant",
        what: "A WQE that says fewer packets than were sent ends the completions of all queue pairs",
        case: Some("wqe_rewritten_fewer_packets"),
        changes: &[change(
            "sq_terms",
            SECOND_READING,
            "!fresh & ((|sq_event[SqEvent_status +: 8]) | is_local)",
        )],
    },
    Defect {
        name: "read_without_fence",
        what: "A completion behind a READ without one does not wait for the READ's data",
        case: Some("completion_behind_a_read"),
        changes: &[change(
            "completion_hold",
            "cq_payload[CqToken_fenced] = first_q[SendCompletion_fenced];",
            "first_q[SendCompletion_answered]",
        )],
    },
    Defect {
        name: "early_fence",
        what: "A fenced request does not wait for the responses to the payload writes of the READ in front of it",
        case: None,
        changes: &[change(
            "sq_terms",
            "assign in_flight = (issued_q - state[SqState_writes +: 16]) < under_way_q;",
            "1'b0",
        )],
    },
    Defect {
        name: "early_ack",
        what: "An ACK of what was granted and has not left counts",
        case: Some("pause_takes_no_time"),
        changes: &[
            change(
                "sq_terms",
                "assign is_outstanding = (distance < state[SqState_inflight +: 24]) & (distance < reach) & known;",
                "distance < state[SqState_inflight +: 24]",
            ),
            change(
                "sq_terms",
                "assign at_other = (missing < state[SqState_inflight +: 24]) & (missing < reach) & known;",
                "missing < state[SqState_inflight +: 24]",
            ),
        ],
    },
    Defect {
        name: "drain_without_wire",
        what: "RESET is answered while requests and responses of the queue pair wait for the wire",
        case: Some("pause_before_a_command"),
        changes: &[
            change("drain", "5'h13: seen_d = stirs_17_q;", "12'd0"),
            change("drain", "5'h14: seen_d = stirs_18_q;", "12'd0"),
            change("drain", "5'h15: seen_d = stirs_19_q;", "12'd0"),
            change("drain", "5'h16: seen_d = stirs_20_q;", "12'd0"),
            change("drain", "5'h17: seen_d = stirs_21_q;", "12'd0"),
        ],
    },
    Defect {
        name: "drain_without_events",
        what: "The end of an object is answered while failures and events of it are on their way",
        case: Some("event_before_the_end"),
        changes: &[
            change("drain", "5'h1a: seen_d = stirs_24_q;", "12'd0"),
            change("drain", "5'h1b: seen_d = stirs_25_q;", "12'd0"),
            change("drain", "5'h1c: seen_d = stirs_26_q;", "12'd0"),
        ],
    },
    Defect {
        name: "path_read_twice",
        what: "WRITE_AH does not wait, and a packet is laid out for another path than its payload",
        case: Some("pause_before_an_address_handle"),
        changes: &[
            change(
                "command_steps",
                "end else if (facts[CommandFacts_write_ah]) begin",
                "1'b0",
            ),
            change(
                "header_tx",
                "assign void_d = has_payload_q & (kind != aligned_q);",
                "1'b0",
            ),
        ],
    },
    Defect {
        name: "long_frame",
        what: "A frame of 65,536 bytes for the exception queue is kept with a length of 0",
        case: Some("exception_too_long"),
        changes: &[change(
            "exception_buffer",
            "assign long = length_q[15];",
            "1'b0",
        )],
    },
    Defect {
        name: "long_message",
        what: "A UC or UD message longer than its receive buffer ends the queue pair",
        case: Some("uc_buffer_too_short"),
        changes: &[change(
            "scatter_rules",
            "assign is_long = plain_send & (is_late | (checked[Pending_short] & !checked[Pending_broken]));",
            "1'b0",
        )],
    },
    Defect {
        name: "write_of_a_region_gone",
        what: "A UC WRITE with immediate whose region is gone ends the queue pair",
        case: Some("uc_write_region_gone"),
        changes: &[change(
            "scatter_rules",
            "end else if (plain_write & (denied | is_late)) begin",
            "plain_write & !packet[Packet_complete] & (denied | is_late)",
        )],
    },
    Defect {
        name: "invalidate_all",
        what: "A peer may invalidate any region whose key it knows",
        case: Some("invalidate_of_a_registered_region"),
        changes: &[change(
            "mr_table",
            "may = copy_rdata[MrCtx_invalidate] & !copy_rdata[MrCtx_window];",
            "!copy_rdata[MrCtx_window]",
        )],
    },
    Defect {
        name: "weaker_arm",
        what: "An order for a solicited completion takes one for any back",
        case: Some("event_armed_twice"),
        changes: &[change(
            "cq_rules",
            "next[CqState_armed] = state[CqState_open] & (state[CqState_armed] | doorbell[CqArm_any]);",
            "state[CqState_open] & doorbell[CqArm_any]",
        )],
    },
    Defect {
        name: "doorbells_wait",
        what: "A receive doorbell waits for room that host memory makes",
        case: None,
        changes: &[
            change(
                "responder",
                "assign rung = doorbells_valid & table_ready;",
                "doorbells_valid & table_ready & room_q",
            ),
            change(
                "responder",
                "assign doorbells_ready = table_ready;",
                "table_ready & room_q",
            ),
        ],
    },
    Defect {
        name: "former_image",
        what: "A queue pair in error flushes by the image of a former owner of its number",
        case: Some("flush_without_an_image"),
        changes: &[change(
            "sq_terms",
            "out_d[SqTerms_may_fetch] = (is_running & !state[SqState_blocked]) | (in_error & state[SqState_known] & !busy);",
            "(is_running & !state[SqState_blocked]) | (in_error & !busy)",
        )],
    },
    Defect {
        name: "sqe_left_early",
        what: "SQE is left before what stands behind the failed request is flushed",
        case: Some("flush_before_sqe_is_left"),
        changes: &[change(
            "sq_terms",
            "out_d[SqTerms_unflushed] = (state[SqState_state +: 3] == SQE) & (busy | (state[SqState_exec_index +: 16] != state[SqState_producer +: 16]));",
            "1'b0",
        )],
    },
    Defect {
        name: "sqd_at_sqe",
        what: "SQD is forgotten while a send queue leaves SQE",
        case: Some("sqd_while_sqe_is_left"),
        changes: &[change(
            "sq_command",
            "next[SqState_resumes_to_sqd] = 1'b1;",
            "1'b0",
        )],
    },
    Defect {
        name: "receive_lost_in_reset",
        what: "A queue pair whose send queue is in RESET goes on when completions of its receives are lost",
        case: Some("ud_loses_a_completion"),
        changes: &[change(
            "failures",
            "assign receives_s_valid = cqe_fails & completions_s_ready & lost_cqe_payload[CqLost_recv];",
            "1'b0",
        )],
    },
    Defect {
        name: "read_behind_reset",
        what: "A READ that was granted before RESET and is issued behind it takes responses that come later",
        case: None,
        changes: &[change(
            "track_rules",
            "next[TrackState_closed] = !track_event[TrackEvent_starts];",
            "1'b0",
        )],
    },
    Defect {
        name: "duplicate_covers_read",
        what: "The ACK of a duplicate covers a READ or atomic behind it",
        case: Some("duplicate_before_a_read"),
        changes: &[change(
            "place_builder",
            "assign resend_before = decision[RqDecision_asked] & !distance[23];",
            "1'b0",
        )],
    },
    Defect {
        name: "reply_of_another",
        what: "A READ is answered with what another queue pair asked for, if that one waits for a completion",
        case: Some("reads_beside_receives"),
        changes: &[change(
            "ack_hold",
            "assign after_reply = (reply_q - left_q[15:0]) < queue_level;",
            "1'b0",
        )],
    },
    Defect {
        name: "access_behind_invalidation",
        what: "The completion that names an invalidated key does not wait for the peer's reads and atomics under it",
        case: Some("pause_behind_an_invalidation"),
        changes: &[change(
            "cq_fence_queue",
            "assign unread = waits_m_payload[Wait_invalidates] & accessed;",
            "1'b0",
        )],
    },
    Defect {
        name: "completion_before_atomic",
        what: "The completion of a receive does not wait for the atomics of its queue pair before it",
        case: Some("completion_behind_an_atomic"),
        changes: &[change(
            "cq_fence_queue",
            "assign not_run = waits_m_payload[Wait_after_atomics] & !all_over;",
            "1'b0",
        )],
    },
    Defect {
        name: "migration_state",
        what: "MigReq is 0",
        case: Some("migrated_in_all_packets"),
        changes: &[change(
            "header_tx",
            "assign layout_fields[TxFields_mig_req] = !base_line_q[7];",
            "1'b0",
        )],
    },
    Defect {
        name: "event_queue_holds_all",
        what: "An event for an event queue that nobody empties holds up those of all others",
        case: Some("event_ring_full_is_no_others"),
        changes: &[change(
            "eq_rules",
            "out[EqDecision_takes] = 1'b1;",
            "!usable | !full | has_place | (op == EqOp_Parked)",
        )],
    },
    Defect {
        name: "revived_by_command",
        what: "A send queue that failed is revived by SQD or RTS",
        case: Some("state_err_stays_of_sends"),
        changes: &[change(
            "sq_command",
            "stays = in_error & state[SqState_known] & leaves & !sq_event[SqEvent_reset];",
            "1'b0",
        )],
    },
    Defect {
        name: "departed_before",
        what: "What leaves of a queue pair before a RESET counts for the next one of its number",
        case: Some("pause_in_each_life"),
        changes: &[change(
            "departures",
            "assign same = table_current[Departed_incarnation +: 2] == leaving_q[Departure_incarnation +: 2];",
            "1'b1",
        )],
    },
    Defect {
        name: "departed_long_before",
        what: "What left of a queue pair counts again four incarnations later, if none between them sent",
        case: Some("pause_in_each_life"),
        changes: &[change(
            "sq_terms",
            "assign is_noted = following == departed[Departed_incarnation +: 2];",
            "1'b0",
        )],
    },
    Defect {
        name: "sent_before",
        what: "A datagram that leaves after a RESET, but is of before it, completes one of the next life",
        case: Some("pause_across_a_reset"),
        // a RESET that waits for the wire leaves no such datagram
        changes: &[
            change(
                "sq_terms",
                "at_psn = (distance < state[SqState_inflight +: 24]) & current;",
                "distance < state[SqState_inflight +: 24]",
            ),
            change("drain", "5'h12: seen_d = stirs_16_q;", "12'd0"),
            change("drain", "5'h13: seen_d = stirs_17_q;", "12'd0"),
            change("drain", "5'h14: seen_d = stirs_18_q;", "12'd0"),
            change("drain", "5'h15: seen_d = stirs_19_q;", "12'd0"),
            change("drain", "5'h16: seen_d = stirs_20_q;", "12'd0"),
            change("drain", "5'h17: seen_d = stirs_21_q;", "12'd0"),
        ],
    },
    Defect {
        name: "stale_fence",
        what: "A fence that is looked at 2^15 payload writes later holds its completion",
        case: Some("fence_goes_round"),
        changes: &[
            change(
                "cq_fence",
                "assign waits = skid_m_payload[CqToken_fenced] & ((latest_q - skid_m_payload[CqToken_fence +: 16]) < under_way_q);",
                "skid_m_payload[CqToken_fenced] & (|((latest_q - under_way_q - skid_m_payload[CqToken_fence +: 16]) & 16'h8000))",
            ),
            change(
                "cq_fence_queue",
                "assign unwritten = waits_m_payload[Wait_fenced] & ((latest_q - waits_m_payload[Wait_fence +: 16]) < under_way_q);",
                "waits_m_payload[Wait_fenced] & (|((latest_q - under_way_q - waits_m_payload[Wait_fence +: 16]) & 16'h8000))",
            ),
        ],
    },
    Defect {
        name: "refused_payload",
        what: "Payload that host memory refuses completes with success",
        case: Some("refused_receive"),
        changes: &[change(
            "cq_refusal",
            "assign hit = mark[WriteMark_failed] & is_after & (found[CqToken_recv] | found[CqToken_fenced]) & !(|found[CqToken_status +: 8]);",
            "1'b0",
        )],
    },
    Defect {
        name: "mark_ends_early",
        what: "RESET takes the mark of refused payload back before its completion comes",
        case: Some("state_reset_after_a_refusal"),
        changes: &[change(
            "receive_side",
            "assign faults_starts_recv = command & events_ready & events_payload[RqEvent_reset] & !ends;",
            "command & events_ready & events_payload[RqEvent_reset]",
        )],
    },
    Defect {
        name: "entries_written_over",
        what: "WQEs that are flushed write their gather entries over those of a message that waits, and their payload is sent",
        case: None,
        changes: &[change(
            "wqe_check",
            "assign near_d = unread_valid & ((unread - tag_q) < 5'd3);",
            "1'b0",
        )],
    },
];
