//! Packet buffer: keeps or forgets a frame as a whole, at its end.
//!
//! Beats that hold payload are written as they come; at the last beat of the frame, when everything about it is known,
//! they are committed and announced by an [`RxMeta`], or the write pointer goes back. Nothing can be read before that.
//! The input is never held up: a frame for which there is no room, neither for a beat nor for its `RxMeta`, is
//! dropped as a whole. Each frame is counted once, by its fate.
//!
//! `meta` and `beats` are streams of their own, with the packets in the same order; a packet without payload has no
//! beat. An `RxMeta` can be taken two cycles after the last beat of its frame entered, a beat three cycles after. A
//! beat and a frame a cycle in, a beat and an `RxMeta` a cycle out.
//!
//! Holds 2^A beats and 2^M packets.

// The accessors that the derive generates have no documentation.
#![allow(missing_docs)]

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
    /// Good packets.
    pub meta: StreamOut<RxMeta>,
    /// Their payload.
    pub beats: PayloadOut<W>,
    /// What became of the frame.
    pub stats: Signal<Out, RxStats>,
    ram: Ram<Bits<W>, A>,
    end_ram: Ram<Bit, A>,
    fifo: Fifo<RxMeta, M>,
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
    take: Signal<Local, Bit>,
    fetch: Signal<Local, Bit>,
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
            meta: StreamOut::default(),
            beats: PayloadOut::default(),
            stats: Signal::default(),
            ram: Ram::new(Style::Block),
            end_ram: Ram::new(Style::Block),
            fifo: Fifo::default(),
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
            take: Signal::default(),
            fetch: Signal::default(),
        }
    }
}

impl<const W: usize, const A: usize, const M: usize> Logic for PacketBuffer<W, A, M> {
    describe!(
        "packet_buffer",
        format!("w{W}_{}_{}", 1usize << A, 1usize << M),
        "Keeps or forgets received frames as a whole."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, ram, end_ram, fifo);
        dff_setup!(
            self, clock, write, committed, read, limit, lost, held, out, out_last, out_valid,
            stats_q
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
        self.fifo.s.valid.next =
            self.beat.val().accept & self.icrc_good.val() & !self.overflow.val();
        self.fifo.s.payload.next = self.packet.val();
        self.keep.next = self.beat.val().accept
            & self.icrc_good.val()
            & !self.overflow.val()
            & self.fifo.s.ready.val();
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
        self.fetch.next =
            (self.read.q.val() != self.committed.q.val()) & (self.take.val() | !self.held.q.val());
        self.ram.re.next = self.fetch.val();
        self.ram.raddr.next = bit_cast::<A, 16>(self.read.q.val());
        self.end_ram.re.next = self.fetch.val();
        self.end_ram.raddr.next = bit_cast::<A, 16>(self.read.q.val());
        if self.fetch.val() {
            self.read.d.next = self.read.q.val() + 1;
            self.limit.d.next = self.limit.q.val() + 1;
            self.held.d.next = true;
        } else if self.take.val() {
            self.held.d.next = false;
        }
        if self.take.val() {
            self.out_valid.d.next = self.held.q.val();
            self.out.d.next = self.ram.rdata.val();
            self.out_last.d.next = self.end_ram.rdata.val();
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
