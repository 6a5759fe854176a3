//! Defects of classes: what is paused held up what is not.

use super::defect::{Defect, change};

/// A timer begins anew, as packets wait.
const TIMER_WAITS: &str = "out_d[SqTerms_waits] = !known | !(has_left_all & (departed[Departed_round +: 2] == state[SqState_round +: 2])) | none_left;";

/// All of them.
pub(super) const DEFECTS: &[Defect] = &[
    Defect {
        name: "timer_of_what_waits",
        what: "Retries are used up by packets that have not left",
        case: Some("pause_takes_no_time"),
        changes: &[change("sq_terms", TIMER_WAITS, "1'b0")],
    },
    Defect {
        name: "timer_of_a_go_back",
        what: "Retries are used up by packets that are to be sent again and wait for their rate or class",
        case: Some("rate_limit_of_what_is_sent_again"),
        changes: &[change("sq_terms", TIMER_WAITS, "!known | !has_left_all")],
    },
    Defect {
        name: "responses_fill_a_class",
        what: "READ responses of a paused class fill its queue, and hold up all others",
        case: Some("pause_of_long_responses"),
        changes: &[
            change(
                "reply_table",
                "assign closed_2_d = |(of_class & closed);",
                "1'b0",
            ),
            change(
                "reply_cutter",
                "assign void_1 = repeated_q | (|(start[Start_of_class +: 4] & closed));",
                "repeated_q",
            ),
        ],
    },
    Defect {
        name: "acks_fill_a_class",
        what: "ACKs of a paused class fill its queue, and hold up all others",
        case: Some("pause_of_many_acknowledgements"),
        changes: &[change(
            "reply_table",
            "assign ack_waits_2_d = |(of_class & acks_wait);",
            "1'b0",
        )],
    },
    Defect {
        name: "cnps_fill_a_class",
        what: "CNPs of a paused class fill its queue, and hold up all others",
        case: Some("pause_of_many_cnps"),
        changes: &[change(
            "class_gate",
            "assign cnps_q_d = |(cnp_classes_q & cnps_barred_q);",
            "1'b0",
        )],
    },
    Defect {
        name: "frames_fill_a_class",
        what: "frames of the host of a paused class fill its queue, and hold up all others",
        case: Some("pause_of_many_frames"),
        changes: &[change(
            "host_gate",
            "assign fits = there_q >= needed_q;",
            "1'b1",
        )],
    },
];
