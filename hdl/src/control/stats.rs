//! Statistics: a 64-bit counter for every name of `ferroce_proto::abi::regs::STATS`.
//!
//! Pulses of every cycle are added to small sums in flip-flops ([`StatSums`]); one counter a cycle, round robin, has its
//! sum added to its word in a RAM. Nothing is lost at full rate on all counters. The first round after reset takes every
//! word as 0; `ready` tells when it is through, but counts before that are right too.
//!
//! A read is a level: `read` and `index` stay until `valid`, and `value` stands as long as both do. It is answered
//! when the round comes to its counter, at most 67 cycles later, with every pulse up to the start of the read in it.
//! An index without counter reads 0.
//!
//! ```text
//!  pulses ─► sums ─► sum of `turn` ─┐
//!  turn ───► RAM ──► word ──────────┴─► 64-bit sum ─► RAM, value
//!  cycle  n          n + 1              n + 2
//! ```
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use super::stat_sums::{SUM_BITS, StatSums};
use crate::prelude::*;

macro_rules! pulses {
    ($( $f:ident : $t:ty ),* $(,)?) => {
        /// What every counter grows by in a cycle, in the order of `ferroce_proto::abi::regs::STATS`.
        #[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
        pub struct StatPulses {
            $( #[doc = concat!("Increment of `", stringify!($f), "`.")] pub $f: $t ),*
        }
    };
}

pulses! {
    rx_frames: Bit,
    rx_bytes: Bits<7>,
    rx_roce_packets: Bit,
    rx_bad_frames: Bit,
    rx_icrc_errors: Bit,
    rx_malformed: Bit,
    rx_not_roce: Bit,
    rx_overflow: Bit,
    rx_unknown_qp: Bit,
    rx_qp_state: Bit,
    rx_wrong_transport: Bit,
    rx_pkey_violations: Bit,
    rx_wrong_address: Bits<2>,
    rx_write_requests: Bit,
    rx_send_requests: Bit,
    rx_read_requests: Bit,
    rx_atomic_requests: Bit,
    out_of_sequence: Bit,
    duplicate_request: Bit,
    rnr_nak_sent: Bit,
    invalid_request_errors: Bit,
    access_errors: Bit,
    operational_errors: Bit,
    rx_acks: Bits<2>,
    rx_ghost_acks: Bits<2>,
    packet_seq_err: Bit,
    implied_nak_seq_err: Bit,
    rnr_nak_received: Bit,
    remote_errors: Bit,
    local_ack_timeout_err: Bit,
    retry_exceeded_err: Bit,
    rnr_nak_retry_err: Bit,
    retransmissions: Bit,
    tx_frames: Bit,
    tx_bytes: Bits<14>,
    tx_roce_packets: Bit,
    tx_acks: Bit,
    cq_overflows: Bit,
    commands: Bit,
    command_errors: Bit,
    rx_qkey_violations: Bit,
    rx_exceptions: Bit,
    rx_exception_drops: Bit,
    tx_exceptions: Bit,
}

/// The counters.
#[derive(Clone, Debug, LogicBlock)]
pub struct Stats {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What every counter is to grow by.
    pub pulses: Signal<In, StatPulses>,
    /// Counter to read.
    pub index: Signal<In, Bits<6>>,
    /// It is to be read; stays 1 until `valid`.
    pub read: Signal<In, Bit>,
    /// Its value.
    pub value: Signal<Out, Bits<64>>,
    /// `value` is there; 0 again behind the end of `read`.
    pub valid: Signal<Out, Bit>,
    /// All counters start from 0.
    pub ready: Signal<Out, Bit>,

    taken: Dff<StatPulses>,
    sums: StatSums,
    words: Ram<Bits<64>, 6>,
    /// Counter whose turn it is.
    turn: Reg<Bits<6>>,
    /// Its round is not the first.
    later: Reg<Bit>,
    // behind the RAM
    turn_1: Dff<Bits<6>>,
    on_1: Reg<Bit>,
    later_1: Reg<Bit>,
    // behind the adder
    turn_2: Dff<Bits<6>>,
    on_2: Reg<Bit>,
    later_2: Reg<Bit>,
    total: Dff<Bits<64>>,
    answer: Dff<Bits<64>>,
    answered: Reg<Bit>,
    /// The read began before the turn that is now behind the adder.
    waits: Reg<Bits<2>>,
    previous: Signal<Local, Bits<64>>,
}

impl Default for Stats {
    fn default() -> Self {
        Self {
            clock: ClkRst::default(),
            pulses: Signal::default(),
            index: Signal::default(),
            read: Signal::default(),
            value: Signal::default(),
            valid: Signal::default(),
            ready: Signal::default(),
            taken: Dff::default(),
            sums: StatSums::default(),
            words: Ram::new(Style::Distributed),
            turn: Reg::default(),
            later: Reg::default(),
            turn_1: Dff::default(),
            on_1: Reg::default(),
            later_1: Reg::default(),
            turn_2: Dff::default(),
            on_2: Reg::default(),
            later_2: Reg::default(),
            total: Dff::default(),
            answer: Dff::default(),
            answered: Reg::default(),
            waits: Reg::default(),
            previous: Signal::default(),
        }
    }
}

impl Logic for Stats {
    describe!("stats", "64-bit counters.");

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, sums, words);
        dff_setup!(
            self, clock, taken, turn, later, turn_1, on_1, later_1, turn_2, on_2, later_2, total,
            answer
        );
        dff_setup!(self, clock, answered, waits);

        // cycle n: take the sum, read the word
        self.taken.d.next = self.pulses.val();
        self.sums.pulses.next = self.taken.q.val();
        self.sums.visit.next = self.turn.q.val();
        self.words.re.next = true;
        self.words.raddr.next = self.turn.q.val();
        self.turn.d.next = self.turn.q.val() + 1;
        if self.turn.q.val().all() {
            self.later.d.next = true;
        }
        self.turn_1.d.next = self.turn.q.val();
        self.on_1.d.next = true;
        self.later_1.d.next = self.later.q.val();

        // cycle n + 1: add
        self.previous.next = bits::<64>(0);
        if self.later_1.q.val() {
            self.previous.next = self.words.rdata.val();
        }
        self.total.d.next = self.previous.val() + bit_cast::<64, SUM_BITS>(self.sums.sum.val());
        self.turn_2.d.next = self.turn_1.q.val();
        self.on_2.d.next = self.on_1.q.val();
        self.later_2.d.next = self.later_1.q.val();

        // cycle n + 2: write, and answer the read that asks for this counter
        self.words.we.next = self.on_2.q.val();
        self.words.waddr.next = self.turn_2.q.val();
        self.words.wdata.next = self.total.q.val();
        self.waits.d.next = bits::<2>(0);
        if self.read.val() {
            self.waits.d.next = self.waits.q.val();
            if !self.waits.q.val().all() {
                self.waits.d.next = self.waits.q.val() + 1;
            }
        }
        if !self.answered.q.val() {
            self.answer.d.next = self.total.q.val();
        }
        self.answered.d.next = self.read.val()
            & (self.answered.q.val()
                | (self.on_2.q.val()
                    & self.waits.q.val().all()
                    & (self.turn_2.q.val() == self.index.val())));
        self.value.next = self.answer.q.val();
        self.valid.next = self.answered.q.val();
        self.ready.next = self.later_2.q.val();
    }
}

#[cfg(test)]
mod tests {
    use super::super::stat_sums::Counter;
    use ferroce_proto::abi::regs::STATS;

    #[test]
    fn counters_stand_in_the_order_of_the_contract() {
        let names: Vec<_> = Counter::all().into_iter().map(|c| c.name).collect();
        assert_eq!(names, STATS);
    }
}
