//! The way out: acknowledgements first.
//!
//! An acknowledgement that left the table goes before every response of its queue pair, so it is older than those offered
//! here. They are no more than packets that arrive, so they do not keep responses from leaving.
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
}

impl Logic for Packets {
    describe!("reply_packets", "Merges acknowledgements and responses.");

    #[kernel]
    fn update(&mut self) {
        acks.ready = skid.s.ready;
        responses.ready = skid.s.ready & !acks.valid;
        skid.s.valid = acks.valid | responses.valid;
        skid.s.payload = if acks.valid {
            acks.payload
        } else {
            responses.payload
        };
        forward!(m <= skid.m);
    }
}
