//! Exit of the packets of replies: what the check of the rkey makes of them.
//!
//! ```text
//!  Cut, verdict ─┬─► payload to fetch: waits for the host alone
//!                └─► 16 packets ─► results of atomics ─► descriptor, outcome: may wait for the wire
//! ```
//!
//! | packet | rkey good | rkey bad |
//! |---|---|---|
//! | READ response | the payload to fetch, and a descriptor | NAK remote access; the queue pair fails |
//! | READ response of a duplicate | the same | the rest of the reply is dropped |
//!
//! An atomic ran before its turn: its result is looked up ([`results`](super::results)).
//!
//! | result | answer |
//! |---|---|
//! | kept | ATOMIC Acknowledge |
//! | of a duplicate, and not kept | none |
//! | denied | NAK remote access; the queue pair fails |
//! | its memory failed | NAK remote operational; the queue pair fails |
//!
//! One that is void sends nothing: it ends a turn whose class is closed, or a reply that its duplicate answers.
//!
//! What follows in the turn of a packet that failed is dropped. The last packet of a turn ends it: its outcome leaves
//! once the descriptor is taken, so what the queue pair sends next stays behind it.
//!
//! Throughput: a packet a cycle. Latency: 8 cycles. Assumes: at most 15 packets that have not `passed`.
use super::atomic_types::Saved;
use super::types::*;
use crate::bus::syndrome::{ACK, NAK_ACCESS, NAK_OPERATIONAL};
use crate::bus::types::{GatherCmd, PayloadSize};
use crate::bus::valid::Valid;
use crate::prelude::*;
use ferroce_proto::wire::Opcode;

const RC_ACK: u64 = Opcode::RcAck.code() as u64;
const READ_FIRST: u64 = Opcode::RcReadResponseFirst.code() as u64;
const READ_MIDDLE: u64 = Opcode::RcReadResponseMiddle.code() as u64;
const READ_LAST: u64 = Opcode::RcReadResponseLast.code() as u64;
const READ_ONLY: u64 = Opcode::RcReadResponseOnly.code() as u64;
const ATOMIC_ACK: u64 = Opcode::RcAtomicAck.code() as u64;

/// Exit of the packets.
#[derive(Block)]
pub struct Exit {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A packet arrives.
    pub valid: Signal<In, Bit>,
    /// The packet.
    pub cut: Signal<In, Cut>,
    /// The check of a packet is there.
    pub checked: Signal<In, Bit>,
    /// It passed.
    pub ok: Signal<In, Bit>,
    /// Packets.
    pub packet: StreamOut<ReplyPacket>,
    /// Payload to fetch.
    pub gather: StreamOut<GatherCmd>,
    /// Outcomes of turns.
    pub served: StreamOut<Op>,
    /// The result of an atomic is asked for ([`Results`](super::results::Results)).
    pub asks: Signal<Out, Bit>,
    /// Its packet.
    pub look: Signal<Out, CutPacket>,
    /// It is found.
    pub found: Signal<In, Bit>,
    /// It is not kept.
    pub missing: Signal<In, Bit>,
    /// It.
    pub result: Signal<In, Saved>,
    /// It is taken.
    pub takes: Signal<Out, Bit>,
    /// What happens to payload can be counted.
    pub countable: Signal<In, Bit>,
    /// Payload is asked for.
    pub asked: Signal<Out, Bit>,
    /// Payload that is not asked for, as the packet failed.
    pub dropped: Signal<Out, Valid<PayloadSize>>,
    /// A packet passed.
    pub passed: Signal<Out, Bit>,
    /// The last of its turn did.
    pub ended: Signal<Out, Bit>,

    waiting: Fifo<Cut, 4>,
    verdicts: Fifo<Bits<1>, 4>,
    decided: Fifo<DecidedCut, 4>,
    pieces: SkidRam<GatherCmd>,
    outcomes: SkidRam<Op>,
    failed: Reg<Bit>,
    blank: Zero<Op>,
}

impl Logic for Exit {
    describe!(
        "reply_exit",
        "Sends the packets of replies whose rkey is good."
    );

    #[kernel]
    fn update(&mut self) {
        waiting.s.valid = valid;
        waiting.s.payload = cut;
        verdicts.s.valid = checked;
        verdicts.s.payload = bits::<1>(0).replace_bit(0, ok);

        // nothing here depends on the wire: memory is accessed soon after its check
        let cut_packet = waiting.m.payload;
        let p = cut_packet.packet;
        let both = waiting.m.valid & verdicts.m.valid;
        let bad = failed | !verdicts.m.payload.bit(0);
        let accesses = p.plen.any();
        let fire = both & pieces.s.ready & countable;
        waiting.m.ready = fire;
        verdicts.m.ready = fire;
        if fire {
            failed = bad & !p.ends;
        }
        pieces.s.valid = fire & accesses & !bad;
        pieces.s.payload.addr = cut_packet.addr;
        pieces.s.payload.len = p.plen;
        pieces.s.payload.first = true;
        pieces.s.payload.last = true;
        pieces.s.payload.lane = cut_packet.lane;
        forward!(gather <= pieces.m);
        asked = fire & accesses & !bad;
        dropped.valid = fire & accesses & bad;
        dropped.payload.lane = cut_packet.lane;
        dropped.payload.plen = p.plen;

        decided.s.valid = fire;
        decided.s.payload.packet = p;
        decided.s.payload.bad = bad;
        decided.s.payload.nak = bad & !failed & !p.duplicate;
        assert!(!fire | decided.s.ready, "no more packets than have room");

        let d = decided.m.payload.packet;
        let was_bad = decided.m.payload.bad;
        let was_nak = decided.m.payload.nak;
        asks = decided.m.valid & d.atomic;
        look = d;
        let spoiled = d.atomic & !d.duplicate & (result.denied | result.failed);
        let sends = was_nak | (!was_bad & !d.void & !(d.atomic & missing));
        let offers = decided.m.valid & (!d.ends | outcomes.s.ready) & (!d.atomic | found);
        let leaves = offers & (!sends | packet.ready);
        takes = leaves;
        decided.m.ready = leaves;
        passed = leaves;
        ended = leaves & d.ends;

        packet.valid = offers & sends;
        copy!(packet.payload <= d; qpn, psn, msn);
        packet.payload.value = if d.atomic { result.original } else { 0 };
        packet.payload.syndrome = ACK;
        copy!(packet.payload <= d; plen, path);
        packet.payload.opcode = READ_MIDDLE;
        if d.atomic {
            packet.payload.opcode = ATOMIC_ACK;
        } else if d.first & d.last {
            packet.payload.opcode = READ_ONLY;
        } else if d.first {
            packet.payload.opcode = READ_FIRST;
        } else if d.last {
            packet.payload.opcode = READ_LAST;
        }
        if was_nak {
            packet.payload.opcode = RC_ACK;
            packet.payload.syndrome = NAK_ACCESS;
            packet.payload.plen = bits::<13>(0);
        }
        let of_memory = d.atomic & result.failed;
        if spoiled {
            packet.payload.opcode = RC_ACK;
            packet.payload.syndrome = if of_memory {
                NAK_OPERATIONAL
            } else {
                NAK_ACCESS
            };
            // it was not executed
            packet.payload.msn = d.msn - 1;
        }

        outcomes.s.valid = leaves & d.ends;
        outcomes.s.payload = blank;
        outcomes.s.payload.qpn = d.qpn;
        outcomes.s.payload.psn = d.psn + 1;
        copy!(outcomes.s.payload <= d; generation, duplicate, offset);
        outcomes.s.payload.over = d.last | was_bad;
        outcomes.s.payload.failed = (was_bad | spoiled) & !d.duplicate;
        // one bit of the syndrome: the others are the same
        outcomes.s.payload.syndrome = bits::<8>(0).replace_bit(0, of_memory);
        // what is the same for all of them needs no register
        outcomes.m.ready = served.ready;
        served.valid = outcomes.m.valid;
        served.payload = outcomes.m.payload;
        served.payload.kind = OpKind::Served;
        served.payload.msn = bits::<24>(0);
        served.payload.syndrome = outcomes.m.payload.syndrome | NAK_ACCESS;
        served.payload.fence = bits::<16>(0);
        served.payload.incarnation = bits::<2>(0);
    }
}
