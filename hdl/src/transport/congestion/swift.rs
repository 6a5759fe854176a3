//! Swift: the window of each queue pair by the delay of its acknowledgements.
//!
//! Equal to the golden reference `ferroce_sim::model::congestion::Swift`, bit for bit (docs/congestion.md). One event at a time, with one
//! unit that multiplies and divides. An event counts in the cycle in which it is taken. The first one of a queue pair is a Reset,
//! which says whether the queue pair is Swift's: one that is not has neither window nor rate.
//!
//! ```text
//!  Idle ─► Load ─► Judge ─► Sort ─┬─ Ack ─► Root ─► Aim ─► Decide ─┬─► Grow ─────────┐
//!                                  │                                ├─► Share ─► Cut ─┼─► Clamp ─► Settle ─► Rate ─► Leave
//!                                  └─ NAK, timeout ──────────────── │ ────────► Cut ──┘             ▲
//!                                                                   └─ nothing changes ─────────────┘
//! ```
//!
//! An acknowledgement takes a product of 17 cycles and a quotient of 61 to 73, a decrease one more product, a window below a packet one
//! more quotient.
use super::inverse_root::InverseRoot;
use super::scale::Scale;
use super::swift_aim::SwiftAim;
use super::swift_types::*;
use super::types::*;
use crate::cell::count::one_at_least;
use crate::prelude::*;

/// Bytes a nanosecond times this are Mb/s.
const MEGABITS: u64 = 8000;

/// Swift for 2^Q queue pairs.
#[derive(Block)]
pub struct Swift<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Parameters.
    pub params: Signal<In, SwiftParams>,
    /// Events: Ack, Nak, Timeout, Reset.
    pub s: StreamIn<CongestionEvent>,
    /// Windows, and rates of windows below a packet.
    pub m: StreamOut<RateUpdate>,
    /// An event is done; one cycle.
    pub look_valid: Signal<Out, Bit>,
    /// Which, when, and what is remembered now.
    pub look: Signal<Out, SwiftLook>,

    table: Ram<SwiftState, Q>,
    unit: Scale,
    root: InverseRoot,
    aim: SwiftAim,
    step: Reg<SwiftStep>,
    /// Log2 of the bytes of a packet: MTU code c is 2^(7 + c).
    packet: Dff<Bits<4>>,
    /// Goes round in 19 hours.
    cycle: Reg<Bits<44>>,
    /// The event, and the cycle in which it was taken.
    taken: Dff<CongestionEvent>,
    at: Dff<Bits<44>>,
    state: Dff<SwiftState>,
    former: Dff<Bits<32>>,
    since: Dff<Bits<44>>,
    /// The last decrease was a round trip ago.
    allowed: Dff<Bit>,
    /// Cycles of the step.
    waited: Dff<Bits<3>>,
    cuts: Dff<Bit>,
    /// What the unit is to do.
    starts: Reg<Bit>,
    order: Dff<SwiftOrder>,
    rate: Dff<Bits<20>>,
    psns: Dff<Bits<16>>,
}

/// The state that an event finds, with what it brings.
#[kernel_fn]
fn begun(found: SwiftState, taken: CongestionEvent, threshold: Bits<3>) -> SwiftState {
    let mut now = found;
    now.retransmits = bits::<3>(0);
    if taken.kind == CongestionEventKind::Timeout {
        now.retransmits = threshold;
        if found.retransmits < threshold {
            now.retransmits = found.retransmits + 1;
        }
        // the last of a row: the least window
        if now.retransmits == threshold {
            now.cwnd = bits::<32>(0);
        }
    }
    if (taken.kind == CongestionEventKind::Ack) & taken.rtt.any() {
        now.rtt = taken.rtt;
    }
    if taken.kind == CongestionEventKind::Reset {
        now.packet = taken.packet;
        now.rtt = bits::<24>(0);
        now.decreased = false;
    }
    now
}

/// The smaller of two shares.
#[kernel_fn]
fn smaller(a: Bits<11>, b: Bits<11>) -> Bits<16> {
    if a < b {
        a.resize::<16>()
    } else {
        b.resize::<16>()
    }
}

/// The round trip that a rate is of, ns.
#[kernel_fn]
fn trip_of(rtt: Bits<24>, base: Bits<20>) -> Bits<26> {
    if rtt.any() {
        rtt.resize::<26>() << 2
    } else {
        base.resize::<26>()
    }
}

/// What a window grows in inverse proportion to: below a packet as one of a packet does.
#[kernel_fn]
fn divisor_of(window: Bits<24>, packet: Bits<4>, small: Bit) -> Bits<26> {
    if small {
        bits::<26>(1) << packet
    } else {
        window.resize::<26>()
    }
}

/// a * b / d for the unit.
#[kernel_fn]
fn quotient(old: SwiftOrder, a: Bits<32>, b: Bits<16>, d: Bits<26>) -> SwiftOrder {
    let mut order = old;
    order.a = a;
    order.b = b;
    order.d = d;
    order.shift = bits::<4>(0);
    order.divides = true;
    order
}

/// A window and what it grows by.
#[kernel_fn]
fn grown(cwnd: Bits<32>, by: Bits<44>) -> Bits<32> {
    let sum = cwnd.resize::<33>() + by.low::<32>().resize::<33>();
    if sum.bit(32) | by.slice::<12>(32).any() {
        bits::<32>(0xffff_ffff)
    } else {
        sum.low::<32>()
    }
}

/// A window within its bounds.
#[kernel_fn]
fn clamped(cwnd: Bits<32>, least: Bits<32>, most: Bits<32>) -> Bits<32> {
    if cwnd < least {
        least
    } else if cwnd > most {
        most
    } else {
        cwnd
    }
}

/// PSNs of a window, 1 at least; 0 if the queue pair is not Swift's.
#[kernel_fn]
fn psns_of(window: Bits<24>, packet: Bits<4>, own: Bit) -> Bits<16> {
    if own {
        one_at_least((window >> packet).low::<16>())
    } else {
        bits::<16>(0)
    }
}

/// The window, of a Reset that of a new queue pair.
#[kernel_fn]
fn opened(cwnd: Bits<32>, opening: Bits<32>, resets: Bit) -> Bits<32> {
    if resets { opening } else { cwnd }
}

/// A rate in Mb/s, 1 to 2^20 - 1.
#[kernel_fn]
fn bounded(rate: Bits<44>) -> Bits<20> {
    if rate.slice::<24>(20).any() {
        bits::<20>(0xf_ffff)
    } else {
        one_at_least(rate.low::<20>())
    }
}

impl<const Q: usize> Logic for Swift<Q> {
    describe!(
        "swift",
        format!("q{Q}"),
        "Windows of queue pairs by round-trip times."
    );

    #[kernel]
    fn update(&mut self) {
        cycle = cycle + 1;
        packet = state.packet.resize::<4>() + 7;
        s.ready = step == SwiftStep::Idle;
        table.re = true;
        table.raddr = s.payload.qpn.low::<Q>();
        table.waddr = taken.qpn.low::<Q>();
        table.wdata = state;
        let resets = taken.kind == CongestionEventKind::Reset;
        let starts_over = resets | !state.cwnd.any();
        let is_ack = taken.kind == CongestionEventKind::Ack;
        root.start = (step == SwiftStep::Sort) & is_ack;
        root.packets = ((state.cwnd.resize::<34>() << 2) >> packet).low::<26>();
        aim.params = params;
        aim.packet = packet;
        aim.product = unit.product;
        copy!(aim <= state; rtt);
        unit.start = starts;
        copy!(unit <= order; a, b, d, shift, divides);
        starts = false;
        let window = state.cwnd.slice::<24>(8);
        let small = !(window >> packet).any();
        let delay = state.rtt.resize::<26>() << 2;
        let trip = trip_of(state.rtt, params.base_target);
        psns = psns_of(window, packet, state.packet.any());
        let divisor = divisor_of(window, packet, small);
        since = at - state.decreased_at;
        allowed = !state.decreased | (since >= state.rtt.resize::<44>());
        waited = 0;

        // nothing goes on while the unit or the root is busy
        let leaves = (step == SwiftStep::Leave) & m.ready;
        if !unit.busy & !starts & !root.busy {
            match step {
                SwiftStep::Idle => {
                    taken = s.payload;
                    at = cycle;
                    cuts = false;
                    if s.valid {
                        step = SwiftStep::Load;
                    }
                }
                SwiftStep::Load => {
                    state = begun(table.rdata, taken, params.retx_reset_threshold);
                    former = table.rdata.cwnd;
                    step = SwiftStep::Judge;
                }
                SwiftStep::Judge => {
                    waited = waited + 1;
                    if waited.bit(0) {
                        step = SwiftStep::Sort;
                    }
                }
                SwiftStep::Sort => {
                    state.cwnd = opened(state.cwnd, aim.opening, resets);
                    order.b = params.max_mdf.resize::<16>();
                    step = SwiftStep::Settle;
                    if is_ack {
                        step = SwiftStep::Root;
                    } else if starts_over {
                        step = SwiftStep::Clamp;
                    } else if allowed {
                        step = SwiftStep::Cut;
                    }
                }
                SwiftStep::Root => {
                    order.a = params.fs_alpha.resize::<32>();
                    order.b = root.result.resize::<16>();
                    order.divides = false;
                    starts = true;
                    step = SwiftStep::Aim;
                }
                SwiftStep::Aim => {
                    waited = waited + 1;
                    if waited.bit(2) {
                        step = SwiftStep::Decide;
                    }
                }
                SwiftStep::Decide => {
                    order = quotient(order, aim.excess, params.beta.resize::<16>(), delay);
                    step = SwiftStep::Settle;
                    if aim.excess.bit(26) {
                        order = quotient(order, taken.bytes.resize::<32>(), params.ai, divisor);
                        order.shift = packet;
                        starts = true;
                        step = SwiftStep::Grow;
                    } else if taken.rtt.any() & allowed {
                        starts = true;
                        step = SwiftStep::Share;
                    }
                }
                SwiftStep::Grow => {
                    state.cwnd = grown(state.cwnd, unit.quotient);
                    step = SwiftStep::Clamp;
                }
                SwiftStep::Share => {
                    order.b = smaller(unit.quotient.low::<11>(), params.max_mdf);
                    step = SwiftStep::Cut;
                }
                SwiftStep::Cut => {
                    order.a = state.cwnd;
                    order.divides = false;
                    starts = true;
                    cuts = true;
                    step = SwiftStep::Cutting;
                }
                SwiftStep::Cutting => {
                    state.cwnd = state.cwnd - unit.product.slice::<32>(10);
                    step = SwiftStep::Clamp;
                }
                SwiftStep::Clamp => {
                    state.cwnd = clamped(state.cwnd, aim.least, aim.most);
                    step = SwiftStep::Settle;
                }
                SwiftStep::Settle => {
                    if cuts & (state.cwnd < former) {
                        state.decreased = true;
                        state.decreased_at = at;
                    }
                    // the rate of a window below a packet
                    order = quotient(order, window.resize::<32>(), bits::<16>(MEGABITS), trip);
                    step = SwiftStep::Leave;
                    if small {
                        starts = true;
                        step = SwiftStep::Rate;
                    }
                }
                SwiftStep::Rate => {
                    rate = bounded(unit.quotient);
                    step = SwiftStep::Leave;
                }
                SwiftStep::Leave => {
                    if leaves {
                        step = SwiftStep::Idle;
                    }
                }
            }
        }
        table.we = leaves;
        m.valid = step == SwiftStep::Leave;
        m.payload = RateUpdate {
            qpn: taken.qpn,
            limited: small & state.packet.any(),
            rate: rate,
            window: psns,
        };
        look_valid = leaves;
        copy!(look <= self; at, taken, state);
    }
}
