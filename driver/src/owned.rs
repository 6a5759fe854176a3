//! Requests that own their buffers: a buffer moves in when it is posted, and comes back with its completion.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut, RangeBounds};
use std::slice;
use std::time::Duration;

use thiserror::Error;

use crate::card::Kind;
use crate::host::nanoseconds;
use crate::{
    Access, AnyBackend, Backend, Cq, CqError, MrBuf, MrError, Notify, Pd, PostError, Qp, QpAttr,
    QpState, RecvWr, SendOp, SendWr, Wc,
};

/// Registered bytes, zero at first, for requests of this side only: no peer has rights to them.
///
/// Whoever holds it may read and write the bytes as a slice; while a request uses them it is not to be had.
pub struct Buf<B: Backend = AnyBackend>(Box<MrBuf<B>>);

impl<B: Backend> Pd<B> {
    /// Allocates and registers a zeroed buffer of `len` bytes for requests that own it, see
    /// [`OwnedQueues`](crate::OwnedQueues).
    ///
    /// # Errors
    /// As of [`alloc_mr`](Self::alloc_mr).
    pub fn alloc_buf(&self, len: usize) -> Result<Buf<B>, MrError> {
        Buf::new(self, len)
    }
}

impl<B: Backend> Buf<B> {
    pub(crate) fn new(pd: &Pd<B>, len: usize) -> Result<Self, MrError> {
        let region = MrBuf::new(pd.inner(), len, Access::LOCAL_WRITE, Kind::Promised)?;
        Ok(Self(Box::new(region)))
    }
}

impl<B: Backend> fmt::Debug for Buf<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buf({} bytes at {:#x})", self.0.len(), self.0.addr())
    }
}

impl<B: Backend> Deref for Buf<B> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are initialised and live as long as the region. The card writes them for a request that owns
        // this value only, and peers have no rights to them.
        unsafe { slice::from_raw_parts(self.0.as_mut_ptr(), self.0.len()) }
    }
}

impl<B: Backend> DerefMut for Buf<B> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as of `deref`; the card reads them for a request that owns this value only.
        unsafe { slice::from_raw_parts_mut(self.0.as_mut_ptr(), self.0.len()) }
    }
}

/// A request that was not posted, with its buffer.
#[derive(Error)]
#[error("{cause}")]
pub struct Refused<B: Backend = AnyBackend> {
    /// Why.
    #[source]
    pub cause: RefusedCause,
    /// The buffer.
    pub buf: Buf<B>,
}

impl<B: Backend> fmt::Debug for Refused<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Refused({:?}, {:?})", self.cause, self.buf)
    }
}

/// Why a request that owns its buffer was not posted.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusedCause {
    /// No such queue pair here.
    #[error("queue pair {qpn} is not one of these queues: add it first")]
    UnknownQp {
        /// Number asked for.
        qpn: u32,
    },
    /// The queue pair refused.
    #[error(transparent)]
    Post(#[from] PostError),
}

/// A queue pair that cannot join.
#[derive(Error)]
#[error("queue pair {} cannot join: {why}", .qp.qpn())]
pub struct NotAdded<B: Backend = AnyBackend> {
    /// What is wrong with it, and what to do.
    pub why: &'static str,
    /// The queue pair.
    pub qp: Qp<B>,
}

impl<B: Backend> fmt::Debug for NotAdded<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NotAdded({:?}: {})", self.qp, self.why)
    }
}

/// A request that is done.
pub struct Done<B: Backend = AnyBackend> {
    /// Its completion. `wr_id` is that of the request.
    pub wc: Wc,
    /// Its buffer.
    pub buf: Buf<B>,
}

impl<B: Backend> fmt::Debug for Done<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Done({:?}, {:?})", self.wc, self.buf)
    }
}

/// A posted request.
struct Posted<B: Backend> {
    qpn: u32,
    wr_id: u64,
    buf: Buf<B>,
}

/// Queue pairs and their completion queue, with requests that own their buffers.
///
/// Nothing here is unsafe to call, and bytes that the card may touch cannot be reached. Different threads use different
/// ones. Each request is signaled.
///
/// ```
/// use std::time::Duration;
///
/// use ferroce_driver::{Done, OwnedQueues, Pd, SendOp};
///
/// fn echo(
///     queues: &mut OwnedQueues,
///     pd: &Pd,
///     qpn: u32,
/// ) -> Result<(), Box<dyn std::error::Error>> {
///     queues.recv(qpn, pd.alloc_buf(4096)?, 1).map_err(|refused| refused.cause)?;
///     let Some(Done { wc, mut buf }) = queues.wait(Duration::from_secs(1)) else {
///         return Err("no message within a second".into());
///     };
///     let len = wc.ok()?.byte_len as usize;
///     buf[..len].reverse();
///     queues.send(qpn, SendOp::Send, buf, ..len, 2).map_err(|refused| refused.cause)?;
///     Ok(())
/// }
/// ```
pub struct OwnedQueues<B: Backend = AnyBackend> {
    // Fields drop in order: the card is done with the queue pairs before the buffers go.
    qps: BTreeMap<u32, Qp<B>>,
    cq: Cq<B>,
    /// Requests, by the wr_id given to the queue pair.
    posted: Vec<Option<Posted<B>>>,
    /// Places of `posted` that are empty.
    free: Vec<usize>,
}

impl<B: Backend> OwnedQueues<B> {
    /// No queue pairs yet, with the completion queue of those to come.
    #[must_use]
    pub fn new(cq: Cq<B>) -> Self {
        Self {
            qps: BTreeMap::new(),
            cq,
            posted: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The completion queue, to build queue pairs on.
    #[must_use]
    pub fn cq(&self) -> &Cq<B> {
        &self.cq
    }

    /// A queue pair by its number.
    #[must_use]
    pub fn qp(&self, qpn: u32) -> Option<&Qp<B>> {
        self.qps.get(&qpn)
    }

    /// Takes in a queue pair, connected or not, to which nothing is posted.
    ///
    /// # Errors
    /// [`NotAdded`]: it completes elsewhere, receives from a shared receive queue, or something is posted to it.
    pub fn add(&mut self, qp: Qp<B>) -> Result<u32, Box<NotAdded<B>>> {
        let why = if !qp.completes_on(&self.cq) {
            "it completes on another completion queue; build it with `.cq(queues.cq())`"
        } else if qp.has_srq() {
            "it receives from a shared receive queue, whose requests have no owner; build it without"
        } else if !qp.is_idle() {
            "something is posted to it; poll its completions, or reset it"
        } else {
            let qpn = qp.qpn();
            self.qps.insert(qpn, qp);
            return Ok(qpn);
        };
        Err(Box::new(NotAdded { why, qp }))
    }

    /// Gives a queue pair back, in state RESET, with the requests that did not complete: wr_id and buffer.
    ///
    /// # Errors
    /// [`CommandError`](crate::CommandError) and what else keeps it from RESET; it stays here then.
    #[expect(clippy::type_complexity, reason = "a pair for each request")]
    pub fn remove(
        &mut self,
        qpn: u32,
    ) -> Result<Option<(Qp<B>, Vec<(u64, Buf<B>)>)>, crate::ModifyError> {
        let Some(qp) = self.qps.get_mut(&qpn) else {
            return Ok(None);
        };
        qp.modify(&QpAttr::Reset)?;
        let mut bufs = Vec::new();
        for (place, slot) in self.posted.iter_mut().enumerate() {
            if let Some(posted) = slot.take_if(|posted| posted.qpn == qpn) {
                self.free.push(place);
                bufs.push((posted.wr_id, posted.buf));
            }
        }
        Ok(self.qps.remove(&qpn).map(|qp| (qp, bufs)))
    }

    /// Brings a queue pair to ERR: what was posted comes back flushed.
    ///
    /// # Errors
    /// As of [`Qp::modify`].
    pub fn fail(&mut self, qpn: u32) -> Result<(), crate::ModifyError> {
        match self.qps.get_mut(&qpn) {
            Some(qp) if qp.state() != QpState::Err => qp.modify(&QpAttr::Err),
            _ => Ok(()),
        }
    }

    /// Posts a send request on a part of a buffer, which comes back with the completion.
    ///
    /// # Errors
    /// [`Refused`], with the buffer.
    ///
    /// # Panics
    /// If the part is outside of the buffer.
    pub fn send(
        &mut self,
        qpn: u32,
        op: SendOp,
        buf: Buf<B>,
        part: impl RangeBounds<usize>,
        wr_id: u64,
    ) -> Result<(), Refused<B>> {
        let list = [buf.0.sge(part)];
        self.post(qpn, buf, wr_id, |qp, place| {
            qp.post_send(&[SendWr::new(op, &list).wr_id(place).signaled()])
        })
    }

    /// Posts a receive request on a whole buffer, which comes back with the completion.
    ///
    /// # Errors
    /// [`Refused`], with the buffer.
    pub fn recv(&mut self, qpn: u32, buf: Buf<B>, wr_id: u64) -> Result<(), Refused<B>> {
        let list = [buf.0.sge(..)];
        self.post(qpn, buf, wr_id, |qp, place| {
            qp.post_recv(&[RecvWr::new(place, &list)])
        })
    }

    fn post(
        &mut self,
        qpn: u32,
        buf: Buf<B>,
        wr_id: u64,
        post: impl FnOnce(&mut Qp<B>, u64) -> Result<(), PostError>,
    ) -> Result<(), Refused<B>> {
        let Some(qp) = self.qps.get_mut(&qpn) else {
            let cause = RefusedCause::UnknownQp { qpn };
            return Err(Refused { cause, buf });
        };
        let place = self.free.pop().unwrap_or_else(|| {
            self.posted.push(None);
            self.posted.len() - 1
        });
        if let Err(e) = post(qp, place as u64) {
            self.free.push(place);
            let cause = e.into();
            return Err(Refused { cause, buf });
        }
        self.posted[place] = Some(Posted { qpn, wr_id, buf });
        Ok(())
    }

    /// The next request that is done, oldest first.
    pub fn poll(&mut self) -> Option<Done<B>> {
        let mut wcs = [Wc::default()];
        while self.cq.poll(&mut wcs) == 1 {
            let [mut wc] = wcs;
            let place = wc.wr_id as usize;
            // Completions of a queue pair that was never added are not ours.
            let posted = self
                .posted
                .get_mut(place)
                .and_then(|slot| slot.take_if(|posted| posted.qpn == wc.qp_num));
            if let Some(Posted { wr_id, buf, .. }) = posted {
                self.free.push(place);
                wc.wr_id = wr_id;
                return Some(Done { wc, buf });
            }
        }
        None
    }

    /// The next request that is done; polls for `limit` of the card's time at most.
    pub fn wait(&mut self, limit: Duration) -> Option<Done<B>> {
        let host = self.cq.core().card.host.clone();
        host.wait(nanoseconds(limit), || self.poll())
    }

    /// Asks for one event on the channel of the completion queue, see [`Cq::req_notify`].
    ///
    /// # Errors
    /// As there.
    pub fn req_notify(&mut self, notify: Notify) -> Result<(), CqError> {
        self.cq.req_notify(notify)
    }
}
