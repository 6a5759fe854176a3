//! WQE check: puts the slots of send WQEs together, decides before the first packet whether a WQE may run, and lays out
//! its payload.
//!
//! A WQE has 1 to 5 slots, which follow each other in their grant, or in one and the next. Its entries go one a cycle to the memory region
//! check (local read, of a READ or atomic local write) and, from the third on, into the entry table of the segmenter.
//! Inline data is a piece of the ring itself, two if the ring ends within, so it needs no memory region.
//!
//! One of LOCAL takes no PSN and has the status that it says.
//!
//! A WQE is refused with a completion status, the first that applies:
//!
//! | status | the WQE |
//! |---|---|
//! | LOC_QP_OP_ERR | could not be read, says that it has no slots, more than 5, or more than there are |
//! | LOC_QP_OP_ERR | asks for what its transport does not have, for a READ or atomic where none may be outstanding or with inline data, names an address handle that there is not |
//! | LOC_LEN_ERR | has more than 2^31 bytes, on UD more than the MTU, or is a READ of 2^23 packets |
//! | LOC_QP_OP_ERR | has more entries or inline bytes than its slots hold, or a gather list that does not add up |
//! | LOC_LEN_ERR | is an atomic on other than 8 bytes |
//! | LOC_PROT_ERR | has an entry outside of its memory region |
//!
//! A WQE that ends behind its grant goes on in the next one if that is of the same queue pair and begins where this one
//! ends; it waits for the slot that tells while slots are on their way (`more`). Else it leaves as `incomplete`; if it is
//! the first of its grant, not all of it is posted, and it is refused.
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
use crate::bus::path::kind_of;
use crate::bus::types::FetchedWqe;
use crate::bus::types::image::{AvCtx, SqCtx};
use crate::prelude::*;

const LOC_LEN_ERR: u64 = status::LOC_LEN_ERR as u64;
const LOC_QP_OP_ERR: u64 = status::LOC_QP_OP_ERR as u64;
const LOC_PROT_ERR: u64 = status::LOC_PROT_ERR as u64;

/// Check of the WQEs of 2^Q queue pairs.
#[derive(Block)]
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
    /// Slots are on their way.
    pub more: Signal<In, Bit>,
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
    decision: RegionVerdict,
    waiting: Fifo<CheckedWqe, 4>,
    room: Reg<Bits<5>>,
    tag: Reg<Bits<5>>,

    // stage 1: image read
    valid_1: Reg<Bit>,
    fetched_1: Dff<FetchedWqe>,
    /// It stands behind the slot before it in the ring.
    joins_1: Dff<Bit>,
    next_index_1: Dff<Bits<16>>,
    // stage 2: image there
    valid_2: Reg<Bit>,
    fetched_2: Dff<FetchedWqe>,
    image_2: Dff<SqCtx>,
    path_2: Dff<Bits<2>>,
    handle_2: Dff<Bits<2>>,

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
    entry_v: Reg<Bit>,
    entry_place: Dff<Bits<9>>,
    entry_q: Dff<SendEntry>,

    // stage 4: the sum
    valid_4: Reg<Bit>,
    wqe_4: Dff<CheckedWqe>,
    shape_4: Dff<WqeShape>,
    bad_4: Dff<Bit>,
    sum_4: Dff<Bits<36>>,
    // stage 5: the verdict but for memory regions
    valid_5: Reg<Bit>,
    wqe_5: Dff<CheckedWqe>,
}

impl<const Q: usize> Logic for WqeCheck<Q> {
    describe!(
        "wqe_check",
        format!("q{Q}"),
        "Puts send WQEs together and checks them."
    );

    #[kernel]
    fn update(&mut self) {
        // tables
        let version = kind_of(av_image.ipv6, av_image.vlan_valid);
        images.we = sq_we;
        images.waddr = image_qpn;
        images.wdata = sq_image;
        paths.we = av_we;
        paths.waddr = image_qpn;
        paths.wdata = version;
        handles.we = ah_we;
        handles.waddr = image_qpn;
        handles.wdata = version;

        // stage 3 ends with its last entry; a head enters when there is room for one more WQE
        let walks = walk.any();
        let finish = walk == 1;
        let mut due = head.slots;
        let mut leads = fetched_2.first;
        if open {
            due = slots_due;
            leads = leads_grant;
        }
        let last_due = due == 1;
        // the end of its grant cuts the WQE
        let cut = fetched_2.last & !last_due;
        let seeks = cut & !leads;
        let goes_on = seeks & valid_1 & joins_1;
        let load = valid_2
            & !walk.slice::<2>(1).any()
            & (open | (room != 15))
            & !(seeks & !valid_1 & more);
        let load_head = load & !open;
        let give = m.ready & waiting.m.valid & decision.m.valid;
        if load_head & !give {
            room = room + 1;
        } else if !load_head & give {
            room = room - 1;
        }
        if load_head {
            tag = tag + 1;
        }

        // stage 1
        let go_1 = valid_1 & (!valid_2 | load);
        s.ready = !valid_1 | go_1;
        let take = s.valid & (!valid_1 | go_1);
        images.re = take;
        images.raddr = s.payload.qpn.low::<Q>();
        paths.re = take;
        paths.raddr = s.payload.qpn.low::<Q>();
        handles.re = take;
        handles.raddr = s.payload.slot.slice::<Q>(64);
        if go_1 {
            valid_1 = false;
        }
        if take {
            valid_1 = true;
            fetched_1 = s.payload;
            next_index_1 = s.payload.index + 1;
            joins_1 = (s.payload.qpn == fetched_1.qpn)
                & (s.payload.epoch == fetched_1.epoch)
                & (s.payload.index == next_index_1);
        }

        // stage 2
        if load {
            valid_2 = false;
        }
        if go_1 {
            valid_2 = true;
            fetched_2 = fetched_1;
            image_2 = images.rdata;
            path_2 = paths.rdata;
            handle_2 = handles.rdata;
        }
        head.advance = go_1;
        head.next_fetched = fetched_1;
        head.load = load_head;
        head.fetched = fetched_2;
        head.image = image_2;
        head.path = path_2;
        head.handle = handle_2;
        head.tag = tag;

        // stage 3: what of the slot is to be walked
        let mut unlisted = head.entries;
        let mut here: Bits<3> = bits::<3>(2);
        if open {
            unlisted = entries_due;
            here = bits::<3>(4);
        }
        if unlisted < here.resize::<5>() {
            here = unlisted.low::<3>();
        }

        // a check a cycle
        let wqe = head.wqe;
        let mut len = data.slice::<32>(64);
        if blank {
            len = bits::<32>(0);
        }
        let sum_next = sum + len.resize::<36>();
        mr.valid = walks;
        mr.request.key = data.slice::<32>(96);
        mr.request.pd = head.shape.pd;
        mr.request.qpn = wqe.qpn;
        mr.request.addr = data.low::<64>();
        mr.request.len = len;
        mr.request.right = bits::<3>(0);
        if wqe.answered {
            mr.request.right = bits::<3>(1);
        }
        entry_v = walks & !blank & number.slice::<3>(1).any();
        entry_place = (wqe.tag.resize::<9>() << 4) | number.resize::<9>();
        entry_q.addr = data.low::<64>();
        entry_q.len = len;
        if walks {
            walk = walk - 1;
            data = data >> 128;
            sum = sum_next;
            number = number + 1;
        }
        if load {
            walk = here;
            blank = false;
            if here == 0 {
                walk = bits::<3>(1);
                blank = true;
            }
            entries_due = unlisted - here.resize::<5>();
            slots_due = due - 1;
            end_slot = last_due | (cut & !goes_on);
            incomplete = cut & !goes_on;
            open = !last_due & (!cut | goes_on);
            bad_slot = bad_slot | fetched_2.error;
            taken = taken + 1;
            data = fetched_2.slot;
        }
        if load_head {
            leads_grant = fetched_2.first;
            bad_slot = false;
            taken = bits::<3>(1);
            number = bits::<4>(0);
            sum = bits::<36>(0);
            data = fetched_2.slot >> 256;
        }
        entry_we = entry_v;
        entry_at = entry_place;
        entry = entry_q;
        decision.asked = walks;
        decision.last = finish & end_slot;
        decision.done = mr.done;
        decision.ok = mr.ok;

        // stage 4
        valid_4 = finish & end_slot;
        wqe_4 = wqe;
        wqe_4.slots = taken;
        wqe_4.incomplete = incomplete & !leads_grant;
        shape_4 = head.shape;
        bad_4 = bad_slot | (incomplete & leads_grant);
        sum_4 = sum_next;

        // stage 5
        valid_5 = valid_4;
        wqe_5 = wqe_4;
        let packets = ((shape_4.rounded >> 7) >> wqe_4.mtu).resize::<24>();
        wqe_5.packets = packets;
        if !wqe_4.length.any() {
            wqe_5.packets = bits::<24>(1);
        }
        if shape_4.is_local {
            wqe_5.packets = bits::<24>(0);
        }
        let wraps = wqe_4.length > shape_4.to_end.resize::<32>();
        if shape_4.is_inline {
            wqe_5.entries = bits::<4>(0).replace_bit(0, wraps);
            wqe_5.addr_0 = shape_4.inline_addr;
            wqe_5.len_0 = wqe_4.length;
            if wraps {
                wqe_5.len_0 = shape_4.to_end.resize::<32>();
            }
            wqe_5.addr_1 = shape_4.ring;
            wqe_5.word_1 = (wqe_4.length - shape_4.to_end.resize::<32>()).resize::<64>();
        }
        if shape_4.atomic & (wqe_4.length != 8) {
            wqe_5.status = LOC_LEN_ERR;
        }
        if shape_4.overfull | (!shape_4.is_inline & (sum_4 != wqe_4.length.resize::<36>())) {
            wqe_5.status = LOC_QP_OP_ERR;
        }
        if shape_4.oversize | (wqe_4.answered & packets.bit(23)) {
            wqe_5.status = LOC_LEN_ERR;
        }
        if shape_4.senseless | shape_4.unfit | bad_4 {
            wqe_5.status = LOC_QP_OP_ERR;
        }
        waiting.s.valid = valid_5;
        waiting.s.payload = wqe_5;

        // exit
        decision.m.ready = give;
        waiting.m.ready = give;
        m.valid = waiting.m.valid & decision.m.valid;
        m.payload = waiting.m.payload;
        if (waiting.m.payload.status == 0) & !decision.m.payload.bit(0) {
            m.payload.status = LOC_PROT_ERR;
        }
        if (waiting.m.payload.status != 0) | !decision.m.payload.bit(0) {
            m.payload.packets = bits::<24>(0);
        }
    }
}
