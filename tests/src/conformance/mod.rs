//! Conformance suite: the rules of the transport, a case each.
//!
//! A case is named after its rule and says which clause it tests: IB1 is the InfiniBand Architecture Specification,
//! volume 1, A17 its annex on RoCEv2, RFC the standard of the layer below; "abi" is the host contract of
//! `ferroce_proto::abi`. It runs on every [`Target`](run::Target), the golden model and the engine, through nothing but
//! the pins of the card. Most cases stand between two cards of the kind on a wire (`bench::Conn`); where a
//! healthy peer would not do what the rule is about, the peer is a script (`script::Script`).
//!
//! A case that needs what the card's register FEATURES does not claim is listed as not claimed: it counts neither as
//! passed nor as failed. Whatever a case is about, the card must not reach for memory outside of what its host mapped
//! and must keep the rules of its ports.
//!
//! | file | holds |
//! |---|---|
//! | `bench`, `script` | two cards on a wire; a card and a scripted peer |
//! | `event_queue` | an event queue of a card |
//! | `run`, `table` | the targets and the run; what it came to |
//! | everything else | cases by topic |

mod ack;
mod address;
mod address_handles;
mod atomic;
pub mod bench;
mod binds;
mod brim;
mod classes;
mod cnp;
mod completion;
mod duplicate_reads;
mod event_kinds;
pub(crate) mod event_queue;
mod events;
mod exception;
mod flush;
mod groups;
mod gsi;
mod hostile;
mod invalidate;
mod invalidations;
mod late_failure;
mod lists;
mod long;
mod malformed;
mod nak;
pub(crate) mod notification;
mod numbers;
mod outstanding;
mod own;
mod pauses;
mod pauses_commands;
mod pauses_full;
mod pauses_sent;
mod protection;
mod psn;
pub(crate) mod rates;
mod rc_write;
mod reaction;
mod read;
mod read_loss;
mod registers;
mod response;
mod response_rates;
mod retry;
mod rewritten;
mod rnr;
mod round_trips;
pub mod run;
pub mod script;
mod seeded;
mod send;
mod sequence;
mod shared_numbers;
mod shared_receive;
mod sqe;
mod state;
mod swift;
pub mod table;
mod together;
mod uc;
mod ud;
mod values;
mod window;
mod wqe;

use std::fmt::Debug;

use ferroce_proto::abi::regs::feature;

use bench::Bench;

/// A rule and how it is tested.
pub struct Case {
    /// The rule in short.
    pub name: &'static str,
    /// The rule in a sentence.
    pub rule: &'static str,
    /// Where the rule stands.
    pub source: &'static str,
    /// What the card must have, bits of `regs::feature`.
    pub needs: u32,
    /// Panics if the card does not keep the rule.
    pub run: fn(&mut Bench),
}

/// Cases on one subject.
pub struct Topic {
    /// The subject.
    pub title: &'static str,
    /// Its cases.
    pub cases: &'static [Case],
}

/// All cases.
pub const TOPICS: &[Topic] = &[
    topic("RC: SEND", send::CASES),
    topic("Gather and scatter lists, inline payload", lists::CASES),
    topic("RC: RDMA WRITE", rc_write::CASES),
    topic("RC: RDMA READ", read::CASES),
    topic("RC: READ responses lost and late", read_loss::CASES),
    topic("RC: repeated READs", duplicate_reads::CASES),
    topic("RC: atomics", atomic::CASES),
    topic("RC: SEND with invalidate", invalidate::CASES),
    topic("Memory windows", window::CASES),
    topic("Memory windows: binds", binds::CASES),
    topic("Memory windows: invalidations", invalidations::CASES),
    topic("RC: packet sequence numbers", psn::CASES),
    topic("RC: order of packets in a message", sequence::CASES),
    topic("RC: acknowledgements", ack::CASES),
    topic("RC: negative acknowledgements", nak::CASES),
    topic("Failures behind the placement", late_failure::CASES),
    topic("RC: receiver not ready", rnr::CASES),
    topic("RC: what a requester makes of responses", response::CASES),
    topic("RC: timeouts and retries", retry::CASES),
    topic("RC: where two rules meet", together::CASES),
    topic("Unreliable connection", uc::CASES),
    topic("Unreliable datagram", ud::CASES),
    topic("Datagrams to groups", groups::CASES),
    topic("Address handles", address_handles::CASES),
    topic("Queue pair 1", gsi::CASES),
    topic("Frames to the own address", own::CASES),
    topic("Notification of congestion", notification::CASES),
    topic("CNPs that arrive", cnp::CASES),
    topic("Rates", rates::CASES),
    topic("The reaction point", reaction::CASES),
    topic("Rates of responses", response_rates::CASES),
    topic("Packets outstanding", outstanding::CASES),
    topic("Round trips", round_trips::CASES),
    topic("Swift", swift::CASES),
    topic("Traffic classes", classes::CASES),
    topic("Pauses of the peer", pauses::CASES),
    topic(
        "More of a paused class than its queue takes",
        pauses_full::CASES,
    ),
    topic("Pauses and commands", pauses_commands::CASES),
    topic("Pauses to the peer", pauses_sent::CASES),
    topic("Shared receive queues", shared_receive::CASES),
    topic("Numbers of shared receive queues", shared_numbers::CASES),
    topic("Memory protection", protection::CASES),
    topic("Partitions and addresses", address::CASES),
    topic("Fields over their whole range", values::CASES),
    topic("Objects of all numbers", numbers::CASES),
    topic("Malformed frames", malformed::CASES),
    topic("Malformed transport headers", hostile::CASES),
    topic("Work queue entries", wqe::CASES),
    topic("WQEs that are rewritten", rewritten::CASES),
    topic("Errors and flush", flush::CASES),
    topic("Queue pair states", state::CASES),
    topic("The way out of SQE", sqe::CASES),
    topic("Completion and event queues", completion::CASES),
    topic("Completion queues at their brim", brim::CASES),
    topic("Rings of event queues", events::CASES),
    topic("Kinds of events", event_kinds::CASES),
    topic("Exception queue", exception::CASES),
    topic("Registers and reset", registers::CASES),
];

const fn topic(title: &'static str, cases: &'static [Case]) -> Topic {
    Topic { title, cases }
}

/// All cases in order.
pub fn all() -> impl Iterator<Item = &'static Case> {
    TOPICS.iter().flat_map(|topic| topic.cases)
}

/// Cases of a million cycles. The suite goes without those that are not named; coverage and the slow tests do not.
pub const LONG_LIVES: &[Case] = long::CASES;

/// Cases that take longest: the narrow engine takes less time for them.
pub const SLOW: [&str; 16] = [
    "any_request_lost",
    "bind_and_loss",
    "every_opcode_after_every_start",
    "pause_amid_a_frame",
    "pause_for_ever",
    "pause_in_each_life",
    "pause_in_turns",
    "pause_sent_in_a_storm",
    "rate_limit_beside_another",
    "rate_limit_beside_doorbells",
    "rate_limit_of_what_is_sent_again",
    "rate_rises_again",
    "rate_with_a_whole_alpha",
    "reads_beside_receives",
    "response_rate_after_a_cnp",
    "swift_is_chosen_by_an_image",
];

/// The cases whose name contains `part`; those of [`LONG_LIVES`] only if it says something.
pub fn named(part: &str) -> impl Iterator<Item = &'static Case> {
    let long = LONG_LIVES.iter().filter(move |_| !part.is_empty());
    all()
        .chain(long)
        .filter(move |case| case.name.contains(part))
}

const RC: u32 = feature::RC;
const READ: u32 = feature::RC | feature::READ;
const ATOMIC: u32 = feature::RC | feature::ATOMIC;
const LONG: u32 = feature::RC | feature::LONG_WQE;
const INVALIDATE: u32 = feature::RC | feature::INVALIDATE;
const UC: u32 = feature::UC;
const UD: u32 = feature::UD;
const EVENTS: u32 = feature::RC | feature::EVENTS;
const RESIZE: u32 = feature::RC | feature::RESIZE_CQ;
const WINDOW: u32 = feature::RC | feature::MEM_WINDOW;

/// The cases of a file: name of the function, features, source, rule.
macro_rules! cases {
    ($($name:ident, $needs:expr, $source:literal, $rule:literal;)*) => {
        pub(super) const CASES: &[super::Case] = &[$(super::Case {
            name: stringify!($name),
            rule: $rule,
            source: $source,
            needs: $needs,
            run: $name,
        }),*];
    };
}
use cases;

/// Fails the case unless the two are equal.
#[track_caller]
fn check<T: PartialEq + Debug>(what: &str, got: T, expected: T) {
    assert!(
        got == expected,
        "{what}: expected {expected:?}, got {got:?}"
    );
}

/// Fails the case unless the bytes are the same; says where they differ first.
#[track_caller]
fn check_bytes(what: &str, got: &[u8], expected: &[u8]) {
    check(&format!("{what}, bytes"), got.len(), expected.len());
    if let Some(at) = (0..got.len()).find(|&i| got[i] != expected[i]) {
        let end = got.len().min(at + 16);
        panic!(
            "{what}, from byte {at} of {} on: expected {:02x?}, got {:02x?}",
            got.len(),
            &expected[at..end],
            &got[at..end]
        );
    }
}
