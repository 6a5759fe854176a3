//! What goes wrong with completion queues.

use thiserror::Error;

use crate::BackendError;
use crate::command::CommandError;

/// A completion queue could not be created, resized or armed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CqError {
    /// Too long or empty.
    #[error("a completion queue of {entries} entries was asked for, the card has 1 to {limit}")]
    Entries {
        /// Entries asked for.
        entries: u32,
        /// Longest queue.
        limit: u32,
    },
    /// All are taken.
    #[error(
        "all {limit} completion queues of the card are in use: drop some, or let queue pairs share them"
    )]
    Full {
        /// Completion queues of the card.
        limit: u32,
    },
    /// The card does not change the size of a queue.
    #[error(
        "this build of the card does not resize completion queues: load one with feature RESIZE_CQ"
    )]
    Unsupported,
    /// Unpolled completions do not fit.
    #[error(
        "the completion queue keeps its size: more than {entries} completions wait in it, or it has overflowed: poll it first"
    )]
    Waiting {
        /// Entries asked for.
        entries: u32,
    },
    /// The channel is another card's.
    #[error(
        "completion channel and completion queue are of different contexts: create both on the same"
    )]
    OtherContext,
    /// There is no channel to report completions on.
    #[error(
        "completion queue {cqn} has no channel, or its channel was dropped: create it with `create_cq_on` to be notified"
    )]
    NoChannel {
        /// The completion queue.
        cqn: u32,
    },
    /// No memory, or it could not be made reachable.
    #[error("no memory for the completion queue")]
    Memory(#[from] BackendError),
    /// The card refused.
    #[error(transparent)]
    Command(#[from] CommandError),
}
