//! WQE check: decides, before the first packet, whether a send WQE may run, and lays out its payload.
//!
//! Takes a fetched slot every second cycle, in order. A WQE is refused with a completion status, the first that applies:
//!
//! | status | the WQE |
//! |---|---|
//! | LOC_QP_OP_ERR | could not be read, asks for an operation that is not built, or says that it has not one slot |
//! | LOC_LEN_ERR | has more than 2^31 bytes |
//! | LOC_QP_OP_ERR | has more entries or inline bytes than a slot, or a gather list that does not add up |
//! | LOC_PROT_ERR | has an entry outside of its memory region |
//!
//! Whatever it says, it takes one slot. Inline data is a piece of the ring itself, so it needs no memory region.
//!
//! ```text
//!  slot ─► read image (2 cycles) ─► entry 0, entry 1 ─► memory region check ─► verdict FIFO ─┐
//!                                └► fields, packets ─────────────────────────► WQE FIFO ─────┴► out
//! ```
use ferroce_proto::abi::cq::{opcode, status};

use super::event::CheckedWqe;
use crate::bus::dma::MrCheckOut;
use crate::bus::types::image::{AvCtx, SqCtx};
use crate::bus::types::{FetchedWqe, MrReq};
use crate::prelude::*;

const LOC_LEN_ERR: u64 = status::LOC_LEN_ERR as u64;
const LOC_QP_OP_ERR: u64 = status::LOC_QP_OP_ERR as u64;
const LOC_PROT_ERR: u64 = status::LOC_PROT_ERR as u64;
const CQE_SEND: u64 = opcode::SEND as u64;
const CQE_WRITE: u64 = opcode::WRITE as u64;
const CQE_READ: u64 = opcode::READ as u64;
const CQE_CMP_SWAP: u64 = opcode::CMP_SWAP as u64;
const CQE_FETCH_ADD: u64 = opcode::FETCH_ADD as u64;

/// Check of the WQEs of 2^Q queue pairs.
#[derive(LogicBlock, Default)]
pub struct WqeCheck<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A command writes the requester image of `image_qpn`.
    pub sq_we: Signal<In, Bit>,
    /// A command writes the address vector of `image_qpn`.
    pub av_we: Signal<In, Bit>,
    /// Queue pair of the images.
    pub image_qpn: Signal<In, Bits<Q>>,
    /// Requester image.
    pub sq_image: Signal<In, SqCtx>,
    /// Address vector.
    pub av_image: Signal<In, AvCtx>,
    /// Slots in.
    pub s: StreamIn<FetchedWqe>,
    /// Memory region checks.
    pub mr: MrCheckOut,
    /// WQEs out.
    pub m: StreamOut<CheckedWqe>,

    images: Ram<SqCtx, Q>,
    paths: Ram<Bits<2>, Q>,
    waiting: Fifo<CheckedWqe, 4>,
    verdicts: Fifo<Bits<1>, 5>,
    room: Reg<Bits<5>>,
    take: Signal<Local, Bit>,
    give: Signal<Local, Bit>,
    odd: Reg<Bit>,

    // stage 1: image read
    valid_1: Reg<Bit>,
    wqe_1: Dff<FetchedWqe>,
    // stage 2: image there
    valid_2: Reg<Bit>,
    wqe_2: Dff<FetchedWqe>,
    image_2: Dff<SqCtx>,
    path_2: Dff<Bits<2>>,
    slot: Signal<Local, Bits<512>>,
    is_inline: Signal<Local, Bit>,
    entries: Signal<Local, Bits<8>>,
    length: Signal<Local, Bits<32>>,
    ring_mask: Signal<Local, Bits<16>>,
    // stage 3: entry 0 and the sums
    valid_3: Reg<Bit>,
    wqe_3: Dff<CheckedWqe>,
    pd_3: Dff<Bits<24>>,
    inline_3: Dff<Bit>,
    /// Refused whatever its length.
    senseless_3: Dff<Bit>,
    shape_bad_3: Dff<Bit>,
    sum_3: Dff<Bits<33>>,
    rounded_3: Dff<Bits<34>>,
    inline_addr_3: Dff<Bits<64>>,
    len_1_3: Dff<Bits<32>>,
    key_1_3: Dff<Bits<32>>,
    key_0_3: Dff<Bits<32>>,
    // stage 4: entry 1 and the verdict
    valid_4: Reg<Bit>,
    wqe_4: Dff<CheckedWqe>,
    inline_4: Dff<Bit>,
    pd_4: Dff<Bits<24>>,
    len_1_4: Dff<Bits<32>>,
    key_1_4: Dff<Bits<32>>,
    packets: Signal<Local, Bits<24>>,
    mtu_mask: Signal<Local, Bits<34>>,
    mr_v: Reg<Bit>,
    mr_q: Dff<MrReq>,

    // the two verdicts of the WQE at the head
    first_done: Reg<Bit>,
    first_ok: Reg<Bit>,
    both: Signal<Local, Bit>,
}

impl<const Q: usize> Logic for WqeCheck<Q> {
    describe!(
        "wqe_check",
        format!("q{Q}"),
        "Checks send WQEs and their gather entries.";
        LOC_LEN_ERR, LOC_QP_OP_ERR, LOC_PROT_ERR, CQE_SEND, CQE_WRITE, CQE_READ, CQE_CMP_SWAP, CQE_FETCH_ADD
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, images, paths, waiting, verdicts);
        dff_setup!(
            self, clock, room, odd, valid_1, wqe_1, valid_2, wqe_2, image_2, path_2, valid_3,
            wqe_3, pd_3
        );
        dff_setup!(
            self,
            clock,
            inline_3,
            senseless_3,
            shape_bad_3,
            sum_3,
            rounded_3,
            inline_addr_3
        );
        dff_setup!(
            self, clock, len_1_3, key_1_3, key_0_3, valid_4, wqe_4, inline_4, pd_4, len_1_4,
            key_1_4
        );
        dff_setup!(self, clock, mr_v, mr_q, first_done, first_ok);

        // entry: one WQE in two cycles, at most 15 between here and the exit; exit with two verdicts a WQE
        self.both.next = self.first_done.q.val() & self.verdicts.m.valid.val();
        self.take.next = self.s.valid.val() & !self.odd.q.val() & (self.room.q.val() != 15);
        self.give.next = self.m.ready.val() & self.waiting.m.valid.val() & self.both.val();
        self.s.ready.next = !self.odd.q.val() & (self.room.q.val() != 15);
        self.odd.d.next = self.take.val();
        if self.take.val() & !self.give.val() {
            self.room.d.next = self.room.q.val() + 1;
        } else if !self.take.val() & self.give.val() {
            self.room.d.next = self.room.q.val() - 1;
        }

        self.images.we.next = self.sq_we.val();
        self.images.waddr.next = self.image_qpn.val();
        self.images.wdata.next = self.sq_image.val();
        self.images.re.next = true;
        self.images.raddr.next = self.s.payload.val().qpn.get_bits::<Q>(0);
        self.paths.we.next = self.av_we.val();
        self.paths.waddr.next = self.image_qpn.val();
        self.paths.wdata.next = bits::<2>(0)
            .replace_bit(0, self.av_image.val().ipv6)
            .replace_bit(1, self.av_image.val().vlan_valid);
        self.paths.re.next = true;
        self.paths.raddr.next = self.s.payload.val().qpn.get_bits::<Q>(0);

        // stage 1
        self.valid_1.d.next = self.take.val();
        self.wqe_1.d.next = self.s.payload.val();

        // stage 2
        self.valid_2.d.next = self.valid_1.q.val();
        self.wqe_2.d.next = self.wqe_1.q.val();
        self.image_2.d.next = self.images.rdata.val();
        self.path_2.d.next = self.paths.rdata.val();
        self.slot.next = self.wqe_2.q.val().slot;
        self.is_inline.next = self.slot.val().get_bit(11);
        self.entries.next = self.slot.val().get_bits::<8>(16);
        self.length.next = self.slot.val().get_bits::<32>(160);
        self.ring_mask.next = (bits::<16>(1) << self.image_2.q.val().sq_log) - 1;

        // stage 3
        self.valid_3.d.next = self.valid_2.q.val();
        self.wqe_3.d.next.qpn = self.wqe_2.q.val().qpn;
        self.wqe_3.d.next.epoch = self.wqe_2.q.val().epoch;
        self.wqe_3.d.next.index = self.wqe_2.q.val().index;
        self.wqe_3.d.next.slots = bits::<3>(1);
        self.wqe_3.d.next.status = bits::<8>(0);
        self.wqe_3.d.next.opcode = self.slot.val().get_bits::<3>(0);
        match self.slot.val().get_bits::<8>(0).index() {
            3 => {
                self.wqe_3.d.next.cqe_opcode = CQE_WRITE.into();
            }
            4 => {
                self.wqe_3.d.next.cqe_opcode = CQE_WRITE.into();
            }
            5 => {
                self.wqe_3.d.next.cqe_opcode = CQE_READ.into();
            }
            6 => {
                self.wqe_3.d.next.cqe_opcode = CQE_CMP_SWAP.into();
            }
            7 => {
                self.wqe_3.d.next.cqe_opcode = CQE_FETCH_ADD.into();
            }
            _ => {
                self.wqe_3.d.next.cqe_opcode = CQE_SEND.into();
            }
        }
        self.wqe_3.d.next.signaled = self.slot.val().get_bit(8);
        self.wqe_3.d.next.solicited = self.slot.val().get_bit(9);
        self.wqe_3.d.next.mtu = self.image_2.q.val().mtu;
        // Ethernet 14, IPv4 20 or IPv6 40, UDP 8, BTH 12; a VLAN tag 4
        self.wqe_3.d.next.lane = bits::<6>(54);
        if self.path_2.q.val() == 1 {
            self.wqe_3.d.next.lane = bits::<6>(10);
        } else if self.path_2.q.val() == 2 {
            self.wqe_3.d.next.lane = bits::<6>(58);
        } else if self.path_2.q.val() == 3 {
            self.wqe_3.d.next.lane = bits::<6>(14);
        }
        self.wqe_3.d.next.cqn = self.image_2.q.val().cqn;
        self.wqe_3.d.next.packets = bits::<24>(0);
        self.wqe_3.d.next.length = self.length.val();
        self.wqe_3.d.next.imm = self.slot.val().get_bits::<32>(32);
        self.wqe_3.d.next.remote_addr = self.slot.val().get_bits::<64>(64);
        self.wqe_3.d.next.rkey = self.slot.val().get_bits::<32>(128);
        self.wqe_3.d.next.addr_0 = self.slot.val().get_bits::<64>(256);
        self.wqe_3.d.next.len_0 = self.slot.val().get_bits::<32>(320);
        self.wqe_3.d.next.addr_1 = self.slot.val().get_bits::<64>(384);
        self.key_0_3.d.next = self.slot.val().get_bits::<32>(352);
        self.len_1_3.d.next = self.slot.val().get_bits::<32>(448);
        self.key_1_3.d.next = self.slot.val().get_bits::<32>(480);
        self.sum_3.d.next = bit_cast::<33, 32>(self.slot.val().get_bits::<32>(320))
            + bit_cast::<33, 32>(self.slot.val().get_bits::<32>(448));
        if self.entries.val() == 0 {
            self.wqe_3.d.next.len_0 = bits::<32>(0);
            self.len_1_3.d.next = bits::<32>(0);
            self.sum_3.d.next = bits::<33>(0);
        } else if self.entries.val() == 1 {
            self.len_1_3.d.next = bits::<32>(0);
            self.sum_3.d.next = bit_cast::<33, 32>(self.slot.val().get_bits::<32>(320));
        }
        if self.is_inline.val() {
            self.wqe_3.d.next.len_0 = self.length.val();
            self.len_1_3.d.next = bits::<32>(0);
            self.sum_3.d.next = bit_cast::<33, 32>(self.length.val());
        }
        self.inline_3.d.next = self.is_inline.val();
        self.inline_addr_3.d.next = self.image_2.q.val().sq_base
            + ((bit_cast::<64, 16>(self.wqe_2.q.val().index & self.ring_mask.val()) << 6) | 32);
        // SEND, WRITE, both also with immediate
        self.senseless_3.d.next = self.wqe_2.q.val().error
            | (self.slot.val().get_bits::<8>(24) != 1)
            | !((self.slot.val().get_bits::<8>(0) == 0)
                | (self.slot.val().get_bits::<8>(0) == 1)
                | (self.slot.val().get_bits::<8>(0) == 3)
                | (self.slot.val().get_bits::<8>(0) == 4));
        self.shape_bad_3.d.next = (!self.is_inline.val()
            & self.entries.val().get_bits::<7>(1).any()
            & (self.entries.val() != 2))
            | (self.is_inline.val() & (self.length.val() > 32));
        // MTU code c is 128 << c bytes
        self.mtu_mask.next = (bits::<34>(128) << self.image_2.q.val().mtu) - 1;
        self.rounded_3.d.next = bit_cast::<34, 32>(self.length.val()) + self.mtu_mask.val();

        // stage 4
        self.valid_4.d.next = self.valid_3.q.val();
        self.wqe_4.d.next = self.wqe_3.q.val();
        self.packets.next =
            bit_cast::<24, 34>((self.rounded_3.q.val() >> 7) >> self.wqe_3.q.val().mtu);
        self.wqe_4.d.next.packets = self.packets.val();
        if !self.wqe_3.q.val().length.any() {
            self.wqe_4.d.next.packets = bits::<24>(1);
        }
        if self.inline_3.q.val() {
            self.wqe_4.d.next.addr_0 = self.inline_addr_3.q.val();
        }
        if self.shape_bad_3.q.val()
            | (self.sum_3.q.val() != bit_cast::<33, 32>(self.wqe_3.q.val().length))
        {
            self.wqe_4.d.next.status = LOC_QP_OP_ERR.into();
        }
        if self.wqe_3.q.val().length > 0x8000_0000_u64 {
            self.wqe_4.d.next.status = LOC_LEN_ERR.into();
        }
        if self.senseless_3.q.val() {
            self.wqe_4.d.next.status = LOC_QP_OP_ERR.into();
        }
        self.inline_4.d.next = self.inline_3.q.val();
        self.pd_3.d.next = self.image_2.q.val().pd;
        self.pd_4.d.next = self.pd_3.q.val();
        self.len_1_4.d.next = self.len_1_3.q.val();
        self.key_1_4.d.next = self.key_1_3.q.val();

        // entry 0 from stage 3, entry 1 from stage 4 in the cycle after it
        self.mr_v.d.next = self.valid_3.q.val() | self.valid_4.q.val();
        self.mr_q.d.next.right = bits::<3>(0);
        if self.valid_3.q.val() {
            self.mr_q.d.next.key = self.key_0_3.q.val();
            self.mr_q.d.next.pd = self.pd_3.q.val();
            self.mr_q.d.next.addr = self.wqe_3.q.val().addr_0;
            self.mr_q.d.next.len = self.wqe_3.q.val().len_0;
            if self.inline_3.q.val() {
                self.mr_q.d.next.len = bits::<32>(0);
            }
        } else {
            self.mr_q.d.next.key = self.key_1_4.q.val();
            self.mr_q.d.next.pd = self.pd_4.q.val();
            self.mr_q.d.next.addr = self.wqe_4.q.val().addr_1;
            self.mr_q.d.next.len = self.len_1_4.q.val();
        }
        self.mr.valid.next = self.mr_v.q.val();
        self.mr.request.next = self.mr_q.q.val();

        self.waiting.s.valid.next = self.valid_4.q.val();
        self.waiting.s.payload.next = self.wqe_4.q.val();
        self.verdicts.s.valid.next = self.mr.done.val();
        self.verdicts.s.payload.next = bits::<1>(0).replace_bit(0, self.mr.ok.val());

        // exit
        self.verdicts.m.ready.next = !self.first_done.q.val() | self.give.val();
        if !self.first_done.q.val() {
            self.first_done.d.next = self.verdicts.m.valid.val();
            self.first_ok.d.next = self.verdicts.m.payload.val().get_bit(0);
        } else if self.give.val() {
            self.first_done.d.next = false;
        }
        self.waiting.m.ready.next = self.give.val();
        self.m.valid.next = self.waiting.m.valid.val() & self.both.val();
        self.m.payload.next = self.waiting.m.payload.val();
        if (self.waiting.m.payload.val().status == 0)
            & !(self.first_ok.q.val() & self.verdicts.m.payload.val().get_bit(0))
        {
            self.m.payload.next.status = LOC_PROT_ERR.into();
        }
        if (self.waiting.m.payload.val().status != 0)
            | !(self.first_ok.q.val() & self.verdicts.m.payload.val().get_bit(0))
        {
            self.m.payload.next.packets = bits::<24>(0);
        }
    }
}
