//! Exit of the packets of replies: what the check of the rkey makes of them.
//!
//! | packet | rkey good | rkey bad |
//! |---|---|---|
//! | READ response | descriptor, and the payload to fetch | NAK remote access; the queue pair fails |
//! | READ response of a duplicate | the same | the rest of the reply is dropped |
//! | atomic | it runs | NAK remote access; the queue pair fails |
//!
//! What follows in the turn of a packet that failed is dropped. The last packet of a turn ends it: its outcome leaves
//! once the descriptor is taken, so what the queue pair sends next stays behind it.
//!
//! Throughput: a packet a cycle. Latency: 7 cycles.
use super::types::*;
use crate::bus::types::GatherCmd;
use crate::prelude::*;
use ferroce_proto::wire::{NakCode, Opcode, Syndrome};

const RC_ACK: u64 = Opcode::RcAck.code() as u64;
const READ_FIRST: u64 = Opcode::RcReadResponseFirst.code() as u64;
const READ_MIDDLE: u64 = Opcode::RcReadResponseMiddle.code() as u64;
const READ_LAST: u64 = Opcode::RcReadResponseLast.code() as u64;
const READ_ONLY: u64 = Opcode::RcReadResponseOnly.code() as u64;
const ACK: u64 = Syndrome::ACK.bits() as u64;
const NAK_ACCESS: u64 = Syndrome::Nak(NakCode::RemoteAccess).bits() as u64;

/// Exit of the packets.
#[derive(LogicBlock, Default)]
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
    /// It runs; else it is dropped.
    pub atomic_runs: Signal<Out, Bit>,
    /// A packet passed.
    pub passed: Signal<Out, Bit>,

    waiting: Fifo<Cut, 4>,
    verdicts: Fifo<Bits<1>, 4>,
    pieces: SkidRam<GatherCmd>,
    outcomes: SkidRam<Op>,
    failed: Reg<Bit>,
    blank: Zero<Op>,
    p: Signal<Local, Cut>,
    both: Signal<Local, Bit>,
    bad: Signal<Local, Bit>,
    nak: Signal<Local, Bit>,
    sends: Signal<Local, Bit>,
    offers: Signal<Local, Bit>,
    fire: Signal<Local, Bit>,
    has_aeth: Signal<Local, Bit>,
}

impl Logic for Exit {
    describe!(
        "reply_exit",
        "Sends the packets of replies whose rkey is good.";
        RC_ACK, READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY, ACK, NAK_ACCESS
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, waiting, verdicts, pieces, outcomes);
        dff_setup!(self, clock, failed);
        self.waiting.s.valid.next = self.valid.val();
        self.waiting.s.payload.next = self.cut.val();
        self.verdicts.s.valid.next = self.checked.val();
        self.verdicts.s.payload.next = bits::<1>(0).replace_bit(0, self.ok.val());

        self.p.next = self.waiting.m.payload.val();
        self.both.next = self.waiting.m.valid.val() & self.verdicts.m.valid.val();
        self.bad.next = self.failed.q.val() | !self.verdicts.m.payload.val().get_bit(0);
        self.nak.next = self.bad.val() & !self.failed.q.val() & !self.p.val().duplicate;
        self.sends.next =
            self.nak.val() | (!self.bad.val() & !self.p.val().waits & !self.p.val().atomic);
        self.offers.next =
            self.both.val() & self.pieces.s.ready.val() & self.outcomes.s.ready.val();
        self.fire.next = self.offers.val() & (!self.sends.val() | self.packet.ready.val());
        self.waiting.m.ready.next = self.fire.val();
        self.verdicts.m.ready.next = self.fire.val();
        self.passed.next = self.fire.val();
        if self.fire.val() {
            self.failed.d.next = self.bad.val() & !self.p.val().ends;
        }

        self.packet.valid.next = self.offers.val() & self.sends.val();
        self.packet.payload.next.qpn = self.p.val().qpn;
        self.packet.payload.next.psn = self.p.val().psn;
        self.packet.payload.next.msn = self.p.val().msn;
        self.packet.payload.next.value = bits::<64>(0);
        self.packet.payload.next.syndrome = ACK.into();
        self.packet.payload.next.plen = self.p.val().plen;
        self.packet.payload.next.opcode = READ_MIDDLE.into();
        if self.p.val().first & self.p.val().last {
            self.packet.payload.next.opcode = READ_ONLY.into();
        } else if self.p.val().first {
            self.packet.payload.next.opcode = READ_FIRST.into();
        } else if self.p.val().last {
            self.packet.payload.next.opcode = READ_LAST.into();
        }
        if self.nak.val() {
            self.packet.payload.next.opcode = RC_ACK.into();
            self.packet.payload.next.syndrome = NAK_ACCESS.into();
            self.packet.payload.next.plen = bits::<13>(0);
        }

        self.has_aeth.next = self.p.val().first | self.p.val().last;
        self.pieces.s.valid.next =
            self.fire.val() & self.sends.val() & !self.nak.val() & self.p.val().plen.any();
        self.pieces.s.payload.next.addr = self.p.val().addr;
        self.pieces.s.payload.next.len = self.p.val().plen;
        self.pieces.s.payload.next.first = true;
        self.pieces.s.payload.next.last = true;
        self.pieces.s.payload.next.lane = self.p.val().lane;
        if self.has_aeth.val() {
            self.pieces.s.payload.next.lane = self.p.val().lane + 4;
        }
        StreamOut::<GatherCmd>::link(&mut self.gather, &mut self.pieces.m);

        self.atomic_valid.next = self.fire.val() & self.p.val().atomic & !self.p.val().waits;
        self.atomic_runs.next = !self.bad.val();

        self.outcomes.s.valid.next = self.fire.val() & self.p.val().ends;
        self.outcomes.s.payload.next = self.blank.val();
        self.outcomes.s.payload.next.qpn = self.p.val().qpn;
        self.outcomes.s.payload.next.psn = self.p.val().psn + 1;
        self.outcomes.s.payload.next.generation = self.p.val().generation;
        self.outcomes.s.payload.next.duplicate = self.p.val().duplicate;
        self.outcomes.s.payload.next.atomic = self.p.val().atomic;
        self.outcomes.s.payload.next.offset = self.p.val().offset;
        self.outcomes.s.payload.next.over = self.p.val().last | self.bad.val();
        self.outcomes.s.payload.next.waits = self.p.val().waits;
        self.outcomes.s.payload.next.blocked = self.p.val().blocked;
        self.outcomes.s.payload.next.failed = self.bad.val() & !self.p.val().duplicate;
        // what is the same for all of them needs no register
        self.outcomes.m.ready.next = self.served.ready.val();
        self.served.valid.next = self.outcomes.m.valid.val();
        self.served.payload.next = self.outcomes.m.payload.val();
        self.served.payload.next.kind = OpKind::Served;
        self.served.payload.next.msn = bits::<24>(0);
        self.served.payload.next.syndrome = NAK_ACCESS.into();
        self.served.payload.next.fence = bits::<16>(0);
        self.served.payload.next.incarnation = bits::<2>(0);
    }
}
