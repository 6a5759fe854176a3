//! Timing wheel: queue pairs in lists by the slot of their start, and the list of those whose slot has come.
//!
//! A queue pair stands in one list at most, so one next pointer a queue pair holds them all. Each cycle takes a queue pair in, at the tail of
//! its slot, or turns to the next slot, whose list goes behind those that are due; every second cycle one leaves. (Carousel, SIGCOMM 2017.)
use super::pace_types::WheelSlot;
use crate::prelude::*;

/// Wheel of 2^W slots for 2^Q queue pairs.
#[derive(Block)]
pub struct Wheel<const Q: usize, const W: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Queue pair `qpn` goes into the slot behind `start`, the farthest one if that is too far ahead.
    pub insert: Signal<In, Bit>,
    /// The next slot has come.
    pub turn: Signal<In, Bit>,
    /// See `insert`.
    pub start: Signal<In, Bits<26>>,
    /// See there.
    pub qpn: Signal<In, Bits<16>>,
    /// A queue pair is due.
    pub due: Signal<Out, Bit>,
    /// Which.
    pub due_qpn: Signal<Out, Bits<16>>,
    /// It leaves.
    pub pop: Signal<In, Bit>,
    /// All slots are empty after reset.
    pub ready: Signal<Out, Bit>,

    slots: SweptRam<WheelSlot, W>,
    next: Ram<Bits<16>, Q>,
    no_slot: Zero<WheelSlot>,
    /// Slots that have come.
    turned: Reg<Bits<26>>,
    // the operation, when its slot is known
    insert_1: Reg<Bit>,
    turn_1: Reg<Bit>,
    qpn_1: Dff<Bits<16>>,
    base_1: Dff<Bits<26>>,
    ahead_1: Dff<Bits<26>>,
    // when it is read
    insert_2: Reg<Bit>,
    turn_2: Reg<Bit>,
    slot_2: Dff<Bits<W>>,
    qpn_2: Dff<Bits<16>>,
    /// What was written in the cycle before.
    wrote: Reg<Bit>,
    wrote_slot: Dff<Bits<W>>,
    wrote_word: Dff<WheelSlot>,
    // those that are due
    held: Reg<Bit>,
    head: Dff<Bits<16>>,
    tail: Dff<Bits<16>>,
    /// The next of them is read.
    reads: Reg<Bit>,
}

impl<const Q: usize, const W: usize> Wheel<Q, W> {
    /// Slots from the one that came last to the farthest that is distinct from it.
    const FARTHEST: u64 = {
        assert!(W >= 4 && W <= 12, "wheel of 2^4 to 2^12 slots");
        (1 << W) - 2
    };
}

impl<const Q: usize, const W: usize> Logic for Wheel<Q, W> {
    describe!(
        "wheel",
        format!("q{Q}_w{W}"),
        "Queue pairs in lists by the slot of their start."
    );

    #[kernel]
    fn update(&mut self) {
        insert_1 = insert;
        turn_1 = turn;
        qpn_1 = qpn;
        base_1 = turned;
        ahead_1 = start - turned;
        if turn {
            turned = turned + 1;
            ahead_1 = bits::<26>(0);
        }
        let slot = if ahead_1 >= Self::FARTHEST {
            (base_1 + Self::FARTHEST).low::<W>()
        } else {
            (base_1 + ahead_1 + 1).low::<W>()
        };

        slots.re = true;
        slots.raddr = slot;
        insert_2 = insert_1;
        turn_2 = turn_1;
        slot_2 = slot;
        qpn_2 = qpn_1;

        let mut found = slots.rdata;
        if wrote & (wrote_slot == slot_2) {
            found = wrote_word;
        }
        let mut word = no_slot;
        if insert_2 {
            word.held = true;
            word.head = if found.held { found.head } else { qpn_2 };
            word.tail = qpn_2;
        }
        let writes = insert_2 | turn_2;
        wrote = writes;
        wrote_slot = slot_2;
        wrote_word = word;
        slots.we = writes;
        slots.waddr = slot_2;
        slots.wdata = word;
        ready = slots.ready;

        // the last of a list points to what comes behind it
        let joins = turn_2 & found.held;
        next.we = (insert_2 | held) & found.held;
        next.waddr = found.tail.low::<Q>();
        next.wdata = qpn_2;
        if turn_2 {
            next.waddr = tail.low::<Q>();
            next.wdata = found.head;
        }
        let alone = head == tail;
        next.re = pop;
        next.raddr = head.low::<Q>();
        reads = pop & !alone;
        if reads {
            head = next.rdata;
        }
        if pop & alone {
            held = false;
        }
        if joins {
            held = true;
            tail = found.tail;
            if !held | (pop & alone) {
                head = found.head;
            }
        }
        due = held & !reads;
        due_qpn = head;
    }
}
