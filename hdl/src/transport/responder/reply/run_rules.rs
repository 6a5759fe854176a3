//! The rules of atomics until they run, a part of [`rules`](super::rules). No state of its own.
//!
//! | operation | if | then |
//! |---|---|---|
//! | Reply | an atomic that enters and is no duplicate | it has the next slot |
//! | Reply | likewise, but it does not enter | it is void (`state` tells) |
//! | Release | of an atomic | it may run: the queue pair is listed |
//! | Release | likewise, but dead, stopped or of an earlier generation | it is void |
//! | Run | its latest one, that was checked since, is denied | stopped |
//! | Run | dead or stopped | those that may run are void |
//! | Run | one may run | it runs; the queue pair is listed again when its rkey is checked |
//! | Run | there is none | the queue pair is not listed any more |
//! | Atomic | | one is over; stopped if it failed |
//! | Reset | | those that may run are void; the list is as it was |
//!
//! One of a queue pair is checked at a time, so none runs behind a denied one. What is *void* never runs
//! ([`over_count`](super::over_count)).
use super::atomic_types::RunState;
use super::types::*;
use crate::prelude::*;

/// The rules, combinational.
#[derive(Block)]
pub struct RunRules {
    /// The operation.
    pub op: Signal<In, Op>,
    /// It is of the present generation, and its queue pair is not dead.
    pub current: Signal<In, Bit>,
    /// An atomic enters.
    pub enters: Signal<In, Bit>,
    /// The queue pair is dead.
    pub dead: Signal<In, Bit>,
    /// State of its queue pair.
    pub state: Signal<In, RunState>,
    /// The state afterwards.
    pub next_state: Signal<Out, RunState>,
    /// The queue pair is to be listed.
    pub run_lists: Signal<Out, Bit>,
    /// The next atomic runs.
    pub runs: Signal<Out, Bit>,
    /// So many are void.
    pub voids: Signal<Out, Bits<5>>,

    blank: Zero<RunState>,
}

impl Logic for RunRules {
    describe!(
        "reply_run_rules",
        "What an operation makes of the atomics of a queue pair that are to run."
    );

    #[kernel]
    fn update(&mut self) {
        let mut next = state;
        runs = false;
        voids = bits::<5>(0);
        run_lists = false;
        match op.kind {
            OpKind::Reply => {
                if enters {
                    next.enter_slot = state.enter_slot + 1;
                }
            }
            OpKind::Release => {
                if op.runs & current & !state.stopped {
                    next.to_run = state.to_run + 1;
                    next.listed = true;
                    run_lists = !state.listed;
                } else if op.runs {
                    voids = 1;
                }
            }
            OpKind::Run => {
                let stops = state.stopped | (current & op.failed);
                next.stopped = stops;
                if dead | stops {
                    voids = state.to_run;
                    next.to_run = 0;
                    next.listed = false;
                } else if state.to_run.any() {
                    runs = true;
                    next.to_run = state.to_run - 1;
                    next.slot = state.slot + 1;
                } else {
                    next.listed = false;
                }
            }
            OpKind::Atomic => {
                next.stopped = state.stopped | (current & op.failed);
            }
            OpKind::Reset => {
                voids = state.to_run;
                next = blank;
                next.listed = state.listed;
            }
            _ => {}
        }
        next_state = next;
    }
}
