//! Defects of classes: what is paused held up what is not.

use super::defect::{Defect, change};

/// All of them.
pub(super) const DEFECTS: &[Defect] = &[
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
                "assign void_1 = |(start[Start_of_class +: 4] & closed);",
                "1'b0",
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
            "assign cnps_q_d = |(cnp_classes_q & no_room_q);",
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
