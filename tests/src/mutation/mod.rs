//! Mutation of the emitted Verilog: what the conformance suite and the differential test do not notice is either without
//! effect or not tested.
//!
//! [`sites`] finds what can be broken in the blocks of the transport, [`schemata`] puts all of it into one text so that an
//! engine is built once, [`run`] tries each mutant.

pub mod run;
pub mod schemata;
pub mod sites;

/// The blocks of the transport: the rules of requester and responder, and what keeps their state.
pub const TRANSPORT: [&str; 36] = [
    "rx_decode",
    "rx_check",
    "srq_table",
    "rq_rules",
    "rq_next",
    "rq_state",
    "place_builder",
    "responder",
    "responder_report",
    "track",
    "track_rules",
    "place_order",
    "place_queue",
    "reply_admit",
    "reply_table",
    "reply_rules",
    "reply_fences",
    "reply_cutter",
    "reply_exit",
    "reply_results",
    "reply_packets",
    "sq_terms",
    "sq_answer",
    "sq_start",
    "sq_retired",
    "sq_command",
    "sq_rules",
    "sq_result",
    "sq_state",
    "retire",
    "completion_hold",
    "timer",
    "packet_form",
    "wqe_start",
    "round_watch",
    "segmenter",
];
