//! Asynchronous events.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use ferroce_proto::abi::eq::{Eqe, event};

use super::queue::{EventQueue, supported};
use super::{EventAttr, EventError};
use crate::card::ASYNC_EQN;
use crate::card::Card;
use crate::host::{lock, nanoseconds};
use crate::{AnyBackend, Backend, Context, WcStatus};

/// What happened to an object of the card, or to its port (`enum ibv_event_type`).
///
/// Numbers are those of the objects. A number is used again when its object is gone: what is taken from then on is not of the
/// former object, unless the ring of events was full when that ended. The card may then hold events of it back, so take events
/// in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AsyncEvent {
    /// The card is lost, see [`Context::is_lost`](crate::Context::is_lost). Reported once, as the last event.
    DeviceFatal,
    /// A completion queue overflowed: completions are lost, and the queue pairs they were of go into error.
    CqError {
        /// The completion queue.
        cqn: u32,
    },
    /// A queue pair went into error.
    QpFatal {
        /// The queue pair.
        qpn: u32,
        /// Why.
        status: WcStatus,
    },
    /// A queue pair refused a request of its peer as invalid, and went into error.
    QpRequestError {
        /// The queue pair.
        qpn: u32,
    },
    /// A queue pair refused its peer access, and went into error.
    QpAccessError {
        /// The queue pair.
        qpn: u32,
    },
    /// A send queue has nothing under way any more, after [`QpAttr::Sqd`](crate::QpAttr::Sqd).
    SqDrained {
        /// The queue pair.
        qpn: u32,
    },
    /// A connected queue pair took its first request while it was in [`QpAttr::Rtr`](crate::QpAttr::Rtr).
    CommunicationEstablished {
        /// The queue pair.
        qpn: u32,
    },
    /// A queue pair with a shared receive queue went into error, and has completed its last receive request.
    LastWqeReached {
        /// The queue pair.
        qpn: u32,
    },
    /// A shared receive queue has fewer requests left than [`Srq::arm`](crate::Srq::arm) named.
    SrqLimit {
        /// The shared receive queue.
        srqn: u32,
    },
    /// The port came up. No card tells of it yet: [`Context::status`](crate::Context::status) knows.
    PortUp,
    /// The port went down. No card tells of it yet, as above.
    PortDown,
    /// The exception queue has a frame, after [`ExceptionQueue::arm`](crate::ExceptionQueue::arm).
    Exception,
    /// A kind this driver does not know.
    Unknown {
        /// Its code.
        kind: u8,
        /// Detail.
        detail: u8,
        /// Number of an object.
        object: u32,
    },
}

impl From<Eqe> for AsyncEvent {
    fn from(eqe: Eqe) -> Self {
        let number = eqe.object;
        match eqe.event {
            event::CQ_ERROR => Self::CqError { cqn: number },
            event::QP_FATAL => Self::QpFatal {
                qpn: number,
                status: eqe.detail.into(),
            },
            event::QP_REQ_ERR => Self::QpRequestError { qpn: number },
            event::QP_ACCESS_ERR => Self::QpAccessError { qpn: number },
            event::SQ_DRAINED => Self::SqDrained { qpn: number },
            event::COMM_EST => Self::CommunicationEstablished { qpn: number },
            event::LAST_WQE_REACHED => Self::LastWqeReached { qpn: number },
            event::SRQ_LIMIT => Self::SrqLimit { srqn: number },
            event::PORT_UP => Self::PortUp,
            event::PORT_DOWN => Self::PortDown,
            event::EXCEPTION => Self::Exception,
            kind => Self::Unknown {
                kind,
                detail: eqe.detail,
                object: number,
            },
        }
    }
}

/// The asynchronous events of a card: failures, and what was asked for that is no completion.
///
/// There is one handle at a time; events while there is none are dropped. Events of a queue pair whose send
/// completions come to a queue on a [`CompChannel`](crate::CompChannel) arrive there first, and come here when the
/// channel's events are taken, which its readable file descriptor asks for.
///
/// The file descriptor is used as that of a channel.
pub struct AsyncEvents<B: Backend = AnyBackend> {
    // Fields drop in order: the event queue is free before another handle can be had.
    queue: EventQueue<B>,
    _taken: Taken<B>,
    /// The loss of the card was reported.
    is_over: bool,
}

/// The one handle is taken.
struct Taken<B: Backend>(Arc<Card<B>>);

impl<B: Backend> Drop for Taken<B> {
    fn drop(&mut self) {
        *lock(&self.0.parked) = Default::default();
    }
}

impl<B: Backend> Context<B> {
    /// The asynchronous events of the card. There is one handle at a time.
    ///
    /// # Errors
    /// [`EventError`]: no events or interrupts, in use, an attribute out of range, no memory, or refused.
    pub fn async_events(&self, attr: &EventAttr) -> Result<AsyncEvents<B>, EventError> {
        AsyncEvents::new(&self.card, attr)
    }
}

impl<B: Backend> AsyncEvents<B> {
    pub(crate) fn new(card: &Arc<Card<B>>, attr: &EventAttr) -> Result<Self, EventError> {
        supported(card)?;
        let mut parked = lock(&card.parked);
        if parked.fd.is_some() {
            return Err(EventError::InUse);
        }
        let queue = EventQueue::new(card, ASYNC_EQN, attr)?;
        let fd = queue.fd.try_clone();
        parked.fd = Some(fd.map_err(|source| {
            let vector = ASYNC_EQN;
            crate::BackendError::Interrupt { vector, source }
        })?);
        let _taken = Taken(card.clone());
        Ok(Self {
            queue,
            _taken,
            is_over: false,
        })
    }

    /// The next event. `None` if there is none; the file descriptor becomes readable with the next one.
    pub fn try_event(&mut self) -> Option<AsyncEvent> {
        Self::next(&mut self.queue, &mut self.is_over)
    }

    /// The next event; sleeps until there is one, for `limit` of the card's time at most, and not at all after the last.
    pub fn get_event(&mut self, limit: Duration) -> Option<AsyncEvent> {
        let Self { queue, is_over, .. } = self;
        queue.wait(nanoseconds(limit), |queue| Self::next(queue, is_over))
    }

    fn next(queue: &mut EventQueue<B>, is_over: &mut bool) -> Option<AsyncEvent> {
        let card = queue.card.clone();
        if let Some((_, eqe)) = queue.take(|| lock(&card.parked).events.pop_front()) {
            return Some(eqe.into());
        }
        if *is_over || !card.host.lost() {
            return None;
        }
        *is_over = true;
        Some(AsyncEvent::DeviceFatal)
    }
}

impl<B: Backend> AsFd for AsyncEvents<B> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.fd.as_fd()
    }
}

impl<B: Backend> AsRawFd for AsyncEvents<B> {
    fn as_raw_fd(&self) -> RawFd {
        self.queue.fd.as_raw_fd()
    }
}
