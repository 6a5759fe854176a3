//! Events: what the card tells by interrupt.
//!
//! The card writes events into event queues, each with an interrupt vector of its own. Queue 0 is the one of
//! [`AsyncEvents`], each other one that of a [`CompChannel`]. A queue pair reports to the event queue of the completion
//! queue of its send queue; what is not a completion a channel hands on to [`AsyncEvents`].

mod asynchronous;
mod channel;
mod queue;

use thiserror::Error;

pub use asynchronous::{AsyncEvent, AsyncEvents};
pub(crate) use channel::Channel;
pub use channel::CompChannel;

use crate::BackendError;
use crate::command::CommandError;

/// How a card tells of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventAttr {
    /// Events that may wait to be taken, 1 to 65536, rounded up to a power of two. 64 more wait in the card; a further
    /// one is lost. Then a [`CompChannel`] reports each of its completion queues. An event of another kind is gone: take
    /// events before there are so many.
    pub entries: u32,
    /// Shortest time between two interrupts in ns, up to 67 ms, rounded up to a multiple of 1024 ns.
    pub moderation_ns: u32,
}

impl Default for EventAttr {
    /// 1024 entries and an interrupt for each event.
    fn default() -> Self {
        Self {
            entries: 1024,
            moderation_ns: 0,
        }
    }
}

/// A completion channel or the asynchronous events could not be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EventError {
    /// The card has none.
    #[error("this build of the card has no events: load one with feature EVENTS, or poll")]
    Unsupported,
    /// The backend has no interrupts.
    #[error("the backend of the card has no interrupt vectors: enable MSI-X, or poll")]
    NoInterrupts,
    /// Somebody has them already.
    #[error(
        "the asynchronous events of the card are in use: share them, or drop the other handle first"
    )]
    InUse,
    /// All are taken.
    #[error(
        "all {limit} completion channels of the card are in use: let completion queues share one"
    )]
    Full {
        /// Channels of the card: one less than event queues and than interrupt vectors.
        limit: u32,
    },
    /// An attribute out of range.
    #[error("{attribute} of an event queue is {value}, possible is {minimum} to {maximum}")]
    Limit {
        /// Name of the attribute.
        attribute: &'static str,
        /// Value asked for.
        value: u32,
        /// Smallest value.
        minimum: u32,
        /// Largest value.
        maximum: u32,
    },
    /// No memory, or no interrupt.
    #[error("no memory or interrupt for the event queue")]
    Backend(#[from] BackendError),
    /// The card refused.
    #[error(transparent)]
    Command(#[from] CommandError),
}
