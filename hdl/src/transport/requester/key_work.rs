//! Executes WQEs that send nothing: binds of memory windows and invalidations of keys.
//!
//! One at a time goes to the memory region table. Then it waits for what a key of before may have let through, as its
//! completion says that nothing reaches memory by it any more (IB1 10.6.5): placements that were checked, and then their
//! payload writes; READ responses and atomics of peers. All that wait are done in rounds: a round is for those that were
//! there when it began.
//!
//! Nothing waits in front of this block for longer than a change of the table takes.
//!
//! Latency: about 12 cycles to the table, then 20 cycles if nothing is under way.
use super::send_types::{KeyDone, KeyRequest};
use crate::bus::types::{AccessCounts, Activity, if_there, waits_for};
use crate::prelude::*;

/// Cycles until what was checked before is counted.
const SETTLE: u64 = 15;

/// What a round is doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum Round {
    /// Nothing.
    Idle,
    /// Lets what was checked come to where it is counted.
    Settle,
    /// Waits for placements.
    Placed,
    /// Waits for host memory.
    Memory,
    /// Those of the round are done.
    Done,
}

/// Requests of 2^Q queue pairs, each with one at a time.
#[derive(Block)]
pub struct KeyWork<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Requests.
    pub s: StreamIn<KeyRequest>,
    /// Changes of the memory region table.
    pub change: KeyChangeOut,
    /// Requests that are done.
    pub m: StreamOut<KeyDone>,
    /// Placements being checked and moved.
    pub placed: Signal<In, Activity>,
    /// Payload bursts issued, modulo 2^16.
    pub payload_issued: Signal<In, Bits<16>>,
    /// Of these, those that have their response.
    pub payload_done: Signal<In, Bits<16>>,
    /// Accesses to memory for peers.
    pub accesses: Signal<In, AccessCounts>,
    /// Requests that are not done.
    pub activity: Signal<Out, Activity>,

    request: Dff<KeyRequest>,
    /// A request is here, and the table is asked.
    there: Reg<Bit>,
    asked: Reg<Bit>,
    waiting: Fifo<KeyDone, Q>,
    round: Reg<Round>,
    age: Reg<Bits<4>>,
    /// Of the round.
    batch: Reg<Bits<16>>,
    due: Reg<Bits<16>>,
    stirs: Dff<Activity>,
    issued: Reg<Bits<16>>,
    unwritten: Reg<Bits<16>>,
    counts: Reg<AccessCounts>,
    marked: Dff<Bits<16>>,
    mark: Dff<AccessCounts>,
    written: Reg<Bit>,
    read: Reg<Bit>,
    operated: Reg<Bit>,
}

impl<const Q: usize> Logic for KeyWork<Q> {
    describe!(
        "key_work",
        format!("q{Q}"),
        "Executes binds of memory windows and invalidations of keys."
    );

    #[kernel]
    fn update(&mut self) {
        // the table
        s.ready = !there;
        if s.valid & !there {
            request = s.payload;
            there = true;
            asked = false;
        }
        let asks = there & !asked;
        if asks {
            asked = true;
        }
        change.valid = asks;
        change.request = request.change;
        waiting.s.valid = change.done;
        waiting.s.payload = request.done;
        waiting.s.payload.refused = !change.ok;
        if change.done {
            there = false;
        }
        assert!(
            waiting.s.ready | !change.done,
            "a queue pair has one request at a time"
        );

        // the round
        stirs = placed;
        issued = payload_issued;
        unwritten = payload_issued - payload_done;
        counts = accesses;
        written = !waits_for(marked, issued, unwritten);
        read = !waits_for(
            mark.reads_begun,
            counts.reads_begun,
            counts.reads_begun - counts.reads_over,
        );
        operated = !waits_for(
            mark.atomics_begun,
            counts.atomics_begun,
            counts.atomics_begun - counts.atomics_over,
        );
        let last = batch == 1;
        let ends = round == Round::Done;
        let leaves = ends & m.ready;
        m.valid = ends;
        m.payload = waiting.m.payload;
        waiting.m.ready = leaves;
        match round {
            Round::Idle => {
                batch = waiting.level;
                age = 0;
                if waiting.level.any() {
                    round = Round::Settle;
                }
            }
            Round::Settle => {
                age += 1;
                due = stirs.level;
                if age == SETTLE {
                    round = Round::Placed;
                }
            }
            Round::Placed => {
                age = 0;
                if due.any() & stirs.busy {
                    due -= if_there(stirs.moved, bits::<16>(1));
                } else {
                    round = Round::Memory;
                }
            }
            Round::Memory => {
                // the comparisons are those of the marks some cycles on
                if !age.bit(3) {
                    age += 1;
                }
                if !age.slice::<2>(2).any() {
                    marked = issued;
                    mark = counts;
                }
                if age.bit(3) & written & read & operated {
                    round = Round::Done;
                }
            }
            Round::Done => {
                if leaves {
                    batch -= 1;
                    if last {
                        round = Round::Idle;
                    }
                }
            }
            _ => {}
        }

        activity.busy = s.valid | there | waiting.level.any();
        activity.moved = leaves;
        activity.level = waiting.level + if_there(there, bits::<16>(1));
    }
}
