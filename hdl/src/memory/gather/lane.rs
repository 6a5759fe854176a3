//! One lane of `gather`: collects payload of which the beats come rotated.
//!
//! ```text
//!  command ─► space for it? ─┬─► request (dma_read)
//!                            └─► piece FIFO ─► rotation
//!  beats ─► byte-enabled write of two beats at once: ─► packet ends ─► packet
//!           RAM of even beats, RAM of odd beats ─────────────────────► payload
//! ```
//!
//! The pieces of a packet leave packed: the first byte stands at the lane its command names, the others follow without
//! gaps. A memory beat, rotated to its place, touches at most two neighbouring payload beats; these are in different
//! RAMs, and byte enables put both parts away in one cycle. So the block takes a memory beat in every cycle whatever the
//! alignment, and never stalls the R channel: space is taken before a read is asked for, to the beat.
//!
//! `packet` announces a packet when all of its payload is there; its payload then comes a beat a cycle as long as
//! `payload.ready` is 1, with no idle cycle to the next packet that was announced. A failed read is told by the token;
//! the beats of the packet come as usual, with undefined data. A packet that `wanted` tells not to be is forgotten when all
//! of it is there: it takes one cycle, and has no token.
//!
//! Parameters: 2 * 2^A payload beats, 2^P pieces and as many packets under way. Commands: 1 to 4096 bytes.
//! Throughput: a command, a memory beat and a payload beat a cycle. Latency: `command.valid` to `request.valid` 1 cycle;
//! last memory beat to `packet.valid` 2 cycles and to the first payload beat 4.
//!
//! Assumes: the pieces of a packet come in order, `first` and `last` set; a packet has at most 4096 bytes.
use crate::bus::types::{Activity, GatherCmd, PayloadToken, ReadReq};
use crate::memory::align::{Align, LaneMasks};
use crate::memory::types::{PacketEnd, Piece};
use crate::prelude::*;

use super::space::GatherSpace;

/// Payload collector of one lane.
#[derive(LogicBlock)]
pub struct GatherLane<const W: usize, const K: usize, const A: usize, const P: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Pieces to collect.
    pub command: StreamIn<GatherCmd>,
    /// Reads.
    pub request: StreamOut<ReadReq>,
    /// Their answers; the data is not looked at.
    pub beats: ReadBeatIn<W>,
    /// Lanes by which the beat is to be moved up that is there, or comes next.
    pub rotation: Signal<Out, Bits<6>>,
    /// The data of the beat of the last cycle, moved.
    pub rotated: Signal<In, Bits<W>>,
    /// Of each packet: it is to be announced; else it is forgotten.
    pub wanted: StreamIn<Bit>,
    /// Packets whose payload is there.
    pub packet: StreamOut<PayloadToken>,
    /// The payload.
    pub payload: PayloadOut<W>,
    /// Pieces that are not answered.
    pub activity: Signal<Out, Activity>,
    requests: Skid<ReadReq>,
    align: Align<K>,
    pieces: Fifo<Piece, P>,
    /// Lane behind the last byte of the command before.
    lane: Dff<Bits<6>>,
    space: GatherSpace<K, A>,
    /// Packets commanded and not announced.
    open: Reg<Bits<16>>,
    masks: LaneMasks<K>,
    /// The next memory beat is the first of its piece.
    fresh: Reg<Bit>,
    arrived: Reg<Bit>,
    closing: Dff<Bit>,
    start: Dff<Bits<6>>,
    behind: Dff<Bits<7>>,
    failed: Reg<Bit>,
    write: Reg<Bits<16>>,
    ram: [RamBytes<W, K, A>; 2],
    ends: Bypass<PacketEnd, P>,
    tokens: Skid<PayloadToken>,
    reading: Reg<Bit>,
    read: Reg<Bits<16>>,
    /// The last beat of the packet.
    stop: Dff<Bits<16>>,
    /// Stages of the RAMs: latch and output register.
    latched: Reg<Bit>,
    latched_last: Dff<Bit>,
    latched_odd: Dff<Bit>,
    shown: Reg<Bit>,
    shown_last: Dff<Bit>,
    shown_odd: Dff<Bit>,
    start_lane: Signal<Local, Bits<6>>,
    fresh_beat: Signal<Local, Bit>,
    piece: Signal<Local, Piece>,
    can_take: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
    needed: Signal<Local, Bits<16>>,
    packet_done: Signal<Local, Bit>,
    full: Signal<Local, Bit>,
    over: Signal<Local, Bit>,
    next_write: Signal<Local, Bits<16>>,
    /// Pairs of beats, to that behind the one of `write`.
    pairs: Signal<Local, Bits<16>>,
    packet_end: Signal<Local, PacketEnd>,
    show: Signal<Local, Bit>,
    fetch: Signal<Local, Bit>,
    last_fetch: Signal<Local, Bit>,
    judged: Signal<Local, Bit>,
    load: Signal<Local, Bit>,
    forget: Signal<Local, Bit>,
    closes: Signal<Local, Bit>,
    /// `read` behind the beat that is fetched.
    read_on: Signal<Local, Bits<16>>,
    beat: Constant<Bits<7>>,
    lanes: Constant<Bits<6>>,
    /// Bits of the number of beats of a packet.
    packet_beats: Constant<Bits<16>>,
    packets: Constant<Bits<16>>,
    /// Bits of a count of payload beats, and one more.
    mask: Constant<Bits<16>>,
}

impl<const W: usize, const K: usize, const A: usize, const P: usize> Default
    for GatherLane<W, K, A, P>
{
    fn default() -> Self {
        assert!(
            (3..A + 2).contains(&P),
            "2^{P} pieces under way: 2^3 to 2^{} can be built",
            A + 1
        );
        Self {
            clock: ClkRst::default(),
            command: StreamIn::default(),
            request: StreamOut::default(),
            beats: ReadBeatIn::default(),
            rotation: Signal::default(),
            rotated: Signal::default(),
            wanted: StreamIn::default(),
            packet: StreamOut::default(),
            activity: Signal::default(),
            payload: PayloadOut::default(),
            requests: Skid::default(),
            align: Align::default(),
            pieces: Fifo::new(Style::Distributed),
            lane: Dff::default(),
            space: GatherSpace::default(),
            open: Reg::default(),
            masks: LaneMasks::default(),
            fresh: Reg::new(true),
            arrived: Reg::default(),
            closing: Dff::default(),
            start: Dff::default(),
            behind: Dff::default(),
            failed: Reg::default(),
            write: Reg::default(),
            ram: Default::default(),
            ends: Bypass::new(Style::Distributed),
            tokens: Skid::default(),
            reading: Reg::default(),
            read: Reg::default(),
            stop: Dff::default(),
            latched: Reg::default(),
            latched_last: Dff::default(),
            latched_odd: Dff::default(),
            shown: Reg::default(),
            shown_last: Dff::default(),
            shown_odd: Dff::default(),
            start_lane: Signal::default(),
            fresh_beat: Signal::default(),
            piece: Signal::default(),
            can_take: Signal::default(),
            take: Signal::default(),
            needed: Signal::default(),
            packet_done: Signal::default(),
            full: Signal::default(),
            over: Signal::default(),
            next_write: Signal::default(),
            pairs: Signal::default(),
            packet_end: Signal::default(),
            show: Signal::default(),
            fetch: Signal::default(),
            last_fetch: Signal::default(),
            judged: Signal::default(),
            load: Signal::default(),
            forget: Signal::default(),
            closes: Signal::default(),
            read_on: Signal::default(),
            beat: Constant::new((K as u64).to_bits()),
            lanes: Constant::new((K as u64 - 1).to_bits()),
            packet_beats: Constant::new((8192 / K as u64 - 1).to_bits()),
            packets: Constant::new((1u64 << P).to_bits()),
            mask: Constant::new(((4u64 << A) - 1).to_bits()),
        }
    }
}

impl<const W: usize, const K: usize, const A: usize, const P: usize> Logic
    for GatherLane<W, K, A, P>
{
    describe!(
        "gather_lane",
        format!("{W}_{A}_{P}"),
        "Collects the payload of packets of one lane."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, requests, pieces, ends, tokens, space);
        dff_setup!(
            self, clock, lane, open, fresh, arrived, closing, start, behind, failed, write
        );
        dff_setup!(self, clock, reading, read, stop);
        dff_setup!(self, clock, latched, latched_last, latched_odd);
        dff_setup!(self, clock, shown, shown_last, shown_odd);

        // Command: where its bytes go, and the payload beats it newly touches.
        self.align.source.next =
            bit_cast::<6, 64>(self.command.payload.val().addr) & self.lanes.val();
        self.start_lane.next = self.lane.q.val();
        self.fresh_beat.next = self.lane.q.val() == 0;
        if self.command.payload.val().first {
            self.start_lane.next = self.command.payload.val().lane & self.lanes.val();
            self.fresh_beat.next = true;
        }
        self.align.target.next = self.start_lane.val();
        self.align.len.next = self.command.payload.val().len;
        self.piece.next.rotation = self.align.fit.val().rotation;
        self.piece.next.start = self.align.fit.val().start;
        self.piece.next.first_end = self.align.fit.val().first_end;
        self.piece.next.last_end = self.align.fit.val().last_end;
        self.piece.next.last = self.command.payload.val().last;
        self.needed.next = bit_cast::<16, 10>(self.align.target_more.val());
        if self.fresh_beat.val() {
            self.needed.next = bit_cast::<16, 10>(self.align.target_more.val()) + 1;
        }

        self.can_take.next = self.requests.s.ready.val()
            & self.pieces.s.ready.val()
            & self.space.roomy.val()
            & !(self.open.q.val() & self.packets.val()).any();
        self.take.next = self.can_take.val() & self.command.valid.val();
        self.command.ready.next = self.can_take.val();
        self.requests.s.valid.next = self.take.val();
        self.requests.s.payload.next.addr = self.command.payload.val().addr;
        self.requests.s.payload.next.len = self.command.payload.val().len;
        StreamOut::<ReadReq>::link(&mut self.request, &mut self.requests.m);
        self.pieces.s.valid.next = self.take.val();
        self.pieces.s.payload.next = self.piece.val();
        self.space.claim.next = bits::<16>(0);
        if self.take.val() {
            self.lane.d.next = self.align.target_next.val();
            self.space.claim.next = self.needed.val();
        }

        // Memory beat: put away one cycle later.
        self.rotation.next = self.pieces.m.payload.val().rotation;
        self.arrived.d.next = self.beats.valid.val();
        self.closing.d.next = self.beats.last.val() & self.pieces.m.payload.val().last;
        self.pieces.m.ready.next = self.beats.valid.val() & self.beats.last.val();
        self.start.d.next = self.pieces.m.payload.val().rotation;
        self.behind.d.next =
            bit_cast::<7, 6>(self.pieces.m.payload.val().rotation) + self.beat.val();
        if self.fresh.q.val() {
            self.start.d.next = self.pieces.m.payload.val().start;
            self.behind.d.next = self.pieces.m.payload.val().first_end;
        } else if self.beats.last.val() {
            self.behind.d.next = self.pieces.m.payload.val().last_end;
        }
        if self.beats.valid.val() {
            self.fresh.d.next = self.beats.last.val();
        }

        // Its bytes: those of its first lanes in beat `write`, the others in the one behind it; even beats are in RAM 0.
        self.masks.start.next = self.start.q.val();
        self.masks.behind.next = self.behind.q.val();
        self.masks.enable.next = self.arrived.q.val();
        self.masks.swap.next = self.write.q.val().get_bit(0);
        self.full.next = (self.behind.q.val() & self.beat.val()).any();
        self.over.next = self.full.val() & (self.behind.q.val() & (self.beat.val() - 1)).any();
        for i in 0..2 {
            ClkRst::link(&mut self.clock, &mut self.ram[i].clock);
            self.ram[i].wdata.next = self.rotated.val();
            self.ram[i].waddr.next = self.write.q.val().get_bits::<A>(1);
        }
        self.ram[0].we.next = self.masks.low.val();
        self.ram[1].we.next = self.masks.high.val();
        if self.write.q.val().get_bit(0) {
            self.ram[0].waddr.next = self.write.q.val().get_bits::<A>(1) + 1;
        }
        self.packet_done.next = self.arrived.q.val() & self.closing.q.val();
        // two sums beside each other, of different bits lest they share one behind the choice
        self.pairs.next = (self.write.q.val() >> 1) + 1;
        self.next_write.next = self.write.q.val();
        if self.full.val() | self.closing.q.val() {
            self.next_write.next = self.write.q.val() + 1;
        }
        if self.over.val() & self.closing.q.val() {
            self.next_write.next = (self.pairs.val() << 1) | (self.write.q.val() & 1);
        }
        if self.arrived.q.val() {
            self.write.d.next = self.next_write.val() & self.mask.val();
        }
        if self.packet_done.val() {
            self.failed.d.next = false;
        }
        if self.beats.valid.val() & self.beats.error.val() {
            self.failed.d.next = true;
        }
        self.packet_end.next.end = self.next_write.val() & self.mask.val();
        self.packet_end.next.error = self.failed.q.val();
        self.ends.s.valid.next = self.packet_done.val();
        self.ends.s.payload.next = self.packet_end.val();

        // Payload: a beat a cycle from packet to packet.
        self.show.next = !self.shown.q.val() | self.payload.ready.val();
        self.fetch.next = self.reading.q.val() & (!self.latched.q.val() | self.show.val());
        // a packet has fewer beats than these bits count
        self.last_fetch.next =
            !((self.read.q.val() ^ self.stop.q.val()) & self.packet_beats.val()).any();
        self.judged.next = self.ends.m.valid.val()
            & self.wanted.valid.val()
            & (!self.reading.q.val() | (self.fetch.val() & self.last_fetch.val()));
        self.load.next = self.judged.val() & self.wanted.payload.val() & self.tokens.s.ready.val();
        self.forget.next = self.judged.val() & !self.wanted.payload.val();
        self.ends.m.ready.next = self.load.val() | self.forget.val();
        self.wanted.ready.next = self.load.val() | self.forget.val();
        self.tokens.s.valid.next = self.load.val();
        self.tokens.s.payload.next.error = self.ends.m.payload.val().error;
        StreamOut::<PayloadToken>::link(&mut self.packet, &mut self.tokens.m);
        if self.load.val() {
            self.reading.d.next = true;
            self.stop.d.next = (self.ends.m.payload.val().end - 1) & self.mask.val();
        } else if self.fetch.val() & self.last_fetch.val() {
            self.reading.d.next = false;
        }
        for i in 0..2 {
            self.ram[i].raddr.next = self.read.q.val().get_bits::<A>(1);
            self.ram[i].oe.next = self.show.val();
        }
        self.ram[0].re.next = self.fetch.val() & !self.read.q.val().get_bit(0);
        self.ram[1].re.next = self.fetch.val() & self.read.q.val().get_bit(0);
        if self.show.val() {
            self.shown.d.next = self.latched.q.val();
            self.shown_last.d.next = self.latched_last.q.val();
            self.shown_odd.d.next = self.latched_odd.q.val();
            self.latched.d.next = false;
        }
        self.read_on.next = self.read.q.val();
        if self.fetch.val() {
            self.read_on.next = (self.read.q.val() + 1) & self.mask.val();
            self.latched.d.next = true;
            self.latched_last.d.next = self.last_fetch.val();
            self.latched_odd.d.next = self.read.q.val().get_bit(0);
        }
        self.read.d.next = self.read_on.val();
        if self.forget.val() {
            self.read.d.next = self.ends.m.payload.val().end & self.mask.val();
        }
        self.payload.valid.next = self.shown.q.val();
        self.payload.last.next = self.shown_last.q.val();
        self.payload.data.next = self.ram[0].rdata.val();
        if self.shown_odd.q.val() {
            self.payload.data.next = self.ram[1].rdata.val();
        }

        self.activity.next.busy = self.command.valid.val() | self.pieces.m.valid.val();
        self.activity.next.moved = self.beats.valid.val() & self.beats.last.val();

        self.space.fetch.next = self.fetch.val();
        self.space.forget.next = self.forget.val();
        self.space.read.next = self.read.q.val();
        self.space.read_on.next = self.read_on.val();
        self.closes.next = self.load.val() | self.forget.val();
        if self.take.val() & self.command.payload.val().last & !self.closes.val() {
            self.open.d.next = (self.open.q.val() + 1) & self.mask.val();
        } else if self.closes.val() & !(self.take.val() & self.command.payload.val().last) {
            // not a difference: that would share its carry chain with the sum, behind the choice
            self.open.d.next = !(!self.open.q.val() + 1) & self.mask.val();
        }
    }
}
