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
    /// Queue pair `qpn` goes into slot `slot`.
    pub insert: Signal<In, Bit>,
    /// Slot `slot` has come.
    pub turn: Signal<In, Bit>,
    /// See there.
    pub slot: Signal<In, Bits<W>>,
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

    slots: Ram<WheelSlot, W>,
    next: Ram<Bits<16>, Q>,
    no_slot: Zero<WheelSlot>,
    swept: Reg<Bit>,
    sweep: Reg<Bits<W>>,
    // the operation, when its slot is read
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

impl<const Q: usize, const W: usize> Logic for Wheel<Q, W> {
    describe!(
        "wheel",
        format!("q{Q}_w{W}"),
        "Queue pairs in lists by the slot of their start."
    );

    #[kernel]
    fn update(&mut self) {
        slots.re = true;
        slots.raddr = slot;
        insert_2 = insert;
        turn_2 = turn;
        slot_2 = slot;
        qpn_2 = qpn;

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
        slots.we = writes | !swept;
        slots.waddr = slot_2;
        slots.wdata = word;
        if !swept {
            sweep = sweep + 1;
            swept = sweep.all();
            slots.waddr = sweep;
            slots.wdata = no_slot;
        }
        ready = swept;

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
