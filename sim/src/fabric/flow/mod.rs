//! What is to be sent over a fabric, and what came of it.
//!
//! | file | holds |
//! |---|---|
//! | `report` | what came of a flow |
//! | `paced` | a host without a card: one queue pair a flow, each paced |
//! | `reaction` | what paces it: the golden reaction point, or that of recorded simulations |
//! | `sender`, `receiver`, `packets` | its requester; its responder and notification point; their frames |
//! | `card` | a host with a card: the same flows as verbs on any [`Nic`](crate::nic::Nic) |
//! | `ends` | what passes its ends, counted |
//! | `starts` | when the flows of a host start |

pub mod card;
mod ends;
pub mod paced;
mod packets;
pub mod reaction;
mod receiver;
pub mod report;
mod sender;
mod starts;

use super::Time;

pub use report::{HostReport, Received, Sent, Series, Tick};

/// Number of a flow in its list.
pub type FlowId = usize;

/// Bytes of a flow that goes on until it is stopped.
pub const ENDLESS: u64 = u64::MAX;

/// One transfer, as RDMA WRITEs of a queue pair of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Host that sends.
    pub src: usize,
    /// Host that receives.
    pub dst: usize,
    /// Bytes, at least 1.
    pub bytes: u64,
    /// When it starts.
    pub start: Start,
    /// When its sender gives up what is not sent yet.
    pub stop: Option<Time>,
}

/// When a flow starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// At this time.
    At(Time),
    /// When its sender has received these.
    After(Vec<FlowId>),
}

impl Flow {
    /// `bytes` from `src` to `dst` at a time.
    #[must_use]
    pub const fn at(time: Time, src: usize, dst: usize, bytes: u64) -> Self {
        Self {
            src,
            dst,
            bytes,
            start: Start::At(time),
            stop: None,
        }
    }

    /// Queue pair number of its packets, at either end.
    #[must_use]
    pub const fn qpn(id: FlowId) -> u32 {
        id as u32 + 2
    }

    /// The flow of a queue pair number.
    #[must_use]
    pub const fn of_qpn(qpn: u32) -> Option<FlowId> {
        (qpn as usize).checked_sub(2)
    }
}
