//! The rules of atomics until they run, a part of [`rules`](super::rules). No state of its own.
//!
//! | operation | if | then |
//! |---|---|---|
//! | Reply | an atomic that enters and is no duplicate | it has the next slot |
//! | Release | of an atomic | it may run: the queue pair is listed |
//! | Run | its latest one, that was checked since, is denied | stopped |
//! | Run | one may run | it runs; the queue pair is listed again when its rkey is checked |
//! | Run | there is none | the queue pair is not listed any more |
//! | Atomic | it failed | stopped |
//! | Reset | | none is left; the list is as it was |
//!
//! None of a queue pair that is dead or *stopped* runs. One of each is checked at a time, so none runs behind a denied one.
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
    /// The queue pair is dead afterwards.
    pub dies: Signal<In, Bit>,
    /// State of its queue pair.
    pub state: Signal<In, RunState>,
    /// The state afterwards.
    pub next_state: Signal<Out, RunState>,
    /// The queue pair is to be listed.
    pub lists: Signal<Out, Bit>,
    /// The next atomic runs.
    pub runs: Signal<Out, Bit>,

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
        lists = false;
        runs = false;
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
                    lists = !state.listed;
                }
            }
            OpKind::Run => {
                next.stopped = state.stopped | (current & op.failed);
                runs = state.to_run.any() & !(current & op.failed);
                if runs {
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
                next = blank;
                next.listed = state.listed;
            }
            _ => {}
        }
        if dies | next.stopped {
            next.to_run = 0;
        }
        next_state = next;
    }
}
