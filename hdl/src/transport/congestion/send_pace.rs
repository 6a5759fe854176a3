//! The pace of the send queues: what happens to them becomes events of congestion control and orders to the calendar.
//!
//! ```text
//!  CNPs ─────────────────────────► queue ─┐
//!  grants, responses' grants ─► two queues ┼─► events ─► reaction_point ─► queue pairs that may start, rates
//!  commands ─────────────────────► one ────┴─► limits ────────┘ ▲
//!  orders, round trips ─────────────────────────────────────────┘
//! ```
//!
//! A CNP in 16 cycles passes, as DCQCN takes no more. One that comes while another of its queue pair stands last in the queue joins it;
//! one that finds a queue full is lost, and reported. Bytes that find theirs full do not count. A command waits until the one before it
//! is done (`busy`).
use super::pace_types::*;
use super::reaction_point::ReactionPoint;
use super::types::*;
use crate::bus::time::CLOCK_MHZ;
use crate::bus::valid::Valid;
use crate::prelude::*;

/// Cycles of a microsecond, less one.
const MICROSECOND: u64 = CLOCK_MHZ as u64 - 1;

/// Pace of 2^Q send queues.
#[derive(Block)]
pub struct SendPace<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What the host says.
    pub setup: Signal<In, CongestionSetup>,
    /// A queue pair received a CNP of its peer.
    pub cnp: Signal<In, Valid<Bits<16>>>,
    /// Ack, Nak, Timeout of a queue pair.
    pub feedback: Signal<In, Valid<CongestionEvent>>,
    /// Packets were granted to a queue pair.
    pub granted: Signal<In, Valid<PaceGrant>>,
    /// Responses of a queue pair were granted.
    pub responses: Signal<In, Valid<PaceGrant>>,
    /// A paced queue pair got a grant, or wants to start, or both.
    pub order: Signal<In, Valid<PaceOrder>>,
    /// A send queue begins anew.
    pub renewal: Signal<In, Valid<PaceRenewal>>,
    /// The renewal before is under way.
    pub busy: Signal<Out, Bit>,
    /// Orders wait: events of send queues should pause.
    pub crowded: Signal<Out, Bit>,
    /// Queue pairs that may start.
    pub m: StreamOut<Bits<16>>,
    /// A queue pair is paced from now on, or no more; one cycle.
    pub paced_valid: Signal<Out, Bit>,
    /// Which.
    pub paced_qpn: Signal<Out, Bits<16>>,
    /// How.
    pub pace_class: Signal<Out, PaceClass>,
    /// The rate of a queue pair changes, for its responses.
    pub rate: Signal<Out, Valid<PaceRate>>,
    /// A CNP is lost; one cycle.
    pub lost: Signal<Out, Bit>,
    /// Feedback of a queue pair of Swift is lost; one cycle.
    pub feedback_lost: Signal<Out, Bit>,
    /// Tables are swept after reset.
    pub ready: Signal<Out, Bit>,

    cnps: Fifo<Bits<16>, 4>,
    /// The CNP that came last.
    latest: Dff<Bits<16>>,
    /// Cycles until the next one passes.
    gate: Reg<Bits<4>>,
    grants: Fifo<PaceGrant, 4>,
    response_grants: Fifo<PaceGrant, 4>,
    point: ReactionPoint<Q, 10>,
    cycle: Reg<Bits<8>>,
    tick: Reg<Bit>,
    current: Dff<PaceRenewal>,
    /// What of it is to be done.
    resets: Reg<Bit>,
    limits: Reg<Bit>,
    /// The latest event was a CNP or a grant: a renewal goes first.
    yields: Reg<Bit>,
    overflows: Reg<Bit>,
    no_event: Zero<CongestionEvent>,
    no_update: Zero<RateUpdate>,
}

impl<const Q: usize> Logic for SendPace<Q> {
    describe!(
        "send_pace",
        format!("q{Q}"),
        "The pace of the send queues, by limits and by congestion control."
    );

    #[kernel]
    fn update(&mut self) {
        tick = cycle == MICROSECOND;
        cycle = cycle + 1;
        if tick {
            cycle = bits::<8>(1);
        }
        point.params = setup.params;
        point.swift_params = setup.swift;
        point.feedback = feedback;
        point.tick = tick;

        let joins = cnps.m.valid & (cnp.payload == latest);
        let counts = cnp.valid & setup.enable & !joins;
        cnps.s.valid = counts;
        cnps.s.payload = cnp.payload;
        overflows = counts & !cnps.s.ready;
        if counts & cnps.s.ready {
            latest = cnp.payload;
        }
        if gate.any() {
            gate = gate - 1;
        }
        let has_cnp = cnps.m.valid & !gate.any() & point.takes;
        grants.s.valid = granted.valid;
        grants.s.payload = granted.payload;
        response_grants.s.valid = responses.valid;
        response_grants.s.payload = responses.payload;

        // events: CNPs before grants, and a renewal behind either
        point.events.payload = no_event;
        cnps.m.ready = false;
        grants.m.ready = false;
        response_grants.m.ready = false;
        let has_grant = grants.m.valid | response_grants.m.valid;
        let grant = if grants.m.valid {
            grants.m.payload
        } else {
            response_grants.m.payload
        };
        if resets & (yields | (!has_cnp & !has_grant)) {
            point.events.payload.kind = CongestionEventKind::Reset;
            point.events.payload.qpn = current.qpn;
            point.events.payload.packet = current.packet;
            if point.events.ready {
                resets = false;
                yields = false;
            }
        } else if has_cnp {
            point.events.payload.kind = CongestionEventKind::Cnp;
            point.events.payload.qpn = cnps.m.payload;
            cnps.m.ready = point.events.ready;
            if point.events.ready {
                gate = bits::<4>(15);
            }
            yields = true;
        } else if has_grant {
            point.events.payload.kind = CongestionEventKind::Sent;
            point.events.payload.qpn = grant.qpn;
            point.events.payload.bytes = grant.bytes.resize::<24>();
            grants.m.ready = point.events.ready;
            response_grants.m.ready = point.events.ready & !grants.m.valid;
            yields = true;
        }
        point.events.valid = resets | has_cnp | has_grant;

        point.limits.valid = limits;
        point.limits.payload = no_update;
        point.limits.payload.qpn = current.qpn;
        point.limits.payload.limited = current.rate.any();
        point.limits.payload.rate = current.rate;
        if point.limits.ready {
            limits = false;
        }
        if renewal.valid {
            current = renewal.payload;
            resets = renewal.payload.resets;
            limits = renewal.payload.limits;
        }
        busy = resets | limits;
        assert!(!(renewal.valid & busy), "a renewal finds no room");

        point.order_valid = order.valid;
        point.order = order.payload;
        crowded = point.crowded;
        forward!(m <= point.m);
        paced_valid = point.paced_valid;
        paced_qpn = point.paced_qpn;
        pace_class.paced = point.paced;
        pace_class.span = point.span;
        pace_class.window = point.window;
        rate.valid = point.paced_valid;
        rate.payload.qpn = point.paced_qpn;
        rate.payload.gap = point.gap;
        rate.payload.span = point.span;
        lost = point.lost | overflows;
        feedback_lost = point.feedback_lost;
        ready = point.ready;
    }
}
