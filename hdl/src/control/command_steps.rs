//! The steps of a command, one after the other.
//!
//! ```text
//!  Idle ─► Check ─► Judge ─┬─► Apply ─┬─► Tell ─► Wait ───┬─► Finish
//!                          │          ├───────────────────┼─► Finish
//!                          │          └─► Drain ─► Settle ┼─► Finish
//!                          │                ▲             └─► Apply (images of what ended) ─► Finish
//!                          ├────────────────┤ (WRITE_AH)
//!                          ├─► Queue ───────┼─────────────► Finish
//!                          │     └► Switch ─┴─────────────► Finish
//!                          └──────────────────────────────► Finish
//! ```
//!
use ferroce_proto::abi::cmd::status::BAD_STATE;

use super::command_check::CommandFacts;
use super::command_types::{CommandPulses, CommandState};
use crate::prelude::*;

/// Steps of the commands of 2^Q queue pairs, 2^S shared receive queues, 2^C completion queues and 2^E event queues.
#[derive(Block)]
pub struct CommandSteps<const Q: usize, const S: usize, const C: usize, const E: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// An entry is there.
    pub start: Signal<In, Bit>,
    /// From Judge on: what is wrong with it.
    pub status: Signal<In, Bits<8>>,
    /// What it is.
    pub facts: Signal<In, CommandFacts>,
    /// It brings a requester image.
    pub qp_sq: Signal<In, Bit>,
    /// It brings an address vector.
    pub qp_av: Signal<In, Bit>,
    /// It brings a responder image.
    pub qp_rq: Signal<In, Bit>,
    /// In Queue: the writer of completion queues or event queues takes it.
    pub queue_ready: Signal<In, Bit>,
    /// In Switch: the completion queue was not resized.
    pub cq_refused: Signal<In, Bit>,
    /// Requester and responder have not answered.
    pub events_busy: Signal<In, Bit>,
    /// What was under way is done.
    pub drain_done: Signal<In, Bit>,
    /// The step.
    pub state: Signal<Out, CommandState>,
    /// In Sweep: the entry of the tables to be cleared.
    pub sweep: Signal<Out, Bits<16>>,
    /// Status of the command.
    pub result: Signal<Out, Bits<8>>,
    /// What is done in a cycle, a cycle after the step.
    pub pulse: Signal<Out, CommandPulses>,
    /// The sweep is done.
    pub ready: Signal<Out, Bit>,

    state_q: Reg<CommandState>,
    sweep_q: Reg<Bits<16>>,
    swept: Reg<Bit>,
    result_q: Dff<Bits<8>>,
    /// What ends is done with: its images are left to write.
    ended: Reg<Bit>,
    pulse_q: Reg<CommandPulses>,
    no_pulse: Zero<CommandPulses>,
}

const fn larger(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

impl<const Q: usize, const S: usize, const C: usize, const E: usize> CommandSteps<Q, S, C, E> {
    /// The last step of the sweep, which covers the largest of its tables.
    const LAST: u64 = (1 << larger(larger(Q, S), larger(C, E))) - 1;
}

impl<const Q: usize, const S: usize, const C: usize, const E: usize> Logic
    for CommandSteps<Q, S, C, E>
{
    describe!(
        "command_steps",
        format!("q{Q}_s{S}_c{C}_e{E}"),
        "The steps of a command."
    );

    #[kernel]
    fn update(&mut self) {
        let of_srq = facts.create_srq | facts.destroy_srq | facts.arm_srq;
        let of_cq = facts.create_cq | facts.destroy_cq | facts.resize_cq;
        let of_eq = facts.create_eq | facts.destroy_eq;
        let ends_qp = facts.modify & (facts.sq_ends | facts.rq_ends);
        pulse_q = no_pulse;
        match state_q {
            CommandState::Sweep => {
                sweep_q += 1;
                if sweep_q == Self::LAST {
                    swept = true;
                    state_q = CommandState::Idle;
                }
            }
            CommandState::Idle => {
                ended = false;
                if start {
                    state_q = CommandState::Check;
                }
            }
            CommandState::Check => {
                state_q = CommandState::Judge;
            }
            CommandState::Judge => {
                result_q = status;
                if status.any() {
                    state_q = CommandState::Finish;
                } else if facts.query {
                    state_q = CommandState::Tell;
                } else if of_cq | of_eq {
                    state_q = CommandState::Queue;
                } else if facts.write_ah {
                    state_q = CommandState::Drain;
                } else {
                    state_q = CommandState::Apply;
                }
            }
            CommandState::Apply => {
                let sq_now = facts.modify & (facts.sq_ends == ended);
                let rq_now = facts.modify & (facts.rq_ends == ended);
                pulse_q.sq_we = sq_now & qp_sq;
                pulse_q.av_we = sq_now & qp_av;
                pulse_q.rq_we = rq_now & qp_rq;
                pulse_q.ah_we = facts.write_ah;
                pulse_q.srq_we = facts.create_srq;
                pulse_q.mr_we = facts.write_mr;
                pulse_q.gid_we = facts.set_gid;
                state_q = CommandState::Finish;
                if facts.write_mr {
                    state_q = CommandState::Drain;
                } else if (facts.modify | of_srq) & !ended {
                    state_q = CommandState::Tell;
                }
            }
            CommandState::Queue => {
                if queue_ready {
                    state_q = CommandState::Finish;
                    if facts.destroy_cq | facts.destroy_eq {
                        state_q = CommandState::Drain;
                    }
                    if facts.resize_cq {
                        state_q = CommandState::Switch;
                    }
                }
            }
            CommandState::Switch => {
                state_q = CommandState::Drain;
                if cq_refused {
                    result_q = BAD_STATE;
                    state_q = CommandState::Finish;
                }
            }
            CommandState::Tell => {
                state_q = CommandState::Wait;
            }
            CommandState::Wait => {
                if !events_busy {
                    state_q = CommandState::Finish;
                    if ends_qp | facts.destroy_srq {
                        state_q = CommandState::Drain;
                    }
                }
            }
            CommandState::Drain => {
                pulse_q.drain = true;
                state_q = CommandState::Settle;
            }
            CommandState::Settle => {
                if drain_done & !pulse_q.drain {
                    ended = true;
                    state_q = CommandState::Finish;
                    if facts.modify | facts.write_ah {
                        state_q = CommandState::Apply;
                    }
                }
            }
            CommandState::Finish => {
                pulse_q.finish = true;
                state_q = CommandState::Idle;
            }
            _ => {
                state_q = CommandState::Idle;
            }
        }
        state = state_q;
        sweep = sweep_q;
        result = result_q;
        pulse = pulse_q;
        ready = swept;
    }
}
