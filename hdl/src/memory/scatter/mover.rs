//! Moves payload from the packet buffer to its pieces of host memory.
//!
//! ```text
//!  runs, plan ─┬─► split ─► command (dma_write)
//!              └─► moves ─┐
//!  payload ───────────────┴─► rotate ─► join with the beat before ─► beats (dma_write)
//! ```
//!
//! A piece moves a source beat a cycle. Rotated to its lanes, a source beat completes the target beat begun by the one
//! before it and begins the next; what is left behind the last source beat of a piece goes out in a cycle of its own,
//! in which the next piece begins unless its first beat is to go out too. A source beat that ends one piece and begins
//! the next is read twice.
//!
//! Latency: `plan` to `command.valid` 1 cycle and to `beats.valid` 2. Throughput: the larger one of source and target
//! beats a piece; a packet without data takes a cycle. `done` does not wait for ready: there is room for every packet
//! under way. So beats flow as soon as `beats.ready` lets them, and a burst that was commanded always ends.
use super::types::{Move, Run, Step};
use crate::bus::axi;
use crate::bus::types::WriteCmd;
use crate::memory::align::{Align, LaneMasks};
use crate::memory::split::{Fits, Split};
use crate::memory::types::Range;
use crate::prelude::*;

/// Data mover.
#[derive(LogicBlock)]
pub struct Mover<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Pieces of the packets.
    pub runs: StreamIn<Run>,
    /// One a packet: it is to be written; else its payload is dropped.
    pub plan: StreamIn<Bit>,
    /// Payload of the packets.
    pub payload: PayloadIn<W>,
    /// Write bursts.
    pub command: StreamOut<WriteCmd>,
    /// Their beats.
    pub beats: WriteBeatOut<W, K>,
    /// One a packet when its last beat has gone: payload bursts so far, modulo 2^16.
    pub done: StreamOut<Bits<16>>,

    // Planning.
    fits: Fits<K>,
    split: Split<K>,
    align: Align<K>,
    commands: Hold<WriteCmd>,
    moves: Skid<Move>,
    /// The next run is the first of its packet.
    fresh: Reg<Bit>,
    lane: Dff<Bits<6>>,
    source: Signal<Local, Bits<6>>,
    write: Signal<Local, Bit>,
    idle: Signal<Local, Bit>,
    can_plan: Signal<Local, Bit>,
    planned: Signal<Local, Bit>,
    range: Signal<Local, Range>,
    motion: Signal<Local, Move>,
    split_command: Signal<Local, WriteCmd>,

    // A source beat.
    rotate: Rotate<W, K>,
    masks: LaneMasks<K>,
    /// The move has begun, and `left` source beats are left.
    begun: Reg<Bit>,
    left: Dff<Bits<10>>,
    /// That is one.
    ending: Dff<Bit>,
    step: Dff<Step>,
    low: Dff<Bits<K>>,
    high: Dff<Bits<K>>,
    step_valid: Reg<Bit>,
    steps: Signal<Local, Bits<10>>,
    last_step: Signal<Local, Bit>,
    empty: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
    advance: Signal<Local, Bit>,
    start: Signal<Local, Bits<6>>,
    behind: Signal<Local, Bits<7>>,
    next_step: Signal<Local, Step>,

    // A target beat.
    held: ByteReg<W, K>,
    held_lanes: Reg<Bits<K>>,
    /// `held` is the end of a piece.
    flush: Reg<Bit>,
    flush_close: Dff<Bit>,
    index: Dff<Bits<8>>,
    bursts: Reg<Bits<16>>,
    join: ByteMux<W, K>,
    joined_lanes: Signal<Local, Bits<K>>,
    beat_index: Signal<Local, Bits<8>>,
    has_data: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    can_step: Signal<Local, Bit>,
    emits: Signal<Local, Bit>,
    emit_last: Signal<Local, Bit>,
    close: Signal<Local, Bit>,
    next_bursts: Signal<Local, Bits<16>>,

    beat: Constant<Bits<7>>,
    lanes: Constant<Bits<6>>,
    log_beat: Constant<Bits<3>>,
    last_index: Constant<Bits<8>>,
    all: Constant<Bits<K>>,
}

impl<const W: usize, const K: usize> Default for Mover<W, K> {
    fn default() -> Self {
        assert!(
            W == 8 * K,
            "data mover of {W} bits has {} bytes a beat, not {K}",
            W / 8
        );
        let window = axi::burst_bytes(K) / K;
        Self {
            clock: ClkRst::default(),
            runs: StreamIn::default(),
            plan: StreamIn::default(),
            payload: PayloadIn::default(),
            command: StreamOut::default(),
            beats: WriteBeatOut::default(),
            done: StreamOut::default(),
            fits: Fits::default(),
            split: Split::default(),
            align: Align::default(),
            commands: Hold::default(),
            moves: Skid::default(),
            fresh: Reg::new(true),
            lane: Dff::default(),
            source: Signal::default(),
            write: Signal::default(),
            idle: Signal::default(),
            can_plan: Signal::default(),
            planned: Signal::default(),
            range: Signal::default(),
            motion: Signal::default(),
            split_command: Signal::default(),
            rotate: Rotate::default(),
            masks: LaneMasks::default(),
            begun: Reg::default(),
            left: Dff::default(),
            ending: Dff::default(),
            step: Dff::default(),
            low: Dff::default(),
            high: Dff::default(),
            step_valid: Reg::default(),
            steps: Signal::default(),
            last_step: Signal::default(),
            empty: Signal::default(),
            take: Signal::default(),
            advance: Signal::default(),
            start: Signal::default(),
            behind: Signal::default(),
            next_step: Signal::default(),
            held: ByteReg::default(),
            held_lanes: Reg::default(),
            flush: Reg::default(),
            flush_close: Dff::default(),
            index: Dff::default(),
            bursts: Reg::default(),
            join: ByteMux::default(),
            joined_lanes: Signal::default(),
            beat_index: Signal::default(),
            has_data: Signal::default(),
            ends: Signal::default(),
            can_step: Signal::default(),
            emits: Signal::default(),
            emit_last: Signal::default(),
            close: Signal::default(),
            next_bursts: Signal::default(),
            beat: Constant::new((K as u64).to_bits()),
            lanes: Constant::new((K as u64 - 1).to_bits()),
            log_beat: Constant::new(u64::from(axi::burst_size(K)).to_bits()),
            last_index: Constant::new((window as u64 - 1).to_bits()),
            all: Constant::new(!Bits::default()),
        }
    }
}

impl<const W: usize, const K: usize> Logic for Mover<W, K> {
    describe!(
        "scatter_mover",
        format!("{W}"),
        "Moves payload to its pieces of host memory."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, split, commands, moves, rotate, held);
        dff_setup!(
            self, clock, fresh, lane, begun, left, ending, step, low, high, step_valid
        );
        dff_setup!(self, clock, held_lanes, flush, flush_close, index, bursts);

        // Planning: a move and the bursts of a piece to write, a move that drops the payload of any other packet.
        self.source.next = self.lane.q.val();
        if self.fresh.q.val() {
            self.source.next = self.runs.payload.val().lane;
        }
        self.align.source.next = self.source.val();
        self.align.target.next = bit_cast::<6, 64>(self.runs.payload.val().addr) & self.lanes.val();
        self.align.len.next = self.runs.payload.val().len;
        self.write.next = self.plan.payload.val() & (self.runs.payload.val().len != 0);
        self.idle.next = !self.write.val() & !self.runs.payload.val().last;
        self.can_plan.next = self.runs.valid.val()
            & self.plan.valid.val()
            & self.moves.s.ready.val()
            & self.split.s.ready.val();
        self.planned.next = self.can_plan.val() & !self.idle.val();
        self.runs.ready.next = self.can_plan.val();
        self.plan.ready.next = self.can_plan.val() & self.runs.payload.val().last;
        if self.can_plan.val() {
            self.fresh.d.next = self.runs.payload.val().last;
            self.lane.d.next = self.source.val();
            if self.write.val() {
                self.lane.d.next = self.align.source_next.val();
            }
        }
        self.motion.next.rotation = self.align.fit.val().rotation;
        self.motion.next.start = self.align.fit.val().start;
        self.motion.next.first_end = self.align.fit.val().first_end;
        self.motion.next.last_end = self.align.fit.val().last_end;
        self.motion.next.index =
            bit_cast::<8, 64>(self.runs.payload.val().addr >> self.log_beat.val())
                & self.last_index.val();
        self.motion.next.beats = self.runs.payload.val().beats;
        if self.write.val() {
            self.motion.next.beats = self.align.source_more.val() + 1;
        }
        self.motion.next.keep =
            self.write.val() & !self.runs.payload.val().last & (self.align.source_next.val() != 0);
        self.motion.next.discard = !self.write.val();
        self.motion.next.last = self.runs.payload.val().last;
        self.moves.s.payload.next = self.motion.val();
        self.moves.s.valid.next = self.planned.val();
        self.range.next.addr = self.runs.payload.val().addr;
        self.range.next.more = self.fits.counted.val().len;
        self.range.next.tag = bits::<4>(0);
        self.fits.range.next.addr = self.runs.payload.val().addr;
        self.fits.range.next.len = self.runs.payload.val().len;
        self.split.s.payload.next = self.range.val();
        self.split.s_fits.next = self.fits.fits.val();
        self.split.s.valid.next = self.planned.val() & self.write.val();
        self.split_command.next.addr = self.split.m.payload.val().addr;
        self.split_command.next.len = self.split.m.payload.val().len;
        self.commands.s.payload.next = self.split_command.val();
        self.commands.s.valid.next = self.split.m.valid.val();
        self.split.m.ready.next = self.commands.s.ready.val();
        StreamOut::<WriteCmd>::link(&mut self.command, &mut self.commands.m);

        // A target beat leaves when it is full or its piece ends; the bytes behind it begin the next.
        self.has_data.next = self.step_valid.q.val() & !self.step.q.val().empty;
        self.ends.next = self.step.q.val().full | self.step.q.val().last;
        self.can_step.next = !self.has_data.val() | !self.ends.val() | self.beats.ready.val();
        if self.flush.q.val() {
            self.can_step.next = self.has_data.val() & !self.ends.val() & self.beats.ready.val();
        }
        self.join.lanes.next = self.low.q.val();
        self.joined_lanes.next = self.held_lanes.q.val() | self.low.q.val();
        self.beat_index.next = self.index.q.val();
        if self.flush.q.val() {
            self.join.lanes.next = bits::<K>(0);
            self.joined_lanes.next = self.held_lanes.q.val();
        } else if self.step.q.val().first {
            self.beat_index.next = self.step.q.val().index;
        }
        self.join.zero.next = self.held.kept.val();
        self.join.one.next = self.rotate.rotated.val();
        self.emits.next = self.flush.q.val() | (self.has_data.val() & self.ends.val());
        self.emit_last.next = self.flush.q.val()
            | (self.step.q.val().last & !self.step.q.val().over)
            | (self.beat_index.val() == self.last_index.val());
        self.close.next = self.step_valid.q.val() & self.can_step.val() & self.step.q.val().close;
        if self.has_data.val() & self.step.q.val().over {
            self.close.next = false;
        }
        if self.flush.q.val() {
            self.close.next = self.beats.ready.val() & self.flush_close.q.val();
            if self.beats.ready.val() {
                self.flush.d.next = false;
                self.held_lanes.d.next = bits::<K>(0);
                if self.has_data.val() & !self.ends.val() {
                    self.held_lanes.d.next = self.low.q.val();
                    self.index.d.next = self.step.q.val().index;
                }
            }
        } else if self.has_data.val() & self.can_step.val() {
            self.held_lanes.d.next = self.joined_lanes.val();
            self.index.d.next = self.beat_index.val();
            if self.ends.val() {
                self.held_lanes.d.next = self.high.q.val();
                self.index.d.next = self.beat_index.val() + 1;
                self.flush.d.next = self.step.q.val().last & self.step.q.val().over;
                self.flush_close.d.next = self.step.q.val().close;
            }
        }
        // Bytes outside of `held_lanes` may be anything. What joins a beat that has to wait joins it again.
        self.held.data.next = self.rotate.rotated.val();
        self.held.lanes.next = bits::<K>(0);
        if self.has_data.val() & !self.flush.q.val() {
            self.held.lanes.next = self.low.q.val();
        }
        if self.emits.val() & self.beats.ready.val() {
            self.held.lanes.next = self.all.val();
        }
        self.next_bursts.next = self.bursts.q.val();
        if self.emits.val() & self.emit_last.val() & self.beats.ready.val() {
            self.next_bursts.next = self.bursts.q.val() + 1;
        }
        self.bursts.d.next = self.next_bursts.val();
        self.done.valid.next = self.close.val();
        self.done.payload.next = self.next_bursts.val();
        self.beats.data.next = self.join.mixed.val();
        self.beats.strb.next = self.joined_lanes.val();
        self.beats.last.next = self.emit_last.val();
        self.beats.valid.next = self.emits.val();

        // A source beat.
        self.steps.next = self.moves.m.payload.val().beats;
        self.start.next = self.moves.m.payload.val().start;
        self.behind.next = self.moves.m.payload.val().first_end;
        self.last_step.next = self.moves.m.payload.val().beats <= 1;
        if self.begun.q.val() {
            self.steps.next = self.left.q.val();
            self.last_step.next = self.ending.q.val();
            self.start.next = self.moves.m.payload.val().rotation;
            self.behind.next =
                bit_cast::<7, 6>(self.moves.m.payload.val().rotation) + self.beat.val();
            if self.ending.q.val() {
                self.behind.next = self.moves.m.payload.val().last_end;
            }
        }
        self.empty.next = self.moves.m.payload.val().beats == 0;
        self.advance.next = !self.step_valid.q.val() | self.can_step.val();
        self.take.next = self.moves.m.valid.val()
            & self.advance.val()
            & (self.payload.valid.val() | self.empty.val());
        self.payload.ready.next = self.moves.m.valid.val()
            & self.advance.val()
            & !self.empty.val()
            & !(self.last_step.val() & self.moves.m.payload.val().keep);
        self.moves.m.ready.next = self.take.val() & self.last_step.val();
        self.rotate.data.next = self.payload.data.val();
        self.rotate.amount.next = self.moves.m.payload.val().rotation;
        self.rotate.enable.next = self.advance.val();
        self.masks.start.next = self.start.val();
        self.masks.behind.next = self.behind.val();
        self.masks.enable.next = true;
        self.masks.swap.next = false;
        self.next_step.next.index = self.moves.m.payload.val().index;
        self.next_step.next.full = (self.behind.val() & self.beat.val()).any();
        self.next_step.next.over = (self.behind.val() & self.beat.val()).any()
            & (self.behind.val() & (self.beat.val() - 1)).any();
        self.next_step.next.first = !self.begun.q.val();
        self.next_step.next.last = self.last_step.val();
        self.next_step.next.empty = self.moves.m.payload.val().discard;
        self.next_step.next.close = self.moves.m.payload.val().last & self.last_step.val();
        if self.take.val() {
            self.begun.d.next = !self.last_step.val();
            self.left.d.next = self.steps.val() - 1;
            self.ending.d.next = self.steps.val() <= 2;
        }
        if self.advance.val() {
            self.step_valid.d.next = self.take.val();
            self.step.d.next = self.next_step.val();
            self.low.d.next = self.masks.low.val();
            self.high.d.next = self.masks.high.val();
        }
    }
}
