//! Calendar: paced queue pairs wait here until they may start.
//!
//! A grant of B bytes moves the next start of its queue pair up by B times the gap, the time of a byte at its rate. A queue pair that wants
//! to start before that waits in a [`Wheel`], else it is released at once. A slot is 64 cycles; a start further ahead than the wheel is long
//! waits a turn and is looked at again. A rate change takes the latest grant back and plans it with the new gap; a
//! waiting queue pair is at its new place when its slot comes, a turn later at most.
//!
//! ```text
//!  orders ─► fifo ─┐
//!  due ◄── wheel ──┼─► candidate ─► read (1) ─► product (2, 3, 4) ─► start (5) ─► late? (6) ─┬─► released
//!  rate updates ─► gap ┘        ▲                                            write ◄─────────────┤
//!                   waits for one of the same queue pair                          wheel ◄────┘
//! ```
//!
//! Idle time is no credit: a queue pair that was idle starts now at the earliest. One that comes late to its grant, because its WQE was to be
//! read first, keeps its schedule, but is never more than 4096 cycles behind it; nor is it idle when an acknowledgement or a doorbell
//! has it ask meanwhile.
//!
//! Rate: an operation a cycle, of one queue pair every seventh; one release in two cycles. An order waits while 8 queue pairs may start and are not taken; 64 may wait, and
//! `crowded` is set when half of them do ([`PaceMerge`]). Precision of a start: 64 cycles late at most, on average exact.
use super::gap::Gap;
use super::pace_merge::PaceMerge;
use super::pace_types::*;
use super::types::RateUpdate;
use super::wheel::Wheel;
use crate::prelude::*;

/// Log2 of the cycles of a slot.
const SLOT: usize = 6;
/// A start further in the past is moved up, in cycles, as a power of two.
const PAST: usize = 16;

/// Calendar of 2^Q queue pairs with a wheel of 2^W slots.
#[derive(Block)]
pub struct Calendar<const Q: usize, const W: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Rates.
    pub s: StreamIn<RateUpdate>,
    /// A paced queue pair got a grant, or wants to start, or both.
    pub order_valid: Signal<In, Bit>,
    /// See `order_valid`.
    pub order: Signal<In, PaceOrder>,
    /// 32 orders wait: their sender should pause.
    pub crowded: Signal<Out, Bit>,
    /// Queue pairs that may start.
    pub m: StreamOut<Bits<16>>,
    /// A queue pair is paced from now on, or no more; one cycle.
    pub paced_valid: Signal<Out, Bit>,
    /// Which.
    pub paced_qpn: Signal<Out, Bits<16>>,
    /// It is.
    pub paced: Signal<Out, Bit>,
    /// Its gap: cycles a byte, in 2^-20; 0 if it is not.
    pub gap: Signal<Out, Bits<31>>,
    /// Log2 of the bytes that its rate sends in 1024 cycles, 0 at least.
    pub span: Signal<Out, Bits<5>>,
    /// PSNs that it may have outstanding; 0: any number.
    pub window: Signal<Out, Bits<16>>,
    /// The tables are swept after reset.
    pub ready: Signal<Out, Bit>,

    gaps: Gap,
    wheel: Wheel<Q, W>,
    table: SweptRam<PaceState, Q>,
    orders: PaceMerge,
    /// Queue pairs that may start: with 8 of 32 no more are chosen, and 7 are on their way here.
    out: Fifo<Bits<16>, 5>,
    product: Product<17, 31, 48>,
    no_op: Zero<PaceOp>,

    now: Reg<Bits<32>>,
    walk: Reg<Bits<Q>>,
    walks: Reg<Bit>,
    /// Slots that have come: their turns were begun.
    begun: Reg<Bits<26>>,
    valid: Reg<Bit>,
    op: Dff<PaceOp>,
    valid_1: Reg<Bit>,
    op_1: Dff<PaceOp>,
    valid_2: Reg<Bit>,
    op_2: Dff<PaceOp>,
    state_2: Dff<PaceState>,
    valid_3: Reg<Bit>,
    op_3: Dff<PaceOp>,
    state_3: Dff<PaceState>,
    valid_4: Reg<Bit>,
    op_4: Dff<PaceOp>,
    state_4: Dff<PaceState>,
    /// An order of one that was idle.
    idle_4: Dff<Bit>,
    grants_4: Dff<Bit>,
    /// From the start before to now.
    age_4: Dff<Bits<32>>,
    valid_5: Reg<Bit>,
    op_5: Dff<PaceOp>,
    state_5: Dff<PaceState>,
    planned_5: Dff<Bit>,
    last_5: Dff<Bits<17>>,
    valid_6: Reg<Bit>,
    op_6: Dff<PaceOp>,
    state_6: Dff<PaceState>,
    planned_6: Dff<Bit>,
    last_6: Dff<Bits<17>>,
    /// From the start to now; now.
    age_6: Dff<Bits<32>>,
    now_6: Dff<Bits<32>>,
}

/// State of a queue pair when its start moves by `span`: back by the old gap when its rate changes, else on.
#[kernel_fn]
fn moved_on(
    from: PaceState,
    kind: PaceKind,
    planned: Bit,
    span: Bits<40>,
    gap: Bits<31>,
) -> PaceState {
    let mut next = from;
    if kind == PaceKind::Unplan {
        next.gap = gap;
        if planned {
            next.start = from.start - span;
        }
    } else {
        next.start = from.start + span;
    }
    next
}

impl<const Q: usize, const W: usize> Logic for Calendar<Q, W> {
    describe!(
        "calendar",
        format!("q{Q}_w{W}"),
        "Paced queue pairs until they may start."
    );

    #[kernel]
    fn update(&mut self) {
        now = now + 1;
        if !now.low::<10>().any() {
            walks = true;
        }
        let stands = table.ready & wheel.ready;
        ready = stands;

        // candidate: nothing overtakes what changes the same queue pair
        let ahead = (valid_1 & (op_1.qpn == op.qpn))
            | (valid_2 & (op_2.qpn == op.qpn))
            | (valid_3 & (op_3.qpn == op.qpn))
            | (valid_4 & (op_4.qpn == op.qpn))
            | (valid_5 & (op_5.qpn == op.qpn))
            | (valid_6 & (op_6.qpn == op.qpn));
        let issue = valid & (!ahead | (op.kind == PaceKind::Turn));
        let take = stands & (!valid | issue);
        copy!(orders <= self; order_valid, order);
        orders.m.ready = false;
        crowded = orders.crowded;
        forward!(gaps.s <= s);
        gaps.op_ready = false;
        paced_valid = false;
        wheel.pop = false;
        if issue {
            valid = false;
        }
        let roomy = !out.level.slice::<13>(3).any();
        if take {
            op = no_op;
            valid = true;
            if begun != now.slice::<26>(SLOT) {
                op.kind = PaceKind::Turn;
                begun = begun + 1;
            } else if orders.m.valid & !gaps.holds & roomy {
                orders.m.ready = true;
                op.kind = PaceKind::Order;
                copy!(op <= orders.m.payload; qpn, bytes, pushes, idle);
            } else if gaps.op_valid {
                gaps.op_ready = true;
                paced_valid = !gaps.replans;
                op.kind = if gaps.replans {
                    PaceKind::Replan
                } else {
                    PaceKind::Unplan
                };
                copy!(op <= gaps; qpn, bytes);
            } else if wheel.due & !gaps.holds & roomy {
                wheel.pop = true;
                op.kind = PaceKind::Pop;
                op.qpn = wheel.due_qpn;
                op.pushes = true;
            } else if walks {
                walks = false;
                walk = walk + 1;
                op.kind = PaceKind::Walk;
                op.qpn = walk.resize::<16>();
            } else {
                valid = false;
            }
        }
        paced_qpn = gaps.qpn;
        paced = gaps.gap.any();
        copy!(self <= gaps; gap, span, window);

        // 1: read
        table.re = issue;
        table.raddr = op.qpn.low::<Q>();
        valid_1 = issue;
        op_1 = op;

        // 2 to 4: product
        product.a = if op_1.kind == PaceKind::Unplan {
            table.rdata.last
        } else {
            op_1.bytes
        };
        product.b = table.rdata.gap;
        valid_2 = valid_1;
        op_2 = op_1;
        state_2 = table.rdata;
        valid_3 = valid_2;
        op_3 = op_2;
        state_3 = state_2;
        valid_4 = valid_3;
        op_4 = op_3;
        state_4 = state_3;
        idle_4 = op_3.idle;
        grants_4 = (op_3.kind == PaceKind::Order) & op_3.bytes.any();
        age_4 = now - state_3.start.slice::<32>(8);

        // 5: the start
        let planned = age_4.bit(31);
        let long_ago = (op_4.kind == PaceKind::Walk) & age_4.slice::<15>(PAST).any();
        let moment = now.resize::<40>() << 8;
        let mut from = state_4;
        if (idle_4 | long_ago) & !planned {
            from.start = moment;
        }
        let span = product.product.slice::<36>(12).resize::<40>();
        valid_5 = valid_4;
        op_5 = op_4;
        state_5 = moved_on(from, op_4.kind, planned, span, gaps.gap);
        if grants_4 {
            state_5.last = op_4.bytes;
        }
        planned_5 = planned;
        last_5 = state_4.last;

        // 6: is it over
        valid_6 = valid_5;
        op_6 = op_5;
        state_6 = state_5;
        planned_6 = planned_5;
        last_6 = last_5;
        age_6 = now - state_5.start.slice::<32>(8);
        now_6 = now;

        let over = !age_6.bit(31);
        table.we = valid_6 & !(op_6.kind == PaceKind::Turn);
        table.waddr = op_6.qpn.low::<Q>();
        table.wdata = state_6;
        if (op_6.kind == PaceKind::Order) & over & age_6.slice::<19>(12).any() {
            table.wdata.start = (now_6 - 4096).resize::<40>() << 8;
        }
        gaps.done = valid_6 & (op_6.kind == PaceKind::Unplan);
        gaps.planned = planned_6;
        gaps.last = last_6;
        let released = valid_6 & op_6.pushes & over;
        out.s.valid = released;
        out.s.payload = op_6.qpn;
        assert!(
            !(released & !out.s.ready),
            "a queue pair that may start finds no room"
        );
        forward!(m <= out.m);

        // into the wheel
        wheel.insert = valid_6 & op_6.pushes & !over;
        wheel.turn = valid_6 & (op_6.kind == PaceKind::Turn);
        wheel.qpn = op_6.qpn;
        wheel.start = state_6.start.slice::<26>(14);
    }
}
