//! From placements and WQEs to pieces in host memory.
//!
//! A placement of kind 1 is a list of one entry, one of kind 2 the scatter list of its receive WQE. One of kind 3 is
//! the list of the send WQE of a READ or atomic, any other an empty one. The list is walked an entry a cycle: entries
//! before the packet's offset are skipped, of the others the packet takes what it needs, and the pieces end with the
//! one that holds its last byte. Entries that hold nothing of the packet leave as pieces without bytes.
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
#[derive(Block)]
#[block(no_default)]
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
    sge: Signal<Local, Bits<128>>,
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
            sge: Signal::default(),
        }
    }
}

impl Logic for Walk {
    describe!("scatter_walk", "Walks scatter lists.");

    #[kernel]
    fn update(&mut self) {
        let go = !target_valid | m.ready;

        // Entry: unit `at` of 16 bytes; units 0 of a receive WQE, 0 and 1 of a send WQE are its head.
        let slot = slots.payload.slot;
        let mut at = unit;
        let mut count = left;
        if fresh {
            at = bits::<2>(1);
            count = slot.low::<8>();
            if place.payload.kind == 3 {
                at = bits::<2>(2);
                count = slot.slice::<8>(16);
            }
        }
        match at {
            1 => {
                sge = slot.slice::<128>(128);
            }
            2 => {
                sge = slot.slice::<128>(256);
            }
            3 => {
                sge = slot.slice::<128>(384);
            }
            _ => {
                sge = slot.low::<128>();
            }
        }
        // More entries than a list may have, or than stand in the slots of a receive WQE.
        let long = (count > LONGEST) | (count.slice::<6>(2) >= slots.payload.slots.resize::<6>());
        let list = place.payload.kind.bit(1);
        let ended = (count <= 1) | ((at == 3) & slots.payload.last);
        let accept = go & place.valid & tail.ready & !drain;
        let plain = accept & !list;
        // No entry is before `target`.
        let clear = !entry_valid & !skipped_valid;
        let listed = accept & list & slots.valid;
        place.ready = plain | (listed & ended);
        slots.ready = drain | (listed & ((at == 3) | ended));
        if drain {
            drain = !(slots.valid & slots.payload.last);
        }
        if listed {
            fresh = ended;
            unit = at + 1;
            left = count - 1;
            drain = ended & !slots.payload.last;
        }
        if go {
            entry_valid = (plain & !clear) | listed;
            entry.addr = place.payload.addr;
            entry.len = place.payload.plen.resize::<32>();
            entry.key = place.payload.key;
            entry.offset = bits::<32>(0);
            entry.first = true;
            entry.last = true;
            entry.broken = false;
            entry.plen = bits::<13>(0);
            if place.payload.kind == 1 {
                entry.plen = place.payload.plen;
            }
            copy!(entry <= place.payload; pd, qpn, kind, lane, beats, unreliable);
            entry.opens = !place.payload.offset.any();
            copy!(entry <= place.payload; complete, reset, answer, closed);
            entry.inv = place.payload.with_inv & place.payload.complete & (place.payload.kind == 2);
            entry.inv_key = place.payload.imm;
            if list {
                entry.addr = sge.low::<64>();
                entry.len = sge.slice::<32>(64);
                if count == 0 {
                    entry.len = bits::<32>(0);
                }
                entry.key = sge.slice::<32>(96);
                entry.offset = place.payload.offset;
                entry.first = fresh;
                entry.last = ended;
                // A list that is too long is so from its first entry on, which may hold all of the packet.
                entry.broken = slots.payload.error | ((count > 1) & ended) | (fresh & long);
                entry.plen = place.payload.plen;
            }
        }

        tail.valid = place.ready;
        copy!(tail.payload <= place.payload;
            qpn, kind, incarnation, end, ack, unreliable, psn, msn, syndrome, complete, cqn,
            cqe_opcode, status, wqe_index, byte_len, imm, with_imm, with_inv, solicited, src_qpn,
            pkey, grh, reset, rsp_flush, reply, answer, implied, data, closed);

        // Skip: what is left of the offset passes over whole entries.
        let mut to_skip = skip;
        if entry.first {
            to_skip = entry.offset;
        }
        if go {
            skipped_valid = entry_valid;
            skipped = entry;
            skipped.offset = to_skip;
            if entry.len > to_skip {
                skipped.len = entry.len - to_skip;
            } else {
                skipped.len = bits::<32>(0);
            }
            if entry_valid {
                skip = bits::<32>(0);
                if entry.len <= to_skip {
                    skip = to_skip - entry.len;
                }
            }
        }

        // Take: until the packet has its bytes, or the list has no more.
        let mut needed = rest;
        let mut is_closed = closed;
        if skipped.first {
            needed = skipped.plen;
            is_closed = false;
        }
        let enough = skipped.len >= needed.resize::<32>();
        if go {
            target_valid = (skipped_valid & !is_closed) | (plain & clear);
            target.addr = skipped.addr + skipped.offset.resize::<64>();
            target.len = skipped.len.resize::<13>();
            if enough {
                target.len = needed;
            }
            target.key = skipped.key;
            target.pd = skipped.pd;
            target.last = enough | skipped.last;
            target.short = !enough & skipped.last;
            copy!(target <= skipped;
                broken, qpn, kind, lane, beats, unreliable, opens, complete, reset, answer, closed,
                inv, inv_key);
            if skipped_valid {
                rest = needed - skipped.len.resize::<13>();
                closed = is_closed | enough | skipped.last;
            } else {
                // past the walk: one entry, all of it
                target.addr = place.payload.addr;
                target.len = bits::<13>(0);
                if place.payload.kind == 1 {
                    target.len = place.payload.plen;
                }
                target.key = place.payload.key;
                target.pd = place.payload.pd;
                target.last = true;
                target.short = false;
                target.broken = false;
                copy!(target <= place.payload; qpn, kind, lane, beats, unreliable);
                target.opens = !place.payload.offset.any();
                copy!(target <= place.payload; complete, reset, answer, closed);
                target.inv = false;
                target.inv_key = place.payload.imm;
            }
        }
        m.valid = target_valid;
        m.payload = target;
    }
}
