//! States and pulses of the command block.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::prelude::*;

/// What the block is doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum CommandState {
    /// Forgets, after reset, which queue pairs have images.
    Sweep,
    /// Waits for an entry.
    Idle,
    /// Checks it.
    Check,
    /// Decides.
    Judge,
    /// Writes what takes one cycle.
    Apply,
    /// Tells the writer of completion queues or event queues.
    Queue,
    /// Looks whether a completion queue was resized.
    Switch,
    /// Tells requester and responder.
    Tell,
    /// Waits for their answers.
    Wait,
    /// Starts the drain.
    Drain,
    /// Waits for it.
    Settle,
    /// Has the command answered.
    Finish,
}

payload! {
    /// Write enables and orders, each for a cycle.
    CommandPulses {
        /// Requester image.
        sq_we: Bit,
        /// Address vector.
        av_we: Bit,
        /// Address handle.
        ah_we: Bit,
        /// Responder image.
        rq_we: Bit,
        /// Shared receive queue.
        srq_we: Bit,
        /// Memory region.
        mr_we: Bit,
        /// GID table entry.
        gid_we: Bit,
        /// The drain begins.
        drain: Bit,
        /// The command is to be answered.
        finish: Bit,
    }
}
