//! The entry of DCQCN: events that mean something, in a queue.
//!
//! Most events are grants to queue pairs that no CNP ever came for, and mean nothing: of each queue pair a bit is kept, which its first
//! CNP sets. An event a cycle. Bytes that find half of the queue full are lost; a CNP that finds all of it full is lost, and reported. A
//! Reset waits.
use super::types::*;
use crate::prelude::*;

/// Entry for 2^Q queue pairs.
#[derive(Block)]
pub struct CongestionFront<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Events.
    pub s: StreamIn<CongestionEvent>,
    /// After reset: the bit of `clear_qpn` is cleared.
    pub clear: Signal<In, Bit>,
    /// See `clear`.
    pub clear_qpn: Signal<In, Bits<Q>>,
    /// Those that mean something.
    pub m: StreamOut<CongestionEvent>,
    /// A CNP is lost; one cycle.
    pub lost: Signal<Out, Bit>,

    active: Ram<Bit, Q>,
    queue: Fifo<CongestionEvent, 6>,
    valid_1: Reg<Bit>,
    event_1: Dff<CongestionEvent>,
    /// The bit that was written in the cycle before.
    wrote: Reg<Bit>,
    wrote_qpn: Dff<Bits<16>>,
    wrote_bit: Dff<Bit>,
    loses: Reg<Bit>,
}

impl<const Q: usize> Logic for CongestionFront<Q> {
    describe!(
        "congestion_front",
        format!("q{Q}"),
        "Queue of the events that mean something to DCQCN."
    );

    #[kernel]
    fn update(&mut self) {
        let kind = event_1.kind;
        let cnp = kind == CongestionEventKind::Cnp;
        let resets = kind == CongestionEventKind::Reset;
        let waits = valid_1 & resets & !queue.s.ready;
        s.ready = !waits;
        active.re = !waits;
        active.raddr = s.payload.qpn.low::<Q>();
        if !waits {
            valid_1 = s.valid;
            event_1 = s.payload;
        }

        let active_1 = if wrote & (wrote_qpn == event_1.qpn) {
            wrote_bit
        } else {
            active.rdata
        };
        // half of the queue is for CNPs: a peer's READs make as many `Sent` as it likes
        let room = !queue.level.slice::<2>(5).any();
        let counts = cnp | resets | ((kind == CongestionEventKind::Sent) & active_1 & room);
        queue.s.valid = valid_1 & counts;
        queue.s.payload = event_1;
        let writes = valid_1 & (cnp | resets) & queue.s.ready;
        wrote = writes;
        wrote_qpn = event_1.qpn;
        wrote_bit = cnp;
        active.we = writes | clear;
        active.waddr = event_1.qpn.low::<Q>();
        active.wdata = cnp & !clear;
        if clear {
            active.waddr = clear_qpn;
        }
        loses = valid_1 & cnp & !queue.s.ready;
        lost = loses;
        forward!(m <= queue.m);
    }
}
