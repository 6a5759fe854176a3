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
#[derive(Block)]
#[block(no_default)]
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
    start: Signal<Local, Bits<6>>,
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
            start: Signal::default(),
            next_step: Signal::default(),
            held: ByteReg::default(),
            held_lanes: Reg::default(),
            flush: Reg::default(),
            flush_close: Dff::default(),
            index: Dff::default(),
            bursts: Reg::default(),
            join: ByteMux::default(),
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

    #[kernel]
    fn update(&mut self) {
        // Planning: a move and the bursts of a piece to write, a move that drops the payload of any other packet.
        let mut source = lane;
        if fresh {
            source = runs.payload.lane;
        }
        align.source = source;
        align.target = runs.payload.addr.resize::<6>() & lanes;
        align.len = runs.payload.len;
        let write = plan.payload & (runs.payload.len != 0);
        let idle = !write & !runs.payload.last;
        let can_plan = runs.valid & plan.valid & moves.s.ready & split.s.ready;
        let planned = can_plan & !idle;
        runs.ready = can_plan;
        plan.ready = can_plan & runs.payload.last;
        if can_plan {
            fresh = runs.payload.last;
            lane = source;
            if write {
                lane = align.source_next;
            }
        }
        copy!(motion <= align.fit; rotation, start, first_end, last_end);
        motion.index = (runs.payload.addr >> log_beat).resize::<8>() & last_index;
        motion.beats = runs.payload.beats;
        if write {
            motion.beats = align.source_more + 1;
        }
        motion.keep = write & !runs.payload.last & (align.source_next != 0);
        motion.discard = !write;
        motion.last = runs.payload.last;
        moves.s.payload = motion;
        moves.s.valid = planned;
        range.addr = runs.payload.addr;
        range.more = fits.counted.len;
        range.tag = bits::<4>(0);
        fits.range.addr = runs.payload.addr;
        fits.range.len = runs.payload.len;
        split.s.payload = range;
        split.s_fits = fits.fits;
        split.s.valid = planned & write;
        split_command.addr = split.m.payload.addr;
        split_command.len = split.m.payload.len;
        commands.s.payload = split_command;
        commands.s.valid = split.m.valid;
        split.m.ready = commands.s.ready;
        forward!(command <= commands.m);

        // A target beat leaves when it is full or its piece ends; the bytes behind it begin the next.
        let has_data = step_valid & !step.empty;
        let ends = step.full | step.last;
        let mut can_step = !has_data | !ends | beats.ready;
        if flush {
            can_step = has_data & !ends & beats.ready;
        }
        join.lanes = low;
        let mut joined_lanes = held_lanes | low;
        let mut beat_index = index;
        if flush {
            join.lanes = bits::<K>(0);
            joined_lanes = held_lanes;
        } else if step.first {
            beat_index = step.index;
        }
        join.zero = held.kept;
        join.one = rotate.rotated;
        let emits = flush | (has_data & ends);
        let emit_last = flush | (step.last & !step.over) | (beat_index == last_index);
        let mut close = step_valid & can_step & step.close;
        if has_data & step.over {
            close = false;
        }
        if flush {
            close = beats.ready & flush_close;
            if beats.ready {
                flush = false;
                held_lanes = bits::<K>(0);
                if has_data & !ends {
                    held_lanes = low;
                    index = step.index;
                }
            }
        } else if has_data & can_step {
            held_lanes = joined_lanes;
            index = beat_index;
            if ends {
                held_lanes = high;
                index = beat_index + 1;
                flush = step.last & step.over;
                flush_close = step.close;
            }
        }
        // Bytes outside of `held_lanes` may be anything. What joins a beat that has to wait joins it again.
        held.data = rotate.rotated;
        held.lanes = bits::<K>(0);
        if has_data & !flush {
            held.lanes = low;
        }
        if emits & beats.ready {
            held.lanes = all;
        }
        let mut next_bursts = bursts;
        if emits & emit_last & beats.ready {
            next_bursts = bursts + 1;
        }
        bursts = next_bursts;
        done.valid = close;
        done.payload = next_bursts;
        beats.data = join.mixed;
        beats.strb = joined_lanes;
        beats.last = emit_last;
        beats.valid = emits;

        // A source beat.
        let mut steps = moves.m.payload.beats;
        start = moves.m.payload.start;
        let mut end_lane = moves.m.payload.first_end;
        let mut last_step = moves.m.payload.beats <= 1;
        if begun {
            steps = left;
            last_step = ending;
            start = moves.m.payload.rotation;
            end_lane = moves.m.payload.rotation.resize::<7>() + beat;
            if ending {
                end_lane = moves.m.payload.last_end;
            }
        }
        let empty = moves.m.payload.beats == 0;
        let advance = !step_valid | can_step;
        let take = moves.m.valid & advance & (payload.valid | empty);
        payload.ready = moves.m.valid & advance & !empty & !(last_step & moves.m.payload.keep);
        moves.m.ready = take & last_step;
        rotate.data = payload.data;
        rotate.amount = moves.m.payload.rotation;
        rotate.enable = advance;
        masks.start = start;
        masks.end_lane = end_lane;
        masks.enable = true;
        masks.swap = false;
        next_step.index = moves.m.payload.index;
        next_step.full = (end_lane & beat).any();
        next_step.over = (end_lane & beat).any() & (end_lane & (beat - 1)).any();
        next_step.first = !begun;
        next_step.last = last_step;
        next_step.empty = moves.m.payload.discard;
        next_step.close = moves.m.payload.last & last_step;
        if take {
            begun = !last_step;
            left = steps - 1;
            ending = steps <= 2;
        }
        if advance {
            step_valid = take;
            step = next_step;
            low = masks.low;
            high = masks.high;
        }
    }
}
