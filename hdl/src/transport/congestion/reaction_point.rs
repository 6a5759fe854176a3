//! Reaction point: from CNPs and grants to the cycle in which a queue pair may start again.
//!
//! ```text
//!  events ─► dcqcn ─┐
//!  limits ──────────┴─► rate_limits ─► calendar ─► queue pairs that may start
//!                           orders ───────┘ │
//!                                           └─► which are paced
//! ```
//!
//! [`Dcqcn`] may be replaced by another algorithm with the same streams (docs/congestion.md).
use super::calendar::Calendar;
use super::dcqcn::Dcqcn;
use super::pace_types::PaceOrder;
use super::rate_limits::RateLimits;
use super::types::*;
use crate::prelude::*;

/// Reaction point of 2^Q queue pairs, with a wheel of 2^W slots.
#[derive(Block)]
pub struct ReactionPoint<const Q: usize, const W: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Parameters of the algorithm.
    pub params: Signal<In, DcqcnParams>,
    /// A microsecond passed; one cycle.
    pub tick: Signal<In, Bit>,
    /// What happens to queue pairs.
    pub events: StreamIn<CongestionEvent>,
    /// Limits set by the host.
    pub limits: StreamIn<RateUpdate>,
    /// A paced queue pair got a grant, or wants to start, or both.
    pub order_valid: Signal<In, Bit>,
    /// See `order_valid`.
    pub order: Signal<In, PaceOrder>,
    /// Half of the orders that may wait do: the scheduler should pause.
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
    /// A CNP found no room; one cycle.
    pub lost: Signal<Out, Bit>,
    /// CNPs are taken up; not while the table of alpha is made.
    pub takes: Signal<Out, Bit>,
    /// Tables are swept after reset. The first events wait until that of alpha is made, 60 cycles.
    pub ready: Signal<Out, Bit>,

    control: Dcqcn<Q>,
    rates: RateLimits<Q>,
    calendar: Calendar<Q, W>,
}

impl<const Q: usize, const W: usize> Logic for ReactionPoint<Q, W> {
    describe!(
        "reaction_point",
        format!("q{Q}_w{W}"),
        "From CNPs and grants to the next start of each queue pair."
    );

    #[kernel]
    fn update(&mut self) {
        control.params = params;
        control.tick = tick;
        forward!(control.s <= events);
        forward!(rates.controlled <= control.m);
        forward!(rates.fixed <= limits);
        forward!(calendar.s <= rates.m);
        calendar.order_valid = order_valid;
        calendar.order = order;
        forward!(m <= calendar.m);
        crowded = calendar.crowded;
        paced_valid = calendar.paced_valid;
        paced_qpn = calendar.paced_qpn;
        paced = calendar.paced;
        gap = calendar.gap;
        span = calendar.span;
        lost = control.lost;
        takes = control.ready;
        ready = control.swept & calendar.ready;
    }
}
