//! From placements and WQEs to pieces in host memory.
//!
//! A WRITE is a list of one entry. A SEND has the scatter list of its receive WQE, a response that of the send WQE of its
//! READ or atomic. Any other packet has an empty list. The list is walked an entry a cycle: entries before the packet's
//! offset are skipped, of the others the packet takes what it needs, and the pieces end with the one that holds its
//! last byte. Entries that hold nothing of the packet leave as pieces without bytes.
//!
//! ```text
//!  place, slots ─► entry ─► skip to the offset ─► take the payload ─► m
//!                                                                     tail (place without its list)
//! ```
//!
//! A placement that completes a receive WQE of a shared receive queue waits for the number of it, which its CQE names. One
//! that could not be read ([`NO_NUMBER`]) makes the WQE unusable, also of a WRITE with immediate.
//!
//! A placement ends, and its tail leaves, with the last slot of its WQE, also if its list ends before: so what waits for
//! placements waits for the reads of their WQEs too.
//!
//! Latency: 3 cycles; of a placement without a list one, as it comes past the walk when no entry is under way.
//! Throughput: an entry a cycle; a placement with a list takes the cycles of that, and one for every slot behind it.
//! `tail.ready` is waited for.
use ferroce_proto::abi::cq::NO_NUMBER;
use ferroce_proto::abi::wqe::{MAX_SGE, RECV_SGES_FIRST, RecvWqe, SGE_BYTES, SendWqe, Sge};

use super::types::{Entry, Packet, Tail, Target};
use crate::bus::types::{Place, PlaceKind, RqSlot, has_list, image};
use crate::prelude::*;

// The layout that the kernel spells out.
const _: () = assert!(RecvWqe::BYTES == SGE_BYTES && SGE_BYTES == 16 && RECV_SGES_FIRST == 3);
const _: () = assert!(SendWqe::BYTES == 2 * SGE_BYTES);
const LONGEST: u64 = MAX_SGE as u64;
const _: () = assert!(Sge::BYTES == SGE_BYTES);

/// Walker of scatter lists.
#[derive(Block)]
#[block(check)]
pub struct Walk {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Placements.
    pub place: StreamIn<Place>,
    /// WQEs of the placements with a list.
    pub slots: StreamIn<RqSlot>,
    /// Numbers of the placements that are `numbered`.
    pub numbers: StreamIn<Bits<16>>,
    /// The placements again, without what their list needs.
    pub tail: StreamOut<Tail>,
    /// Pieces, at least one a placement.
    pub m: StreamOut<Target>,
    /// The next entry is the first of its list.
    #[init(Reg::new(true))]
    fresh: Reg<Bit>,
    /// Slots behind the end of a list are dropped.
    dropping: Reg<Bit>,
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
    packet: Signal<Local, Packet>,
    target_valid: Reg<Bit>,
    sge: Signal<Local, Bits<128>>,
}

impl Walk {
    fn check() {
        assert_eq!(image::Sge::BITS, 8 * SGE_BYTES);
    }
}

impl Logic for Walk {
    describe!("scatter_walk", "Walks scatter lists.");

    #[kernel]
    fn update(&mut self) {
        let go = !target_valid | m.ready;

        // Entry: unit `at` of 16 bytes; units 0 of a receive WQE, 0 and 1 of a send WQE are its head.
        let slot = slots.payload.slot;
        let of_send = place.payload.kind == PlaceKind::Response;
        let first_unit: Bits<2> = if of_send { 2 } else { 1 };
        let listed_count = if of_send {
            slot.slice::<8>(16)
        } else {
            slot.low::<8>()
        };
        let at = if fresh { first_unit } else { unit };
        let count = if fresh { listed_count } else { left };
        sge = match at {
            1 => slot.slice::<128>(128),
            2 => slot.slice::<128>(256),
            3 => slot.slice::<128>(384),
            _ => slot.low::<128>(),
        };
        // More entries than a list may have, or than stand in the slots of a receive WQE.
        let long = (count > LONGEST) | (count.slice::<6>(2) >= slots.payload.slots.resize::<6>());
        let list = has_list(place.payload.kind);
        let ended = (count <= 1) | ((at == 3) & slots.payload.last);
        let numbered = place.payload.numbered;
        let accept = go & place.valid & tail.ready & !dropping & (!numbered | numbers.valid);
        let lost = numbered & (numbers.payload == NO_NUMBER);
        let plain = accept & !list;
        // No entry is before `target`.
        let clear = !entry_valid & !skipped_valid;
        let listed = accept & list & slots.valid;
        let drops = dropping & slots.valid & tail.ready;
        place.ready = plain | (((listed & ended) | drops) & slots.payload.last);
        numbers.ready = place.ready & numbered;
        slots.ready = (dropping & tail.ready) | (listed & ((at == 3) | ended));
        // Bytes of a placement without a list.
        let direct: Bits<13> = if place.payload.kind == PlaceKind::Write {
            place.payload.plen
        } else {
            0
        };
        copy!(packet <= place.payload; qpn, kind, incarnation, unreliable, complete, reset, answer, closed);
        packet.runs = place.payload.reply & place.payload.runs;
        if lost {
            packet.kind = PlaceKind::Recv;
            packet.unreliable = false;
        }
        packet.opens = !place.payload.offset.any();
        if drops {
            dropping = !slots.payload.last;
        }
        if listed {
            fresh = ended;
            unit = at + 1;
            left = count - 1;
            dropping = ended & !slots.payload.last;
        }
        if go {
            entry_valid = (plain & !clear) | listed;
            entry.len = place.payload.plen.resize::<32>();
            entry.offset = bits::<32>(0);
            entry.first = true;
            entry.last = true;
            entry.broken = lost;
            entry.plen = direct;
            copy!(entry <= place.payload; addr, key, pd, lane, beats);
            entry.packet = packet;
            entry.inv = place.payload.with_inv
                & place.payload.complete
                & (place.payload.kind == PlaceKind::Recv);
            entry.inv_key = place.payload.imm;
            entry.inv_pd = place.payload.key.low::<24>();
            if list {
                entry.addr = sge.low::<64>();
                entry.len = if count.any() { sge.slice::<32>(64) } else { 0 };
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
            pkey, grh, reset, rsp_flush, last_wqe, reply, answer, implied, data, closed);
        if numbered {
            tail.payload.wqe_index = numbers.payload;
        }

        // Skip: what is left of the offset passes over whole entries.
        let to_skip = if entry.first { entry.offset } else { skip };
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
        let needed = if skipped.first { skipped.plen } else { rest };
        let is_closed = closed & !skipped.first;
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
            copy!(target <= skipped; broken, lane, beats, packet, inv, inv_key, inv_pd);
            if skipped_valid {
                rest = needed - skipped.len.resize::<13>();
                closed = is_closed | enough | skipped.last;
            } else {
                // past the walk: one entry, all of it
                target.len = direct;
                target.last = true;
                target.short = false;
                target.broken = lost;
                copy!(target <= place.payload; addr, key, pd, lane, beats);
                target.packet = packet;
                target.inv = false;
                target.inv_key = place.payload.imm;
                target.inv_pd = place.payload.key.low::<24>();
            }
        }
        m.valid = target_valid;
        m.payload = target;
    }
}
