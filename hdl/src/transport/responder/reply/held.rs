//! Queue pairs whose turn it is; those of a class that is closed wait in [`HeldQueues`].
//!
//! What leaves there is as one that was listed for an acknowledgement alone: if it has more to answer it is listed again, since it may
//! have a rate ([`pace`](super::pace)). It waits until its class is open to what it would have sent, a response or an acknowledgement.
//!
//! Latency: a cycle.
use super::pace::DueReply;
use crate::egress::CLASSES;
use crate::egress::held_queues::HeldQueues;
use crate::prelude::*;

/// Turns of 2^Q queue pairs.
#[derive(Block)]
pub struct HeldReplies<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Queue pairs whose turn may start.
    pub s: StreamIn<DueReply>,
    /// A turn is refused: its class is closed.
    pub holds: Signal<In, Bit>,
    /// Its queue pair.
    pub holds_qpn: Signal<In, Bits<16>>,
    /// Its class.
    pub holds_class: Signal<In, Bits<2>>,
    /// It would have sent an acknowledgement.
    pub holds_ack: Signal<In, Bit>,
    /// Classes of which no turn is to start.
    pub closed: Signal<In, Bits<CLASSES>>,
    /// Classes of which no acknowledgement is to leave.
    pub acks_wait: Signal<In, Bits<CLASSES>>,
    /// Queue pairs whose turn it is.
    pub m: StreamOut<DueReply>,
    waiting: HeldQueues<Q>,
    next: Skid<DueReply>,
}

impl<const Q: usize> HeldReplies<Q> {
    /// Cycles from one that leaves to the next, less one.
    const APART: u64 = 16;
}

impl<const Q: usize> Logic for HeldReplies<Q> {
    describe!(
        "reply_held",
        format!("q{Q}"),
        "Turns of replies, which wait while their class is closed."
    );

    #[kernel]
    fn update(&mut self) {
        waiting.push = holds;
        waiting.qpn = holds_qpn;
        waiting.packet_class = holds_class;
        waiting.short = holds_ack;
        waiting.closed = closed;
        waiting.closed_short = acks_wait;
        waiting.apart = Self::APART;
        waiting.apart_long = Self::APART;
        waiting.m.ready = next.s.ready;
        s.ready = next.s.ready & !waiting.m.valid;
        next.s.valid = waiting.m.valid | s.valid;
        next.s.payload = s.payload;
        if waiting.m.valid {
            next.s.payload.qpn = waiting.m.payload;
            next.s.payload.alone = true;
        }
        forward!(m <= next.m);
    }
}
