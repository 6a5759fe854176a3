//! What is under way from the headers to the wire: departures of requests, and packets that no queue holds yet.
//!
//! ```text
//!  started ─► FIFO ─┬─ queued ─► departure ─► class_egress ─► departed ─► FIFO ─┐
//!                   └─ returned ───────────────────────────────────────► FIFO ─┴─► left
//! ```
//!
//! A request has left when the wire has its last beat, or when the loopback has taken it. Until then no timer counts, nothing
//! acknowledges it, and no datagram is complete. Requests keep their order from the assembler to the queues, so what is known of
//! each waits here and not beside its beats.
//!
//! Departures leave in turns. Where one waits its source stops between frames: `hold` for the data queues, `hold_own` for the
//! loopback. `left` is taken at once; `room` says that some more may come.
//!
//! `activity` counts the packets from the assemblers to the loopback, which lets them out in order; those in front, two of each
//! lane, are overtaken by few (`AHEAD`).
//!
//! Latency from `departed` to `left`: 2 cycles. A departure a cycle.
//!
//! Assumes: no more than 64 requests between `started` and the loopback; at most 16 leave the queues behind `hold`.
use crate::bus::types::{Activity, Departure};
use crate::bus::valid::Valid;
use crate::cell::count::one_less;
use crate::prelude::*;

/// Packets that leave the loopback, at most, until those have that stand in front of the merge of the lanes: two of each lane, as
/// many of the other, and a CNP beside each.
const AHEAD: u64 = 16;
/// log2 of the departures of the queues that wait for room, at most.
const LOG_DEPARTURES: usize = 5;
/// As many.
pub const DEPARTURES: u64 = 1 << LOG_DEPARTURES;
/// Departures of the queues, of the loopback, from which on no more are begun.
const MANY: u64 = 8;
const MANY_OWN: u64 = 4;

/// The block.
#[derive(Clone, Debug, Block)]
pub struct Passage {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A frame of a request is begun in the assembler; one cycle.
    pub started_valid: Signal<In, Bit>,
    /// Its departure.
    pub started: Signal<In, Departure>,
    /// Packets stand between their headers and `enters`.
    pub assembling: Signal<In, Bit>,
    /// A frame passes the merge of the lanes; one cycle.
    pub enters: Signal<In, Bit>,
    /// A frame of the transport has left the loopback; one cycle.
    pub passes: Signal<In, Bit>,
    /// A request did, back to the port; one cycle.
    pub returned: Signal<In, Bit>,
    /// A request did, to its queue; one cycle.
    pub queued: Signal<In, Bit>,
    /// Its departure.
    pub departure: Signal<Out, Departure>,
    /// The wire has taken a request.
    pub departed: Signal<In, Valid<Departure>>,
    /// The data queues are to begin no frame.
    pub hold: Signal<Out, Bit>,
    /// The loopback is to begin none to the port.
    pub hold_own: Signal<Out, Bit>,
    /// Whoever takes `left` has room.
    pub room: Signal<In, Bit>,
    /// A request has left; one cycle.
    pub left_valid: Signal<Out, Bit>,
    /// Which.
    pub left: Signal<Out, Departure>,
    /// Packets between their headers and the queues.
    pub activity: Signal<Out, Activity>,
    path: Fifo<Departure, 6>,
    own: Fifo<Departure, 3>,
    wire: Fifo<Departure, LOG_DEPARTURES>,
    many: Reg<Bit>,
    many_own: Reg<Bit>,
    own_first: Reg<Bit>,
    leaves: Reg<Bit>,
    leaving: Dff<Departure>,
    packets: Reg<Bits<6>>,
}

impl Logic for Passage {
    describe!(
        "passage",
        "Departures of requests, and packets between their headers and the queues."
    );

    #[kernel]
    fn update(&mut self) {
        path.s.valid = started_valid;
        path.s.payload = started;
        path.m.ready = returned | queued;
        departure = path.m.payload;
        own.s.valid = returned;
        own.s.payload = path.m.payload;
        wire.s.valid = departed.valid;
        wire.s.payload = departed.payload;
        assert!(
            !started_valid | path.s.ready,
            "more requests than the way to the queues holds"
        );
        assert!(
            !(returned | queued) | path.m.valid,
            "a request leaves that was not begun"
        );
        assert!(
            (!returned | own.s.ready) & (!departed.valid | wire.s.ready),
            "a departure is lost"
        );
        many = wire.level >= MANY;
        many_own = own.level >= MANY_OWN;
        hold = many;
        hold_own = many_own;

        let takes_own = own.m.valid & (own_first | !wire.m.valid);
        own.m.ready = room & takes_own;
        wire.m.ready = room & !takes_own;
        leaving = if takes_own {
            own.m.payload
        } else {
            wire.m.payload
        };
        leaves = room & (own.m.valid | wire.m.valid);
        own_first = !takes_own;
        left_valid = leaves;
        left = leaving;

        if enters & !passes {
            packets = packets + 1;
        } else if !enters & passes {
            packets = one_less(packets);
        }
        activity.busy = assembling | packets.any();
        activity.moved = passes;
        activity.level = packets.resize::<16>() + AHEAD;
    }
}
