//! Where the PSN of an operation stands to those in the state of its queue pair, for [`rules`](super::rules).
//!
//! The sums are made a cycle ahead of the operation's decision, with the state as it was and with what the operation
//! just ahead may write there; which of the two counts is known when that one is decided.
use super::types::*;
use crate::prelude::*;

/// Comparisons. Latency: a cycle.
#[derive(Block)]
pub struct ReplyOrder {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// PSN of the operation that is decided in the next cycle.
    pub psn: Signal<In, Bits<24>>,
    /// That one is a request.
    pub asks: Signal<In, Bit>,
    /// The state of its queue pair, without what is decided in this cycle.
    pub next_word: Signal<In, ReplyState>,
    /// What is decided in this cycle is of the same queue pair.
    pub same: Signal<In, Bit>,
    /// PSN of that.
    pub earlier_psn: Signal<In, Bits<24>>,
    /// Last PSN of that.
    pub earlier_last: Signal<In, Bits<24>>,
    /// What it writes.
    pub writes: Signal<In, PsnWrites>,
    /// The operation being decided.
    pub order: Signal<Out, PsnOrder>,

    to_old: Dff<PsnOrder>,
    /// Before the PSN of the earlier operation.
    before_new: Dff<Bit>,
    /// Behind its last PSN.
    after_new: Dff<Bit>,
    written: Dff<PsnWrites>,
    no_write: Zero<PsnWrites>,
}

impl Logic for ReplyOrder {
    describe!(
        "reply_order",
        "Where a PSN stands to those of the state of its queue pair."
    );

    #[kernel]
    fn update(&mut self) {
        let to_ack = psn - next_word.psn;
        // a turn has up to 128 packets: some have left, may be lost, and are asked for again
        let answered = bits::<24>(0).replace_bit(7, next_word.serving & asks);
        let to_due = psn - next_word.due_psn - answered;
        let to_first = psn - next_word.dup_first - answered;
        let to_last = next_word.dup_last - psn;
        to_old = PsnOrder {
            before_ack: to_ack.bit(23),
            before_due: to_due.bit(23),
            before_dup: to_first.bit(23),
            after_dup: to_last.bit(23),
        };
        let to_earlier = psn - earlier_psn;
        let to_earlier_last = earlier_last - psn;
        before_new = to_earlier.bit(23);
        after_new = to_earlier_last.bit(23);
        written = no_write;
        if same {
            written = writes;
        }
        order.before_ack = if written.ack {
            before_new
        } else {
            to_old.before_ack
        };
        order.before_due = if written.due {
            before_new
        } else {
            to_old.before_due
        };
        order.before_dup = if written.dup_first {
            before_new
        } else {
            to_old.before_dup
        };
        order.after_dup = if written.dup_last {
            after_new
        } else {
            to_old.after_dup
        };
    }
}
