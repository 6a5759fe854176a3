//! Timers: one per send queue, in a RAM that is walked, not in comparators.
//!
//! An order sets or stops the timer of a queue pair; the walk visits one entry a cycle, so a timer is seen at most 2^Q
//! cycles late. Time counts in ticks of 256 cycles (1.024 us at 250 MHz): an ACK timeout of code n lasts
//! 4 * 2^n + 1 ticks, not less than 4.096 us * 2^n; an RNR timer is rounded up. A timer that ran out is reported as a
//! Timeout event with its generation, again on every walk until a new order replaces it; `sq_state` ignores the
//! reports of old generations.
use super::event::{SqEvent, SqEventKind};
use super::timer_types::{TimerEnd, TimerEntry, TimerSet};
use crate::prelude::*;
use ferroce_proto::wire::aeth::RNR_TIMER_NS;

/// Cycles of a tick, as a power of two.
const TICK_LOG: usize = 8;
/// Nanoseconds of a tick at 250 MHz.
const TICK_NS: u64 = 1024;

/// Timers of 2^Q send queues.
#[derive(LogicBlock)]
pub struct Timer<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// An order arrives.
    pub order_valid: Signal<In, Bit>,
    /// The order.
    pub order: Signal<In, TimerSet>,
    /// Timeout events.
    pub m: StreamOut<SqEvent>,
    table: Ram<TimerEntry, Q>,
    prescale: Reg<Bits<TICK_LOG>>,
    now: Reg<Bits<36>>,
    sweep: Reg<Bits<Q>>,
    swept: Reg<Bit>,
    // order: length of time, then deadline
    valid_1: Reg<Bit>,
    order_1: Dff<TimerSet>,
    ticks_1: Dff<Bits<36>>,
    rnr_ticks: Signal<Local, Bits<36>>,
    code: Signal<Local, Bits<5>>,
    valid_2: Reg<Bit>,
    qpn_2: Dff<Bits<16>>,
    entry_2: Dff<TimerEntry>,
    // walk
    step: Signal<Local, Bit>,
    walk: Reg<Bits<Q>>,
    read: Reg<Bit>,
    read_qpn: Dff<Bits<Q>>,
    late: Dff<Bits<36>>,
    seen: Reg<Bit>,
    seen_qpn: Dff<Bits<Q>>,
    seen_generation: Dff<Bits<2>>,
    expired: Signal<Local, Bit>,
    out: Skid<TimerEnd>,
    no_event: Zero<SqEvent>,
    code_hot: Signal<Local, Bits<32>>,
    rnr_table: [Constant<Bits<36>>; 32],
}

impl<const Q: usize> Default for Timer<Q> {
    fn default() -> Self {
        Self {
            clock: ClkRst::default(),
            order_valid: Signal::default(),
            order: Signal::default(),
            m: StreamOut::default(),
            table: Ram::default(),
            prescale: Reg::default(),
            now: Reg::default(),
            sweep: Reg::default(),
            swept: Reg::default(),
            valid_1: Reg::default(),
            order_1: Dff::default(),
            ticks_1: Dff::default(),
            rnr_ticks: Signal::default(),
            code: Signal::default(),
            valid_2: Reg::default(),
            qpn_2: Dff::default(),
            entry_2: Dff::default(),
            step: Signal::default(),
            walk: Reg::default(),
            read: Reg::default(),
            read_qpn: Dff::default(),
            late: Dff::default(),
            seen: Reg::default(),
            seen_qpn: Dff::default(),
            seen_generation: Dff::default(),
            expired: Signal::default(),
            out: Skid::default(),
            no_event: Zero::default(),
            code_hot: Signal::default(),
            rnr_table: RNR_TIMER_NS
                .map(|ns| Constant::new((u64::from(ns).div_ceil(TICK_NS) + 1).to_bits())),
        }
    }
}

impl<const Q: usize> Logic for Timer<Q> {
    describe!(
        "timer",
        format!("q{Q}"),
        "ACK and RNR timers of all send queues."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, table, out);
        dff_setup!(
            self, clock, prescale, now, sweep, swept, valid_1, order_1, ticks_1, valid_2, qpn_2,
            entry_2
        );
        dff_setup!(
            self,
            clock,
            walk,
            read,
            read_qpn,
            late,
            seen,
            seen_qpn,
            seen_generation
        );
        self.prescale.d.next = self.prescale.q.val() + 1;
        if self.prescale.q.val().all() {
            self.now.d.next = self.now.q.val() + 1;
        }

        // order
        self.code.next = self.order.val().code;
        self.code_hot.next = bits::<32>(1) << self.code.val();
        self.rnr_ticks.next = bits::<36>(0);
        for i in 0..32 {
            if self.code_hot.val().get_bit(i) {
                self.rnr_ticks.next = self.rnr_table[i].val();
            }
        }
        self.valid_1.d.next = self.order_valid.val();
        self.order_1.d.next = self.order.val();
        self.ticks_1.d.next = (bits::<36>(4) << self.code.val()) | 1;
        if self.order.val().rnr {
            self.ticks_1.d.next = self.rnr_ticks.val();
        }
        self.valid_2.d.next = self.valid_1.q.val();
        self.qpn_2.d.next = self.order_1.q.val().qpn;
        self.entry_2.d.next.on = self.order_1.q.val().on;
        self.entry_2.d.next.generation = self.order_1.q.val().generation;
        self.entry_2.d.next.deadline = self.now.q.val() + self.ticks_1.q.val();

        // the table is cleared after reset, then takes orders
        if !self.swept.q.val() {
            self.sweep.d.next = self.sweep.q.val() + 1;
            self.swept.d.next = self.sweep.q.val().all();
        }
        self.table.we.next = self.valid_2.q.val() | !self.swept.q.val();
        self.table.waddr.next = self.sweep.q.val();
        self.table.wdata.next = self.entry_2.q.val();
        if self.swept.q.val() {
            self.table.waddr.next = self.qpn_2.q.val().get_bits::<Q>(0);
        } else {
            self.table.wdata.next.on = false;
        }

        // walk
        self.step.next = self.swept.q.val() & self.out.s.ready.val();
        self.table.re.next = self.step.val();
        self.table.raddr.next = self.walk.q.val();
        if self.step.val() {
            self.walk.d.next = self.walk.q.val() + 1;
            self.read.d.next = true;
            self.read_qpn.d.next = self.walk.q.val();
            self.late.d.next = self.now.q.val() - self.table.rdata.val().deadline;
            self.seen.d.next = self.read.q.val() & self.table.rdata.val().on;
            self.seen_qpn.d.next = self.read_qpn.q.val();
            self.seen_generation.d.next = self.table.rdata.val().generation;
        }
        self.expired.next = self.seen.q.val() & !self.late.q.val().get_bit(35);
        self.out.s.valid.next = self.expired.val();
        self.out.s.payload.next.qpn = bit_cast::<16, Q>(self.seen_qpn.q.val());
        self.out.s.payload.next.generation = self.seen_generation.q.val();
        self.m.valid.next = self.out.m.valid.val();
        self.out.m.ready.next = self.m.ready.val();
        self.m.payload.next = self.no_event.val();
        self.m.payload.next.kind = SqEventKind::Timeout;
        self.m.payload.next.qpn = self.out.m.payload.val().qpn;
        self.m.payload.next.generation = self.out.m.payload.val().generation;
    }
}
