//! Exit of the packets of replies: what the check of the rkey makes of them.
//!
//! | packet | rkey good | rkey bad |
//! |---|---|---|
//! | READ response | descriptor, and the payload to fetch | NAK remote access; the queue pair fails |
//! | READ response of a duplicate | the same | the rest of the reply is dropped |
//! | atomic | it runs | it goes to the atomics too, which answer in order and end its turn ([`atomic`](super::atomic)) |
//!
//! What follows in the turn of a packet that failed is dropped. The last packet of a turn ends it: its outcome leaves
//! once the descriptor is taken, so what the queue pair sends next stays behind it.
//!
//! Throughput: a packet a cycle. Latency: 7 cycles.
use super::types::*;
use crate::bus::path::lane_of;
use crate::bus::syndrome::{ACK, NAK_ACCESS};
use crate::bus::types::GatherCmd;
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
    /// A packet passed.
    pub passed: Signal<Out, Bit>,
    /// The last of its turn did.
    pub ended: Signal<Out, Bit>,

    waiting: Fifo<Cut, 4>,
    verdicts: Fifo<Bits<1>, 4>,
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

        let p = waiting.m.payload;
        let both = waiting.m.valid & verdicts.m.valid;
        let bad = failed | !verdicts.m.payload.bit(0);
        let nak = bad & !failed & !p.duplicate & !p.atomic;
        let sends = nak | (!bad & !p.waits & !p.atomic);
        let offers = both & pieces.s.ready & outcomes.s.ready;
        let fire = offers & (!sends | packet.ready);
        waiting.m.ready = fire;
        verdicts.m.ready = fire;
        passed = fire;
        ended = fire & p.ends;
        if fire {
            failed = bad & !p.ends;
        }

        packet.valid = offers & sends;
        copy!(packet.payload <= p; qpn, psn, msn);
        packet.payload.value = bits::<64>(0);
        packet.payload.syndrome = ACK;
        copy!(packet.payload <= p; plen, path);
        packet.payload.opcode = READ_MIDDLE;
        if p.first & p.last {
            packet.payload.opcode = READ_ONLY;
        } else if p.first {
            packet.payload.opcode = READ_FIRST;
        } else if p.last {
            packet.payload.opcode = READ_LAST;
        }
        if nak {
            packet.payload.opcode = RC_ACK;
            packet.payload.syndrome = NAK_ACCESS;
            packet.payload.plen = bits::<13>(0);
        }

        let has_aeth = p.first | p.last;
        pieces.s.valid = fire & sends & !nak & p.plen.any();
        pieces.s.payload.addr = p.addr;
        pieces.s.payload.len = p.plen;
        pieces.s.payload.first = true;
        pieces.s.payload.last = true;
        let lane = lane_of(p.path);
        pieces.s.payload.lane = if has_aeth { lane + 4 } else { lane };
        forward!(gather <= pieces.m);

        atomic_valid = fire & p.atomic & !p.waits;
        atomic_runs = !bad;

        outcomes.s.valid = fire & p.ends & !(bad & p.atomic);
        outcomes.s.payload = blank;
        outcomes.s.payload.qpn = p.qpn;
        outcomes.s.payload.psn = p.psn + 1;
        copy!(outcomes.s.payload <= p; generation, duplicate, atomic, offset);
        outcomes.s.payload.over = p.last | bad;
        outcomes.s.payload.waits = p.waits;
        outcomes.s.payload.blocked = p.blocked;
        outcomes.s.payload.failed = bad & !p.duplicate;
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
