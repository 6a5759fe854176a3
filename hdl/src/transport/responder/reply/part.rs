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
use crate::bus::types::MrReq;
use crate::bus::types::image::AvCtx;
use crate::prelude::*;

/// Right of a READ in a [`MrReq`].
const REMOTE_READ: u64 = 3;
/// Right of an atomic.
const REMOTE_ATOMIC: u64 = 4;

/// Cutter of replies of 2^Q queue pairs.
#[derive(LogicBlock, Default)]
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

    go_0: Signal<Local, Bit>,
    valid_1: Reg<Bit>,
    start_1: Dff<Start>,
    go_1: Signal<Local, Bit>,
    valid_2: Reg<Bit>,
    start_2: Dff<Start>,
    word_2: Dff<RingWord>,
    path_2: Dff<Bits<2>>,
    go_2: Signal<Local, Bit>,
    valid_3: Reg<Bit>,
    start_3: Dff<Start>,
    word_3: Dff<RingWord>,
    lane_3: Dff<Bits<6>>,
    offset_3: Dff<Bits<32>>,
    go_3: Signal<Local, Bit>,
    valid_4: Reg<Bit>,
    start_4: Dff<Start>,
    word_4: Dff<RingWord>,
    lane_4: Dff<Bits<6>>,
    psn_4: Dff<Bits<24>>,
    addr_4: Dff<Bits<64>>,
    left_4: Dff<Bits<32>>,
    go_4: Signal<Local, Bit>,

    // the turn being cut
    active: Reg<Bit>,
    start: Dff<Start>,
    word: Dff<RingWord>,
    lane: Dff<Bits<6>>,
    psn: Dff<Bits<24>>,
    offset: Dff<Bits<24>>,
    addr: Dff<Bits<64>>,
    left: Dff<Bits<32>>,
    plen: Dff<Bits<13>>,
    last: Dff<Bit>,
    count: Dff<Bits<8>>,
    mtu: Dff<Bits<32>>,
    mtu_4: Signal<Local, Bits<32>>,
    step: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    waits: Signal<Local, Bit>,
    rest: Signal<Local, Bits<32>>,
    taken: Signal<Local, Bit>,
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
        "Cuts replies into packets.";
        REMOTE_READ, REMOTE_ATOMIC
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, ring, paths);
        dff_setup!(
            self, clock, room, gone, atomics, valid_1, start_1, valid_2, start_2, word_2, path_2
        );
        dff_setup!(
            self, clock, valid_3, start_3, word_3, lane_3, offset_3, valid_4, start_4, word_4,
            lane_4, psn_4, addr_4, left_4
        );
        dff_setup!(
            self, clock, active, start, word, lane, psn, offset, addr, left, plen, last, count,
            mtu, cut_v, cut_q, mr_q, atomic_v, atomic_q
        );

        self.ring.we.next = self.enter.val();
        self.ring.wring.next = self.enter_qpn.val();
        self.ring.wslot.next = self.enter_slot.val();
        self.ring.wdata.next = self.entered.val();
        self.paths.we.next = self.av_we.val();
        self.paths.waddr.next = self.image_qpn.val();
        self.paths.wdata.next = bits::<2>(0)
            .replace_bit(0, self.av_image.val().ipv6)
            .replace_bit(1, self.av_image.val().vlan_valid);

        // the packet being cut
        self.step.next = self.active.q.val() & !self.room.q.val().all();
        self.waits.next = (self.word.q.val().atomic & self.atomics.q.val().get_bit(4))
            | (!self.word.q.val().atomic & self.start.q.val().blocked);
        self.ends.next = self.last.q.val() | (self.count.q.val() == 1) | self.waits.val();
        self.rest.next = self.left.q.val() - self.mtu.q.val();
        self.taken.next = self.step.val() & self.word.q.val().atomic & !self.waits.val();

        self.go_4.next =
            self.valid_4.q.val() & (!self.active.q.val() | (self.step.val() & self.ends.val()));
        self.go_3.next = self.valid_3.q.val() & (!self.valid_4.q.val() | self.go_4.val());
        self.go_2.next = self.valid_2.q.val() & (!self.valid_3.q.val() | self.go_3.val());
        self.go_1.next = self.valid_1.q.val() & (!self.valid_2.q.val() | self.go_2.val());
        self.go_0.next = self.s.valid.val() & (!self.valid_1.q.val() | self.go_1.val());
        self.s.ready.next = !self.valid_1.q.val() | self.go_1.val();

        // ring and path
        self.ring.re.next = self.go_0.val();
        self.ring.rring.next = self.s.payload.val().qpn.get_bits::<Q>(0);
        self.ring.rslot.next = self.s.payload.val().slot;
        self.paths.re.next = self.go_0.val();
        self.paths.raddr.next = self.s.payload.val().qpn.get_bits::<Q>(0);
        if self.go_1.val() {
            self.valid_1.d.next = false;
        }
        if self.go_0.val() {
            self.valid_1.d.next = true;
            self.start_1.d.next = self.s.payload.val();
        }
        if self.go_2.val() {
            self.valid_2.d.next = false;
        }
        if self.go_1.val() {
            self.valid_2.d.next = true;
            self.start_2.d.next = self.start_1.q.val();
            self.word_2.d.next = self.ring.rdata.val();
            self.path_2.d.next = self.paths.rdata.val();
        }

        // byte offset; MTU code c is 128 << c bytes
        if self.go_3.val() {
            self.valid_3.d.next = false;
        }
        if self.go_2.val() {
            self.valid_3.d.next = true;
            self.start_3.d.next = self.start_2.q.val();
            self.word_3.d.next = self.word_2.q.val();
            self.offset_3.d.next =
                (bit_cast::<32, 24>(self.start_2.q.val().offset) << 7) << self.word_2.q.val().mtu;
            // Ethernet 14, IPv4 20 or IPv6 40, UDP 8, BTH 12; a VLAN tag 4
            self.lane_3.d.next = bits::<6>(54);
            if self.path_2.q.val() == 1 {
                self.lane_3.d.next = bits::<6>(10);
            } else if self.path_2.q.val() == 2 {
                self.lane_3.d.next = bits::<6>(58);
            } else if self.path_2.q.val() == 3 {
                self.lane_3.d.next = bits::<6>(14);
            }
        }

        // address
        if self.go_4.val() {
            self.valid_4.d.next = false;
        }
        if self.go_3.val() {
            self.valid_4.d.next = true;
            self.start_4.d.next = self.start_3.q.val();
            self.word_4.d.next = self.word_3.q.val();
            self.lane_4.d.next = self.lane_3.q.val();
            self.psn_4.d.next = self.word_3.q.val().psn + self.start_3.q.val().offset;
            self.addr_4.d.next = self.word_3.q.val().va + bit_cast::<64, 32>(self.offset_3.q.val());
            self.left_4.d.next = self.word_3.q.val().len - self.offset_3.q.val();
            if self.word_3.q.val().atomic {
                self.left_4.d.next = bits::<32>(8);
            }
        }

        // a packet a cycle
        if self.step.val() {
            self.psn.d.next = self.psn.q.val() + 1;
            self.offset.d.next = self.offset.q.val() + 1;
            self.count.d.next = self.count.q.val() - 1;
            self.addr.d.next = self.addr.q.val() + bit_cast::<64, 32>(self.mtu.q.val());
            self.left.d.next = self.rest.val();
            self.last.d.next = self.left.q.val() <= (self.mtu.q.val() << 1);
            self.plen.d.next = self.mtu.q.val().get_bits::<13>(0);
            if self.left.q.val() <= (self.mtu.q.val() << 1) {
                self.plen.d.next = self.rest.val().get_bits::<13>(0);
            }
            if self.ends.val() {
                self.active.d.next = false;
            }
        }
        self.mtu_4.next = bits::<32>(128) << self.word_4.q.val().mtu;
        if self.go_4.val() {
            self.active.d.next = true;
            self.start.d.next = self.start_4.q.val();
            self.word.d.next = self.word_4.q.val();
            self.lane.d.next = self.lane_4.q.val();
            self.psn.d.next = self.psn_4.q.val();
            self.offset.d.next = self.start_4.q.val().offset + 1;
            self.addr.d.next = self.addr_4.q.val();
            self.left.d.next = self.left_4.q.val();
            self.last.d.next = self.left_4.q.val() <= self.mtu_4.val();
            self.plen.d.next = self.mtu_4.val().get_bits::<13>(0);
            if self.left_4.q.val() <= self.mtu_4.val() {
                self.plen.d.next = self.left_4.q.val().get_bits::<13>(0);
            }
            self.mtu.d.next = self.mtu_4.val();
            self.count.d.next = bits::<8>(128);
            if self.word_4.q.val().mtu == 3 {
                self.count.d.next = bits::<8>(64);
            }
            if self.word_4.q.val().mtu == 4 {
                self.count.d.next = bits::<8>(32);
            }
            if self.word_4.q.val().mtu == 5 {
                self.count.d.next = bits::<8>(16);
            }
        }

        // out: the packet, its check, its atomic
        self.cut_v.d.next = self.step.val();
        self.cut_q.d.next.qpn = self.start.q.val().qpn;
        self.cut_q.d.next.psn = self.psn.q.val();
        self.cut_q.d.next.msn = self.word.q.val().msn;
        self.cut_q.d.next.addr = self.addr.q.val();
        self.cut_q.d.next.plen = self.plen.q.val();
        self.cut_q.d.next.lane = self.lane.q.val();
        self.cut_q.d.next.offset = self.offset.q.val();
        self.cut_q.d.next.generation = self.start.q.val().generation;
        self.cut_q.d.next.first = self.offset.q.val() == 1;
        self.cut_q.d.next.last = self.last.q.val();
        self.cut_q.d.next.ends = self.ends.val();
        self.cut_q.d.next.atomic = self.word.q.val().atomic;
        self.cut_q.d.next.duplicate = self.word.q.val().duplicate;
        self.cut_q.d.next.waits = self.waits.val();
        self.cut_q.d.next.blocked = !self.word.q.val().atomic;
        self.valid.next = self.cut_v.q.val();
        self.cut.next = self.cut_q.q.val();

        self.mr_q.d.next.key = self.word.q.val().rkey;
        self.mr_q.d.next.pd = self.word.q.val().pd;
        self.mr_q.d.next.qpn = self.start.q.val().qpn;
        self.mr_q.d.next.addr = self.addr.q.val();
        self.mr_q.d.next.len = bit_cast::<32, 13>(self.plen.q.val());
        self.mr_q.d.next.right = REMOTE_READ.into();
        if self.word.q.val().atomic {
            self.mr_q.d.next.right = REMOTE_ATOMIC.into();
        }
        if self.waits.val() | (self.word.q.val().atomic & self.word.q.val().duplicate) {
            self.mr_q.d.next.len = bits::<32>(0);
        }
        self.mr.valid.next = self.cut_v.q.val();
        self.mr.request.next = self.mr_q.q.val();

        self.atomic_v.d.next = self.taken.val();
        self.atomic_q.d.next.qpn = self.start.q.val().qpn;
        self.atomic_q.d.next.generation = self.start.q.val().generation;
        self.atomic_q.d.next.psn = self.psn.q.val();
        self.atomic_q.d.next.msn = self.word.q.val().msn;
        self.atomic_q.d.next.va = self.addr.q.val();
        self.atomic_q.d.next.add = self.word.q.val().add;
        self.atomic_q.d.next.duplicate = self.word.q.val().duplicate;
        self.atomic_q.d.next.swap_add = self.word.q.val().swap_add;
        self.atomic_q.d.next.compare = self.word.q.val().compare;
        self.atomic_q.d.next.save = self.start.q.val().save;
        self.atomic_q.d.next.saved = self.start.q.val().saved;
        self.atomic_valid.next = self.atomic_v.q.val();
        self.atomic.next = self.atomic_q.q.val();

        self.gone.d.next = self.passed.val();
        if self.step.val() & !self.gone.q.val() {
            self.room.d.next = self.room.q.val() + 1;
        } else if !self.step.val() & self.gone.q.val() {
            self.room.d.next = self.room.q.val() - 1;
        }
        if self.taken.val() & !self.returned.val() {
            self.atomics.d.next = self.atomics.q.val() + 1;
        } else if !self.taken.val() & self.returned.val() {
            self.atomics.d.next = self.atomics.q.val() - 1;
        }
        self.busy.next = self.room.q.val().any() | self.atomics.q.val().any();
        self.moved.next = self.returned.val() | (self.gone.q.val() & !self.atomics.q.val().any());
    }
}
