//! Where the PSN of an operation stands to those in the state of its queue pair, for [`state`](super::state).
//!
//! The sums are made a cycle ahead of the operation's decision, with the state as it stood and with what the operation
//! just ahead may put there; which of the two counts is known when that one is decided.
use super::types::*;
use crate::prelude::*;

/// Comparisons. Latency: a cycle.
#[derive(LogicBlock, Default)]
pub struct ReplyOrder {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// PSN of the operation that is decided in the next cycle.
    pub psn: Signal<In, Bits<24>>,
    /// The state of its queue pair, without what is decided in this cycle.
    pub coming: Signal<In, ReplyState>,
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
    pub behind_high: Signal<Out, Bit>,

    s: Signal<Local, ReplyState>,
    to_ack: Signal<Local, Bits<24>>,
    to_due: Signal<Local, Bits<24>>,
    to_low: Signal<Local, Bits<24>>,
    to_high: Signal<Local, Bits<24>>,
    to_put: Signal<Local, Bits<24>>,
    to_last: Signal<Local, Bits<24>>,
    stood: Dff<Bits<4>>,
    /// Against what was put: its PSN, its last PSN.
    new: Dff<Bits<2>>,
    put: Dff<Bits<4>>,
    order: Signal<Local, Bits<4>>,
}

impl Logic for ReplyOrder {
    describe!(
        "reply_order",
        "Where a PSN stands to those of the state of its queue pair."
    );

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, stood, new, put);
        self.s.next = self.coming.val();
        self.to_ack.next = self.psn.val() - self.s.val().psn;
        self.to_due.next = self.psn.val() - self.s.val().due_psn;
        self.to_low.next = self.psn.val() - self.s.val().low;
        self.to_high.next = self.s.val().high - self.psn.val();
        self.to_put.next = self.psn.val() - self.put_psn.val();
        self.to_last.next = self.put_last.val() - self.psn.val();
        self.stood.d.next = bits::<4>(0)
            .replace_bit(0, self.to_ack.val().get_bit(23))
            .replace_bit(1, self.to_due.val().get_bit(23))
            .replace_bit(2, self.to_low.val().get_bit(23))
            .replace_bit(3, self.to_high.val().get_bit(23));
        self.new.d.next = bits::<2>(0)
            .replace_bit(0, self.to_put.val().get_bit(23))
            .replace_bit(1, self.to_last.val().get_bit(23));
        self.put.d.next = bits::<4>(0);
        if self.same.val() {
            self.put.d.next = self.puts.val();
        }
        self.order.next = self.stood.q.val();
        for i in 0..3 {
            if self.put.q.val().get_bit(i) {
                self.order.next = self.order.val().replace_bit(i, self.new.q.val().get_bit(0));
            }
        }
        if self.put.q.val().get_bit(3) {
            self.order.next = self.order.val().replace_bit(3, self.new.q.val().get_bit(1));
        }
        self.before_ack.next = self.order.val().get_bit(0);
        self.before_due.next = self.order.val().get_bit(1);
        self.in_run.next = !self.order.val().get_bit(2) & !self.order.val().get_bit(3);
        self.behind_high.next = self.order.val().get_bit(3);
    }
}
