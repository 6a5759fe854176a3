//! Packet buffer: keeps or forgets a frame as a whole, at its end.
//!
//! Beats that hold payload are written as they come; at the last beat of the frame, when everything about it is known,
//! they are committed and announced by an [`RxMeta`], or the write pointer goes back. Nothing can be read before that.
//! The input is never held up: a frame for which there is no room, neither for a beat nor for its `RxMeta`, is
//! dropped as a whole. Each frame is counted once, by its fate.
//!
//! `meta` and `beats` are streams of their own, with the packets in the same order; a packet without payload has no
//! beat. An `RxMeta` can be taken in the cycle in which the last beat of its frame enters, a beat three cycles after. A
//! beat and a frame a cycle in, a beat and an `RxMeta` a cycle out.
//!
//! What of a packet goes to the host and stands in its headers (`extra`) has a queue of its own, so that it takes no
//! cycle of the way in. On the way out the GRH of a datagram makes ceil(40 / K) beats from lane 0 on, in front of those
//! of its payload; the last of them is marked like the last of the payload. The original value of an atomic is the one
//! beat of its packet.
//!
//! ```text
//!  beat ─► RAM ─────────────────────┐
//!  extra ─► queue ──────────────────┼─► register ─► beats
//!  last beat, kept ─► shapes ─ whose turn? ┘
//!                └──► queue ──────────────────────► meta
//! ```
//!
//! Holds 2^A beats and 2^M packets.

// The accessors that the derive generates have no documentation.
#![allow(missing_docs)]

use super::rx_fields::GRH_BITS;
use crate::bus::dma::PayloadOut;
use crate::bus::types::RxMeta;
use crate::cell::fifo::Fifo;
use crate::cell::ram::{Ram, Style};
use crate::prelude::*;

/// A beat on its way into the buffer, and in the last beat of a frame what is known of it. All 0 without a beat.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct RxBeat {
    /// The beat holds payload.
    pub store: Bit,
    /// It holds the last byte of the payload.
    pub payload_end: Bit,
    /// Last beat of the frame; only then one of the following is 1.
    pub last: Bit,
    /// The frame is good if its ICRC is.
    pub accept: Bit,
    /// The frame is marked bad.
    pub bad: Bit,
    /// It is too short, or its lengths or headers contradict each other.
    pub malformed: Bit,
    /// It is for another MAC or IP address.
    pub wrong_address: Bit,
    /// It is well addressed but not RoCEv2.
    pub not_roce: Bit,
    /// With `accept`: `extra` goes to the host, as its `RxMeta` says as a GRH or as the original value of an atomic.
    pub extra: Bit,
}

/// The beats of a packet: it has some.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Shape {
    /// From the queue of `extra`.
    extra: Bit,
    /// These are a GRH.
    grh: Bit,
    /// From the RAM, behind those.
    payload: Bit,
}

/// Events for the statistics block: each 1 for one cycle a frame, named as in `abi::regs::STATS`.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct RxStats {
    /// A frame has arrived.
    pub rx_frames: Bit,
    /// It is a good RoCEv2 packet and handed on.
    pub rx_roce_packets: Bit,
    /// It was marked bad.
    pub rx_bad_frames: Bit,
    /// Its ICRC is wrong.
    pub rx_icrc_errors: Bit,
    /// Its headers or lengths are wrong.
    pub rx_malformed: Bit,
    /// It is no RoCEv2 packet.
    pub rx_not_roce: Bit,
    /// There was no room for it.
    pub rx_overflow: Bit,
    /// It is for another MAC or IP address.
    pub rx_wrong_address: Bit,
}

/// The block.
#[derive(Clone, Debug, LogicBlock)]
pub struct PacketBuffer<const W: usize, const A: usize, const M: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// The beat that enters.
    pub beat: Signal<In, RxBeat>,
    /// Its bytes.
    pub data: Signal<In, Bits<W>>,
    /// In the last beat: the ICRC is good.
    pub icrc_good: Signal<In, Bit>,
    /// In the last beat: the packet.
    pub packet: Signal<In, RxMeta>,
    /// In the last beat of a packet that has it: its GRH, or the original value of an atomic.
    pub extra: Signal<In, Bits<GRH_BITS>>,
    /// Good packets.
    pub meta: StreamOut<RxMeta>,
    /// Their payload.
    pub beats: PayloadOut<W>,
    /// What became of the frame.
    pub stats: Signal<Out, RxStats>,
    ram: Ram<Bits<W>, A>,
    end_ram: Ram<Bit, A>,
    fifo: Bypass<RxMeta, M>,
    extras: Fifo<Bits<GRH_BITS>, M>,
    shapes: Fifo<Shape, M>,
    // Beats of the packet's `extra` that are out; all are.
    step: Reg<Bits<3>>,
    done: Reg<Bit>,
    // Pointers run freely; the low A bits address the RAM.
    write: Reg<Bits<16>>,
    committed: Reg<Bits<16>>,
    read: Reg<Bits<16>>,
    limit: Reg<Bits<16>>,
    lost: Reg<Bit>,
    held: Reg<Bit>,
    out: Dff<Bits<W>>,
    out_last: Dff<Bit>,
    out_valid: Reg<Bit>,
    stats_q: Reg<RxStats>,
    full: Signal<Local, Bit>,
    put: Signal<Local, Bit>,
    written: Signal<Local, Bits<16>>,
    overflow: Signal<Local, Bit>,
    keep: Signal<Local, Bit>,
    room: Signal<Local, Bit>,
    original: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
    at_extra: Signal<Local, Bit>,
    extra_end: Signal<Local, Bit>,
    leave: Signal<Local, Bit>,
    pull: Signal<Local, Bit>,
    fetch: Signal<Local, Bit>,
    chunk: Signal<Local, Bits<64>>,
    word: Signal<Local, Bits<W>>,
}

impl<const W: usize, const A: usize, const M: usize> PacketBuffer<W, A, M> {
    /// Beats of a GRH less one.
    const GRH_MORE: u64 = {
        assert!(
            W == 64 || W >= GRH_BITS,
            "a GRH is cut into beats of 64 bits or fits in one"
        );
        GRH_BITS.div_ceil(W) as u64 - 1
    };
}

impl<const W: usize, const A: usize, const M: usize> Default for PacketBuffer<W, A, M> {
    fn default() -> Self {
        assert!(
            (1..16).contains(&A),
            "packet buffer of 2^{A} beats: up to 2^15 can be built"
        );
        Self {
            clock: ClkRst::default(),
            beat: Signal::default(),
            data: Signal::default(),
            icrc_good: Signal::default(),
            packet: Signal::default(),
            extra: Signal::default(),
            meta: StreamOut::default(),
            beats: PayloadOut::default(),
            stats: Signal::default(),
            ram: Ram::new(Style::Block),
            end_ram: Ram::new(Style::Block),
            fifo: Bypass::default(),
            extras: Fifo::default(),
            shapes: Fifo::default(),
            step: Reg::default(),
            done: Reg::default(),
            write: Reg::default(),
            committed: Reg::default(),
            read: Reg::default(),
            limit: Reg::new((1_u64 << A).to_bits()),
            lost: Reg::default(),
            held: Reg::default(),
            out: Dff::default(),
            out_last: Dff::default(),
            out_valid: Reg::default(),
            stats_q: Reg::default(),
            full: Signal::default(),
            put: Signal::default(),
            written: Signal::default(),
            overflow: Signal::default(),
            keep: Signal::default(),
            room: Signal::default(),
            original: Signal::default(),
            take: Signal::default(),
            at_extra: Signal::default(),
            extra_end: Signal::default(),
            leave: Signal::default(),
            pull: Signal::default(),
            fetch: Signal::default(),
            chunk: Signal::default(),
            word: Signal::default(),
        }
    }
}

impl<const W: usize, const A: usize, const M: usize> Logic for PacketBuffer<W, A, M> {
    describe!(
        "packet_buffer",
        format!("w{W}_{}_{}", 1usize << A, 1usize << M),
        "Keeps or forgets received frames as a whole.";
        W, Self::GRH_MORE
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, ram, end_ram, fifo, extras, shapes);
        dff_setup!(
            self, clock, write, committed, read, limit, lost, held, out, out_last, out_valid,
            stats_q, step, done
        );
        // Write.
        self.full.next = self.write.q.val() == self.limit.q.val();
        self.put.next = self.beat.val().store & !self.full.val() & !self.lost.q.val();
        self.overflow.next = self.lost.q.val() | (self.beat.val().store & self.full.val());
        self.written.next = self.write.q.val();
        if self.put.val() {
            self.written.next = self.write.q.val() + 1;
        }
        self.ram.we.next = self.put.val();
        self.ram.waddr.next = bit_cast::<A, 16>(self.write.q.val());
        self.ram.wdata.next = self.data.val();
        self.end_ram.we.next = self.put.val();
        self.end_ram.waddr.next = bit_cast::<A, 16>(self.write.q.val());
        self.end_ram.wdata.next = self.beat.val().payload_end;
        // Keep or forget.
        self.room.next =
            self.fifo.s.ready.val() & self.extras.s.ready.val() & self.shapes.s.ready.val();
        self.keep.next =
            self.beat.val().accept & self.icrc_good.val() & !self.overflow.val() & self.room.val();
        self.original.next = self.beat.val().extra & !self.packet.val().grh;
        self.fifo.s.valid.next = self.keep.val();
        self.fifo.s.payload.next = self.packet.val();
        self.extras.s.valid.next = self.keep.val() & self.beat.val().extra;
        self.extras.s.payload.next = self.extra.val();
        self.shapes.s.valid.next =
            self.keep.val() & (self.beat.val().extra | self.packet.val().beats.any());
        self.shapes.s.payload.next.extra = self.beat.val().extra;
        self.shapes.s.payload.next.grh = self.packet.val().grh;
        self.shapes.s.payload.next.payload = self.packet.val().beats.any() & !self.original.val();
        self.write.d.next = self.written.val();
        self.lost.d.next = self.overflow.val();
        if self.beat.val().last {
            self.lost.d.next = false;
            self.write.d.next = self.committed.q.val();
        }
        if self.keep.val() {
            self.write.d.next = self.written.val();
            self.committed.d.next = self.written.val();
        }
        StreamOut::<RxMeta>::link(&mut self.meta, &mut self.fifo.m);
        // Read.
        self.take.next = self.beats.ready.val() | !self.out_valid.q.val();
        self.at_extra.next = self.shapes.m.valid.val()
            & self.shapes.m.payload.val().extra
            & self.extras.m.valid.val()
            & !self.done.q.val();
        self.extra_end.next =
            !self.shapes.m.payload.val().grh | (self.step.q.val() == Self::GRH_MORE);
        self.leave.next = self.shapes.m.valid.val()
            & self.shapes.m.payload.val().payload
            & (!self.shapes.m.payload.val().extra | self.done.q.val())
            & self.held.q.val();
        self.pull.next = self.take.val() & self.leave.val();
        self.fetch.next =
            (self.read.q.val() != self.committed.q.val()) & (self.pull.val() | !self.held.q.val());
        self.ram.re.next = self.fetch.val();
        self.ram.raddr.next = bit_cast::<A, 16>(self.read.q.val());
        self.end_ram.re.next = self.fetch.val();
        self.end_ram.raddr.next = bit_cast::<A, 16>(self.read.q.val());
        if self.fetch.val() {
            self.read.d.next = self.read.q.val() + 1;
            self.limit.d.next = self.limit.q.val() + 1;
            self.held.d.next = true;
        } else if self.pull.val() {
            self.held.d.next = false;
        }
        // Whose turn it is: `extra`, then the RAM.
        self.chunk.next = self.extras.m.payload.val().get_bits::<64>(0);
        match self.step.q.val().index() {
            1 => {
                self.chunk.next = self.extras.m.payload.val().get_bits::<64>(64);
            }
            2 => {
                self.chunk.next = self.extras.m.payload.val().get_bits::<64>(128);
            }
            3 => {
                self.chunk.next = self.extras.m.payload.val().get_bits::<64>(192);
            }
            4 => {
                self.chunk.next = self.extras.m.payload.val().get_bits::<64>(256);
            }
            _ => {}
        }
        self.word.next = bit_cast::<W, GRH_BITS>(self.extras.m.payload.val());
        if W == 64 {
            self.word.next = bit_cast::<W, 64>(self.chunk.val());
        }
        self.extras.m.ready.next = self.take.val() & self.at_extra.val() & self.extra_end.val();
        self.shapes.m.ready.next = (self.take.val()
            & self.at_extra.val()
            & self.extra_end.val()
            & !self.shapes.m.payload.val().payload)
            | (self.pull.val() & self.end_ram.rdata.val());
        if self.take.val() {
            self.out_valid.d.next = self.at_extra.val() | self.leave.val();
            self.out.d.next = self.ram.rdata.val();
            self.out_last.d.next = self.end_ram.rdata.val();
            if self.at_extra.val() {
                self.out.d.next = self.word.val();
                self.out_last.d.next = self.extra_end.val();
                self.step.d.next = self.step.q.val() + 1;
                if self.extra_end.val() {
                    self.step.d.next = bits::<3>(0);
                    self.done.d.next = self.shapes.m.payload.val().payload;
                }
            } else if self.leave.val() & self.end_ram.rdata.val() {
                self.done.d.next = false;
            }
        }
        self.beats.data.next = self.out.q.val();
        self.beats.last.next = self.out_last.q.val();
        self.beats.valid.next = self.out_valid.q.val();
        // Count.
        self.stats_q.d.next.rx_frames = self.beat.val().last;
        self.stats_q.d.next.rx_roce_packets = self.keep.val();
        self.stats_q.d.next.rx_bad_frames = self.beat.val().bad;
        self.stats_q.d.next.rx_icrc_errors = self.beat.val().accept & !self.icrc_good.val();
        self.stats_q.d.next.rx_malformed = self.beat.val().malformed;
        self.stats_q.d.next.rx_not_roce = self.beat.val().not_roce;
        self.stats_q.d.next.rx_overflow =
            self.beat.val().accept & self.icrc_good.val() & !self.keep.val();
        self.stats_q.d.next.rx_wrong_address = self.beat.val().wrong_address;
        self.stats.next = self.stats_q.q.val();
    }
}
