//! Events that wait for Swift.
//!
//! An acknowledgement joins the last one that waits, if both are of one queue pair and of less than 8 MiB: bytes add up, the later round
//! trip counts. What finds the queue full is lost, and reported; a Reset waits. An event a cycle; in order for each queue pair.
use super::types::*;
use crate::bus::valid::Valid;
use crate::prelude::*;

/// Queue of 18 events.
#[derive(Block)]
pub struct SwiftQueue {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Ack, Nak, Timeout.
    pub feedback: Signal<In, Valid<CongestionEvent>>,
    /// Reset of a queue pair.
    pub resets: StreamIn<CongestionEvent>,
    /// Events.
    pub m: StreamOut<CongestionEvent>,
    /// An event is lost; one cycle.
    pub lost: Signal<Out, Bit>,

    waits: Reg<Bit>,
    latest: Dff<CongestionEvent>,
    queue: Fifo<CongestionEvent, 4>,
    loses: Reg<Bit>,
}

impl Logic for SwiftQueue {
    describe!("swift_queue", "Events that wait for Swift.");

    #[kernel]
    fn update(&mut self) {
        let arrives = feedback.valid | resets.valid;
        let event = if feedback.valid {
            feedback.payload
        } else {
            resets.payload
        };
        let joins = waits
            & feedback.valid
            & (feedback.payload.kind == CongestionEventKind::Ack)
            & (latest.kind == CongestionEventKind::Ack)
            & (feedback.payload.qpn == latest.qpn)
            & !latest.bytes.bit(23)
            & !feedback.payload.bytes.bit(23);
        // it goes on when another one comes, or nothing stands in front of it
        let goes = waits & ((arrives & !joins) | (!arrives & !queue.level.any()));
        let moves = goes & queue.s.ready;
        queue.s.valid = goes;
        queue.s.payload = latest;
        let takes = arrives & !joins & (!waits | moves);
        resets.ready = !feedback.valid & (!waits | moves);
        loses = feedback.valid & !joins & !takes;
        lost = loses;
        if joins {
            latest.bytes += feedback.payload.bytes;
            if feedback.payload.rtt.any() {
                latest.rtt = feedback.payload.rtt;
            }
        } else if takes {
            waits = true;
            latest = event;
        } else if moves {
            waits = false;
        }
        forward!(m <= queue.m);
    }
}
