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
#[derive(LogicBlock, Default)]
pub struct WqeHead<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A slot comes.
    pub advance: Signal<In, Bit>,
    /// The slot that comes.
    pub coming: Signal<In, FetchedWqe>,
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
    early: Signal<Local, Bits<512>>,
    early_num: Signal<Local, Bits<8>>,
    early_said: Signal<Local, Bits<8>>,
    wqe_q: Dff<CheckedWqe>,
    shape_q: Dff<WqeShape>,
    slot: Signal<Local, Bits<512>>,
    op: Signal<Local, Bits<8>>,
    said: Signal<Local, Bits<8>>,
    length: Signal<Local, Bits<32>>,
    is_inline: Signal<Local, Bit>,
    answered: Signal<Local, Bit>,
    atomic: Signal<Local, Bit>,
    plain: Signal<Local, Bit>,
    silent: Signal<Local, Bit>,
    route: Signal<Local, Bits<2>>,
    mask: Signal<Local, Bits<16>>,
    last_slot: Signal<Local, Bits<8>>,
    most: Signal<Local, Bits<8>>,
    listed: Signal<Local, Bits<5>>,
    mtu: Signal<Local, Bits<34>>,
}

impl<const Q: usize> WqeHead<Q> {
    const HANDLES: u64 = Q as u64;
}

impl<const Q: usize> Logic for WqeHead<Q> {
    describe!(
        "wqe_head",
        format!("q{Q}"),
        "What the first slot of a send WQE says.";
        CQE_SEND, CQE_WRITE, CQE_READ, CQE_CMP_SWAP, CQE_FETCH_ADD, RC, UC, UD, MOST_ENTRIES, Self::HANDLES
    );

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, wqe_q, shape_q, slots_q, listed_q, surplus);
        // slots, of what cannot be read one; entries that these hold
        self.early.next = self.coming.val().slot;
        self.early_num.next = self.early.val().get_bits::<8>(16);
        self.early_said.next = self.early.val().get_bits::<8>(24);
        self.most.next = bits::<8>(MOST_ENTRIES);
        match self.early_said.val().index() {
            1 => {
                self.most.next = bits::<8>(2);
            }
            2 => {
                self.most.next = bits::<8>(6);
            }
            3 => {
                self.most.next = bits::<8>(10);
            }
            4 => {
                self.most.next = bits::<8>(14);
            }
            _ => {}
        }
        if (self.early.val().get_bits::<8>(0) == 6) | (self.early.val().get_bits::<8>(0) == 7) {
            self.most.next = bits::<8>(1);
        }
        if self.advance.val() {
            self.slots_q.d.next = self.early_said.val().get_bits::<3>(0);
            if self.coming.val().error | (self.early_said.val() == 0) {
                self.slots_q.d.next = bits::<3>(1);
            } else if self.early_said.val() > 5 {
                self.slots_q.d.next = bits::<3>(5);
            }
            self.listed_q.d.next = self.early_num.val().get_bits::<5>(0);
            self.surplus.d.next = self.early_num.val() > self.most.val();
            if self.early_num.val() > self.most.val() {
                self.listed_q.d.next = self.most.val().get_bits::<5>(0);
            }
            if self.early.val().get_bit(11) {
                self.listed_q.d.next = bits::<5>(0);
            }
        }
        self.slots.next = self.slots_q.q.val();
        self.entries.next = self.listed_q.q.val();
        self.listed.next = self.listed_q.q.val();

        self.slot.next = self.fetched.val().slot;
        self.op.next = self.slot.val().get_bits::<8>(0);
        self.said.next = self.slot.val().get_bits::<8>(24);
        self.length.next = self.slot.val().get_bits::<32>(160);
        self.is_inline.next = self.slot.val().get_bit(11);
        self.answered.next = (self.op.val() == 5) | (self.op.val() == 6) | (self.op.val() == 7);
        self.atomic.next = (self.op.val() == 6) | (self.op.val() == 7);
        self.silent.next = self.op.val() == 8;
        // SEND and WRITE, alone and with immediate
        self.plain.next = (self.op.val() == 0)
            | (self.op.val() == 1)
            | (self.op.val() == 3)
            | (self.op.val() == 4);
        self.route.next = self.path.val();
        if self.image.val().qp_type == UD {
            self.route.next = self.handle.val();
        }

        self.mask.next = (bits::<16>(1) << self.image.val().sq_log) - 1;
        self.last_slot.next = self.said.val() - 1;
        // MTU code c is 128 << c bytes
        self.mtu.next = bits::<34>(128) << self.image.val().mtu;

        if self.load.val() {
            self.wqe_q.d.next.qpn = self.fetched.val().qpn;
            self.wqe_q.d.next.epoch = self.fetched.val().epoch;
            self.wqe_q.d.next.index = self.fetched.val().index;
            self.wqe_q.d.next.slots = bits::<3>(0);
            self.wqe_q.d.next.status = bits::<8>(0);
            if self.silent.val() {
                self.wqe_q.d.next.status = self.slot.val().get_bits::<8>(32);
            }
            self.wqe_q.d.next.incomplete = false;
            self.wqe_q.d.next.class = self.image.val().qp_type;
            self.wqe_q.d.next.opcode = self.op.val().get_bits::<3>(0);
            self.wqe_q.d.next.answered = self.answered.val();
            self.wqe_q.d.next.fence = self.slot.val().get_bit(10);
            match self.op.val().index() {
                3 => {
                    self.wqe_q.d.next.cqe_opcode = CQE_WRITE.into();
                }
                4 => {
                    self.wqe_q.d.next.cqe_opcode = CQE_WRITE.into();
                }
                5 => {
                    self.wqe_q.d.next.cqe_opcode = CQE_READ.into();
                }
                6 => {
                    self.wqe_q.d.next.cqe_opcode = CQE_CMP_SWAP.into();
                }
                7 => {
                    self.wqe_q.d.next.cqe_opcode = CQE_FETCH_ADD.into();
                }
                8 => {
                    self.wqe_q.d.next.cqe_opcode = self.slot.val().get_bits::<3>(40);
                }
                _ => {
                    self.wqe_q.d.next.cqe_opcode = CQE_SEND.into();
                }
            }
            self.wqe_q.d.next.signaled = self.slot.val().get_bit(8);
            self.wqe_q.d.next.solicited = self.slot.val().get_bit(9);
            self.wqe_q.d.next.mtu = self.image.val().mtu;
            // Ethernet 14, IPv4 20 or IPv6 40, UDP 8, BTH 12; a VLAN tag 4
            self.wqe_q.d.next.lane = bits::<6>(54);
            if self.route.val() == 1 {
                self.wqe_q.d.next.lane = bits::<6>(10);
            } else if self.route.val() == 2 {
                self.wqe_q.d.next.lane = bits::<6>(58);
            } else if self.route.val() == 3 {
                self.wqe_q.d.next.lane = bits::<6>(14);
            }
            self.wqe_q.d.next.cqn = self.image.val().cqn;
            self.wqe_q.d.next.packets = bits::<24>(0);
            self.wqe_q.d.next.length = self.length.val();
            self.wqe_q.d.next.imm = self.slot.val().get_bits::<32>(32);
            self.wqe_q.d.next.remote_addr = self.slot.val().get_bits::<64>(64);
            self.wqe_q.d.next.rkey = self.slot.val().get_bits::<32>(128);
            self.wqe_q.d.next.entries = bit_cast::<4, 5>(self.listed.val() - 1);
            self.wqe_q.d.next.tag = self.tag.val();
            self.wqe_q.d.next.addr_0 = self.slot.val().get_bits::<64>(256);
            self.wqe_q.d.next.len_0 = self.slot.val().get_bits::<32>(320);
            if self.listed.val() == 0 {
                self.wqe_q.d.next.entries = bits::<4>(0);
                self.wqe_q.d.next.len_0 = bits::<32>(0);
            }
            self.wqe_q.d.next.addr_1 = self.slot.val().get_bits::<64>(384);
            self.wqe_q.d.next.word_1 = self.slot.val().get_bits::<64>(448);

            self.shape_q.d.next.is_inline = self.is_inline.val();
            self.shape_q.d.next.silent = self.silent.val();
            self.shape_q.d.next.atomic = self.atomic.val();
            self.shape_q.d.next.pd = self.image.val().pd;
            // unreadable, not 1 to 5 slots, more than the ring has
            self.shape_q.d.next.senseless = self.fetched.val().error
                | (self.last_slot.val() > 4)
                | (self.last_slot.val().get_bits::<3>(0) & !self.mask.val().get_bits::<3>(0)).any();
            // RC: all operations, READs and atomics if these may be outstanding
            self.shape_q.d.next.unfit = ((self.image.val().qp_type == RC)
                    & ((self.op.val() > 8)
                        | (self.answered.val()
                            & (self.is_inline.val() | !self.image.val().max_rd_atomic.any()))))
                | ((self.image.val().qp_type == UC) & !self.plain.val() & !self.silent.val())
                // UD: SEND, alone and with immediate, to an address handle that there is
                | ((self.image.val().qp_type == UD)
                    & (((self.op.val() > 1) & !self.silent.val())
                        | (self.slot.val().get_bits::<32>(64) >> Self::HANDLES).any()))
                | (self.image.val().qp_type == 2)
                | (self.silent.val() & self.length.val().any());
            self.shape_q.d.next.overfull = (!self.is_inline.val() & self.surplus.q.val())
                | (self.is_inline.val()
                    & (self.length.val() > ((bit_cast::<32, 8>(self.last_slot.val()) << 6) | 32)));
            self.shape_q.d.next.oversize = (self.length.val() > 0x8000_0000_u64)
                | ((self.image.val().qp_type == UD)
                    & (bit_cast::<34, 32>(self.length.val()) > self.mtu.val()));
            self.shape_q.d.next.rounded =
                bit_cast::<34, 32>(self.length.val()) + (self.mtu.val() - 1);
            self.shape_q.d.next.inline_addr = self.image.val().sq_base
                + ((bit_cast::<64, 16>(self.fetched.val().index & self.mask.val()) << 6) | 32);
            self.shape_q.d.next.to_end =
                (bit_cast::<24, 16>(!self.fetched.val().index & self.mask.val()) << 6) | 32;
            self.shape_q.d.next.ring = self.image.val().sq_base;
        }
        self.wqe.next = self.wqe_q.q.val();
        self.shape.next = self.shape_q.q.val();
    }
}
