//! Timers: one per send queue, in a RAM that is walked, not in comparators.
//!
//! An order sets or stops the timer of a queue pair; the walk visits one entry a cycle, so a timer is seen at most 2^Q
//! cycles late. Time counts in ticks of 256 cycles (1.024 us at 250 MHz): an ACK timeout of code n lasts
//! 4 * 2^n + 2 ticks, not less than 4.096 us * 2^n also for a packet that left a tick after its order; an RNR timer is
//! rounded up. A timer that ran out is reported as a
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
#[derive(Block)]
pub struct Timer<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// An order arrives.
    pub order_valid: Signal<In, Bit>,
    /// The order.
    pub order: Signal<In, TimerSet>,
    /// Ticks since reset.
    pub now: Signal<Out, Bits<36>>,
    /// Timeout events.
    pub m: StreamOut<SqEvent>,
    table: SweptRam<TimerEntry, Q>,
    prescale: Reg<Bits<TICK_LOG>>,
    tick: Reg<Bits<36>>,
    // order: length of time, then deadline
    valid_1: Reg<Bit>,
    order_1: Dff<TimerSet>,
    ticks_1: Dff<Bits<36>>,
    valid_2: Reg<Bit>,
    qpn_2: Dff<Bits<16>>,
    entry_2: Dff<TimerEntry>,
    // walk
    walk: Reg<Bits<Q>>,
    read: Reg<Bit>,
    read_qpn: Dff<Bits<Q>>,
    late: Dff<Bits<36>>,
    seen: Reg<Bit>,
    seen_qpn: Dff<Bits<Q>>,
    seen_generation: Dff<Bits<2>>,
    out: Skid<TimerEnd>,
    no_event: Zero<SqEvent>,
    #[init(RNR_TIMER_NS .map(|ns| Constant::new((u64::from(ns).div_ceil(TICK_NS) + 1).to_bits())))]
    rnr_table: [Constant<Bits<36>>; 32],
}

impl<const Q: usize> Logic for Timer<Q> {
    describe!(
        "timer",
        format!("q{Q}"),
        "ACK and RNR timers of all send queues."
    );

    #[kernel]
    fn update(&mut self) {
        prescale = prescale + 1;
        if prescale.all() {
            tick = tick + 1;
        }
        now = tick;

        // order
        let code = order.code;
        let code_hot = bits::<32>(1) << code;
        let mut rnr_ticks: Bits<36> = bits::<36>(0);
        for i in 0..32 {
            if code_hot.bit(i) {
                rnr_ticks = rnr_table[i];
            }
        }
        valid_1 = order_valid;
        order_1 = order;
        ticks_1 = (bits::<36>(4) << code) | 2;
        if order.rnr {
            ticks_1 = rnr_ticks;
        }
        valid_2 = valid_1;
        qpn_2 = order_1.qpn;
        entry_2.on = order_1.on;
        entry_2.generation = order_1.generation;
        entry_2.deadline = tick + ticks_1;

        table.we = valid_2;
        table.waddr = qpn_2.low::<Q>();
        table.wdata = entry_2;

        // walk
        let step = table.ready & out.s.ready;
        table.re = step;
        table.raddr = walk;
        if step {
            walk = walk + 1;
            read = true;
            read_qpn = walk;
            late = tick - table.rdata.deadline;
            seen = read & table.rdata.on;
            seen_qpn = read_qpn;
            seen_generation = table.rdata.generation;
        }
        let expired = seen & !late.bit(35);
        out.s.valid = expired;
        out.s.payload.qpn = seen_qpn.resize::<16>();
        out.s.payload.generation = seen_generation;
        m.valid = out.m.valid;
        out.m.ready = m.ready;
        m.payload = no_event;
        m.payload.kind = SqEventKind::Timeout;
        m.payload.qpn = out.m.payload.qpn;
        m.payload.generation = out.m.payload.generation;
    }
}
