//! The way out: acknowledgements first, READ and atomic responses in turns.
//!
//! An acknowledgement that left the table goes before every response of its queue pair, so it is older than those offered
//! here. They are no more than packets that arrive, so they do not keep responses from leaving.
//!
//! Throughput: a packet a cycle. Latency: a cycle.
use super::types::*;
use crate::prelude::*;

/// Merge of acknowledgements, READ responses and atomic responses.
#[derive(LogicBlock, Default)]
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
    free: Signal<Local, Bit>,
    requests: Signal<Local, Bits<2>>,
}

impl Logic for Packets {
    describe!("reply_packets", "Merges acknowledgements and responses.");

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, arbiter, skid);
        self.free.next = self.skid.s.ready.val() & !self.acks.valid.val();
        self.requests.next = bits::<2>(0)
            .replace_bit(0, self.reads.valid.val())
            .replace_bit(1, self.atomics.valid.val());
        self.arbiter.request.next = self.requests.val();
        self.arbiter.take.next = self.free.val();
        self.acks.ready.next = self.skid.s.ready.val();
        self.reads.ready.next = self.free.val() & self.arbiter.grant.val().get_bit(0);
        self.atomics.ready.next = self.free.val() & self.arbiter.grant.val().get_bit(1);
        self.skid.s.valid.next = self.acks.valid.val() | self.requests.val().any();
        self.skid.s.payload.next = self.reads.payload.val();
        if self.acks.valid.val() {
            self.skid.s.payload.next = self.acks.payload.val();
        } else if self.arbiter.grant.val().get_bit(1) {
            self.skid.s.payload.next = self.atomics.payload.val();
        }
        StreamOut::<ReplyPacket>::link(&mut self.m, &mut self.skid.m);
    }
}
