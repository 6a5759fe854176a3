//! Queue pairs whose turn was refused, until their class is open.
//!
//! They go round: one of a class that is open leaves, the others go to the tail. Each tries again, so no more than one leaves in
//! `apart` cycles: of a class that closes again soon few try for nothing. Of those that need much room one leaves in eight times
//! as many: what they send takes longer, and of a class with a small share of the wire most try for nothing.
//!
//! One leaves in 4096 cycles whatever is closed, and of more than 1024 queue pairs one in so many that all leave within
//! 2^22 cycles: a queue pair may have another class by then, as its number may have another owner. These leave in rounds: of each round
//! all that waited when it began, before one of the next.
//!
//! Latency: with N that wait, N cycles to look at all.
//!
//! Assumes: no queue pair is here twice.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::egress::CLASSES;
use crate::egress::class_of::class_bit;
use crate::prelude::*;

payload! {
    /// A queue pair that waits for its class.
    HeldQueue {
        /// Queue pair.
        qpn: Bits<16>,
        /// Class.
        packet_class: Bits<2>,
        /// It needs little room.
        short: Bit,
        /// Of the rounds with this bit.
        round: Bit,
    }
}

/// Up to 2^Q queue pairs.
#[derive(Block)]
pub struct HeldQueues<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// One comes.
    pub push: Signal<In, Bit>,
    /// Which.
    pub qpn: Signal<In, Bits<16>>,
    /// Its class.
    pub packet_class: Signal<In, Bits<2>>,
    /// It needs little room.
    pub short: Signal<In, Bit>,
    /// Classes that are closed to what needs much room.
    pub closed: Signal<In, Bits<CLASSES>>,
    /// Classes that are closed to what needs little.
    pub closed_short: Signal<In, Bits<CLASSES>>,
    /// Cycles from one that leaves to the next, at least, less one.
    pub apart: Signal<In, Bits<8>>,
    /// Those that may try again.
    pub m: StreamOut<Bits<16>>,
    waiting: Fifo<HeldQueue, Q>,
    out: Reg<Bit>,
    out_qpn: Dff<Bits<16>>,
    /// Cycles since one left.
    since: Reg<Bits<8>>,
    /// Cycles since one left that needs much room.
    since_long: Reg<Bits<11>>,
    time: Reg<Bits<12>>,
    retries: Reg<Bit>,
    round: Reg<Bit>,
    /// Looks since one of this round was seen.
    others: Reg<Bits<16>>,
}

impl<const Q: usize> HeldQueues<Q> {
    /// Bits of `time` that are 0 when one leaves whatever is closed.
    const RETRY: u64 = (1 << if Q > 10 { 22 - Q } else { 12 }) - 1;
}

impl<const Q: usize> Logic for HeldQueues<Q> {
    describe!(
        "held_queues",
        format!("q{Q}"),
        "Queue pairs that wait until their class is open."
    );

    #[kernel]
    fn update(&mut self) {
        let head = waiting.m.payload;
        let of_round = head.round == round;
        // a ring without room cannot go round
        let room = waiting.s.ready;
        let closes = if head.short { closed_short } else { closed };
        let rests = since != apart;
        let rests_long = since_long != apart.resize::<11>() << 3;
        let is_open = (class_bit(head.packet_class) & !closes).any();
        let opens = (retries & (of_round | !room)) | (is_open & (head.short | !rests_long));
        // what comes goes before what goes round
        let looks = waiting.m.valid & (opens | room) & !push & !out & !rests;
        let leaves = looks & opens;
        waiting.m.ready = looks;
        waiting.s.valid = push | (looks & !opens);
        waiting.s.payload = head;
        if push {
            waiting.s.payload.qpn = qpn;
            waiting.s.payload.packet_class = packet_class;
            waiting.s.payload.short = short;
            waiting.s.payload.round = !round;
        }
        if looks {
            others = if of_round { 0 } else { others + 1 };
        }
        if others > waiting.level {
            others = bits::<16>(0);
            round = !round;
        }
        assert!(!push | waiting.s.ready, "a queue pair waits twice");
        time += 1;
        if rests {
            since += 1;
        }
        if rests_long {
            since_long += 1;
        }
        if m.ready {
            out = false;
        }
        if leaves {
            out = true;
            out_qpn = head.qpn;
            since = bits::<8>(0);
            if !head.short {
                since_long = bits::<11>(0);
            }
            retries = false;
        }
        if !(time & bits::<12>(Self::RETRY)).any() & waiting.m.valid {
            retries = true;
        }
        m.valid = out;
        m.payload = out_qpn;
    }
}
