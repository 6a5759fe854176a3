//! Which lane may have room in the queue of a class: parts of messages, and turns of responses, before anything of them is under way
//! (`docs/classes.md`).
//!
//! ```text
//!  ask[lane] ─► look: room? ─► taken (reserve) or refused ─► start ─► part_ring ─ over ─┐
//!                                                       └─► undo ────────────────────┴─► give_back
//! ```
//!
//! * A lane asks for the room of a part. It is **taken** when the queue has it. It waits while it has not, but is **refused** at once
//!   if the class is shut or slow, and after 2^L cycles, which makes the class slow: a lane stands still for no class for long. A slow
//!   class is one no more when there is room for the largest part, T beats, and is tried again every 2^16 cycles.
//! * A lane that was refused, or waits, is **owed**: the other lane has room of that class only if it is owed too and was not the last to
//!   take. What is owed and not asked for again is forgotten in 2^L to 2^(L + 1) cycles.
//! * What was taken begins as a part, or is undone. A part that is over gives back what its frames did not need.
//!
//! A question in 2 cycles; 2 cycles to the answer. Room that is reserved shows in `room` in the next cycle.
//!
//! Assumes: `ask` stands until it is answered; at most 32 of what was taken have neither begun nor been undone; see [`PartRing`].
use super::CLASSES;
use super::part_ring::PartRing;
use super::types::{FramePass, Space};
use crate::bus::valid::Valid;
use crate::prelude::*;

/// Lanes: requests, responses.
const LANES: usize = 2;

/// Room of parts of up to T beats, 2^P of a lane; one waits 2^L cycles at most.
#[derive(Clone, Debug, Block)]
pub struct ClassRoom<const P: usize, const L: usize, const T: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A part needs room, by lane.
    pub ask: [Signal<In, Valid<Space>>; LANES],
    /// It has it.
    pub taken: Signal<Out, Bits<LANES>>,
    /// It is not to wait.
    pub refused: Signal<Out, Bits<LANES>>,
    /// A part begins, by lane.
    pub start: [Signal<In, Valid<Space>>; LANES],
    /// Its number.
    pub number: [Signal<Out, Bits<P>>; LANES],
    /// What was taken does not begin, by lane.
    pub undo: [StreamIn<Space>; LANES],
    /// A frame has left the assembler, by lane.
    pub pass: [Signal<In, Valid<FramePass>>; LANES],
    /// Nothing of the lane is under way.
    pub idle: Signal<In, Bits<LANES>>,
    /// Classes that are paused.
    pub shut: Signal<In, Bits<CLASSES>>,
    /// Beats that the queue of each class has room for.
    pub room: [Signal<In, Bits<16>>; CLASSES],
    /// Room that is reserved.
    pub reserve: Signal<Out, Valid<Space>>,
    /// Room that was reserved and is not needed.
    pub give_back: Signal<Out, Valid<Space>>,
    rings: [PartRing<P>; LANES],
    merge: Merge<Space, 4>,
    /// An answer is due.
    acts: Reg<Bit>,
    /// Lane of the latest question.
    #[init(Reg::new(1.into()))]
    chosen: Reg<Bits<LANES>>,
    fits: Reg<Bit>,
    asked: Dff<Space>,
    /// By lane: classes of which it is owed room, and since the latest tick.
    owed: [Reg<Bits<CLASSES>>; LANES],
    fresh: [Reg<Bits<CLASSES>>; LANES],
    /// Classes of which lane 1 was the last to take.
    latest: Reg<Bits<CLASSES>>,
    time: Reg<Bits<16>>,
    tick: Reg<Bit>,
    retry: Reg<Bit>,
    slow: Reg<Bits<CLASSES>>,
    waited: [Reg<Bits<16>>; LANES],
}

impl<const P: usize, const L: usize, const T: usize> Logic for ClassRoom<P, L, T> {
    describe!(
        "class_room",
        format!("{}_{L}_{T}", 1usize << P),
        "Room of parts of messages in the queues of the classes."
    );

    #[kernel]
    fn update(&mut self) {
        // look
        let mut asks = bits::<LANES>(0);
        for i in 0..LANES {
            asks = asks.replace_bit(i, ask[i].valid & !rings[i].full);
        }
        // the other lane than before, if both ask
        let choice = if asks.all() { !chosen } else { asks };
        let mut wants = ask[0].payload;
        if choice.bit(1) {
            wants = ask[1].payload;
        }
        let mut left = bits::<16>(0);
        let mut yields = false;
        for c in 0..CLASSES {
            let to_first = owed[1].bit(c) & (!owed[0].bit(c) | !latest.bit(c));
            let to_second = owed[0].bit(c) & (!owed[1].bit(c) | latest.bit(c));
            if wants.queue == c {
                left = room[c];
                yields = if choice.bit(1) { to_second } else { to_first };
            }
        }
        fits = (left >= wants.beats.resize::<16>()) & !yields;
        asked = wants;
        acts = !acts & asks.any();
        if !acts & asks.any() {
            chosen = choice;
        }

        // answer
        let mut of = bits::<CLASSES>(0);
        let mut roomy = bits::<CLASSES>(0);
        for c in 0..CLASSES {
            of = of.replace_bit(c, acts & (asked.queue == c));
            roomy = roomy.replace_bit(c, room[c] >= T);
        }
        let stopped = (of & (shut | slow)).any();
        let mut answers = bits::<LANES>(0);
        let mut refuses = bits::<LANES>(0);
        let mut late = bits::<CLASSES>(0);
        time = time + 1;
        tick = time.low::<L>() == 0;
        retry = !time.any();
        for i in 0..LANES {
            let overdue = waited[i].bit(L);
            let takes = acts & chosen.bit(i) & fits;
            let fails = acts & chosen.bit(i) & !fits;
            let ends = fails & (stopped | overdue);
            answers = answers.replace_bit(i, takes);
            refuses = refuses.replace_bit(i, ends);
            if fails & overdue {
                late = of;
            }
            if !overdue {
                waited[i] = waited[i] + 1;
            }
            if !ask[i].valid | takes | ends {
                waited[i] = bits::<16>(0);
            }
            let mut kept = owed[i];
            let mut recent = fresh[i];
            if tick {
                kept = owed[i] & fresh[i];
                recent = bits::<CLASSES>(0);
            }
            if fails {
                kept = kept | of;
                recent = recent | of;
            }
            if takes {
                kept = kept & !of;
            }
            owed[i] = kept;
            fresh[i] = recent;
        }
        taken = answers;
        refused = refuses;
        reserve.valid = acts & fits;
        reserve.payload = asked;
        if answers.bit(0) {
            latest = latest & !of;
        }
        if answers.bit(1) {
            latest = latest | of;
        }
        slow = (slow | late) & !roomy;
        if retry {
            slow = bits::<CLASSES>(0);
        }

        // what was taken
        for i in 0..LANES {
            rings[i].start = start[i];
            number[i] = rings[i].number;
            rings[i].pass = pass[i];
            rings[i].idle = idle.bit(i);
            forward!(merge.s[i] <= rings[i].over);
            forward!(undo[i] <= merge.s[i + LANES]);
        }
        merge.m.ready = true;
        give_back.valid = merge.m.valid;
        give_back.payload = merge.m.payload;
    }
}
