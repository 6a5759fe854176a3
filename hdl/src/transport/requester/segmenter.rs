//! Segmenter: turns granted messages into packets.
//!
//! Every checked WQE asks `sq_state` with a Start event, several ahead; grants come back in order. A granted part of a
//! message becomes one [`TxDesc`] a packet and one or two [`GatherCmd`] (a piece per gather entry the packet touches), a
//! piece a cycle; a packet without payload takes one cycle. The three stages between grant and first packet overlap
//! with the packets of the message before. A flushed WQE becomes a completion.
//!
//! ```text
//!  CheckedWqe ─► Start ─► FIFO ┐
//!                grant ─► FIFO ┴► P1 byte offset ─► P2 which entry ─► P3 address ─► E packets
//! ```
use super::event::{CheckedWqe, SqEvent, SqEventKind, StartGrant};
use crate::bus::types::{Activity, CqToken, GatherCmd, TxDesc};
use crate::prelude::*;

/// The segmenter; the same for every width of the data path.
#[derive(LogicBlock, Default)]
pub struct Segmenter {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Checked WQEs.
    pub s: StreamIn<CheckedWqe>,
    /// Start events.
    pub start: StreamOut<SqEvent>,
    /// A grant arrives.
    pub grant_valid: Signal<In, Bit>,
    /// The grant.
    pub grant: Signal<In, StartGrant>,
    /// Packets.
    pub desc: StreamOut<TxDesc>,
    /// Pieces of payload.
    pub gather: StreamOut<GatherCmd>,
    /// Completions of flushed WQEs.
    pub cq: StreamOut<CqToken>,
    /// A packet leaves that was sent before.
    pub retransmission: Signal<Out, Bit>,
    /// WQEs that are not sent as far as they were granted.
    pub activity: Signal<Out, Activity>,

    ask: Skid<SqEvent>,
    started: Fifo<CheckedWqe, 3>,
    grants: Fifo<StartGrant, 4>,
    flush: Skid<CqToken>,
    descs: Skid<TxDesc>,
    pieces: Skid<GatherCmd>,

    no_event: Zero<SqEvent>,
    no_completion: Zero<CqToken>,
    w: Signal<Local, CheckedWqe>,
    g: Signal<Local, StartGrant>,
    both: Signal<Local, Bit>,
    runs: Signal<Local, Bit>,
    flushed: Signal<Local, Bit>,
    accept: Signal<Local, Bit>,

    valid_1: Reg<Bit>,
    wqe_1: Dff<CheckedWqe>,
    grant_1: Dff<StartGrant>,
    offset_1: Dff<Bits<32>>,
    go_1: Signal<Local, Bit>,
    valid_2: Reg<Bit>,
    wqe_2: Dff<CheckedWqe>,
    grant_2: Dff<StartGrant>,
    offset_2: Dff<Bits<32>>,
    beyond_2: Dff<Bits<33>>,
    left_2: Dff<Bits<32>>,
    go_2: Signal<Local, Bit>,
    valid_3: Reg<Bit>,
    wqe_3: Dff<CheckedWqe>,
    grant_3: Dff<StartGrant>,
    left_3: Dff<Bits<32>>,
    addr_3: Dff<Bits<64>>,
    entry_left_3: Dff<Bits<32>>,
    second_3: Dff<Bit>,
    plen_3: Dff<Bits<13>>,
    go_3: Signal<Local, Bit>,
    base_2: Signal<Local, Bits<64>>,
    add_2: Signal<Local, Bits<32>>,
    mtu_2: Signal<Local, Bits<32>>,

    // stage E: the part of the message being sent
    busy: Reg<Bit>,
    wqe: Dff<CheckedWqe>,
    final_part: Dff<Bit>,
    count: Dff<Bits<8>>,
    again: Dff<Bits<8>>,
    retransmits: Reg<Bit>,
    psn: Dff<Bits<24>>,
    first: Dff<Bit>,
    left: Dff<Bits<32>>,
    plen: Dff<Bits<13>>,
    want: Dff<Bits<13>>,
    at_start: Reg<Bit>,
    addr: Dff<Bits<64>>,
    entry_left: Dff<Bits<32>>,
    second: Dff<Bit>,
    mtu: Signal<Local, Bits<32>>,
    one_piece: Signal<Local, Bit>,
    piece: Signal<Local, Bits<13>>,
    step: Signal<Local, Bit>,
    packet_end: Signal<Local, Bit>,
    part_end: Signal<Local, Bit>,
    rest: Signal<Local, Bits<32>>,
    only_or_last: Signal<Local, Bit>,
    is_write: Signal<Local, Bit>,
    has_imm: Signal<Local, Bit>,
    position: Signal<Local, Bits<8>>,
    ext: Signal<Local, Bits<6>>,
}

impl Logic for Segmenter {
    describe!(
        "segmenter",
        "Turns granted messages into packet descriptors and payload pieces."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, ask, started, grants, flush, descs, pieces);
        dff_setup!(
            self, clock, valid_1, wqe_1, grant_1, offset_1, valid_2, wqe_2, grant_2, offset_2,
            beyond_2, left_2
        );
        dff_setup!(
            self,
            clock,
            valid_3,
            wqe_3,
            grant_3,
            left_3,
            addr_3,
            entry_left_3,
            second_3,
            plen_3
        );
        dff_setup!(
            self,
            clock,
            busy,
            wqe,
            final_part,
            count,
            again,
            retransmits,
            psn,
            first,
            left,
            plen,
            want,
            at_start,
            addr,
            entry_left
        );
        dff_setup!(self, clock, second);

        // the packet being cut
        self.mtu.next = bits::<32>(128) << self.wqe.q.val().mtu;
        self.one_piece.next = self.entry_left.q.val() >= bit_cast::<32, 13>(self.want.q.val());
        self.piece.next = self.entry_left.q.val().get_bits::<13>(0);
        if self.one_piece.val() {
            self.piece.next = self.want.q.val();
        }
        self.step.next = self.busy.q.val() & self.descs.s.ready.val() & self.pieces.s.ready.val();
        self.packet_end.next = self.step.val() & self.one_piece.val();
        self.part_end.next = self.packet_end.val() & (self.count.q.val() == 1);
        self.only_or_last.next = self.final_part.q.val() & (self.count.q.val() == 1);
        self.rest.next = self.left.q.val() - bit_cast::<32, 13>(self.plen.q.val());

        // ask
        self.ask.s.valid.next = self.s.valid.val() & self.started.s.ready.val();
        self.ask.s.payload.next = self.no_event.val();
        self.ask.s.payload.next.kind = SqEventKind::Start;
        self.ask.s.payload.next.qpn = self.s.payload.val().qpn;
        self.ask.s.payload.next.index = self.s.payload.val().index;
        self.ask.s.payload.next.packets = self.s.payload.val().packets;
        self.ask.s.payload.next.status = self.s.payload.val().status;
        self.ask.s.payload.next.epoch = self.s.payload.val().epoch;
        self.ask.s.payload.next.slots = self.s.payload.val().slots;
        self.ask.s.payload.next.cqe_opcode = self.s.payload.val().cqe_opcode;
        self.ask.s.payload.next.signaled = self.s.payload.val().signaled;
        self.started.s.valid.next = self.s.valid.val() & self.ask.s.ready.val();
        self.started.s.payload.next = self.s.payload.val();
        self.s.ready.next = self.started.s.ready.val() & self.ask.s.ready.val();
        StreamOut::<SqEvent>::link(&mut self.start, &mut self.ask.m);
        self.grants.s.valid.next = self.grant_valid.val();
        self.grants.s.payload.next = self.grant.val();

        // a WQE and its grant
        self.w.next = self.started.m.payload.val();
        self.g.next = self.grants.m.payload.val();
        self.both.next = self.started.m.valid.val() & self.grants.m.valid.val();
        self.runs.next = (self.g.val().action == 1) & self.g.val().count.any();
        self.flushed.next = self.g.val().action == 2;
        self.go_3.next = self.valid_3.q.val() & (!self.busy.q.val() | self.part_end.val());
        self.go_2.next = self.valid_2.q.val() & (!self.valid_3.q.val() | self.go_3.val());
        self.go_1.next = self.valid_1.q.val() & (!self.valid_2.q.val() | self.go_2.val());
        self.accept.next = self.both.val()
            & ((!self.runs.val() & !self.flushed.val())
                | (self.flushed.val() & self.flush.s.ready.val())
                | (self.runs.val() & (!self.valid_1.q.val() | self.go_1.val())));
        self.started.m.ready.next = self.accept.val();
        self.grants.m.ready.next = self.accept.val();
        self.flush.s.valid.next = self.both.val() & self.flushed.val();
        self.flush.s.payload.next = self.no_completion.val();
        self.flush.s.payload.next.cqn = self.w.val().cqn;
        self.flush.s.payload.next.qpn = self.w.val().qpn;
        self.flush.s.payload.next.opcode = bit_cast::<8, 3>(self.w.val().cqe_opcode);
        self.flush.s.payload.next.wqe_index = self.w.val().index;
        self.flush.s.payload.next.status = bits::<8>(5);
        StreamOut::<CqToken>::link(&mut self.cq, &mut self.flush.m);

        self.activity.next.busy = self.s.valid.val()
            | self.started.m.valid.val()
            | self.valid_1.q.val()
            | self.valid_2.q.val()
            | self.valid_3.q.val()
            | self.busy.q.val();
        self.activity.next.moved = self.accept.val();

        // P1: byte offset of the part
        if self.go_1.val() {
            self.valid_1.d.next = false;
        }
        if self.accept.val() & self.runs.val() {
            self.valid_1.d.next = true;
            self.wqe_1.d.next = self.w.val();
            self.grant_1.d.next = self.g.val();
            self.offset_1.d.next =
                (bit_cast::<32, 24>(self.g.val().offset) << 7) << self.w.val().mtu;
        }

        // P2: beyond the first entry?
        if self.go_2.val() {
            self.valid_2.d.next = false;
        }
        if self.go_1.val() {
            self.valid_2.d.next = true;
            self.wqe_2.d.next = self.wqe_1.q.val();
            self.grant_2.d.next = self.grant_1.q.val();
            self.offset_2.d.next = self.offset_1.q.val();
            self.beyond_2.d.next = bit_cast::<33, 32>(self.offset_1.q.val())
                - bit_cast::<33, 32>(self.wqe_1.q.val().len_0);
            self.left_2.d.next = self.wqe_1.q.val().length - self.offset_1.q.val();
        }

        // P3: address
        self.base_2.next = self.wqe_2.q.val().addr_1;
        self.add_2.next = self.beyond_2.q.val().get_bits::<32>(0);
        if self.beyond_2.q.val().get_bit(32) {
            self.base_2.next = self.wqe_2.q.val().addr_0;
            self.add_2.next = self.offset_2.q.val();
        }
        self.mtu_2.next = bits::<32>(128) << self.wqe_2.q.val().mtu;
        if self.go_3.val() {
            self.valid_3.d.next = false;
        }
        if self.go_2.val() {
            self.valid_3.d.next = true;
            self.wqe_3.d.next = self.wqe_2.q.val();
            self.grant_3.d.next = self.grant_2.q.val();
            self.left_3.d.next = self.left_2.q.val();
            self.addr_3.d.next = self.base_2.val() + bit_cast::<64, 32>(self.add_2.val());
            self.second_3.d.next = !self.beyond_2.q.val().get_bit(32);
            self.entry_left_3.d.next = self.left_2.q.val();
            if self.beyond_2.q.val().get_bit(32) {
                self.entry_left_3.d.next = bits::<32>(0) - self.beyond_2.q.val().get_bits::<32>(0);
            }
            self.plen_3.d.next = self.mtu_2.val().get_bits::<13>(0);
            if self.left_2.q.val() < self.mtu_2.val() {
                self.plen_3.d.next = self.left_2.q.val().get_bits::<13>(0);
            }
        }

        // E: a piece a cycle
        if self.step.val() {
            self.at_start.d.next = false;
            self.want.d.next = self.want.q.val() - self.piece.val();
            self.addr.d.next = self.addr.q.val() + bit_cast::<64, 13>(self.piece.val());
            self.entry_left.d.next = self.entry_left.q.val() - bit_cast::<32, 13>(self.piece.val());
            if !self.second.q.val()
                & (self.entry_left.q.val() <= bit_cast::<32, 13>(self.want.q.val()))
            {
                self.second.d.next = true;
                self.addr.d.next = self.wqe.q.val().addr_1;
                // the second entry holds all that is left
                self.entry_left.d.next = self.left.q.val();
            }
        }
        if self.packet_end.val() {
            self.at_start.d.next = true;
            self.first.d.next = false;
            self.psn.d.next = self.psn.q.val() + 1;
            self.count.d.next = self.count.q.val() - 1;
            if self.again.q.val().any() {
                self.again.d.next = self.again.q.val() - 1;
            }
            self.left.d.next = self.rest.val();
            self.plen.d.next = self.mtu.val().get_bits::<13>(0);
            self.want.d.next = self.mtu.val().get_bits::<13>(0);
            if self.rest.val() < self.mtu.val() {
                self.plen.d.next = self.rest.val().get_bits::<13>(0);
                self.want.d.next = self.rest.val().get_bits::<13>(0);
            }
        }
        if self.part_end.val() {
            self.busy.d.next = false;
        }
        if self.go_3.val() {
            self.busy.d.next = true;
            self.at_start.d.next = true;
            self.wqe.d.next = self.wqe_3.q.val();
            self.final_part.d.next = self.grant_3.q.val().final_part;
            self.count.d.next = self.grant_3.q.val().count;
            self.again.d.next = self.grant_3.q.val().again;
            self.psn.d.next = self.grant_3.q.val().psn;
            self.first.d.next = !self.grant_3.q.val().offset.any();
            self.left.d.next = self.left_3.q.val();
            self.plen.d.next = self.plen_3.q.val();
            self.want.d.next = self.plen_3.q.val();
            self.addr.d.next = self.addr_3.q.val();
            self.entry_left.d.next = self.entry_left_3.q.val();
            self.second.d.next = self.second_3.q.val();
        }

        self.retransmits.d.next = self.packet_end.val() & self.again.q.val().any();
        self.retransmission.next = self.retransmits.q.val();

        // opcode: SEND 0 FIRST 1 MIDDLE 2 LAST 3 LAST_IMM 4 ONLY 5 ONLY_IMM; WRITE the same from 6
        self.is_write.next = self.wqe.q.val().opcode.get_bits::<3>(0) >= 3;
        self.has_imm.next = (self.wqe.q.val().opcode == 1) | (self.wqe.q.val().opcode == 4);
        self.position.next = bits::<8>(1);
        self.ext.next = bits::<6>(0);
        if self.first.q.val() & self.only_or_last.val() {
            self.position.next = bits::<8>(4);
        } else if self.first.q.val() {
            self.position.next = bits::<8>(0);
        } else if self.only_or_last.val() {
            self.position.next = bits::<8>(2);
        }
        if self.first.q.val() & self.is_write.val() {
            self.ext.next = bits::<6>(16);
            if self.only_or_last.val() & self.has_imm.val() {
                self.ext.next = bits::<6>(20);
            }
        } else if self.only_or_last.val() & self.has_imm.val() {
            self.ext.next = bits::<6>(4);
        }
        self.descs.s.valid.next = self.packet_end.val();
        self.descs.s.payload.next.qpn = self.wqe.q.val().qpn;
        self.descs.s.payload.next.opcode = self.position.val();
        if self.is_write.val() {
            self.descs.s.payload.next.opcode = self.position.val() + 6;
        }
        if self.only_or_last.val() & self.has_imm.val() {
            self.descs.s.payload.next.opcode = self.position.val() + 1;
            if self.is_write.val() {
                self.descs.s.payload.next.opcode = self.position.val() + 7;
            }
        }
        self.descs.s.payload.next.psn = self.psn.q.val();
        // of a WRITE only with immediate data: nothing else completes at the receiver
        self.descs.s.payload.next.solicited = self.only_or_last.val()
            & self.wqe.q.val().solicited
            & (!self.is_write.val() | self.has_imm.val());
        // the last packet of every part asks, so that the window of a long message opens in time
        self.descs.s.payload.next.ack_req = self.count.q.val() == 1;
        self.descs.s.payload.next.plen = self.plen.q.val();
        self.descs.s.payload.next.va = self.wqe.q.val().remote_addr;
        self.descs.s.payload.next.rkey = self.wqe.q.val().rkey;
        self.descs.s.payload.next.dma_len = self.wqe.q.val().length;
        self.descs.s.payload.next.imm = self.wqe.q.val().imm;
        self.descs.s.payload.next.syndrome = bits::<8>(0);
        self.descs.s.payload.next.msn = bits::<24>(0);
        self.descs.s.payload.next.swap_add = bits::<64>(0);
        self.descs.s.payload.next.compare = bits::<64>(0);
        self.descs.s.payload.next.notify = false;
        self.pieces.s.valid.next = self.step.val() & self.piece.val().any();
        self.pieces.s.payload.next.addr = self.addr.q.val();
        self.pieces.s.payload.next.len = self.piece.val();
        self.pieces.s.payload.next.first = self.at_start.q.val();
        self.pieces.s.payload.next.last = self.one_piece.val();
        self.pieces.s.payload.next.lane = self.wqe.q.val().lane + self.ext.val();
        StreamOut::<TxDesc>::link(&mut self.desc, &mut self.descs.m);
        StreamOut::<GatherCmd>::link(&mut self.gather, &mut self.pieces.m);
    }
}
