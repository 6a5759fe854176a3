//! Reaction point: from CNPs and grants to the cycle in which a queue pair may start again.
//!
//! ```text
//!              ┌─► dcqcn ────────────┐
//!  events ─► choice ─► queue ─► swift ┤
//!  limits ───────────────────────────┴─► rate_limits ─► calendar ─► queue pairs that may start
//!                                           orders ────────┘ │
//!                                                            └─► which are paced, and their windows
//! ```
use super::calendar::Calendar;
use super::choice::Choice;
use super::dcqcn::Dcqcn;
use super::pace_types::PaceOrder;
use super::rate_limits::RateLimits;
use super::swift::Swift;
use super::swift_queue::SwiftQueue;
use super::swift_types::SwiftParams;
use super::types::*;
use crate::bus::valid::Valid;
use crate::prelude::*;

/// Reaction point of 2^Q queue pairs, with a wheel of 2^W slots.
#[derive(Block)]
pub struct ReactionPoint<const Q: usize, const W: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Parameters of DCQCN.
    pub params: Signal<In, DcqcnParams>,
    /// Parameters of Swift.
    pub swift_params: Signal<In, SwiftParams>,
    /// A microsecond passed; one cycle.
    pub tick: Signal<In, Bit>,
    /// Cnp, Sent, Reset.
    pub events: StreamIn<CongestionEvent>,
    /// Ack, Nak, Timeout.
    pub feedback: Signal<In, Valid<CongestionEvent>>,
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
    /// PSNs that it may have outstanding, with `paced_valid`; 0: any number.
    pub window: Signal<Out, Bits<16>>,
    /// A CNP found no room; one cycle.
    pub lost: Signal<Out, Bit>,
    /// Feedback of a queue pair of Swift found no room; one cycle.
    pub feedback_lost: Signal<Out, Bit>,
    /// CNPs are taken up; not while the table of alpha is made.
    pub takes: Signal<Out, Bit>,
    /// Tables are swept after reset. The first events wait until that of alpha is made, 60 cycles.
    pub ready: Signal<Out, Bit>,

    choice: Choice<Q>,
    control: Dcqcn<Q>,
    queue: SwiftQueue,
    trips: Swift<Q>,
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
        forward!(choice.s <= events);
        choice.feedback = feedback;
        forward!(control.s <= choice.dcqcn);
        queue.feedback = choice.swift;
        forward!(queue.resets <= choice.swift_resets);
        trips.params = swift_params;
        forward!(trips.s <= queue.m);
        forward!(rates.controlled <= control.m);
        forward!(rates.windows <= trips.m);
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
        window = calendar.window;
        lost = control.lost;
        feedback_lost = queue.lost;
        takes = control.ready;
        ready = control.swept & calendar.ready & choice.ready;
    }
}
