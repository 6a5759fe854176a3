//! Scheduler: which send queue reads WQEs next.
//!
//! A FIFO of ready queue pairs: each stands in it at most once (`sq_state` keeps the mark), goes to the tail when it
//! has more to do, and so takes its turn round robin. A Fetch event leaves when 8 slots of the WQE buffer are free;
//! they are reserved by it, and `credit` gives back what was not used or has been taken out of the buffer. `shared` says that
//! the buffer holds slots of more than one queue pair, or did since it was empty.
//!
//! A queue pair of a class that is closed waits beside the FIFO ([`HeldQueues`]).
//!
//! While no queue pair is ready and slots are free a doorbell passes with `fetches`: 8 slots are reserved for it too, and it
//! is its own Fetch event, if its queue pair is not ready already.
use super::event::{SqEvent, SqEventKind};
use crate::egress::CLASSES;
use crate::egress::held_queues::HeldQueues;
use crate::prelude::*;

/// Scheduler of 2^Q queue pairs over a buffer of 2^B slots.
#[derive(Block)]
#[block(check)]
pub struct Scheduler<const Q: usize, const B: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A queue pair becomes ready.
    pub push: Signal<In, Bit>,
    /// Which.
    pub push_qpn: Signal<In, Bits<16>>,
    /// Not before its class is open.
    pub push_held: Signal<In, Bit>,
    /// That class.
    pub push_class: Signal<In, Bits<2>>,
    /// And its part is short.
    pub push_short: Signal<In, Bit>,
    /// Classes of which nothing is to start.
    pub closed: Signal<In, Bits<CLASSES>>,
    /// Classes of which no short part is to start.
    pub closed_short: Signal<In, Bits<CLASSES>>,
    /// Cycles from one that was held to the next, at least, less one.
    pub apart: Signal<In, Bits<8>>,
    /// Paced queue pairs whose start has come; they wait for a cycle in which no other becomes ready.
    pub released: StreamIn<Bits<16>>,
    /// Slots given back in this cycle.
    pub credit: Signal<In, Bits<5>>,
    /// Fetch events.
    pub m: StreamOut<SqEvent>,
    /// Doorbell events.
    pub doorbell: StreamIn<SqEvent>,
    /// They with what they may do.
    pub rung: StreamOut<SqEvent>,
    /// WQEs of another queue pair wait behind those of one.
    pub shared: Signal<Out, Bit>,
    fifo: Fifo<Bits<16>, Q>,
    held: HeldQueues<Q>,
    #[init(Reg::new((1u64 << B).to_bits()))]
    free: Reg<Bits<10>>,
    /// Slots were given to a doorbell in the cycle before.
    claimed: Reg<Bit>,
    claimant: Dff<Bits<16>>,
    event: Dff<SqEvent>,
    no_event: Zero<SqEvent>,
    valid: Reg<Bit>,
    owner: Dff<Bits<16>>,
    mixed: Reg<Bit>,
    #[init(Constant::new((1u64 << B).to_bits()))]
    slots: Constant<Bits<10>>,
}

impl<const Q: usize, const B: usize> Scheduler<Q, B> {
    fn check() {
        assert!(
            (4..10).contains(&B),
            "WQE buffer of 2^{B} slots: 2^4 to 2^9 can be built"
        );
    }
}

impl<const Q: usize, const B: usize> Logic for Scheduler<Q, B> {
    describe!(
        "scheduler",
        format!("q{Q}_b{B}"),
        "FIFO of ready queue pairs, gated by free WQE slots."
    );

    #[kernel]
    fn update(&mut self) {
        let ready = push & !push_held;
        held.push = push & push_held;
        held.qpn = push_qpn;
        held.packet_class = push_class;
        held.short = push_short;
        copy!(held <= self; closed, closed_short, apart);
        held.apart_long = apart.resize::<11>() << 3;
        fifo.s.valid = ready | released.valid | held.m.valid;
        fifo.s.payload = held.m.payload;
        if ready {
            fifo.s.payload = push_qpn;
        } else if released.valid {
            fifo.s.payload = released.payload;
        }
        released.ready = !ready;
        held.m.ready = !ready & !released.valid;
        let issue = fifo.m.valid & (m.ready | !valid) & !claimed & free.slice::<7>(3).any();
        fifo.m.ready = issue;
        if issue {
            event = no_event;
            event.kind = SqEventKind::Fetch;
            event.qpn = fifo.m.payload;
            valid = true;
        } else if m.ready {
            valid = false;
        }
        // a doorbell's slots are counted in the next cycle, in which no other slots are given
        let spare = !fifo.m.valid & !valid & !claimed & free.slice::<7>(3).any();
        rung.valid = doorbell.valid;
        rung.payload = doorbell.payload;
        rung.payload.fetches = spare;
        doorbell.ready = rung.ready;
        claimed = doorbell.valid & rung.ready & spare;
        claimant = doorbell.payload.qpn;
        let reserve = issue | claimed;
        let mut taker = fifo.m.payload;
        if claimed {
            taker = claimant;
        }
        // a difference beside the sum, as the reserving side is known late
        // Free slots and those given back.
        let returned = free + credit.resize::<10>();
        free = returned;
        if reserve {
            free = returned - 8;
            if free == slots {
                owner = taker;
                mixed = false;
            } else if taker != owner {
                mixed = true;
            }
        }
        shared = mixed;
        m.valid = valid;
        m.payload = event;
    }
}
