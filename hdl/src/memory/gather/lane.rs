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
//! `payload.ready` is 1, with no idle cycle to the next packet that was announced. The token marks a failed read;
//! the beats of the packet come as usual, with undefined data. A packet that `wanted` declines is dropped when all of
//! it is there: it takes one cycle, and has no token.
//!
//! Parameters: 2 * 2^A payload beats, 2^P pieces and as many packets under way. Commands: 1 to 4096 bytes.
//! Throughput: a command, a memory beat and a payload beat a cycle. Latency: `command.valid` to `request.valid` 1 cycle;
//! last memory beat to `packet.valid` 2 cycles and to the first payload beat 4.
//!
//! Assumes: the pieces of a packet come in order, `first` and `last` set; a packet has at most 4096 bytes.
use crate::bus::types::{Activity, GatherCmd, PayloadToken, ReadReq, if_there};
use crate::memory::align::{Align, LaneMasks};
use crate::memory::types::{GatherClaim, PacketEnd, Piece};
use crate::prelude::*;

use super::space::GatherSpace;

/// Payload collector of one lane.
#[derive(Block)]
#[block(check)]
pub struct GatherLane<const W: usize, const K: usize, const A: usize, const P: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Pieces to collect.
    pub command: StreamIn<GatherCmd>,
    /// Room is taken ahead of the commands, by `claim`.
    pub ahead: Signal<In, Bit>,
    /// What is taken ahead in this cycle.
    pub claim: Signal<In, GatherClaim>,
    /// There is room ahead, see [`ahead`](super::ahead).
    pub ample: Signal<Out, Bit>,
    /// Beats for which room is taken.
    pub taken: Signal<Out, Bits<16>>,
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
    #[init(Fifo::new(Style::Distributed))]
    pieces: Fifo<Piece, P>,
    /// Lane behind the last byte of the command before.
    lane: Dff<Bits<6>>,
    space: GatherSpace<K, A, P>,
    masks: LaneMasks<K>,
    /// The next memory beat is the first of its piece.
    #[init(Reg::new(true))]
    fresh: Reg<Bit>,
    arrived: Reg<Bit>,
    closing: Dff<Bit>,
    start: Dff<Bits<6>>,
    end_lane: Dff<Bits<7>>,
    failed: Reg<Bit>,
    write: Reg<Bits<16>>,
    ram: [RamBytes<W, K, A>; 2],
    #[init(Bypass::new(Style::Distributed))]
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
    piece: Signal<Local, Piece>,
    packet_end: Signal<Local, PacketEnd>,
    #[init(Constant::new((K as u64).to_bits()))]
    beat: Constant<Bits<7>>,
    #[init(Constant::new((K as u64 - 1).to_bits()))]
    lanes: Constant<Bits<6>>,
    /// Bits of the number of beats of a packet.
    #[init(Constant::new((8192 / K as u64 - 1).to_bits()))]
    packet_beats: Constant<Bits<16>>,
    /// Bits of a count of payload beats, and one more.
    #[init(Constant::new(((4u64 << A) - 1).to_bits()))]
    mask: Constant<Bits<16>>,
}

impl<const W: usize, const K: usize, const A: usize, const P: usize> GatherLane<W, K, A, P> {
    fn check() {
        assert!(
            (3..A + 2).contains(&P),
            "2^{P} pieces under way: 2^3 to 2^{} can be built",
            A + 1
        );
    }
}

/// Count of beats written behind one that fills the beat there (`full`), goes over into the next (`over`) or ends its packet.
#[kernel_fn]
fn write_after(write: Bits<16>, full: Bit, over: Bit, closing: Bit) -> Bits<16> {
    // two sums beside each other, of different bits lest they share one behind the choice
    // Pairs of beats, to that behind the one of `write`.
    let pairs = (write >> 1) + 1;
    let next = if over & closing {
        (pairs << 1) | (write & 1)
    } else if full | closing {
        write + 1
    } else {
        write
    };
    next
}

impl<const W: usize, const K: usize, const A: usize, const P: usize> Logic
    for GatherLane<W, K, A, P>
{
    describe!(
        "gather_lane",
        format!("{W}_{A}_{P}"),
        "Collects the payload of packets of one lane."
    );

    #[kernel]
    fn update(&mut self) {
        // Command: where its bytes go, and the payload beats it newly touches.
        align.source = command.payload.addr.resize::<6>() & lanes;
        let mut start_lane = lane;
        let mut fresh_beat = lane == 0;
        if command.payload.first {
            start_lane = command.payload.lane & lanes;
            fresh_beat = true;
        }
        align.target = start_lane;
        align.len = command.payload.len;
        copy!(piece <= align.fit; rotation, start, first_end, last_end);
        piece.last = command.payload.last;
        let mut needed = align.target_more.resize::<16>();
        if fresh_beat {
            needed = align.target_more.resize::<16>() + 1;
        }

        let can_take = requests.s.ready & pieces.s.ready & (ahead | space.roomy);
        let take = can_take & command.valid;
        command.ready = can_take;
        requests.s.valid = take;
        requests.s.payload.addr = command.payload.addr;
        requests.s.payload.len = command.payload.len;
        forward!(request <= requests.m);
        pieces.s.valid = take;
        pieces.s.payload = piece;
        if take {
            lane = align.target_next;
        }
        let claims = take & !ahead;
        space.claim = if claims { needed } else { claim.beats };
        space.opens = claim.opens | (claims & command.payload.last);
        space.returns = claim.returns;
        ample = space.ample;
        taken = space.taken;

        // Memory beat: put away one cycle later.
        rotation = pieces.m.payload.rotation;
        arrived = beats.valid;
        closing = beats.last & pieces.m.payload.last;
        pieces.m.ready = beats.valid & beats.last;
        start = pieces.m.payload.rotation;
        end_lane = pieces.m.payload.rotation.resize::<7>() + beat;
        if fresh {
            start = pieces.m.payload.start;
            end_lane = pieces.m.payload.first_end;
        } else if beats.last {
            end_lane = pieces.m.payload.last_end;
        }
        if beats.valid {
            fresh = beats.last;
        }

        // Its bytes: those of its first lanes in beat `write`, the others in the one behind it; even beats are in RAM 0.
        masks.start = start;
        masks.end_lane = end_lane;
        masks.enable = arrived;
        masks.swap = write.bit(0);
        let full = (end_lane & beat).any();
        let over = full & (end_lane & (beat - 1)).any();
        for i in 0..2 {
            ram[i].wdata = rotated;
            ram[i].waddr = write.slice::<A>(1);
        }
        ram[0].we = masks.low;
        ram[1].we = masks.high;
        if write.bit(0) {
            ram[0].waddr = write.slice::<A>(1) + 1;
        }
        let packet_done = arrived & closing;
        let next_write = write_after(write, full, over, closing);
        if arrived {
            write = next_write & mask;
        }
        if packet_done {
            failed = false;
        }
        if beats.valid & beats.error {
            failed = true;
        }
        packet_end.end = next_write & mask;
        packet_end.error = failed;
        ends.s.valid = packet_done;
        ends.s.payload = packet_end;

        // Payload: a beat a cycle from packet to packet.
        let show = !shown | payload.ready;
        let fetch = reading & (!latched | show);
        // a packet has fewer beats than these bits count
        let last_fetch = !((read ^ stop) & packet_beats).any();
        let judged = ends.m.valid & wanted.valid & (!reading | (fetch & last_fetch));
        let load = judged & wanted.payload & tokens.s.ready;
        let discard = judged & !wanted.payload;
        ends.m.ready = load | discard;
        wanted.ready = load | discard;
        tokens.s.valid = load;
        tokens.s.payload.error = ends.m.payload.error;
        forward!(packet <= tokens.m);
        if load {
            reading = true;
            stop = (ends.m.payload.end - 1) & mask;
        } else if fetch & last_fetch {
            reading = false;
        }
        for i in 0..2 {
            ram[i].raddr = read.slice::<A>(1);
            ram[i].oe = show;
        }
        ram[0].re = fetch & !read.bit(0);
        ram[1].re = fetch & read.bit(0);
        if show {
            shown = latched;
            shown_last = latched_last;
            shown_odd = latched_odd;
            latched = false;
        }
        // `read` behind the beat that is fetched.
        let mut read_on = read;
        if fetch {
            read_on = (read + 1) & mask;
            latched = true;
            latched_last = last_fetch;
            latched_odd = read.bit(0);
        }
        read = read_on;
        if discard {
            read = ends.m.payload.end & mask;
        }
        payload.valid = shown;
        payload.last = shown_last;
        payload.data = ram[0].rdata;
        if shown_odd {
            payload.data = ram[1].rdata;
        }

        activity.busy = command.valid | pieces.m.valid;
        activity.moved = beats.valid & beats.last;
        // behind the command at the port one more may wait
        activity.level = pieces.level + if_there(command.valid, bits::<16>(2));

        space.fetch = fetch;
        space.discard = discard;
        space.read = read;
        space.read_on = read_on;
        space.closes = load | discard;
    }
}
