//! The way out: acknowledgements first, READ and atomic responses in turns.
//!
//! An acknowledgement that left the table goes before every response of its queue pair, so it is older than those offered
//! here. They are no more than packets that arrive, so they do not keep responses from leaving.
//!
//! Throughput: a packet a cycle. Latency: a cycle.
use super::types::*;
use crate::prelude::*;

/// Merge of acknowledgements, READ responses and atomic responses.
#[derive(Block)]
pub struct Packets {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Acknowledgements.
    pub acks: StreamIn<ReplyPacket>,
    /// READ responses, and NAKs in their place.
    pub reads: StreamIn<ReplyPacket>,
    /// Atomic responses.
    pub atomics: StreamIn<ReplyPacket>,
    /// All of them.
    pub m: StreamOut<ReplyPacket>,

    arbiter: Arbiter<2>,
    skid: SkidRam<ReplyPacket>,
}

impl Logic for Packets {
    describe!("reply_packets", "Merges acknowledgements and responses.");

    #[kernel]
    fn update(&mut self) {
        let free = skid.s.ready & !acks.valid;
        let requests = bits::<2>(0)
            .replace_bit(0, reads.valid)
            .replace_bit(1, atomics.valid);
        arbiter.request = requests;
        arbiter.take = free;
        acks.ready = skid.s.ready;
        reads.ready = free & arbiter.grant.bit(0);
        atomics.ready = free & arbiter.grant.bit(1);
        skid.s.valid = acks.valid | requests.any();
        skid.s.payload = reads.payload;
        if acks.valid {
            skid.s.payload = acks.payload;
        } else if arbiter.grant.bit(1) {
            skid.s.payload = atomics.payload;
        }
        forward!(m <= skid.m);
    }
}
