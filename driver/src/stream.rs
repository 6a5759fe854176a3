//! Completions and asynchronous events as streams, in tokio.

use std::io;
use std::pin::Pin;
use std::task::{Context as Waker, Poll, ready};

use futures_core::Stream;
use tokio::io::unix::AsyncFd;

use crate::{
    AnyBackend, AsyncEvent, AsyncEvents, Backend, CompChannel, Context, Cq, CqError, EventAttr,
    EventError, Notify, Wc,
};

/// Completions taken from the queue at a time.
const BATCH: usize = 16;

/// A completion queue as a stream of its completions, with a channel of its own. It ends when the card is lost and all
/// that was posted is reported, or with the runtime.
///
/// ```
/// use ferroce_driver::{Completions, WcError};
/// use tokio_stream::StreamExt;
///
/// async fn received(completions: &mut Completions, messages: usize) -> Result<u64, WcError> {
///     let mut bytes = 0;
///     for _ in 0..messages {
///         let Some(wc) = completions.next().await else { break };
///         bytes += u64::from(wc.ok()?.byte_len);
///     }
///     Ok(bytes)
/// }
/// ```
#[derive(Debug)]
pub struct Completions<B: Backend = AnyBackend> {
    cq: Cq<B>,
    channel: AsyncFd<CompChannel<B>>,
    taken: [Wc; BATCH],
    /// Of `taken`: the next one, and how many there are.
    next: usize,
    count: usize,
    is_armed: bool,
}

/// A queue could not be made a stream.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// There is no channel for it.
    #[error(transparent)]
    Channel(#[from] EventError),
    /// There is no queue for it.
    #[error(transparent)]
    Cq(#[from] CqError),
    /// The runtime takes no file descriptor.
    #[error("the runtime does not wait for the file descriptor: build it with enable_io()")]
    Runtime(#[from] io::Error),
}

impl<B: Backend> Context<B> {
    /// A new completion queue for at least `entries` completions, as a stream.
    ///
    /// # Errors
    /// [`StreamError`].
    ///
    /// # Panics
    /// Outside of a tokio runtime, and in one without I/O.
    pub fn completions(&self, entries: u32) -> Result<Completions<B>, StreamError> {
        let channel = self.create_comp_channel(&EventAttr::default())?;
        let cq = self.create_cq_on(entries, &channel)?;
        Ok(Completions {
            cq,
            // SAFETY: a channel owns its file descriptor and keeps it until it is dropped.
            channel: unsafe { AsyncFd::register(channel) }.map_err(io::Error::from)?,
            taken: [Wc::default(); BATCH],
            next: 0,
            count: 0,
            is_armed: false,
        })
    }

    /// The asynchronous events of the card as a stream, see [`Context::async_events`].
    ///
    /// # Errors
    /// [`StreamError`].
    ///
    /// # Panics
    /// Outside of a tokio runtime, and in one without I/O.
    pub fn event_stream(&self) -> Result<EventStream<B>, StreamError> {
        let events = self.async_events(&EventAttr::default())?;
        // SAFETY: as of a channel.
        let events = unsafe { AsyncFd::register(events) }.map_err(io::Error::from)?;
        Ok(EventStream {
            events,
            is_over: false,
        })
    }
}

impl<B: Backend> Completions<B> {
    /// The completion queue, for the queue pairs that complete to it.
    #[must_use]
    pub fn cq(&self) -> &Cq<B> {
        &self.cq
    }
}

/// Nothing of it is pinned.
impl<B: Backend> Unpin for Completions<B> {}

impl<B: Backend> Stream for Completions<B> {
    type Item = Wc;

    fn poll_next(self: Pin<&mut Self>, waker: &mut Waker<'_>) -> Poll<Option<Wc>> {
        let this = self.get_mut();
        loop {
            if this.next < this.count {
                this.next += 1;
                return Poll::Ready(Some(this.taken[this.next - 1]));
            }
            (this.next, this.count) = (0, this.cq.poll(&mut this.taken));
            if this.count > 0 {
                continue;
            }
            // A completion that came since is reported at once.
            if !this.is_armed && this.cq.req_notify(Notify::Any).is_err() {
                return Poll::Ready(None);
            }
            this.is_armed = true;
            let Ok(mut guard) = ready!(this.channel.poll_read_ready_mut(waker)) else {
                return Poll::Ready(None);
            };
            if guard.get_inner_mut().try_event().is_some() {
                this.is_armed = false;
            } else {
                guard.clear_ready();
            }
        }
    }
}

/// The asynchronous events of a card as a stream. [`AsyncEvent::DeviceFatal`] is the last one.
#[derive(Debug)]
pub struct EventStream<B: Backend = AnyBackend> {
    events: AsyncFd<AsyncEvents<B>>,
    is_over: bool,
}

/// Nothing of it is pinned.
impl<B: Backend> Unpin for EventStream<B> {}

impl<B: Backend> Stream for EventStream<B> {
    type Item = AsyncEvent;

    fn poll_next(self: Pin<&mut Self>, waker: &mut Waker<'_>) -> Poll<Option<AsyncEvent>> {
        let this = self.get_mut();
        while !this.is_over {
            let Ok(mut guard) = ready!(this.events.poll_read_ready_mut(waker)) else {
                break;
            };
            match guard.get_inner_mut().try_event() {
                Some(event) => {
                    this.is_over = matches!(event, AsyncEvent::DeviceFatal);
                    return Poll::Ready(Some(event));
                }
                None => guard.clear_ready(),
            }
        }
        Poll::Ready(None)
    }
}
