//! Where the PSN of an operation stands to those in the state of its queue pair, for [`state`](super::state).
//!
//! The sums are made a cycle ahead of the operation's decision, with the state as it stood and with what the operation
//! just ahead may put there; which of the two counts is known when that one is decided.
use super::types::*;
use crate::prelude::*;

/// Comparisons. Latency: a cycle.
#[derive(Block)]
pub struct ReplyOrder {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// PSN of the operation that is decided in the next cycle.
    pub psn: Signal<In, Bits<24>>,
    /// The state of its queue pair, without what is decided in this cycle.
    pub next_word: Signal<In, ReplyState>,
    /// What is decided in this cycle is of the same queue pair.
    pub same: Signal<In, Bit>,
    /// PSN of that.
    pub put_psn: Signal<In, Bits<24>>,
    /// Last PSN of that.
    pub put_last: Signal<In, Bits<24>>,
    /// It puts its PSN into `psn`, `due_psn`, `low`, from bit 0 on, and its last PSN into `high`.
    pub puts: Signal<In, Bits<4>>,
    /// The operation being decided is before `psn` of the state, modulo 2^24.
    pub before_ack: Signal<Out, Bit>,
    /// It is before `due_psn`.
    pub before_due: Signal<Out, Bit>,
    /// It is in `low` to `high`.
    pub in_run: Signal<Out, Bit>,
    /// It is behind `high`.
    pub after_dup_last: Signal<Out, Bit>,

    stood: Dff<Bits<4>>,
    /// Against what was put: its PSN, its last PSN.
    new: Dff<Bits<2>>,
    put: Dff<Bits<4>>,
}

impl Logic for ReplyOrder {
    describe!(
        "reply_order",
        "Where a PSN stands to those of the state of its queue pair."
    );

    #[kernel]
    fn update(&mut self) {
        let to_ack = psn - next_word.psn;
        let to_due = psn - next_word.due_psn;
        let to_low = psn - next_word.low;
        let to_high = next_word.high - psn;
        let to_put = psn - put_psn;
        let to_last = put_last - psn;
        stood = bits::<4>(0)
            .replace_bit(0, to_ack.bit(23))
            .replace_bit(1, to_due.bit(23))
            .replace_bit(2, to_low.bit(23))
            .replace_bit(3, to_high.bit(23));
        new = bits::<2>(0)
            .replace_bit(0, to_put.bit(23))
            .replace_bit(1, to_last.bit(23));
        put = bits::<4>(0);
        if same {
            put = puts;
        }
        let mut order = stood;
        for i in 0..3 {
            if put.bit(i) {
                order = order.replace_bit(i, new.bit(0));
            }
        }
        if put.bit(3) {
            order = order.replace_bit(3, new.bit(1));
        }
        before_ack = order.bit(0);
        before_due = order.bit(1);
        in_run = !order.bit(2) & !order.bit(3);
        after_dup_last = order.bit(3);
    }
}
