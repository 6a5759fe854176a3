//! The way out: before a response the acknowledgements that wait when it is offered, and none that come later.
//!
//! Of its own queue pair an acknowledgement that left the table before the response is older, and may not come between its packets.
//! Later ones are of other queue pairs; there may be more of them than the way out takes.
//!
//! Throughput: a packet a cycle. Latency: a cycle.
use super::types::*;
use crate::prelude::*;

/// Merge of acknowledgements and responses.
#[derive(Block)]
pub struct Packets {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Acknowledgements.
    pub acks: StreamIn<ReplyPacket>,
    /// How many there are.
    pub level: Signal<In, Bits<16>>,
    /// Responses, and NAKs in their place.
    pub responses: StreamIn<ReplyPacket>,
    /// All of them.
    pub m: StreamOut<ReplyPacket>,

    skid: SkidRam<ReplyPacket>,
    /// A response was offered, and waits for so many acknowledgements.
    offered: Reg<Bit>,
    before: Reg<Bits<5>>,
}

impl Logic for Packets {
    describe!("reply_packets", "Merges acknowledgements and responses.");

    #[kernel]
    fn update(&mut self) {
        let goes = offered & !before.any();
        let takes_ack = acks.valid & !goes;
        let ack_leaves = takes_ack & skid.s.ready;
        acks.ready = ack_leaves;
        responses.ready = skid.s.ready & !takes_ack;
        skid.s.valid = acks.valid | responses.valid;
        skid.s.payload = if takes_ack {
            acks.payload
        } else {
            responses.payload
        };
        let waits = responses.valid & (takes_ack | !skid.s.ready);
        let there = if offered { before } else { level.low::<5>() };
        offered = waits;
        before = if ack_leaves { there - 1 } else { there };
        forward!(m <= skid.m);
    }
}
