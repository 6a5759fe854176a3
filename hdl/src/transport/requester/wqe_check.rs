//! WQE check: puts the slots of send WQEs together, decides before the first packet whether a WQE may run, and lays out
//! its payload.
//!
//! A WQE has 1 to 5 slots, which follow each other in their grant. Its entries go one a cycle to the memory region
//! check (local read, of a READ or atomic local write) and, from the third on, into the entry table of the segmenter.
//! Inline data is a piece of the ring itself, two if the ring ends within, so it needs no memory region.
//!
//! One of LOCAL takes no PSN and has the status that it says.
//!
//! A WQE is refused with a completion status, the first that applies:
//!
//! | status | the WQE |
//! |---|---|
//! | LOC_QP_OP_ERR | could not be read, says that it has no slots, more than 5, or more than there are, asks for what its transport does not have, for a READ or atomic where none may be outstanding or with inline data, names an address handle that there is not |
//! | LOC_LEN_ERR | has more than 2^31 bytes, on UD more than the MTU, or is a READ of 2^23 packets |
//! | LOC_QP_OP_ERR | has more entries or inline bytes than its slots hold, or a gather list that does not add up |
//! | LOC_LEN_ERR | is an atomic on other than 8 bytes |
//! | LOC_PROT_ERR | has an entry outside of its memory region |
//!
//! A WQE that ends behind its grant leaves as `incomplete`; if it is the first of its grant, not all of it is posted, and
//! it is refused.
//!
//! Rate: a cycle for each entry, at least one for each slot; at most 15 WQEs inside. Latency: 7 cycles.
//!
//! ```text
//!  slot ─► image (1) ─► head (2) ─► entries (3) ─► memory region check ─► verdict FIFO ─┐
//!                                       └► sum (4) ─► status, packets (5) ─► WQE FIFO ──┴► m
//! ```
//!
//! Assumes: images and paths are written before the first slot that needs them.
use ferroce_proto::abi::cq::status;

use super::event::CheckedWqe;
use super::region_verdict::RegionVerdict;
use super::send_types::{SendEntry, WqeShape};

use super::wqe_head::WqeHead;
use crate::bus::dma::MrCheckOut;
use crate::bus::types::FetchedWqe;
use crate::bus::types::image::{AvCtx, SqCtx};
use crate::prelude::*;

const LOC_LEN_ERR: u64 = status::LOC_LEN_ERR as u64;
const LOC_QP_OP_ERR: u64 = status::LOC_QP_OP_ERR as u64;
const LOC_PROT_ERR: u64 = status::LOC_PROT_ERR as u64;

/// Check of the WQEs of 2^Q queue pairs.
#[derive(LogicBlock, Default)]
pub struct WqeCheck<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A command writes the requester image of `image_qpn`.
    pub sq_we: Signal<In, Bit>,
    /// A command writes the address vector of `image_qpn`.
    pub av_we: Signal<In, Bit>,
    /// A command writes the address handle `image_qpn`.
    pub ah_we: Signal<In, Bit>,
    /// Queue pair or address handle of the images.
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
    /// Writes `entry` into the entry table.
    pub entry_we: Signal<Out, Bit>,
    /// Where: 16 * `tag` + number.
    pub entry_at: Signal<Out, Bits<9>>,
    /// The entry.
    pub entry: Signal<Out, SendEntry>,

    images: Ram<SqCtx, Q>,
    paths: Ram<Bits<2>, Q>,
    handles: Ram<Bits<2>, Q>,
    head: WqeHead<Q>,
    verdict: RegionVerdict,
    waiting: Fifo<CheckedWqe, 4>,
    room: Reg<Bits<5>>,
    tag: Reg<Bits<5>>,
    take: Signal<Local, Bit>,
    give: Signal<Local, Bit>,
    version: Signal<Local, Bits<2>>,

    // stage 1: image read
    valid_1: Reg<Bit>,
    fetched_1: Dff<FetchedWqe>,
    go_1: Signal<Local, Bit>,
    // stage 2: image there
    valid_2: Reg<Bit>,
    fetched_2: Dff<FetchedWqe>,
    image_2: Dff<SqCtx>,
    path_2: Dff<Bits<2>>,
    handle_2: Dff<Bits<2>>,
    load: Signal<Local, Bit>,
    load_head: Signal<Local, Bit>,
    due: Signal<Local, Bits<3>>,
    unlisted: Signal<Local, Bits<5>>,
    here: Signal<Local, Bits<3>>,
    last_due: Signal<Local, Bit>,

    // stage 3: the slot whose entries are checked
    /// The WQE has more slots to come.
    open: Reg<Bit>,
    slots_due: Dff<Bits<3>>,
    entries_due: Dff<Bits<5>>,
    taken: Dff<Bits<3>>,
    /// Checks left of the slot; a slot without entries has one that always passes.
    walk: Reg<Bits<3>>,
    blank: Dff<Bit>,
    end_slot: Dff<Bit>,
    incomplete: Dff<Bit>,
    bad_slot: Dff<Bit>,
    leads_grant: Dff<Bit>,
    data: Dff<Bits<512>>,
    number: Dff<Bits<4>>,
    sum: Dff<Bits<36>>,
    finish: Signal<Local, Bit>,
    walks: Signal<Local, Bit>,
    len: Signal<Local, Bits<32>>,
    sum_next: Signal<Local, Bits<36>>,
    wqe: Signal<Local, CheckedWqe>,
    entry_v: Reg<Bit>,
    entry_place: Dff<Bits<9>>,
    entry_q: Dff<SendEntry>,

    // stage 4: the sum
    valid_4: Reg<Bit>,
    wqe_4: Dff<CheckedWqe>,
    shape_4: Dff<WqeShape>,
    bad_4: Dff<Bit>,
    sum_4: Dff<Bits<36>>,
    wraps: Signal<Local, Bit>,
    packets: Signal<Local, Bits<24>>,
    // stage 5: the verdict but for memory regions
    valid_5: Reg<Bit>,
    wqe_5: Dff<CheckedWqe>,
}

impl<const Q: usize> Logic for WqeCheck<Q> {
    describe!(
        "wqe_check",
        format!("q{Q}"),
        "Puts send WQEs together and checks them.";
        LOC_LEN_ERR, LOC_QP_OP_ERR, LOC_PROT_ERR
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, images, paths, handles, head, verdict, waiting);
        dff_setup!(self, clock, room, tag, valid_1, fetched_1, valid_2);
        dff_setup!(self, clock, fetched_2, image_2, path_2, handle_2, open);
        dff_setup!(self, clock, slots_due, entries_due, taken, walk, blank);
        dff_setup!(self, clock, end_slot, incomplete, bad_slot, leads_grant);
        dff_setup!(self, clock, data, number, sum);
        dff_setup!(self, clock, entry_v, entry_place, entry_q, valid_4);
        dff_setup!(self, clock, wqe_4, shape_4, bad_4, sum_4, valid_5, wqe_5);

        // tables
        self.version.next = bits::<2>(0)
            .replace_bit(0, self.av_image.val().ipv6)
            .replace_bit(1, self.av_image.val().vlan_valid);
        self.images.we.next = self.sq_we.val();
        self.images.waddr.next = self.image_qpn.val();
        self.images.wdata.next = self.sq_image.val();
        self.paths.we.next = self.av_we.val();
        self.paths.waddr.next = self.image_qpn.val();
        self.paths.wdata.next = self.version.val();
        self.handles.we.next = self.ah_we.val();
        self.handles.waddr.next = self.image_qpn.val();
        self.handles.wdata.next = self.version.val();

        // stage 3 ends with its last entry; a head enters when there is room for one more WQE
        self.walks.next = self.walk.q.val().any();
        self.finish.next = self.walk.q.val() == 1;
        self.load.next = self.valid_2.q.val()
            & !self.walk.q.val().get_bits::<2>(1).any()
            & (self.open.q.val() | (self.room.q.val() != 15));
        self.load_head.next = self.load.val() & !self.open.q.val();
        self.give.next =
            self.m.ready.val() & self.waiting.m.valid.val() & self.verdict.m.valid.val();
        if self.load_head.val() & !self.give.val() {
            self.room.d.next = self.room.q.val() + 1;
        } else if !self.load_head.val() & self.give.val() {
            self.room.d.next = self.room.q.val() - 1;
        }
        if self.load_head.val() {
            self.tag.d.next = self.tag.q.val() + 1;
        }

        // stage 1
        self.go_1.next = self.valid_1.q.val() & (!self.valid_2.q.val() | self.load.val());
        self.s.ready.next = !self.valid_1.q.val() | self.go_1.val();
        self.take.next = self.s.valid.val() & (!self.valid_1.q.val() | self.go_1.val());
        self.images.re.next = self.take.val();
        self.images.raddr.next = self.s.payload.val().qpn.get_bits::<Q>(0);
        self.paths.re.next = self.take.val();
        self.paths.raddr.next = self.s.payload.val().qpn.get_bits::<Q>(0);
        self.handles.re.next = self.take.val();
        self.handles.raddr.next = self.s.payload.val().slot.get_bits::<Q>(64);
        if self.go_1.val() {
            self.valid_1.d.next = false;
        }
        if self.take.val() {
            self.valid_1.d.next = true;
            self.fetched_1.d.next = self.s.payload.val();
        }

        // stage 2
        if self.load.val() {
            self.valid_2.d.next = false;
        }
        if self.go_1.val() {
            self.valid_2.d.next = true;
            self.fetched_2.d.next = self.fetched_1.q.val();
            self.image_2.d.next = self.images.rdata.val();
            self.path_2.d.next = self.paths.rdata.val();
            self.handle_2.d.next = self.handles.rdata.val();
        }
        self.head.advance.next = self.go_1.val();
        self.head.coming.next = self.fetched_1.q.val();
        self.head.load.next = self.load_head.val();
        self.head.fetched.next = self.fetched_2.q.val();
        self.head.image.next = self.image_2.q.val();
        self.head.path.next = self.path_2.q.val();
        self.head.handle.next = self.handle_2.q.val();
        self.head.tag.next = self.tag.q.val();

        // stage 3: what of the slot is to be walked
        self.due.next = self.head.slots.val();
        self.unlisted.next = self.head.entries.val();
        self.here.next = bits::<3>(2);
        if self.open.q.val() {
            self.due.next = self.slots_due.q.val();
            self.unlisted.next = self.entries_due.q.val();
            self.here.next = bits::<3>(4);
        }
        if self.unlisted.val() < bit_cast::<5, 3>(self.here.val()) {
            self.here.next = self.unlisted.val().get_bits::<3>(0);
        }
        self.last_due.next = self.due.val() == 1;

        // a check a cycle
        self.wqe.next = self.head.wqe.val();
        self.len.next = self.data.q.val().get_bits::<32>(64);
        if self.blank.q.val() {
            self.len.next = bits::<32>(0);
        }
        self.sum_next.next = self.sum.q.val() + bit_cast::<36, 32>(self.len.val());
        self.mr.valid.next = self.walks.val();
        self.mr.request.next.key = self.data.q.val().get_bits::<32>(96);
        self.mr.request.next.pd = self.head.shape.val().pd;
        self.mr.request.next.qpn = self.wqe.val().qpn;
        self.mr.request.next.addr = self.data.q.val().get_bits::<64>(0);
        self.mr.request.next.len = self.len.val();
        self.mr.request.next.right = bits::<3>(0);
        if self.wqe.val().answered {
            self.mr.request.next.right = bits::<3>(1);
        }
        self.entry_v.d.next =
            self.walks.val() & !self.blank.q.val() & self.number.q.val().get_bits::<3>(1).any();
        self.entry_place.d.next =
            (bit_cast::<9, 5>(self.wqe.val().tag) << 4) | bit_cast::<9, 4>(self.number.q.val());
        self.entry_q.d.next.addr = self.data.q.val().get_bits::<64>(0);
        self.entry_q.d.next.len = self.len.val();
        if self.walks.val() {
            self.walk.d.next = self.walk.q.val() - 1;
            self.data.d.next = self.data.q.val() >> 128;
            self.sum.d.next = self.sum_next.val();
            self.number.d.next = self.number.q.val() + 1;
        }
        if self.load.val() {
            self.walk.d.next = self.here.val();
            self.blank.d.next = false;
            if self.here.val() == 0 {
                self.walk.d.next = bits::<3>(1);
                self.blank.d.next = true;
            }
            self.entries_due.d.next = self.unlisted.val() - bit_cast::<5, 3>(self.here.val());
            self.slots_due.d.next = self.due.val() - 1;
            self.end_slot.d.next = self.last_due.val() | self.fetched_2.q.val().last;
            self.incomplete.d.next = !self.last_due.val() & self.fetched_2.q.val().last;
            self.open.d.next = !self.last_due.val() & !self.fetched_2.q.val().last;
            self.bad_slot.d.next = self.bad_slot.q.val() | self.fetched_2.q.val().error;
            self.taken.d.next = self.taken.q.val() + 1;
            self.data.d.next = self.fetched_2.q.val().slot;
        }
        if self.load_head.val() {
            self.leads_grant.d.next = self.fetched_2.q.val().first;
            self.bad_slot.d.next = false;
            self.taken.d.next = bits::<3>(1);
            self.number.d.next = bits::<4>(0);
            self.sum.d.next = bits::<36>(0);
            self.data.d.next = self.fetched_2.q.val().slot >> 256;
        }
        self.entry_we.next = self.entry_v.q.val();
        self.entry_at.next = self.entry_place.q.val();
        self.entry.next = self.entry_q.q.val();
        self.verdict.asked.next = self.walks.val();
        self.verdict.last.next = self.finish.val() & self.end_slot.q.val();
        self.verdict.done.next = self.mr.done.val();
        self.verdict.ok.next = self.mr.ok.val();

        // stage 4
        self.valid_4.d.next = self.finish.val() & self.end_slot.q.val();
        self.wqe_4.d.next = self.wqe.val();
        self.wqe_4.d.next.slots = self.taken.q.val();
        self.wqe_4.d.next.incomplete = self.incomplete.q.val() & !self.leads_grant.q.val();
        self.shape_4.d.next = self.head.shape.val();
        self.bad_4.d.next =
            self.bad_slot.q.val() | (self.incomplete.q.val() & self.leads_grant.q.val());
        self.sum_4.d.next = self.sum_next.val();

        // stage 5
        self.valid_5.d.next = self.valid_4.q.val();
        self.wqe_5.d.next = self.wqe_4.q.val();
        self.packets.next =
            bit_cast::<24, 34>((self.shape_4.q.val().rounded >> 7) >> self.wqe_4.q.val().mtu);
        self.wqe_5.d.next.packets = self.packets.val();
        if !self.wqe_4.q.val().length.any() {
            self.wqe_5.d.next.packets = bits::<24>(1);
        }
        if self.shape_4.q.val().silent {
            self.wqe_5.d.next.packets = bits::<24>(0);
        }
        self.wraps.next =
            self.wqe_4.q.val().length > bit_cast::<32, 24>(self.shape_4.q.val().to_end);
        if self.shape_4.q.val().is_inline {
            self.wqe_5.d.next.entries = bits::<4>(0).replace_bit(0, self.wraps.val());
            self.wqe_5.d.next.addr_0 = self.shape_4.q.val().inline_addr;
            self.wqe_5.d.next.len_0 = self.wqe_4.q.val().length;
            if self.wraps.val() {
                self.wqe_5.d.next.len_0 = bit_cast::<32, 24>(self.shape_4.q.val().to_end);
            }
            self.wqe_5.d.next.addr_1 = self.shape_4.q.val().ring;
            self.wqe_5.d.next.word_1 = bit_cast::<64, 32>(
                self.wqe_4.q.val().length - bit_cast::<32, 24>(self.shape_4.q.val().to_end),
            );
        }
        if self.shape_4.q.val().atomic & (self.wqe_4.q.val().length != 8) {
            self.wqe_5.d.next.status = LOC_LEN_ERR.into();
        }
        if self.shape_4.q.val().overfull
            | (!self.shape_4.q.val().is_inline
                & (self.sum_4.q.val() != bit_cast::<36, 32>(self.wqe_4.q.val().length)))
        {
            self.wqe_5.d.next.status = LOC_QP_OP_ERR.into();
        }
        if self.shape_4.q.val().oversize
            | (self.wqe_4.q.val().answered & self.packets.val().get_bit(23))
        {
            self.wqe_5.d.next.status = LOC_LEN_ERR.into();
        }
        if self.shape_4.q.val().senseless | self.shape_4.q.val().unfit | self.bad_4.q.val() {
            self.wqe_5.d.next.status = LOC_QP_OP_ERR.into();
        }
        self.waiting.s.valid.next = self.valid_5.q.val();
        self.waiting.s.payload.next = self.wqe_5.q.val();

        // exit
        self.verdict.m.ready.next = self.give.val();
        self.waiting.m.ready.next = self.give.val();
        self.m.valid.next = self.waiting.m.valid.val() & self.verdict.m.valid.val();
        self.m.payload.next = self.waiting.m.payload.val();
        if (self.waiting.m.payload.val().status == 0) & !self.verdict.m.payload.val().get_bit(0) {
            self.m.payload.next.status = LOC_PROT_ERR.into();
        }
        if (self.waiting.m.payload.val().status != 0) | !self.verdict.m.payload.val().get_bit(0) {
            self.m.payload.next.packets = bits::<24>(0);
        }
    }
}
