//! The way out: an acknowledgement first, then in turns.
//!
//! An acknowledgement that left the table is older than every response of its queue pair that is offered here. So a response that goes
//! before it has acknowledged the same, and the peer ignores it; a NAK is the last of its queue pair.
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
    /// Responses, and NAKs in their place.
    pub responses: StreamIn<ReplyPacket>,
    /// All of them.
    pub m: StreamOut<ReplyPacket>,

    skid: SkidRam<ReplyPacket>,
    /// An acknowledgement went last.
    ack_last: Reg<Bit>,
}

impl Logic for Packets {
    describe!("reply_packets", "Merges acknowledgements and responses.");

    #[kernel]
    fn update(&mut self) {
        let takes_ack = acks.valid & !(ack_last & responses.valid);
        acks.ready = skid.s.ready & takes_ack;
        responses.ready = skid.s.ready & !takes_ack;
        skid.s.valid = acks.valid | responses.valid;
        skid.s.payload = if takes_ack {
            acks.payload
        } else {
            responses.payload
        };
        if skid.s.ready {
            ack_last = takes_ack;
        }
        forward!(m <= skid.m);
    }
}
