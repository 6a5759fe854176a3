//! One queue of beats: where they stand, whether there is one, how much room there is.
//!
//! The beats stand in the memory of [`ClassEgress`](super::class_egress::ClassEgress). Here are, of a ring in 2^A places, the
//! pointers and of each beat whether it is the last one of its frame. A ring that shares its places leaves the last 2^B of them to
//! another. `write` and `read` are those behind the beat pushed
//! or popped in the cycle before: its word stands there, one behind the place of its mark.
//!
//! Room is reserved before a frame is made: `room` counts what neither holds a beat nor is reserved. `open` says that it
//! is enough for the largest frame; it follows a reservation in the next cycle, and what comes back in the second.
//!
//! `stands` says that a beat is there, and from `note` on that one of those is there which stood in the queue then.
//!
//! Assumes: nothing is pushed that was not reserved, nor popped that is not there.
use crate::prelude::*;

/// Queue of 2^A beats, or 2^A - 2^B if B is less, T of which are the largest frame.
#[derive(Clone, Debug, Block)]
pub struct ClassQueue<const A: usize, const B: usize, const T: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A beat comes.
    pub push: Signal<In, Bit>,
    /// It is the last one of its frame.
    pub push_last: Signal<In, Bit>,
    /// The first one leaves.
    pub pop: Signal<In, Bit>,
    /// Beats are reserved.
    pub reserves: Signal<In, Bit>,
    /// So many.
    pub reserve: Signal<In, Bits<14>>,
    /// Beats that were reserved and will not come.
    pub give_back: Signal<In, Bits<14>>,
    /// Beats that there is room for.
    pub left: Signal<Out, Bits<16>>,
    /// There is room for a frame of any length.
    pub open: Signal<Out, Bit>,
    /// There is a beat.
    pub ready: Signal<Out, Bit>,
    /// It is the last one of its frame.
    pub last: Signal<Out, Bit>,
    /// Of the beat pushed in the cycle before.
    pub write: Signal<Out, Bits<A>>,
    /// Of the beat popped in the cycle before.
    pub read: Signal<Out, Bits<A>>,
    /// What comes from now on does not count in `stands`.
    pub note: Signal<In, Bit>,
    /// A beat is there; with `note`: of those before it.
    pub stands: Signal<Out, Bit>,
    marks: Fifo<Bit, A>,
    write_at: Reg<Bits<A>>,
    read_at: Reg<Bits<A>>,
    /// Where the beats end that count in `stands`.
    end: Reg<Bits<A>>,
    counts: Reg<Bit>,
    #[init(Reg::new(Self::BEATS.to_bits()))]
    room: Reg<Bits<16>>,
    back: Reg<Bits<15>>,
    #[init(Constant::new(((2_u64 << A) - 1).to_bits()))]
    mask: Constant<Bits<16>>,
    #[init(Constant::new((T as u64).to_bits()))]
    largest: Constant<Bits<16>>,
}

impl<const A: usize, const B: usize, const T: usize> ClassQueue<A, B, T> {
    /// Beats of the ring.
    pub const BEATS: u64 = if B < A { (1 << A) - (1 << B) } else { 1 << A };
    const LAST: u64 = Self::BEATS - 1;
}

impl<const A: usize, const B: usize, const T: usize> Logic for ClassQueue<A, B, T> {
    describe!(
        "class_queue",
        format!("{}_{T}", Self::BEATS),
        "Pointers, marks and room of a queue of beats."
    );

    #[kernel]
    fn update(&mut self) {
        marks.s.valid = push;
        marks.s.payload = push_last;
        marks.m.ready = pop;
        let there = marks.m.valid;
        last = marks.m.payload;
        let mut next_read = read_at + 1;
        if read_at == Self::LAST {
            next_read = bits::<A>(0);
        }
        let mut next_write = write_at;
        let mut left_over = there;
        if push {
            next_write = write_at + 1;
            if write_at == Self::LAST {
                next_write = bits::<A>(0);
            }
            left_over = true;
        }
        if pop {
            read_at = next_read;
        }
        if pop & !push {
            left_over = next_read != write_at;
        }
        write_at = next_write;
        if !note {
            end = next_write;
            counts = left_over;
        } else if pop & (next_read == end) {
            counts = false;
        }
        stands = counts;
        assert!(
            !push | marks.s.ready,
            "a queue overflows: room was not reserved"
        );
        assert!(!pop | there, "an empty queue is popped");
        // what comes back counts a cycle later
        back = give_back.resize::<15>();
        if pop {
            back = give_back.resize::<15>() + 1;
        }
        let more = room + back.resize::<16>();
        let fewer = more - reserve.resize::<16>();
        let next_room = if reserves { fewer } else { more };
        room = next_room & mask;
        assert!(
            !reserves | (reserve.resize::<16>() <= room),
            "more is reserved than there is"
        );
        left = room;
        open = room >= largest;
        ready = there;
        write = write_at;
        read = read_at;
    }
}
