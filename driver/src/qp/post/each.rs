//! Requests that are posted one by one, by one doorbell.

use crate::post_error::PostCause;
use crate::queue::Place;
use crate::wr::{RecvWr, SendWr};
use crate::{AnyBackend, Backend, Qp};

/// Send requests that are posted one by one, by one doorbell: when this is dropped, or before.
pub struct Sends<'a, B: Backend = AnyBackend> {
    qp: &'a mut Qp<B>,
    /// Behind what is written.
    producer: Place,
}

impl<B: Backend> Sends<'_, B> {
    /// A further request.
    ///
    /// # Errors
    /// Why it cannot be posted. Those before it are.
    #[inline]
    pub fn add(&mut self, wr: &SendWr<'_>) -> Result<(), PostCause> {
        self.qp.check_sends()?;
        let sq = &self.qp.queues.sq;
        self.producer = self.qp.write_one(wr, self.producer, sq.consumer())?;
        Ok(())
    }

    /// Rings for the requests so far, and calls `then` with the queue pair, which may post others.
    pub fn with<R>(&mut self, then: impl FnOnce(&mut Qp<B>) -> R) -> R {
        self.ring();
        let done = then(self.qp);
        self.producer = self.qp.queues.sq.producer();
        done
    }

    /// The queue pair.
    #[must_use]
    pub fn qp(&self) -> &Qp<B> {
        self.qp
    }

    fn ring(&self) {
        if self.producer != self.qp.queues.sq.producer() {
            self.qp.publish_send(self.producer);
        }
    }
}

impl<B: Backend> Drop for Sends<'_, B> {
    fn drop(&mut self) {
        self.ring();
    }
}

/// Receive requests that are posted one by one, by one doorbell: when this is dropped.
pub struct Receives<'a, B: Backend = AnyBackend> {
    qp: &'a mut Qp<B>,
    /// Behind what is written.
    producer: Place,
}

impl<B: Backend> Receives<'_, B> {
    /// A further request.
    ///
    /// # Errors
    /// Why it cannot be posted. Those before it are.
    #[inline]
    pub fn add(&mut self, wr: &RecvWr<'_>) -> Result<(), PostCause> {
        self.qp.check_receives()?;
        let rq = &self.qp.queues.rq;
        self.producer = self.qp.write_recv(wr, self.producer, rq.consumer())?;
        Ok(())
    }
}

impl<B: Backend> Drop for Receives<'_, B> {
    fn drop(&mut self) {
        if self.producer != self.qp.queues.rq.producer() {
            self.qp.publish_recv(self.producer);
        }
    }
}

impl<B: Backend> Qp<B> {
    /// Send requests of which each is posted, or not, by itself: see [`Sends`].
    pub fn sends(&mut self) -> Sends<'_, B> {
        let producer = self.queues.sq.producer();
        Sends { qp: self, producer }
    }

    /// Receive requests of which each is posted, or not, by itself: see [`Receives`].
    pub fn receives(&mut self) -> Receives<'_, B> {
        let producer = self.queues.rq.producer();
        Receives { qp: self, producer }
    }
}
