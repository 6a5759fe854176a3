//! Pauses that the peer asks for, by priority, to queues that are to start no frame; and when they stand still.
//!
//! The MAC holds `request` of a priority at 1 while its time runs, and counts the time while `acknowledge` is 1, so the pause is not
//! shorter than was asked for (CMAC with `ctl_rx_check_ack`, PG203). A queue is shut while any priority of its class is paused and
//! obeyed. `acknowledge` follows when no frame of the class is under way: what was begun goes to its end.
//!
//! **Watchdog**: a priority that is paused without a break for longer than `setup.watchdog` milliseconds, and a millisecond more at
//! most, is obeyed no more until the request has ended. It is acknowledged then, so that the time of the MAC runs. Switches have
//! the same: without it a peer that pauses for ever would hold all that waits for the queues, commands of the host too.
//!
//! `stall` shuts all queues, whoever asks for what; `stalled` follows when nothing is under way.
//!
//! Latency: a cycle to `pause`; 4 cycles to `acknowledge` if nothing is under way.
//!
//! Assumes: from 2 cycles behind `pause` on nothing of the queue enters `active`, as of [`ClassEgress`](super::class_egress::ClassEgress).
use super::types::ClassSetup;
use super::{CLASSES, QUEUES};
use crate::bus::time::CLOCK_MHZ;
use crate::prelude::*;

/// Priorities.
const PRIORITIES: usize = 8;
const ALL: u64 = (1 << CLASSES) - 1;
/// The cycle before the last one of a millisecond.
const MILLISECOND: u64 = 1000 * CLOCK_MHZ as u64 - 2;

/// The block.
#[derive(Clone, Debug, Block)]
pub struct PauseIn {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What the host says.
    pub setup: Signal<In, ClassSetup>,
    /// Priorities that the peer pauses, in this clock.
    pub request: Signal<In, Bits<PRIORITIES>>,
    /// Of which nothing is sent any more.
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
    time: Reg<Bits<18>>,
    tick: Reg<Bit>,
    /// Of each priority: milliseconds that it was paused, one that began included.
    age: [Reg<Bits<14>>; PRIORITIES],
    expired: Reg<Bits<PRIORITIES>>,
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
        time = time + 1;
        tick = time == MILLISECOND;
        if tick {
            time = bits::<18>(0);
        }
        let due = request & setup.obeys;
        let mut over = expired & request;
        for k in 0..PRIORITIES {
            if !due.bit(k) {
                age[k] = bits::<14>(0);
            } else if tick & !expired.bit(k) {
                age[k] = age[k] + 1;
                if (age[k] >= setup.watchdog) & setup.watchdog.any() {
                    over = over.replace_bit(k, true);
                }
            }
        }
        expired = over;
        let obeyed = due & !expired;
        let mut shuts = bits::<CLASSES>(0);
        for k in 0..PRIORITIES {
            for c in 0..CLASSES {
                if obeyed.bit(k) & (setup.prio_class.slice::<2>(4 * k) == c) {
                    shuts = shuts.replace_bit(c, true);
                }
            }
        }
        if stall {
            shuts = bits::<CLASSES>(ALL);
        }
        shut = shuts;
        pause = shut.resize::<QUEUES>() | (shut.resize::<QUEUES>() << CLASSES);
        // `active` is complete when the class has been shut for two cycles
        shut_1 = shut;
        still = shut & shut_1 & !(active.low::<CLASSES>() | active.slice::<CLASSES>(CLASSES));
        stalled = still.all();
        paused = obeyed & !asks;
        asks = obeyed;
        let mut stopped = bits::<PRIORITIES>(0);
        for k in 0..PRIORITIES {
            let mut stands = false;
            for c in 0..CLASSES {
                if still.bit(c) & shut.bit(c) & (setup.prio_class.slice::<2>(4 * k) == c) {
                    stands = true;
                }
            }
            stopped = stopped.replace_bit(k, asks.bit(k) & stands);
        }
        ack = stopped;
        acknowledge = (ack | (expired & setup.obeys)) & request;
    }
}
