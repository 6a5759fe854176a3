//! First slot of a send WQE: what it says, and what is wrong with it but for sums and memory regions.
//!
//! Takes a slot in a cycle with `advance`; with `slots` and `entries` known, for the walk over the slots, it waits with
//! image and paths for a cycle with `load`, and `wqe` and `shape` stand from then on to the next `load`.
use ferroce_proto::abi::cq::opcode;
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::abi::wqe::{INLINE_FIRST, MAX_SGE, SEND_SGES_FIRST};

use super::event::CheckedWqe;
use super::send_types::WqeShape;
use crate::bus::types::FetchedWqe;
use crate::bus::types::image::SqCtx;
use crate::prelude::*;

const CQE_SEND: u64 = opcode::SEND as u64;
const CQE_WRITE: u64 = opcode::WRITE as u64;
const CQE_READ: u64 = opcode::READ as u64;
const CQE_CMP_SWAP: u64 = opcode::CMP_SWAP as u64;
const CQE_FETCH_ADD: u64 = opcode::FETCH_ADD as u64;
const RC: u64 = qp_type::RC as u64;
const UC: u64 = qp_type::UC as u64;
const UD: u64 = qp_type::UD as u64;
const MOST_ENTRIES: u64 = MAX_SGE as u64;

// The layout that the kernel spells out.
const _: () = assert!(INLINE_FIRST == 32 && SEND_SGES_FIRST == 2);

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
    pub fetched: Signal<In, FetchedWqe>,
    /// Requester image of its queue pair.
    pub image: Signal<In, SqCtx>,
    /// Path of its queue pair: bit 0 IPv6, bit 1 802.1Q tag.
    pub path: Signal<In, Bits<2>>,
    /// Path of the address handle it names.
    pub handle: Signal<In, Bits<2>>,
    /// Where its entries stand.
    pub tag: Signal<In, Bits<5>>,
    /// Slots the WQE says it has, 1 to 5.
    pub slots: Signal<Out, Bits<3>>,
    /// Entries of its gather list, 0 to 16.
    pub entries: Signal<Out, Bits<5>>,
    /// The WQE. `slots`, `status`, `incomplete` and `packets` are 0.
    pub wqe: Signal<Out, CheckedWqe>,
    /// What is to be checked.
    pub shape: Signal<Out, WqeShape>,

    slots_q: Dff<Bits<3>>,
    listed_q: Dff<Bits<5>>,
    surplus: Dff<Bit>,
    wqe_q: Dff<CheckedWqe>,
    shape_q: Dff<WqeShape>,
}

impl<const Q: usize> WqeHead<Q> {
    const HANDLES: u64 = Q as u64;
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
        let early = next_fetched.slot;
        let early_num = early.slice::<8>(16);
        let next_slot_count = early.slice::<8>(24);
        let mut most = bits::<8>(MOST_ENTRIES);
        match next_slot_count {
            1 => {
                most = bits::<8>(2);
            }
            2 => {
                most = bits::<8>(6);
            }
            3 => {
                most = bits::<8>(10);
            }
            4 => {
                most = bits::<8>(14);
            }
            _ => {}
        }
        if (early.low::<8>() == 6) | (early.low::<8>() == 7) {
            most = bits::<8>(1);
        }
        if advance {
            slots_q = next_slot_count.low::<3>();
            if next_fetched.error | (next_slot_count == 0) {
                slots_q = bits::<3>(1);
            } else if next_slot_count > 5 {
                slots_q = bits::<3>(5);
            }
            listed_q = early_num.low::<5>();
            surplus = early_num > most;
            if early_num > most {
                listed_q = most.low::<5>();
            }
            if early.bit(11) {
                listed_q = bits::<5>(0);
            }
        }
        slots = slots_q;
        entries = listed_q;
        let listed = listed_q;

        let slot = fetched.slot;
        let op = slot.low::<8>();
        let slot_count = slot.slice::<8>(24);
        let length = slot.slice::<32>(160);
        let is_inline = slot.bit(11);
        let answered = (op == 5) | (op == 6) | (op == 7);
        let atomic = (op == 6) | (op == 7);
        let is_local = op == 8;
        // SEND and WRITE, alone and with immediate
        let plain = (op == 0) | (op == 1) | (op == 3) | (op == 4);
        let mut route = path;
        if image.qp_type == UD {
            route = handle;
        }

        let mask = (bits::<16>(1) << image.sq_log) - 1;
        let last_slot = slot_count - 1;
        // MTU code c is 128 << c bytes
        let mtu = bits::<34>(128) << image.mtu;

        if load {
            copy!(wqe_q <= fetched; qpn, epoch, index);
            wqe_q.slots = bits::<3>(0);
            wqe_q.status = bits::<8>(0);
            if is_local {
                wqe_q.status = slot.slice::<8>(32);
            }
            wqe_q.incomplete = false;
            wqe_q.class = image.qp_type;
            wqe_q.opcode = op.low::<3>();
            wqe_q.answered = answered;
            wqe_q.fence = slot.bit(10);
            match op {
                3 => {
                    wqe_q.cqe_opcode = CQE_WRITE;
                }
                4 => {
                    wqe_q.cqe_opcode = CQE_WRITE;
                }
                5 => {
                    wqe_q.cqe_opcode = CQE_READ;
                }
                6 => {
                    wqe_q.cqe_opcode = CQE_CMP_SWAP;
                }
                7 => {
                    wqe_q.cqe_opcode = CQE_FETCH_ADD;
                }
                8 => {
                    wqe_q.cqe_opcode = slot.slice::<3>(40);
                }
                _ => {
                    wqe_q.cqe_opcode = CQE_SEND;
                }
            }
            wqe_q.signaled = slot.bit(8);
            wqe_q.solicited = slot.bit(9);
            wqe_q.mtu = image.mtu;
            wqe_q.path = route;
            wqe_q.cqn = image.cqn;
            wqe_q.packets = bits::<24>(0);
            wqe_q.length = length;
            wqe_q.imm = slot.slice::<32>(32);
            wqe_q.remote_addr = slot.slice::<64>(64);
            wqe_q.rkey = slot.slice::<32>(128);
            wqe_q.entries = (listed - 1).resize::<4>();
            wqe_q.tag = tag;
            wqe_q.addr_0 = slot.slice::<64>(256);
            wqe_q.len_0 = slot.slice::<32>(320);
            if listed == 0 {
                wqe_q.entries = bits::<4>(0);
                wqe_q.len_0 = bits::<32>(0);
            }
            wqe_q.addr_1 = slot.slice::<64>(384);
            wqe_q.word_1 = slot.slice::<64>(448);

            shape_q.is_inline = is_inline;
            shape_q.is_local = is_local;
            shape_q.atomic = atomic;
            shape_q.pd = image.pd;
            // unreadable, not 1 to 5 slots, more than the ring has
            shape_q.senseless =
                fetched.error | (last_slot > 4) | (last_slot.low::<3>() & !mask.low::<3>()).any();
            // RC: all operations, READs and atomics if these may be outstanding
            shape_q.unfit = ((image.qp_type == RC)
                    & ((op > 8)
                        | (answered
                            & (is_inline | !image.max_rd_atomic.any()))))
                | ((image.qp_type == UC) & !plain & !is_local)
                // UD: SEND, alone and with immediate, to an address handle that there is
                | ((image.qp_type == UD)
                    & (((op > 1) & !is_local)
                        | (slot.slice::<32>(64) >> Self::HANDLES).any()))
                | (image.qp_type == 2)
                | (is_local & length.any());
            shape_q.overfull = (!is_inline & surplus)
                | (is_inline & (length > ((last_slot.resize::<32>() << 6) | 32)));
            shape_q.oversize = (length > 0x8000_0000_u64)
                | ((image.qp_type == UD) & (length.resize::<34>() > mtu));
            shape_q.rounded = length.resize::<34>() + (mtu - 1);
            shape_q.inline_addr =
                image.sq_base + (((fetched.index & mask).resize::<64>() << 6) | 32);
            shape_q.to_end = ((!fetched.index & mask).resize::<24>() << 6) | 32;
            shape_q.ring = image.sq_base;
        }
        wqe = wqe_q;
        shape = shape_q;
    }
}
