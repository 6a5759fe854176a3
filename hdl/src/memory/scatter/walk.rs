//! From placements and WQEs to pieces in host memory.
//!
//! A placement of kind 1 is a list of one entry, one of kind 2 the scatter list of its receive WQE, one of kind 3 the list
//! of the send WQE of a READ or atomic, any other an empty one. The list is walked an entry a cycle: entries before the packet's offset are skipped, of the others the packet
//! takes what it needs, and the pieces end with the one that holds its last byte. Entries that hold nothing of the
//! packet leave as pieces without bytes.
//!
//! ```text
//!  place, slots ─► entry ─► skip to the offset ─► take the payload ─► m
//!                                                                     tail (place without its list)
//! ```
//!
//! Latency: 3 cycles; of a placement without a list one, as it comes past the walk when no entry is under way. Throughput: an entry a cycle; a placement of kind 2 or 3 takes the cycles of its list, and one for
//! every slot behind it. `tail.ready` is waited for.
use ferroce_proto::abi::wqe::{MAX_SGE, RECV_SGES_FIRST, RecvWqe, SGE_BYTES, SendWqe, Sge};

use super::types::{Entry, Tail, Target};
use crate::bus::types::{Place, RqSlot, image};
use crate::prelude::*;

// The layout that the kernel spells out.
const _: () = assert!(RecvWqe::BYTES == SGE_BYTES && SGE_BYTES == 16 && RECV_SGES_FIRST == 3);
const _: () = assert!(SendWqe::BYTES == 2 * SGE_BYTES);
const LONGEST: u64 = MAX_SGE as u64;
const _: () = assert!(Sge::BYTES == SGE_BYTES);

/// Walker of scatter lists.
#[derive(LogicBlock)]
pub struct Walk {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Placements.
    pub place: StreamIn<Place>,
    /// WQEs of the placements of kinds 2 and 3.
    pub slots: StreamIn<RqSlot>,
    /// The placements again, without what their list needs.
    pub tail: StreamOut<Tail>,
    /// Pieces, at least one a placement.
    pub m: StreamOut<Target>,
    /// The next entry is the first of its list.
    fresh: Reg<Bit>,
    /// Slots behind the end of a list are dropped.
    drain: Reg<Bit>,
    unit: Dff<Bits<2>>,
    left: Dff<Bits<8>>,
    entry: Dff<Entry>,
    entry_valid: Reg<Bit>,
    skip: Dff<Bits<32>>,
    skipped: Dff<Entry>,
    skipped_valid: Reg<Bit>,
    rest: Dff<Bits<13>>,
    closed: Dff<Bit>,
    target: Dff<Target>,
    target_valid: Reg<Bit>,
    go: Signal<Local, Bit>,
    list: Signal<Local, Bit>,
    slot: Signal<Local, Bits<512>>,
    at: Signal<Local, Bits<2>>,
    count: Signal<Local, Bits<8>>,
    sge: Signal<Local, Bits<128>>,
    /// More entries than a list may have, or than stand in the slots of a receive WQE.
    long: Signal<Local, Bit>,
    ended: Signal<Local, Bit>,
    plain: Signal<Local, Bit>,
    listed: Signal<Local, Bit>,
    accept: Signal<Local, Bit>,
    /// No entry is before `target`.
    clear: Signal<Local, Bit>,
    to_skip: Signal<Local, Bits<32>>,
    needed: Signal<Local, Bits<13>>,
    enough: Signal<Local, Bit>,
    is_closed: Signal<Local, Bit>,
}

impl Default for Walk {
    fn default() -> Self {
        assert_eq!(image::Sge::BITS, 8 * SGE_BYTES);
        Self {
            clock: ClkRst::default(),
            place: StreamIn::default(),
            slots: StreamIn::default(),
            tail: StreamOut::default(),
            m: StreamOut::default(),
            fresh: Reg::new(true),
            drain: Reg::default(),
            unit: Dff::default(),
            left: Dff::default(),
            entry: Dff::default(),
            entry_valid: Reg::default(),
            skip: Dff::default(),
            skipped: Dff::default(),
            skipped_valid: Reg::default(),
            rest: Dff::default(),
            closed: Dff::default(),
            target: Dff::default(),
            target_valid: Reg::default(),
            go: Signal::default(),
            list: Signal::default(),
            slot: Signal::default(),
            at: Signal::default(),
            count: Signal::default(),
            sge: Signal::default(),
            long: Signal::default(),
            ended: Signal::default(),
            plain: Signal::default(),
            listed: Signal::default(),
            accept: Signal::default(),
            clear: Signal::default(),
            to_skip: Signal::default(),
            needed: Signal::default(),
            enough: Signal::default(),
            is_closed: Signal::default(),
        }
    }
}

impl Logic for Walk {
    describe!("scatter_walk", "Walks scatter lists."; LONGEST);

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            fresh,
            drain,
            unit,
            left,
            entry,
            entry_valid,
            skip,
            skipped,
            skipped_valid
        );
        dff_setup!(self, clock, rest, closed, target, target_valid);
        self.go.next = !self.target_valid.q.val() | self.m.ready.val();

        // Entry: unit `at` of 16 bytes; units 0 of a receive WQE, 0 and 1 of a send WQE are its head.
        self.slot.next = self.slots.payload.val().slot;
        self.at.next = self.unit.q.val();
        self.count.next = self.left.q.val();
        if self.fresh.q.val() {
            self.at.next = bits::<2>(1);
            self.count.next = self.slot.val().get_bits::<8>(0);
            if self.place.payload.val().kind == 3 {
                self.at.next = bits::<2>(2);
                self.count.next = self.slot.val().get_bits::<8>(16);
            }
        }
        match self.at.val().index() {
            1 => {
                self.sge.next = self.slot.val().get_bits::<128>(128);
            }
            2 => {
                self.sge.next = self.slot.val().get_bits::<128>(256);
            }
            3 => {
                self.sge.next = self.slot.val().get_bits::<128>(384);
            }
            _ => {
                self.sge.next = self.slot.val().get_bits::<128>(0);
            }
        }
        self.long.next = (self.count.val() > LONGEST)
            | (self.count.val().get_bits::<6>(2)
                >= bit_cast::<6, 4>(self.slots.payload.val().slots));
        self.list.next = self.place.payload.val().kind.get_bit(1);
        self.ended.next =
            (self.count.val() <= 1) | ((self.at.val() == 3) & self.slots.payload.val().last);
        self.accept.next =
            self.go.val() & self.place.valid.val() & self.tail.ready.val() & !self.drain.q.val();
        self.plain.next = self.accept.val() & !self.list.val();
        self.clear.next = !self.entry_valid.q.val() & !self.skipped_valid.q.val();
        self.listed.next = self.accept.val() & self.list.val() & self.slots.valid.val();
        self.place.ready.next = self.plain.val() | (self.listed.val() & self.ended.val());
        self.slots.ready.next =
            self.drain.q.val() | (self.listed.val() & ((self.at.val() == 3) | self.ended.val()));
        if self.drain.q.val() {
            self.drain.d.next = !(self.slots.valid.val() & self.slots.payload.val().last);
        }
        if self.listed.val() {
            self.fresh.d.next = self.ended.val();
            self.unit.d.next = self.at.val() + 1;
            self.left.d.next = self.count.val() - 1;
            self.drain.d.next = self.ended.val() & !self.slots.payload.val().last;
        }
        if self.go.val() {
            self.entry_valid.d.next = (self.plain.val() & !self.clear.val()) | self.listed.val();
            self.entry.d.next.addr = self.place.payload.val().addr;
            self.entry.d.next.len = bit_cast::<32, 13>(self.place.payload.val().plen);
            self.entry.d.next.key = self.place.payload.val().key;
            self.entry.d.next.offset = bits::<32>(0);
            self.entry.d.next.first = true;
            self.entry.d.next.last = true;
            self.entry.d.next.broken = false;
            self.entry.d.next.plen = bits::<13>(0);
            if self.place.payload.val().kind == 1 {
                self.entry.d.next.plen = self.place.payload.val().plen;
            }
            self.entry.d.next.pd = self.place.payload.val().pd;
            self.entry.d.next.qpn = self.place.payload.val().qpn;
            self.entry.d.next.kind = self.place.payload.val().kind;
            self.entry.d.next.lane = self.place.payload.val().lane;
            self.entry.d.next.beats = self.place.payload.val().beats;
            self.entry.d.next.unreliable = self.place.payload.val().unreliable;
            self.entry.d.next.opens = !self.place.payload.val().offset.any();
            self.entry.d.next.complete = self.place.payload.val().complete;
            self.entry.d.next.reset = self.place.payload.val().reset;
            self.entry.d.next.answer = self.place.payload.val().answer;
            self.entry.d.next.closed = self.place.payload.val().closed;
            self.entry.d.next.inv = self.place.payload.val().with_inv
                & self.place.payload.val().complete
                & (self.place.payload.val().kind == 2);
            self.entry.d.next.inv_key = self.place.payload.val().imm;
            if self.list.val() {
                self.entry.d.next.addr = self.sge.val().get_bits::<64>(0);
                self.entry.d.next.len = self.sge.val().get_bits::<32>(64);
                if self.count.val() == 0 {
                    self.entry.d.next.len = bits::<32>(0);
                }
                self.entry.d.next.key = self.sge.val().get_bits::<32>(96);
                self.entry.d.next.offset = self.place.payload.val().offset;
                self.entry.d.next.first = self.fresh.q.val();
                self.entry.d.next.last = self.ended.val();
                // A list that is too long is so from its first entry on, which may hold all of the packet.
                self.entry.d.next.broken = self.slots.payload.val().error
                    | ((self.count.val() > 1) & self.ended.val())
                    | (self.fresh.q.val() & self.long.val());
                self.entry.d.next.plen = self.place.payload.val().plen;
            }
        }

        self.tail.valid.next = self.place.ready.val();
        self.tail.payload.next.qpn = self.place.payload.val().qpn;
        self.tail.payload.next.kind = self.place.payload.val().kind;
        self.tail.payload.next.incarnation = self.place.payload.val().incarnation;
        self.tail.payload.next.end = self.place.payload.val().end;
        self.tail.payload.next.ack = self.place.payload.val().ack;
        self.tail.payload.next.unreliable = self.place.payload.val().unreliable;
        self.tail.payload.next.psn = self.place.payload.val().psn;
        self.tail.payload.next.msn = self.place.payload.val().msn;
        self.tail.payload.next.syndrome = self.place.payload.val().syndrome;
        self.tail.payload.next.complete = self.place.payload.val().complete;
        self.tail.payload.next.cqn = self.place.payload.val().cqn;
        self.tail.payload.next.cqe_opcode = self.place.payload.val().cqe_opcode;
        self.tail.payload.next.status = self.place.payload.val().status;
        self.tail.payload.next.wqe_index = self.place.payload.val().wqe_index;
        self.tail.payload.next.byte_len = self.place.payload.val().byte_len;
        self.tail.payload.next.imm = self.place.payload.val().imm;
        self.tail.payload.next.with_imm = self.place.payload.val().with_imm;
        self.tail.payload.next.with_inv = self.place.payload.val().with_inv;
        self.tail.payload.next.solicited = self.place.payload.val().solicited;
        self.tail.payload.next.src_qpn = self.place.payload.val().src_qpn;
        self.tail.payload.next.pkey = self.place.payload.val().pkey;
        self.tail.payload.next.grh = self.place.payload.val().grh;
        self.tail.payload.next.reset = self.place.payload.val().reset;
        self.tail.payload.next.halt = self.place.payload.val().halt;
        self.tail.payload.next.reply = self.place.payload.val().reply;
        self.tail.payload.next.answer = self.place.payload.val().answer;
        self.tail.payload.next.implied = self.place.payload.val().implied;
        self.tail.payload.next.data = self.place.payload.val().data;
        self.tail.payload.next.closed = self.place.payload.val().closed;

        // Skip: what is left of the offset passes over whole entries.
        self.to_skip.next = self.skip.q.val();
        if self.entry.q.val().first {
            self.to_skip.next = self.entry.q.val().offset;
        }
        if self.go.val() {
            self.skipped_valid.d.next = self.entry_valid.q.val();
            self.skipped.d.next = self.entry.q.val();
            self.skipped.d.next.offset = self.to_skip.val();
            if self.entry.q.val().len > self.to_skip.val() {
                self.skipped.d.next.len = self.entry.q.val().len - self.to_skip.val();
            } else {
                self.skipped.d.next.len = bits::<32>(0);
            }
            if self.entry_valid.q.val() {
                self.skip.d.next = bits::<32>(0);
                if self.entry.q.val().len <= self.to_skip.val() {
                    self.skip.d.next = self.to_skip.val() - self.entry.q.val().len;
                }
            }
        }

        // Take: until the packet has its bytes, or the list has no more.
        self.needed.next = self.rest.q.val();
        self.is_closed.next = self.closed.q.val();
        if self.skipped.q.val().first {
            self.needed.next = self.skipped.q.val().plen;
            self.is_closed.next = false;
        }
        self.enough.next = self.skipped.q.val().len >= bit_cast::<32, 13>(self.needed.val());
        if self.go.val() {
            self.target_valid.d.next = (self.skipped_valid.q.val() & !self.is_closed.val())
                | (self.plain.val() & self.clear.val());
            self.target.d.next.addr =
                self.skipped.q.val().addr + bit_cast::<64, 32>(self.skipped.q.val().offset);
            self.target.d.next.len = bit_cast::<13, 32>(self.skipped.q.val().len);
            if self.enough.val() {
                self.target.d.next.len = self.needed.val();
            }
            self.target.d.next.key = self.skipped.q.val().key;
            self.target.d.next.pd = self.skipped.q.val().pd;
            self.target.d.next.last = self.enough.val() | self.skipped.q.val().last;
            self.target.d.next.short = !self.enough.val() & self.skipped.q.val().last;
            self.target.d.next.broken = self.skipped.q.val().broken;
            self.target.d.next.qpn = self.skipped.q.val().qpn;
            self.target.d.next.kind = self.skipped.q.val().kind;
            self.target.d.next.lane = self.skipped.q.val().lane;
            self.target.d.next.beats = self.skipped.q.val().beats;
            self.target.d.next.unreliable = self.skipped.q.val().unreliable;
            self.target.d.next.opens = self.skipped.q.val().opens;
            self.target.d.next.complete = self.skipped.q.val().complete;
            self.target.d.next.reset = self.skipped.q.val().reset;
            self.target.d.next.answer = self.skipped.q.val().answer;
            self.target.d.next.closed = self.skipped.q.val().closed;
            self.target.d.next.inv = self.skipped.q.val().inv;
            self.target.d.next.inv_key = self.skipped.q.val().inv_key;
            if self.skipped_valid.q.val() {
                self.rest.d.next = self.needed.val() - bit_cast::<13, 32>(self.skipped.q.val().len);
                self.closed.d.next =
                    self.is_closed.val() | self.enough.val() | self.skipped.q.val().last;
            } else {
                // past the walk: one entry, all of it
                self.target.d.next.addr = self.place.payload.val().addr;
                self.target.d.next.len = bits::<13>(0);
                if self.place.payload.val().kind == 1 {
                    self.target.d.next.len = self.place.payload.val().plen;
                }
                self.target.d.next.key = self.place.payload.val().key;
                self.target.d.next.pd = self.place.payload.val().pd;
                self.target.d.next.last = true;
                self.target.d.next.short = false;
                self.target.d.next.broken = false;
                self.target.d.next.qpn = self.place.payload.val().qpn;
                self.target.d.next.kind = self.place.payload.val().kind;
                self.target.d.next.lane = self.place.payload.val().lane;
                self.target.d.next.beats = self.place.payload.val().beats;
                self.target.d.next.unreliable = self.place.payload.val().unreliable;
                self.target.d.next.opens = !self.place.payload.val().offset.any();
                self.target.d.next.complete = self.place.payload.val().complete;
                self.target.d.next.reset = self.place.payload.val().reset;
                self.target.d.next.answer = self.place.payload.val().answer;
                self.target.d.next.closed = self.place.payload.val().closed;
                self.target.d.next.inv = false;
                self.target.d.next.inv_key = self.place.payload.val().imm;
            }
        }
        self.m.valid.next = self.target_valid.q.val();
        self.m.payload.next = self.target.q.val();
    }
}
