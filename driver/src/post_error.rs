//! Why work requests cannot be posted.

use ferroce_proto::abi::wqe;
use thiserror::Error;

use crate::Sge;
use crate::encode::Extent;
use crate::state::{QpState, QpType};

/// A batch was not posted: none of it was.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("nothing was posted: work request {index} of the batch: {cause}")]
pub struct PostError {
    /// Place in the batch of the request that cannot be posted.
    pub index: usize,
    /// Why.
    pub cause: PostCause,
}

/// Why a work request cannot be posted.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PostCause {
    /// The queue is full.
    #[error(
        "it takes {needed} entries of the {queue} queue and {free} are free: poll the completion queue first \
         (an unsignaled send request is retired with the next signaled one)"
    )]
    Full {
        /// "send" or "receive".
        queue: &'static str,
        /// Entries free; none if as many requests are posted as the queue pair has room for.
        free: u32,
        /// Entries the request takes.
        needed: u32,
    },
    /// The queue pair is not ready for it.
    #[error(
        "the queue pair is in {state} and such requests are posted from {needed} on: modify or connect it first"
    )]
    State {
        /// State it is in.
        state: QpState,
        /// State it must reach.
        needed: QpState,
    },
    /// A list too long.
    #[error(
        "its list has {found} entries, the queue pair was built for {limit}: split it, or build the queue pair with more"
    )]
    Sges {
        /// Entries of the request.
        found: usize,
        /// Entries at most.
        limit: usize,
    },
    /// Inline data too long.
    #[error(
        "it has {found} bytes of inline data, the queue pair was built for {limit}: register the memory, or build the queue pair with more"
    )]
    Inline {
        /// Bytes of the request.
        found: usize,
        /// Bytes at most.
        limit: usize,
    },
    /// A message too long.
    #[error("its message has {found} bytes, at most {limit} are possible: split it")]
    Length {
        /// Bytes of the request.
        found: u64,
        /// Bytes at most.
        limit: u32,
    },
    /// An operation that the queue pair does not have.
    #[error("this queue pair ({qp_type}) has no {operation}: {missing}")]
    Unsupported {
        /// Type of the queue pair.
        qp_type: QpType,
        /// Name of the operation.
        operation: &'static str,
        /// What is missing.
        missing: &'static str,
    },
    /// A request that makes no sense.
    #[error("{0}")]
    Malformed(&'static str),
}

impl PostCause {
    #[cold]
    pub(crate) fn at(self, index: usize) -> PostError {
        PostError { index, cause: self }
    }
}

/// What a list comes to, if that is possible.
#[inline]
pub(crate) fn check_list(sges: &[Sge], limit: usize) -> Result<Extent, PostCause> {
    let extent = Extent::of_list(sges);
    if extent.entries > limit {
        let found = extent.entries;
        return Err(PostCause::Sges { found, limit });
    }
    if extent.bytes > wqe::MAX_MSG.into() {
        let (found, limit) = (extent.bytes, wqe::MAX_MSG);
        return Err(PostCause::Length { found, limit });
    }
    Ok(extent)
}
