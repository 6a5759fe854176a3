//! First slot of a send WQE: what it says, and what is wrong with it but for sums and memory regions.
//!
//! Takes a slot in a cycle with `advance`; with `slots` and `entries` known, for the walk over the slots, it waits with
//! image and paths for a cycle with `load`, and `wqe` and `shape` stand from then on to the next `load`.
use ferroce_proto::abi::cq::opcode as cqe;
use ferroce_proto::abi::qpc::qp_type::{RC, UC, UD};
use ferroce_proto::abi::wqe::opcode::*;
use ferroce_proto::abi::wqe::{INLINE_FIRST, MAX_MSG, MAX_SGE, SEND_SGES_FIRST, SendWqe as Layout};

use super::send_types::{CheckedWqe, SlotContext, WqeShape};
use crate::bus::types::FetchedWqe;
use crate::bus::types::image::{SendWqe, SqCtx};
use crate::bus::unpack::Unpack;
use crate::egress::class_of::priority_of;
use crate::egress::types::ClassSetup;
use crate::prelude::*;

const CQE_SEND: u8 = cqe::SEND;
const CQE_WRITE: u8 = cqe::WRITE;
const CQE_READ: u8 = cqe::READ;
const CQE_CMP_SWAP: u8 = cqe::CMP_SWAP;
const CQE_FETCH_ADD: u8 = cqe::FETCH_ADD;
const CQE_BIND_MW: u8 = cqe::BIND_MW;
const CQE_LOCAL_INV: u8 = cqe::LOCAL_INV;

/// Bits in front of the gather list, and of its second entry.
const SGE_0: usize = 8 * Layout::BYTES;
const SGE_1: usize = SGE_0 + 128;

// The layout that the kernel spells out.
const _: () = assert!(INLINE_FIRST == 32 && SEND_SGES_FIRST == 2 && SGE_0 == 256);

/// Decoder of the WQEs of 2^Q queue pairs and as many address handles.
#[derive(Block)]
pub struct WqeHead<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A slot comes.
    pub advance: Signal<In, Bit>,
    /// The slot that comes.
    pub next_fetched: Signal<In, FetchedWqe>,
    /// The slot that came is taken as the first of its WQE.
    pub load: Signal<In, Bit>,
    /// The slot that came.
    pub slot: Signal<In, SlotContext>,
    /// What the host says of classes.
    pub classes: Signal<In, ClassSetup>,
    /// Where its entries stand.
    pub tag: Signal<In, Bits<5>>,
    /// Slots the WQE says it has, 1 to 5.
    pub slots: Signal<Out, Bits<3>>,
    /// Entries of its gather list, 0 to 16.
    pub entries: Signal<Out, Bits<5>>,
    /// The WQE. `slots`, `incomplete`, `of_class` and `packets` are 0.
    pub wqe: Signal<Out, CheckedWqe>,
    /// What is to be checked.
    pub shape: Signal<Out, WqeShape>,

    as_next: Unpack<SendWqe>,
    as_wqe: Unpack<SendWqe>,
    slots_q: Dff<Bits<3>>,
    entries_q: Dff<Bits<5>>,
    too_many_sges: Dff<Bit>,
    wqe_q: Dff<CheckedWqe>,
    shape_q: Dff<WqeShape>,
}

impl<const Q: usize> WqeHead<Q> {
    const HANDLES: u64 = Q as u64;
}

/// Entries that a WQE of so many slots can have; an atomic has one.
#[kernel_fn]
fn most_entries(wqe: SendWqe) -> Bits<8> {
    let listed: Bits<8> = match wqe.slots {
        1 => 2,
        2 => 6,
        3 => 10,
        4 => 14,
        _ => MAX_SGE,
    };
    let most: Bits<8> = if matches!(wqe.opcode, CMP_SWAP | FETCH_ADD) {
        1
    } else {
        listed
    };
    most
}

/// Opcode of its CQE.
#[kernel_fn]
fn completes_as(wqe: SendWqe) -> Bits<3> {
    let opcode: Bits<3> = match wqe.opcode {
        WRITE | WRITE_IMM => CQE_WRITE,
        READ => CQE_READ,
        CMP_SWAP => CQE_CMP_SWAP,
        FETCH_ADD => CQE_FETCH_ADD,
        BIND_MW => CQE_BIND_MW,
        LOCAL_INV => CQE_LOCAL_INV,
        _ => CQE_SEND,
    };
    opcode
}

/// It sends nothing.
#[kernel_fn]
fn is_local_op(wqe: SendWqe) -> Bit {
    matches!(wqe.opcode, BIND_MW | LOCAL_INV)
}

/// The queue pair has no such operation, or the WQE sends nothing and has payload.
#[kernel_fn]
fn bad_opcode(wqe: SendWqe, image: SqCtx, has_handle: Bit) -> Bit {
    let is_rd_atomic = matches!(wqe.opcode, READ | CMP_SWAP | FETCH_ADD);
    let is_local = is_local_op(wqe);
    let has_payload = wqe.length.any() | wqe.num_sge.any() | wqe.inline_data;
    let is_allowed = match image.qp_type {
        // READs and atomics only if these may be outstanding
        RC => {
            (wqe.opcode <= LOCAL_INV)
                & !(is_rd_atomic & (wqe.inline_data | !image.max_rd_atomic.any()))
        }
        UC => matches!(
            wqe.opcode,
            SEND | SEND_IMM | WRITE | WRITE_IMM | BIND_MW | LOCAL_INV
        ),
        UD => has_handle & matches!(wqe.opcode, SEND | SEND_IMM),
        _ => false,
    };
    !is_allowed | (is_local & has_payload)
}

impl<const Q: usize> Logic for WqeHead<Q> {
    describe!(
        "wqe_head",
        format!("q{Q}"),
        "What the first slot of a send WQE says."
    );

    #[kernel]
    fn update(&mut self) {
        // slots, of what cannot be read one; entries that these hold
        as_next.word = next_fetched.slot;
        let next = as_next.image;
        let most = most_entries(next);
        if advance {
            slots_q = next.slots.low::<3>();
            if next_fetched.error | (next.slots == 0) {
                slots_q = 1;
            } else if next.slots > 5 {
                slots_q = 5;
            }
            too_many_sges = next.num_sge > most;
            entries_q = if next.num_sge > most {
                most.low::<5>()
            } else {
                next.num_sge.low::<5>()
            };
            if next.inline_data {
                entries_q = 0;
            }
        }
        slots = slots_q;
        entries = entries_q;

        let fetched = slot.fetched;
        let image = slot.image;
        as_wqe.word = fetched.slot;
        let head = as_wqe.image;
        let is_local = is_local_op(head);
        let listed = entries_q.any();
        let mark = if image.qp_type == UD {
            slot.handle_mark
        } else {
            slot.path_mark
        };
        if load {
            wqe_q = CheckedWqe {
                qpn: fetched.qpn,
                epoch: fetched.epoch,
                index: fetched.index,
                slots: 0,
                status: 0,
                incomplete: false,
                class: image.qp_type,
                opcode: head.opcode.low::<3>(),
                answered: matches!(head.opcode, READ | CMP_SWAP | FETCH_ADD),
                fence: head.fence,
                // of what cannot be read nothing is known
                cqe_opcode: if fetched.error {
                    CQE_SEND
                } else {
                    completes_as(head)
                },
                signaled: head.signaled,
                solicited: head.solicited,
                mtu: image.mtu,
                path: if image.qp_type == UD {
                    slot.handle
                } else {
                    slot.path
                },
                of_class: 0,
                is_short: false,
                is_long: false,
                held: false,
                cqn: image.cqn,
                packets: 0,
                length: head.length,
                imm: head.imm,
                remote_addr: head.remote_addr,
                rkey: head.rkey,
                entries: if listed {
                    (entries_q - 1).low::<4>()
                } else {
                    0
                },
                tag: tag,
                addr_0: fetched.slot.slice::<64>(SGE_0),
                len_0: if listed {
                    fetched.slot.slice::<32>(SGE_0 + 64)
                } else {
                    0
                },
                addr_1: fetched.slot.slice::<64>(SGE_1),
                word_1: fetched.slot.slice::<64>(SGE_1 + 64),
            };
        }

        let ring_mask = (bits::<16>(1) << image.sq_log) - 1;
        let last_slot = head.slots - 1;
        // MTU code c is 128 << c bytes
        let mtu = bits::<34>(128) << image.mtu;
        let inline_most = (last_slot.resize::<32>() << 6) | INLINE_FIRST;
        let handle_exists = !(head.remote_addr.low::<32>() >> Self::HANDLES).any();
        let has_handle = handle_exists & slot.handle_is_own;
        if load {
            shape_q = WqeShape {
                // unreadable, not 1 to 5 slots, more than the ring has
                bad_slot_count: fetched.error
                    | (last_slot > 4)
                    | (last_slot.low::<3>() & !ring_mask.low::<3>()).any(),
                bad_opcode: bad_opcode(head, image, has_handle),
                too_many_sges: if head.inline_data {
                    head.length > inline_most
                } else {
                    too_many_sges
                },
                too_long: (head.length > MAX_MSG)
                    | ((image.qp_type == UD) & (head.length.resize::<34>() > mtu)),
                is_inline: head.inline_data,
                is_local: is_local,
                atomic: matches!(head.opcode, CMP_SWAP | FETCH_ADD),
                rounded: head.length.resize::<34>() + (mtu - 1),
                pd: image.pd,
                inline_addr: image.sq_base
                    + (((fetched.index & ring_mask).resize::<64>() << 6) | INLINE_FIRST),
                to_end: ((!fetched.index & ring_mask).resize::<24>() << 6) | INLINE_FIRST,
                ring: image.sq_base,
                prio: priority_of(classes, mark.dscp, mark.tagged, mark.pcp),
                own: mark.own,
            };
        }
        wqe = wqe_q;
        shape = shape_q;
    }
}
