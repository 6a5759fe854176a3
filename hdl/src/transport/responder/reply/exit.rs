//! Exit of the packets of replies: what the check of the rkey makes of them.
//!
//! ```text
//!  Cut, verdict ─┬─► payload to fetch, atomics, their outcomes: wait for the host alone
//!                └─► 16 packets ─► descriptor, outcome: may wait for the wire
//! ```
//!
//! | packet | rkey good | rkey bad |
//! |---|---|---|
//! | READ response | the payload to fetch, and a descriptor | NAK remote access; the queue pair fails |
//! | READ response of a duplicate | the same | the rest of the reply is dropped |
//! | atomic | it runs | it goes to the atomics too, which answer in order and end its turn ([`atomic`](super::atomic)) |
//!
//! What follows in the turn of a packet that failed is dropped. The last packet of a turn ends it: its outcome leaves
//! once the descriptor is taken, so what the queue pair sends next stays behind it. That of an atomic leaves at once.
//!
//! Throughput: a packet a cycle. Latency: 8 cycles. Assumes: at most 15 packets that have not `passed`.
use super::types::*;
use crate::bus::syndrome::{ACK, NAK_ACCESS};
use crate::bus::types::{GatherCmd, PayloadSize};
use crate::bus::valid::Valid;
use crate::prelude::*;
use ferroce_proto::wire::Opcode;

const RC_ACK: u64 = Opcode::RcAck.code() as u64;
const READ_FIRST: u64 = Opcode::RcReadResponseFirst.code() as u64;
const READ_MIDDLE: u64 = Opcode::RcReadResponseMiddle.code() as u64;
const READ_LAST: u64 = Opcode::RcReadResponseLast.code() as u64;
const READ_ONLY: u64 = Opcode::RcReadResponseOnly.code() as u64;

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
    /// The next atomic is decided in this cycle.
    pub atomic_valid: Signal<Out, Bit>,
    /// It runs; else it is denied.
    pub atomic_runs: Signal<Out, Bit>,
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
        let accesses = !p.waits & !p.atomic & p.plen.any();
        let fire = both & pieces.s.ready & outcomes.s.ready & countable;
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
        atomic_valid = fire & p.atomic & !p.waits;
        atomic_runs = !bad;

        decided.s.valid = fire;
        decided.s.payload.packet = p;
        decided.s.payload.bad = bad;
        decided.s.payload.nak = bad & !failed & !p.duplicate & !p.atomic;
        assert!(!fire | decided.s.ready, "no more packets than have room");

        let d = decided.m.payload.packet;
        let was_bad = decided.m.payload.bad;
        let was_nak = decided.m.payload.nak;
        let sends = was_nak | (!was_bad & !d.waits & !d.atomic);
        // an atomic that is decided in this cycle goes first
        let at_once = both & p.atomic;
        let reports = d.ends & !d.atomic;
        let offers = decided.m.valid & (!reports | (outcomes.s.ready & !at_once));
        let leaves = offers & (!sends | packet.ready);
        decided.m.ready = leaves;
        passed = leaves;
        ended = leaves & d.ends;

        packet.valid = offers & sends;
        copy!(packet.payload <= d; qpn, psn, msn);
        packet.payload.value = bits::<64>(0);
        packet.payload.syndrome = ACK;
        copy!(packet.payload <= d; plen, path);
        packet.payload.opcode = READ_MIDDLE;
        if d.first & d.last {
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

        outcomes.s.valid = (leaves & reports) | (fire & p.atomic & p.ends & !bad);
        let of = if at_once { p } else { d };
        let fails = was_bad & !at_once;
        outcomes.s.payload = blank;
        outcomes.s.payload.qpn = of.qpn;
        outcomes.s.payload.psn = of.psn + 1;
        copy!(outcomes.s.payload <= of; generation, duplicate, atomic, offset, waits, blocked);
        outcomes.s.payload.over = of.last | fails;
        outcomes.s.payload.failed = fails & !of.duplicate;
        // what is the same for all of them needs no register
        outcomes.m.ready = served.ready;
        served.valid = outcomes.m.valid;
        served.payload = outcomes.m.payload;
        served.payload.kind = OpKind::Served;
        served.payload.msn = bits::<24>(0);
        served.payload.syndrome = NAK_ACCESS;
        served.payload.fence = bits::<16>(0);
        served.payload.incarnation = bits::<2>(0);
    }
}
