//! Queue pairs whose turn was refused, until their class is open.
//!
//! A list for each class and kind of turn, linked by a word a queue pair: `first` and `last` of each, `next` of each queue pair.
//! What comes goes to the end of its list. The lists that are open take turns, and the first of one leaves, so nothing waits for a
//! class that is closed.
//!
//! Each tries again, so no more than one leaves in `apart` cycles: of a class that closes again soon few try for nothing. Of those
//! that need much room one leaves in `apart_long`: what they send takes longer, and of a class with a small share of the wire most
//! try for nothing.
//!
//! One leaves in 4096 cycles whatever is closed, and of more than 1024 queue pairs one in so many that all leave within
//! 2^23 cycles: a queue pair may have another class by then, as its number may have another owner. For these the lists
//! take turns too: of each all leave that waited when the round came to it.
//!
//! Latency: 5 cycles; one that comes meanwhile adds up to 3.
//!
//! Assumes: no queue pair is here twice.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::egress::CLASSES;
use crate::egress::class_of::class_number;
use crate::prelude::*;

/// Lists: one a class of what needs much room, then one a class of what needs little.
const LISTS: usize = 2 * CLASSES;

/// Where the next that leaves is looked up.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum Leaving {
    /// None is to leave.
    Idle,
    /// The ends of its list are read.
    Ends,
    /// The one behind it is read.
    Next,
    /// It leaves.
    Leaves,
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
    /// The same of those that need much room.
    pub apart_long: Signal<In, Bits<11>>,
    /// Those that may try again.
    pub m: StreamOut<Bits<16>>,
    #[init(Ram::new(Style::for_depth(3)))]
    first: Ram<Bits<16>, 3>,
    #[init(Ram::new(Style::for_depth(3)))]
    last: Ram<Bits<16>, 3>,
    #[init(Ram::new(Style::for_depth(Q)))]
    next: Ram<Bits<16>, Q>,
    /// Lists with a queue pair in them.
    some: Reg<Bits<LISTS>>,
    comes: Reg<Bit>,
    came_list: Dff<Bits<3>>,
    came_qpn: Dff<Bits<16>>,
    /// What came in the cycle before: `last` was read before it was written.
    came: Reg<Bit>,
    before_list: Dff<Bits<3>>,
    before_qpn: Dff<Bits<16>>,
    turns: Arbiter<LISTS>,
    leaving: Reg<Leaving>,
    chosen: Dff<Bits<3>>,
    /// The chosen one leaves whatever is closed.
    tries: Dff<Bit>,
    /// It is the only one of its list.
    single: Dff<Bit>,
    out: Reg<Bit>,
    out_qpn: Dff<Bits<16>>,
    /// Cycles since one left.
    since: Reg<Bits<8>>,
    /// Cycles since one left that needs much room, of a class that was open.
    since_long: Reg<Bits<11>>,
    time: Reg<Bits<12>>,
    retries: Reg<Bit>,
    /// The list of which one leaves whatever is closed.
    round: Reg<Bits<3>>,
    /// One of it has left whatever is closed; the round goes on behind `until`.
    began: Reg<Bit>,
    until: Dff<Bits<16>>,
}

impl<const Q: usize> HeldQueues<Q> {
    /// Bits of `time` that are 0 when one leaves whatever is closed.
    const RETRY: u64 = (1 << if Q > 10 { 22 - Q } else { 12 }) - 1;
}

/// A list as one bit of all of them.
#[kernel_fn]
fn list_bit(list: Bits<3>) -> Bits<LISTS> {
    bits::<LISTS>(1) << list
}

/// The list of such a bit.
#[kernel_fn]
fn list_number(of_list: Bits<LISTS>) -> Bits<3> {
    let either = of_list.low::<CLASSES>() | of_list.slice::<CLASSES>(CLASSES);
    class_number(either)
        .resize::<3>()
        .replace_bit(2, of_list.slice::<CLASSES>(CLASSES).any())
}

impl<const Q: usize> Logic for HeldQueues<Q> {
    describe!(
        "held_queues",
        format!("q{Q}"),
        "Queue pairs that wait until their class is open."
    );

    #[kernel]
    fn update(&mut self) {
        // one comes: it is linked to the last of its list
        let list = packet_class.resize::<3>().replace_bit(2, short);
        comes = push;
        came_list = list;
        came_qpn = qpn;
        came = comes;
        before_list = came_list;
        before_qpn = came_qpn;
        let forwarded = came & (before_list == came_list);
        let tail = if forwarded { before_qpn } else { last.rdata };
        let came_bit = list_bit(came_list);
        let follows = (some & came_bit).any();
        assert!(
            !comes | !follows | (tail != came_qpn),
            "a queue pair waits twice"
        );
        next.we = comes & follows;
        next.waddr = tail.low::<Q>();
        next.wdata = came_qpn;
        last.we = comes;
        last.waddr = came_list;
        last.wdata = came_qpn;
        first.we = comes & !follows;
        first.waddr = came_list;
        first.wdata = came_qpn;
        if comes {
            some = some | came_bit;
        }

        // the choice of a list
        let rests = since != apart;
        let rests_long = since_long != apart_long;
        let mut open = some.low::<CLASSES>() & !closed;
        if rests_long {
            open = bits::<CLASSES>(0);
        }
        let open_short = some.slice::<CLASSES>(CLASSES) & !closed_short;
        let request = open.resize::<LISTS>() | (open_short.resize::<LISTS>() << CLASSES);
        turns.request = request;
        let mut chooses = request.any();
        let mut choice = list_number(turns.grant);
        let in_round = (some & list_bit(round)).any();
        if retries {
            chooses = in_round;
            choice = round;
        }
        if rests {
            since += 1;
        }
        if rests_long {
            since_long += 1;
        }
        let idle = (leaving == Leaving::Idle) & !out & !rests;
        turns.take = idle & !retries;
        if idle & chooses {
            chosen = choice;
            tries = retries;
            leaving = Leaving::Ends;
            since = bits::<8>(0);
            if !choice.bit(2) & !retries {
                since_long = bits::<11>(0);
            }
        }

        // its first one leaves; what comes meanwhile may change what was read
        let quiet = !push & !comes;
        first.re = leaving == Leaving::Ends;
        first.raddr = chosen;
        last.re = push | (leaving == Leaving::Ends);
        last.raddr = if push { list } else { chosen };
        next.re = leaving == Leaving::Next;
        next.raddr = first.rdata.low::<Q>();
        single = first.rdata == last.rdata;
        if leaving != Leaving::Idle {
            leaving = Leaving::Ends;
        }
        let leaves = quiet & (leaving == Leaving::Leaves);
        if quiet {
            match leaving {
                Leaving::Idle => {}
                Leaving::Ends => leaving = Leaving::Next,
                Leaving::Next => leaving = Leaving::Leaves,
                Leaving::Leaves => leaving = Leaving::Idle,
            }
        }
        if m.ready {
            out = false;
        }
        if leaves {
            out = true;
            out_qpn = first.rdata;
            if single {
                some = some & !list_bit(chosen);
            } else {
                first.we = true;
                first.waddr = chosen;
                first.wdata = next.rdata;
            }
        }
        m.valid = out;
        m.payload = out_qpn;

        // the turns of lists of which one leaves whatever is closed
        time += 1;
        if !(time & bits::<12>(Self::RETRY)).any() & some.any() {
            retries = true;
        }
        if idle & retries & !in_round {
            round += 1;
            began = false;
        }
        if leaves & tries {
            retries = false;
            began = true;
            if !began {
                until = last.rdata;
            }
        }
        let ends = if began {
            first.rdata == until
        } else {
            tries & single
        };
        if leaves & (chosen == round) & ends {
            round += 1;
            began = false;
        }
    }
}
