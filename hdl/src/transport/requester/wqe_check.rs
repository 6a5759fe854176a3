//! WQE check: puts the slots of send WQEs together, decides before the first packet whether a WQE may run, and lays out
//! its payload.
//!
//! A WQE has 1 to 5 slots, which follow each other in their grant, or in one and the next. Its entries go one a cycle to the memory region
//! check (local read, of a READ or atomic local write) and, from the third on, into the entry table of the segmenter.
//! Inline data is a piece of the ring itself, two if the ring ends within, so it needs no memory region.
//!
//! One that sends nothing takes no PSN.
//!
//! A WQE is refused with a completion status, the first that applies:
//!
//! | status | the WQE |
//! |---|---|
//! | LOC_QP_OP_ERR | could not be read, says that it has no slots, more than 5, or more than there are |
//! | LOC_QP_OP_ERR | sends nothing and has payload |
//! | LOC_QP_OP_ERR | asks for what its transport does not have |
//! | LOC_QP_OP_ERR | asks for a READ or atomic where none may be outstanding, or with inline data |
//! | LOC_QP_OP_ERR | names an address handle that there is not, or that is of another protection domain |
//! | LOC_LEN_ERR | has more than 2^31 bytes, on UD more than the MTU, or is a READ of 2^23 packets |
//! | LOC_QP_OP_ERR | has more entries or inline bytes than its slots hold, or a gather list that does not add up |
//! | LOC_LEN_ERR | is an atomic on other than 8 bytes |
//! | LOC_PROT_ERR | has an entry outside of its memory region |
//!
//! A WQE that ends behind its grant goes on in the next one if that is of the same queue pair and begins where this one
//! ends; it waits for the slot that tells while slots are on their way (`more`). Else it leaves as `incomplete`; if it is
//! the first of its grant, not all of it is posted, and it is refused.
//!
//! A WQE has its entries in the table from its check until `list_walk` has read them. There is room for 32, so a head waits when its place
//! is about to be that of a part which is still to be read (`unread`): however many WQEs pass that part without being sent.
//!
//! Rate: a cycle for each entry, at least one for each slot; at most 15 WQEs inside. Latency: 7 cycles.
//!
//! ```text
//!  slot ─► wqe_context (1, 2) ─► wqe_head (3) ─► entries (3) ─► memory region check ─► verdict FIFO ─┐
//!                                                    └► sum (4) ─► status, packets (5) ─► WQE FIFO ──┴► m
//! ```
//!
//! Assumes: images and paths are written before the first slot that needs them.
use ferroce_proto::abi::cq::status::{LOC_LEN_ERR, LOC_PROT_ERR, LOC_QP_OP_ERR, SUCCESS};
use ferroce_proto::abi::wqe::SEND_SGES_FIRST;

use super::region_verdict::RegionVerdict;
use super::send_types::{CheckedWqe, SendEntry, WqeShape};
use super::wqe_context::WqeContext;
use super::wqe_head::WqeHead;
use crate::bus::dma::MrCheckOut;
use crate::bus::types::image::{AvCtx, SqCtx};
use crate::bus::types::{FetchedWqe, MrReq, MrRight, if_there};
use crate::egress::CLASSES;
use crate::egress::class_of::{class_bit, class_of_priority};
use crate::egress::types::ClassSetup;
use crate::prelude::*;

const MOST_INSIDE: u64 = 15;

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
    /// MAC address of the port, first byte in the lowest bits.
    pub mac: Signal<In, Bits<48>>,
    /// What the host says of classes.
    pub classes: Signal<In, ClassSetup>,
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
    /// A part waits in `list_walk` with entries that are still to be read.
    pub unread_valid: Signal<In, Bit>,
    /// Its tag.
    pub unread: Signal<In, Bits<5>>,
    /// No fewer WQEs are here.
    pub level: Signal<Out, Bits<16>>,

    context: WqeContext<Q>,
    head: WqeHead<Q>,
    decision: RegionVerdict,
    waiting: Fifo<CheckedWqe, 4>,
    /// WQEs inside.
    inside: Reg<Bits<5>>,
    /// One left in the cycle before: `inside` still has it.
    gave: Reg<Bit>,
    tag: Reg<Bits<5>>,
    /// The next heads come near the part that is still to be read.
    near: Reg<Bit>,

    // stage 3: the slot whose entries are checked
    /// The WQE has more slots to come.
    open: Reg<Bit>,
    slots_due: Dff<Bits<3>>,
    entries_due: Dff<Bits<5>>,
    taken: Dff<Bits<3>>,
    /// Checks left of the slot; a slot without entries has one that always passes.
    walk: Reg<Bits<3>>,
    no_entry: Dff<Bit>,
    end_slot: Dff<Bit>,
    incomplete: Dff<Bit>,
    bad_slot: Dff<Bit>,
    leads_grant: Dff<Bit>,
    data: Dff<Bits<512>>,
    number: Dff<Bits<4>>,
    sum: Dff<Bits<36>>,
    entry_we_q: Reg<Bit>,
    entry_at_q: Dff<Bits<9>>,
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

/// Class of its packets, a bit of each; none of what goes to the port itself.
#[kernel_fn]
fn class_of(classes: ClassSetup, shape: WqeShape) -> Bits<CLASSES> {
    let of: Bits<CLASSES> = if shape.own {
        0
    } else {
        class_bit(class_of_priority(classes, shape.prio))
    };
    of
}

/// Packets of a WQE; without payload one, if it sends nothing none.
#[kernel_fn]
fn packets_of(wqe: CheckedWqe, shape: WqeShape) -> Bits<24> {
    let full = ((shape.rounded >> 7) >> wqe.mtu).resize::<24>();
    let packets: Bits<24> = if shape.is_local {
        0
    } else if wqe.length.any() {
        full
    } else {
        1
    };
    packets
}

/// Status of a WQE but for memory regions: the first that applies.
#[kernel_fn]
fn status_of(wqe: CheckedWqe, shape: WqeShape, bad_slot: Bit, sum: Bits<36>) -> Bits<8> {
    let is_long_read = wqe.answered & ((shape.rounded >> 7) >> wqe.mtu).bit(23);
    let wrong_sum = !shape.is_inline & (sum != wqe.length.resize::<36>());
    let status: Bits<8> = if shape.bad_slot_count | shape.bad_opcode | bad_slot {
        LOC_QP_OP_ERR
    } else if shape.too_long | is_long_read {
        LOC_LEN_ERR
    } else if shape.too_many_sges | wrong_sum {
        LOC_QP_OP_ERR
    } else if shape.atomic & (wqe.length != 8) {
        LOC_LEN_ERR
    } else {
        0
    };
    status
}

/// Inline payload is a piece of the ring, two where the ring ends within; what of a READ or atomic goes out has none. What sends
/// nothing needs its protection domain.
#[kernel_fn]
fn with_shape(wqe: CheckedWqe, shape: WqeShape) -> CheckedWqe {
    let mut with = wqe;
    if shape.is_local {
        with.rkey = shape.pd.resize::<32>();
    }
    if wqe.answered {
        with.entries = 0;
    }
    let to_end = shape.to_end.resize::<32>();
    let wraps = wqe.length > to_end;
    if shape.is_inline {
        with.entries = bits::<4>(0).replace_bit(0, wraps);
        with.addr_0 = shape.inline_addr;
        with.len_0 = if wraps { to_end } else { wqe.length };
        with.addr_1 = shape.ring;
        with.word_1 = (wqe.length - to_end).resize::<64>();
    }
    with
}

/// What does not run has no packets, and waits for no class. Of the others: how long their parts may be.
#[kernel_fn]
fn as_it_runs(wqe: CheckedWqe) -> CheckedWqe {
    let mut with = wqe;
    if wqe.incomplete | (wqe.status != SUCCESS) {
        with.of_class = 0;
        with.packets = 0;
    }
    let is_few = !wqe.packets.slice::<18>(6).any();
    with.is_short = wqe.answered | (is_few & !wqe.length.slice::<19>(13).any());
    // 64 KiB in packets of 2048 bytes or more are no more than 32
    with.is_long = wqe.mtu.bit(2) | (is_few & !wqe.packets.bit(5));
    with
}

impl<const Q: usize> Logic for WqeCheck<Q> {
    describe!(
        "wqe_check",
        format!("q{Q}"),
        "Puts send WQEs together and checks them."
    );

    #[kernel]
    fn update(&mut self) {
        context.sq_we = sq_we;
        context.av_we = av_we;
        context.ah_we = ah_we;
        context.image_qpn = image_qpn;
        context.sq_image = sq_image;
        context.av_image = av_image;
        context.mac = mac;
        head.classes = classes;
        forward!(s <= context.s);
        let fetched = context.slot.fetched;

        // stage 3 ends with its last entry; a head enters when there is room for one more WQE
        let walks = walk.any();
        let finish = walk == 1;
        let due = if open { slots_due } else { head.slots };
        let leads = if open { leads_grant } else { fetched.first };
        let last_due = due == 1;
        // the end of its grant cuts the WQE
        let cut = fetched.last & !last_due;
        let seeks = cut & !leads;
        let goes_on = seeks & context.next_valid & context.joins;
        let load = context.valid
            & !walk.slice::<2>(1).any()
            & (open | ((inside != MOST_INSIDE) & !near))
            & !(seeks & !context.next_valid & more);
        let load_head = load & !open;
        // a cycle old, in which one head more may have come
        near = unread_valid & ((unread - tag) < 3);
        let give = m.ready & waiting.m.valid & decision.m.valid;
        // both sums, as `load_head` is late
        let without = if gave { inside - 1 } else { inside };
        let with = if gave { inside } else { inside + 1 };
        inside = if load_head { with } else { without };
        gave = give;
        if load_head {
            tag += 1;
        }
        context.load = load;
        head.advance = context.advance;
        head.next_fetched = context.next_fetched;
        head.load = load_head;
        head.slot = context.slot;
        head.tag = tag;

        // stage 3: what of the slot is to be walked
        let unlisted = if open { entries_due } else { head.entries };
        let holds: Bits<3> = if open { 4 } else { SEND_SGES_FIRST };
        let here = if unlisted < holds.resize::<5>() {
            unlisted.low::<3>()
        } else {
            holds
        };

        // a check a cycle
        let wqe = head.wqe;
        let addr = data.low::<64>();
        let len: Bits<32> = if no_entry { 0 } else { data.slice::<32>(64) };
        let sum_next = sum + len.resize::<36>();
        mr.valid = walks;
        mr.request = MrReq {
            key: data.slice::<32>(96),
            pd: head.shape.pd,
            qpn: wqe.qpn,
            addr: addr,
            len: len,
            right: if wqe.answered {
                MrRight::LocalWrite
            } else {
                MrRight::LocalRead
            },
        };
        // the first two go with the WQE
        entry_we_q = walks & !no_entry & number.slice::<3>(1).any();
        entry_at_q = (wqe.tag.resize::<9>() << 4) | number.resize::<9>();
        entry_q = SendEntry {
            addr: addr,
            len: len,
        };
        if walks {
            walk -= 1;
            data = data >> 128;
            sum = sum_next;
            number += 1;
        }
        if load {
            walk = if here.any() { here } else { 1 };
            no_entry = !here.any();
            entries_due = unlisted - here.resize::<5>();
            slots_due = due - 1;
            end_slot = last_due | (cut & !goes_on);
            incomplete = cut & !goes_on;
            open = !last_due & (!cut | goes_on);
            bad_slot = bad_slot | fetched.error;
            taken += 1;
            data = fetched.slot;
        }
        if load_head {
            leads_grant = fetched.first;
            bad_slot = false;
            taken = 1;
            number = 0;
            sum = 0;
            data = fetched.slot >> 256;
        }
        entry_we = entry_we_q;
        entry_at = entry_at_q;
        entry = entry_q;
        decision.asked = walks;
        decision.last = finish & end_slot;
        decision.done = mr.done;
        decision.ok = mr.ok;

        level = inside.resize::<16>()
            + if_there(context.valid, bits::<16>(1))
            + if_there(context.next_valid, bits::<16>(1));

        // stage 4
        valid_4 = finish & end_slot;
        wqe_4 = wqe;
        wqe_4.slots = taken;
        wqe_4.incomplete = incomplete & !leads_grant;
        wqe_4.of_class = class_of(classes, head.shape);
        shape_4 = head.shape;
        bad_4 = bad_slot | (incomplete & leads_grant);
        sum_4 = sum_next;

        // stage 5
        valid_5 = valid_4;
        wqe_5 = with_shape(wqe_4, shape_4);
        wqe_5.packets = packets_of(wqe_4, shape_4);
        wqe_5.status = status_of(wqe_4, shape_4, bad_4, sum_4);
        waiting.s.valid = valid_5;
        waiting.s.payload = as_it_runs(wqe_5);

        // exit
        decision.m.ready = give;
        waiting.m.ready = give;
        m.valid = waiting.m.valid & decision.m.valid;
        m.payload = waiting.m.payload;
        if !decision.m.payload.bit(0) {
            m.payload.of_class = 0;
            m.payload.packets = 0;
            if waiting.m.payload.status == SUCCESS {
                m.payload.status = LOC_PROT_ERR;
            }
        }
    }
}
