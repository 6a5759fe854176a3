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
//! `moves` tells what is kept and what leaves, by class, for [`PauseOut`](super::pause_out::PauseOut), which says in `refuse` of
//! which classes no frame is kept.
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
use crate::egress::CLASSES;
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
    packet_class: Bits<2>,
}

/// What a cycle changes of what the buffer holds.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct BufferMoves {
    /// A packet is kept.
    pub kept: Bit,
    /// Its class.
    pub kept_class: Bits<2>,
    /// The beats of payload that it takes.
    pub kept_beats: Bits<10>,
    /// A beat of payload leaves.
    pub beat: Bit,
    /// It, or a beat of `extra`, is the last one of its packet.
    pub last: Bit,
    /// Class of the packet whose beat that is.
    pub beat_class: Bits<2>,
    /// An `RxMeta` leaves that no beat follows.
    pub bare: Bit,
    /// Its class.
    pub bare_class: Bits<2>,
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
    /// There was no room for it, or none for its class.
    pub rx_overflow: Bit,
    /// It is for another MAC or IP address.
    pub rx_wrong_address: Bit,
}

/// The block.
#[derive(Clone, Debug, Block)]
#[block(check)]
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
    /// Classes of which no frame is kept.
    pub refuse: Signal<In, Bits<CLASSES>>,
    /// What enters and leaves.
    pub moves: Signal<Out, BufferMoves>,
    /// Good packets.
    pub meta: StreamOut<RxMeta>,
    /// Their payload.
    pub beats: PayloadOut<W>,
    /// What became of the frame.
    pub stats: Signal<Out, RxStats>,
    #[init(Ram::new(Style::Block))]
    ram: Ram<Bits<W>, A>,
    #[init(Ram::new(Style::Block))]
    end_ram: Ram<Bit, A>,
    fifo: Bypass<RxMeta, M>,
    extras: Deep<Bits<GRH_BITS>, M>,
    shapes: Fifo<Shape, M>,
    // Beats of the packet's `extra` that are out; all are.
    step: Reg<Bits<3>>,
    done: Reg<Bit>,
    // Pointers run freely; the low A bits address the RAM.
    write: Reg<Bits<16>>,
    committed: Reg<Bits<16>>,
    read: Reg<Bits<16>>,
    #[init(Reg::new((1_u64 << A).to_bits()))]
    limit: Reg<Bits<16>>,
    lost: Reg<Bit>,
    held: Reg<Bit>,
    out: Dff<Bits<W>>,
    out_last: Dff<Bit>,
    out_valid: Reg<Bit>,
    stats_q: Reg<RxStats>,
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

impl<const W: usize, const A: usize, const M: usize> PacketBuffer<W, A, M> {
    fn check() {
        assert!(
            (1..16).contains(&A),
            "packet buffer of 2^{A} beats: up to 2^15 can be built"
        );
    }
}

impl<const W: usize, const A: usize, const M: usize> Logic for PacketBuffer<W, A, M> {
    describe!(
        "packet_buffer",
        format!("w{W}_{}_{}", 1usize << A, 1usize << M),
        "Keeps or forgets received frames as a whole."
    );

    #[kernel]
    fn update(&mut self) {
        // Write.
        let full = write == limit;
        let put = beat.store & !full & !lost;
        let overflow = lost | (beat.store & full);
        let mut written = write;
        if put {
            written = write + 1;
        }
        ram.we = put;
        ram.waddr = write.resize::<A>();
        ram.wdata = data;
        end_ram.we = put;
        end_ram.waddr = write.resize::<A>();
        end_ram.wdata = beat.payload_end;
        // Keep or forget.
        let mut refused = false;
        for c in 0..CLASSES {
            if refuse.bit(c) & (packet.packet_class == c) {
                refused = true;
            }
        }
        let room = fifo.s.ready & extras.s.ready & shapes.s.ready & !refused;
        let keep = beat.accept & icrc_good & !overflow & room;
        let original = beat.extra & !packet.grh;
        let has_payload = packet.beats.any() & !original;
        fifo.s.valid = keep;
        fifo.s.payload = packet;
        extras.s.valid = keep & beat.extra;
        extras.s.payload = extra;
        shapes.s.valid = keep & (beat.extra | packet.beats.any());
        shapes.s.payload.extra = beat.extra;
        shapes.s.payload.grh = packet.grh;
        shapes.s.payload.payload = has_payload;
        shapes.s.payload.packet_class = packet.packet_class;
        write = written;
        lost = overflow;
        if beat.last {
            lost = false;
            write = committed;
        }
        if keep {
            write = written;
            committed = written;
        }
        forward!(meta <= fifo.m);
        // Read.
        let take = beats.ready | !out_valid;
        let at_extra = shapes.m.valid & shapes.m.payload.extra & extras.m.valid & !done;
        let extra_end = !shapes.m.payload.grh | (step == Self::GRH_MORE);
        let leave =
            shapes.m.valid & shapes.m.payload.payload & (!shapes.m.payload.extra | done) & held;
        let pull = take & leave;
        let fetch = (read != committed) & (pull | !held);
        ram.re = fetch;
        ram.raddr = read.resize::<A>();
        end_ram.re = fetch;
        end_ram.raddr = read.resize::<A>();
        if fetch {
            read = read + 1;
            limit = limit + 1;
            held = true;
        } else if pull {
            held = false;
        }
        // Whose turn it is: `extra`, then the RAM.
        let mut chunk = extras.m.payload.low::<64>();
        match step {
            1 => {
                chunk = extras.m.payload.slice::<64>(64);
            }
            2 => {
                chunk = extras.m.payload.slice::<64>(128);
            }
            3 => {
                chunk = extras.m.payload.slice::<64>(192);
            }
            4 => {
                chunk = extras.m.payload.slice::<64>(256);
            }
            _ => {}
        }
        let mut word = extras.m.payload.resize::<W>();
        if W == 64 {
            word = chunk.resize::<W>();
        }
        extras.m.ready = take & at_extra & extra_end;
        let ends =
            (take & at_extra & extra_end & !shapes.m.payload.payload) | (pull & end_ram.rdata);
        shapes.m.ready = ends;
        if take {
            out_valid = at_extra | leave;
            out = ram.rdata;
            out_last = end_ram.rdata;
            if at_extra {
                out = word;
                out_last = extra_end;
                step = step + 1;
                if extra_end {
                    step = bits::<3>(0);
                    done = shapes.m.payload.payload;
                }
            } else if leave & end_ram.rdata {
                done = false;
            }
        }
        beats.data = out;
        beats.last = out_last;
        beats.valid = out_valid;
        // What was kept, and what left.
        moves.kept = keep;
        moves.kept_class = packet.packet_class;
        moves.kept_beats = bits::<10>(0);
        if has_payload {
            moves.kept_beats = packet.beats;
        }
        moves.beat = pull;
        moves.last = ends;
        moves.beat_class = shapes.m.payload.packet_class;
        moves.bare = fifo.m.valid & meta.ready & !fifo.m.payload.beats.any() & !fifo.m.payload.grh;
        moves.bare_class = fifo.m.payload.packet_class;
        // Count.
        stats_q.rx_frames = beat.last;
        stats_q.rx_roce_packets = keep;
        stats_q.rx_bad_frames = beat.bad;
        stats_q.rx_icrc_errors = beat.accept & !icrc_good;
        stats_q.rx_malformed = beat.malformed;
        stats_q.rx_not_roce = beat.not_roce;
        stats_q.rx_overflow = beat.accept & icrc_good & !keep;
        stats_q.rx_wrong_address = beat.wrong_address;
        stats = stats_q;
    }
}
