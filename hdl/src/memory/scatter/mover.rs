//! Moves payload from the packet buffer to its pieces of host memory.
//!
//! ```text
//!  runs, plan ─► move_plan ─┬─► command (dma_write)
//!                           └─► moves ─┐
//!  payload ────────────────────────────┴─► rotate ─► join with the beat before ─► beats (dma_write)
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
use super::move_plan::MovePlan;
use super::types::{Run, Step};
use crate::bus::axi;
use crate::bus::types::WriteCmd;
use crate::memory::align::LaneMasks;
use crate::prelude::*;

/// Data mover.
#[derive(Block)]
#[block(check)]
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

    planner: MovePlan<K>,

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

    #[init(Constant::new((K as u64).to_bits()))]
    beat: Constant<Bits<7>>,
    #[init(Constant::new(((axi::burst_bytes(K) / K) as u64 - 1).to_bits()))]
    last_index: Constant<Bits<8>>,
    #[init(Constant::new(!Bits::default()))]
    all: Constant<Bits<K>>,
}

impl<const W: usize, const K: usize> Mover<W, K> {
    fn check() {
        assert!(
            W == 8 * K,
            "data mover of {W} bits has {} bytes a beat, not {K}",
            W / 8
        );
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
        forward!(runs <= planner.runs);
        forward!(plan <= planner.plan);
        forward!(command <= planner.command);

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
        let motion = planner.moves.payload;
        let steps = if begun { left } else { motion.beats };
        let last_step = if begun { ending } else { motion.beats <= 1 };
        start = if begun { motion.rotation } else { motion.start };
        let end_lane = if !begun {
            motion.first_end
        } else if ending {
            motion.last_end
        } else {
            motion.rotation.resize::<7>() + beat
        };
        let empty = motion.beats == 0;
        let advance = !step_valid | can_step;
        let take = planner.moves.valid & advance & (payload.valid | empty);
        payload.ready = planner.moves.valid & advance & !empty & !(last_step & motion.keep);
        planner.moves.ready = take & last_step;
        rotate.data = payload.data;
        rotate.amount = motion.rotation;
        rotate.enable = advance;
        masks.start = start;
        masks.end_lane = end_lane;
        masks.enable = true;
        masks.swap = false;
        next_step.index = motion.index;
        next_step.full = (end_lane & beat).any();
        next_step.over = (end_lane & beat).any() & (end_lane & (beat - 1)).any();
        next_step.first = !begun;
        next_step.last = last_step;
        next_step.empty = motion.discard;
        next_step.close = motion.last & last_step;
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
