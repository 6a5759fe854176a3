//! Turns of replies: reads the reply from its ring and cuts what may be sent in this turn into packets.
//!
//! ```text
//!  Start ─► ring, path ─► byte offset ─► address, bytes left ─► packets ─┬─► Cut
//!                                                                        ├─► region check
//!                                                                        └─► AtomicOp
//! ```
//!
//! A turn ends with the reply, or behind 128 packets (path MTU 256 and 512), 64 (1024), 32 (2048) or 16 (4096). A turn
//! for which nothing can be done now, a READ behind atomics under way or an atomic that finds 16 under way, is one packet
//! with `waits`. The check of a duplicate atomic and of a turn that waits always passes: it has no bytes.
//!
//! Throughput: a packet a cycle; 1 cycle between turns. Latency: 6 cycles to the first packet. At most 15 packets between here
//! and the exit.
use super::types::*;
use crate::bus::dma::MrCheckOut;
use crate::bus::path::kind_of;
use crate::bus::types::{MrReq, MrRight};
use crate::bus::types::image::AvCtx;
use crate::prelude::*;

/// Cutter of replies of 2^Q queue pairs.
#[derive(Block)]
pub struct Cutter<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Turns.
    pub s: StreamIn<Start>,
    /// A reply enters a ring.
    pub enter: Signal<In, Bit>,
    /// Its ring.
    pub enter_qpn: Signal<In, Bits<Q>>,
    /// Its slot.
    pub enter_slot: Signal<In, Bits<5>>,
    /// The reply.
    pub entered: Signal<In, RingWord>,
    /// A command writes the address vector of `image_qpn`.
    pub av_we: Signal<In, Bit>,
    /// Queue pair of the address vector.
    pub image_qpn: Signal<In, Bits<Q>>,
    /// Address vector.
    pub av_image: Signal<In, AvCtx>,
    /// A packet leaves in this cycle.
    pub valid: Signal<Out, Bit>,
    /// The packet.
    pub cut: Signal<Out, Cut>,
    /// The check of it.
    pub mr: MrCheckOut,
    /// With `valid`: it is the atomic `atomic`.
    pub atomic_valid: Signal<Out, Bit>,
    /// The atomic.
    pub atomic: Signal<Out, AtomicOp>,
    /// A packet passed the exit.
    pub passed: Signal<In, Bit>,
    /// An atomic is over.
    pub returned: Signal<In, Bit>,
    /// Packets or atomics are under way.
    pub busy: Signal<Out, Bit>,
    /// One of them is over; while atomics are under way, one of these.
    pub moved: Signal<Out, Bit>,

    ring: RingRam<RingWord, Q, 5>,
    paths: Ram<Bits<2>, Q>,
    /// Packets between here and the exit, and one that has just passed it: the exit decides late in its cycle.
    room: Reg<Bits<4>>,
    gone: Reg<Bit>,
    /// Atomics under way.
    atomics: Reg<Bits<5>>,

    valid_1: Reg<Bit>,
    start_1: Dff<Start>,
    valid_2: Reg<Bit>,
    start_2: Dff<Start>,
    word_2: Dff<RingWord>,
    path_2: Dff<Bits<2>>,
    valid_3: Reg<Bit>,
    start_3: Dff<Start>,
    word_3: Dff<RingWord>,
    path_3: Dff<Bits<2>>,
    offset_3: Dff<Bits<32>>,
    valid_4: Reg<Bit>,
    start_4: Dff<Start>,
    word_4: Dff<RingWord>,
    path_4: Dff<Bits<2>>,
    psn_4: Dff<Bits<24>>,
    addr_4: Dff<Bits<64>>,
    left_4: Dff<Bits<32>>,

    // the turn being cut
    active: Reg<Bit>,
    start: Dff<Start>,
    word: Dff<RingWord>,
    path: Dff<Bits<2>>,
    psn: Dff<Bits<24>>,
    offset: Dff<Bits<24>>,
    addr: Dff<Bits<64>>,
    left: Dff<Bits<32>>,
    plen: Dff<Bits<13>>,
    last: Dff<Bit>,
    count: Dff<Bits<8>>,
    mtu: Dff<Bits<32>>,
    cut_v: Reg<Bit>,
    cut_q: Dff<Cut>,
    mr_q: Dff<MrReq>,
    atomic_v: Reg<Bit>,
    atomic_q: Dff<AtomicOp>,
}

impl<const Q: usize> Logic for Cutter<Q> {
    describe!(
        "reply_cutter",
        format!("q{Q}"),
        "Cuts replies into packets."
    );

    #[kernel]
    fn update(&mut self) {
        ring.we = enter;
        ring.wring = enter_qpn;
        ring.wslot = enter_slot;
        ring.wdata = entered;
        paths.we = av_we;
        paths.waddr = image_qpn;
        paths.wdata = kind_of(av_image.ipv6, av_image.vlan_valid);

        // the packet being cut
        let step = active & !room.all();
        let waits = (word.atomic & atomics.bit(4)) | (!word.atomic & start.blocked);
        let ends = last | (count == 1) | waits;
        let rest = left - mtu;
        let taken = step & word.atomic & !waits;

        let go_4 = valid_4 & (!active | (step & ends));
        let go_3 = valid_3 & (!valid_4 | go_4);
        let go_2 = valid_2 & (!valid_3 | go_3);
        let go_1 = valid_1 & (!valid_2 | go_2);
        let go_0 = s.valid & (!valid_1 | go_1);
        s.ready = !valid_1 | go_1;

        // ring and path
        ring.re = go_0;
        ring.rring = s.payload.qpn.low::<Q>();
        ring.rslot = s.payload.slot;
        paths.re = go_0;
        paths.raddr = s.payload.qpn.low::<Q>();
        if go_1 {
            valid_1 = false;
        }
        if go_0 {
            valid_1 = true;
            start_1 = s.payload;
        }
        if go_2 {
            valid_2 = false;
        }
        if go_1 {
            valid_2 = true;
            start_2 = start_1;
            word_2 = ring.rdata;
            path_2 = paths.rdata;
        }

        // byte offset; MTU code c is 128 << c bytes
        if go_3 {
            valid_3 = false;
        }
        if go_2 {
            valid_3 = true;
            start_3 = start_2;
            word_3 = word_2;
            offset_3 = (start_2.offset.resize::<32>() << 7) << word_2.mtu;
            path_3 = path_2;
        }

        // address
        if go_4 {
            valid_4 = false;
        }
        if go_3 {
            valid_4 = true;
            start_4 = start_3;
            word_4 = word_3;
            path_4 = path_3;
            psn_4 = word_3.psn + start_3.offset;
            addr_4 = word_3.va + offset_3.resize::<64>();
            left_4 = word_3.len - offset_3;
            if word_3.atomic {
                left_4 = bits::<32>(8);
            }
        }

        // a packet a cycle
        if step {
            psn = psn + 1;
            offset = offset + 1;
            count = count - 1;
            addr = addr + mtu.resize::<64>();
            left = rest;
            last = left <= (mtu << 1);
            plen = mtu.low::<13>();
            if left <= (mtu << 1) {
                plen = rest.low::<13>();
            }
            if ends {
                active = false;
            }
        }
        let mtu_4 = bits::<32>(128) << word_4.mtu;
        if go_4 {
            active = true;
            start = start_4;
            word = word_4;
            path = path_4;
            psn = psn_4;
            offset = start_4.offset + 1;
            addr = addr_4;
            left = left_4;
            last = left_4 <= mtu_4;
            plen = mtu_4.low::<13>();
            if left_4 <= mtu_4 {
                plen = left_4.low::<13>();
            }
            mtu = mtu_4;
            count = bits::<8>(128);
            if word_4.mtu == 3 {
                count = bits::<8>(64);
            }
            if word_4.mtu == 4 {
                count = bits::<8>(32);
            }
            if word_4.mtu == 5 {
                count = bits::<8>(16);
            }
        }

        // out: the packet, its check, its atomic
        cut_v = step;
        cut_q.qpn = start.qpn;
        cut_q.psn = psn;
        cut_q.msn = word.msn;
        cut_q.addr = addr;
        cut_q.plen = plen;
        cut_q.path = path;
        cut_q.offset = offset;
        cut_q.generation = start.generation;
        cut_q.first = offset == 1;
        cut_q.last = last;
        cut_q.ends = ends;
        cut_q.atomic = word.atomic;
        cut_q.duplicate = word.duplicate;
        cut_q.waits = waits;
        cut_q.blocked = !word.atomic;
        valid = cut_v;
        cut = cut_q;

        mr_q.key = word.rkey;
        mr_q.pd = word.pd;
        mr_q.qpn = start.qpn;
        mr_q.addr = addr;
        mr_q.len = plen.resize::<32>();
        mr_q.right = MrRight::RemoteRead;
        if word.atomic {
            mr_q.right = MrRight::RemoteAtomic;
        }
        if waits | (word.atomic & word.duplicate) {
            mr_q.len = bits::<32>(0);
        }
        mr.valid = cut_v;
        mr.request = mr_q;

        atomic_v = taken;
        atomic_q.qpn = start.qpn;
        atomic_q.generation = start.generation;
        atomic_q.psn = psn;
        atomic_q.msn = word.msn;
        atomic_q.va = addr;
        copy!(atomic_q <= word; add, duplicate, swap_add, compare);
        atomic_q.save = start.save;
        atomic_q.saved = start.saved;
        atomic_valid = atomic_v;
        atomic = atomic_q;

        gone = passed;
        if step & !gone {
            room = room + 1;
        } else if !step & gone {
            room = room - 1;
        }
        if taken & !returned {
            atomics = atomics + 1;
        } else if !taken & returned {
            atomics = atomics - 1;
        }
        busy = room.any() | atomics.any();
        moved = returned | (gone & !atomics.any());
    }
}
