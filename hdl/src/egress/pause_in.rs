//! Pauses that the peer asks for, by priority, to queues that are to start no frame; and when they stand still.
//!
//! The MAC holds `request` of a priority at 1 while its time runs, and counts the time while `acknowledge` is 1, so the pause is not
//! shorter than was asked for (CMAC with `ctl_rx_check_ack`, PG203). A queue is shut while any priority of its class is paused and
//! obeyed. `acknowledge` follows when no frame of the class is under way: what was begun goes to its end.
//!
//! **Watchdog**: a class that is held for too long ([`PauseWatch`]) is obeyed no more. Its priorities are acknowledged then, so that
//! the time of the MAC runs. Without it a peer would hold all that waits for the queues, commands of the host too, for as long as it
//! likes.
//!
//! `stall` shuts all queues, whoever asks for what; `stalled` follows when nothing is under way.
//!
//! Latency: a cycle to `pause`; 4 cycles to `acknowledge` if nothing is under way.
//!
//! Assumes: from 2 cycles behind `pause` on nothing of the queue enters `active`, as of [`ClassEgress`](super::class_egress::ClassEgress).
use super::pause_watch::PauseWatch;
use super::types::ClassSetup;
use super::{CLASSES, QUEUES};
use crate::prelude::*;

/// Priorities.
const PRIORITIES: usize = 8;
const ALL: u64 = (1 << CLASSES) - 1;

/// The block.
#[derive(Clone, Debug, Block)]
pub struct PauseIn {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What the host says.
    pub setup: Signal<In, ClassSetup>,
    /// Priorities that the peer pauses, in this clock.
    pub request: Signal<In, Bits<PRIORITIES>>,
    /// Priorities whose pause time runs in the MAC: their class has stopped, or their pause is not obeyed.
    pub acknowledge: Signal<Out, Bits<PRIORITIES>>,
    /// All are paused, by no one's request.
    pub stall: Signal<In, Bit>,
    /// With `stall`: nothing is under way.
    pub stalled: Signal<Out, Bit>,
    /// Priorities of which a pause that is obeyed begins.
    pub paused: Signal<Out, Bits<PRIORITIES>>,
    /// Queues that are to start no frame.
    pub pause: Signal<Out, Bits<QUEUES>>,
    /// Queues of which a frame is under way.
    pub active: Signal<In, Bits<QUEUES>>,
    /// Queues that hold a beat.
    pub waiting: Signal<In, Bits<QUEUES>>,
    watch: [PauseWatch; CLASSES],
    asked: Reg<Bits<CLASSES>>,
    free: Reg<Bits<CLASSES>>,
    asks: Reg<Bits<PRIORITIES>>,
    shut: Reg<Bits<CLASSES>>,
    shut_1: Reg<Bits<CLASSES>>,
    still: Reg<Bits<CLASSES>>,
    ack: Reg<Bits<PRIORITIES>>,
}

impl Logic for PauseIn {
    describe!(
        "pause_in",
        "Pauses of priorities to pauses of queues, and their acknowledgement."
    );

    #[kernel]
    fn update(&mut self) {
        let mut expired = bits::<CLASSES>(0);
        for c in 0..CLASSES {
            watch[c].limit = setup.watchdog;
            watch[c].asked = asked.bit(c);
            watch[c].free = free.bit(c);
            expired = expired.replace_bit(c, watch[c].expired);
        }
        let due = request & setup.obeys;
        let mut wanted = bits::<CLASSES>(0);
        let mut over = bits::<PRIORITIES>(0);
        for k in 0..PRIORITIES {
            for c in 0..CLASSES {
                if setup.prio_class.slice::<2>(4 * k) == c {
                    if due.bit(k) {
                        wanted = wanted.replace_bit(c, true);
                    }
                    over = over.replace_bit(k, expired.bit(c));
                }
            }
        }
        asked = wanted;
        let moves = active.low::<CLASSES>() | active.slice::<CLASSES>(CLASSES);
        let stands = waiting.low::<CLASSES>() | waiting.slice::<CLASSES>(CLASSES);
        free = moves | !stands;
        let mut shuts = wanted & !expired;
        if stall {
            shuts = bits::<CLASSES>(ALL);
        }
        shut = shuts;
        pause = shut.resize::<QUEUES>() | (shut.resize::<QUEUES>() << CLASSES);
        // `active` is complete when the class has been shut for two cycles
        shut_1 = shut;
        still = shut & shut_1 & !moves;
        stalled = still.all();
        let obeyed = due & !over;
        paused = obeyed & !asks;
        asks = obeyed;
        let mut stopped = bits::<PRIORITIES>(0);
        for k in 0..PRIORITIES {
            let mut stops = false;
            for c in 0..CLASSES {
                if still.bit(c) & shut.bit(c) & (setup.prio_class.slice::<2>(4 * k) == c) {
                    stops = true;
                }
            }
            stopped = stopped.replace_bit(k, asks.bit(k) & stops);
        }
        ack = stopped;
        // what is not obeyed passes all the same: it would stand in the MAC until it is
        acknowledge = (ack | over | !setup.obeys) & request;
    }
}
