//! What of each queue pair has left the card.
//!
//! A packet that is granted waits: for its payload, for those in front of it, for a wire that stands. Nothing acknowledges
//! it meanwhile, and no timer counts against it. So every departure is remembered, by queue pair: how far the latest
//! packet went, and the furthest one, as what is sent again begins further back. With it the tick of the latest packet.
//!
//! A departure is of an incarnation. What another one sent says nothing: the first departure of this one replaces it. Incarnations
//! are counted modulo 4, and an entry stays while its queue pair sends nothing. So a reset does not begin the incarnation of the entry
//! (`next_incarnation`), nor, by the drain of a RESET, one of which packets are still under way.
//!
//! Latency: a look-up shows in 2 cycles every departure of 4 cycles before it. Throughput: a departure and a look-up a cycle.
use super::event::Departed;
use crate::bus::types::Departure;
use crate::cell::delay::Delay;
use crate::prelude::*;

/// Departures of 2^Q queue pairs.
#[derive(Block)]
pub struct Departures<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A request leaves; one cycle.
    pub left_valid: Signal<In, Bit>,
    /// Which.
    pub left: Signal<In, Departure>,
    /// Ticks since reset.
    pub tick: Signal<In, Bits<36>>,
    /// Queue pair that is looked up.
    pub qpn: Signal<In, Bits<16>>,
    /// Two cycles later: what of it has left.
    pub departed: Signal<Out, Departed>,
    /// Ticks since the latest packet left, less one; negative in the tick in which it left.
    pub since: Signal<Out, Bits<36>>,
    /// The table is swept after reset.
    pub ready: Signal<Out, Bit>,

    table: Rmw<Departed, Q>,
    leaving: Delay<Departure, 2>,
    /// The same once more, to look up.
    copy: SweptRam<Departed, Q>,
    /// The tick behind that of the latest packet.
    times: SweptRam<Bits<36>, Q>,
    found: Dff<Departed>,
    since_q: Dff<Bits<36>>,
}

impl<const Q: usize> Logic for Departures<Q> {
    describe!(
        "departures",
        format!("q{Q}"),
        "What of each queue pair has left the card."
    );

    #[kernel]
    fn update(&mut self) {
        table.valid = left_valid;
        table.addr = left.qpn.low::<Q>();
        leaving.d = left;

        let seen = table.current;
        let now = leaving.q;
        let same = seen.incarnation == now.incarnation;
        let ahead = now.next_psn - seen.furthest;
        let mut mark = seen;
        mark.incarnation = now.incarnation;
        mark.round = now.round;
        mark.latest = now.next_psn;
        if !same | !ahead.bit(23) {
            mark.furthest = now.next_psn;
        }
        table.write = true;
        table.result = mark;

        copy.we = table.x_valid;
        copy.waddr = table.x_addr;
        copy.wdata = mark;
        times.we = table.x_valid;
        times.waddr = table.x_addr;
        times.wdata = tick + 1;
        times.re = true;
        times.raddr = qpn.low::<Q>();
        since_q = tick - times.rdata;
        since = since_q;
        copy.re = true;
        copy.raddr = qpn.low::<Q>();
        found = copy.rdata;
        departed = found;
        ready = table.ready & copy.ready & times.ready;
    }
}
