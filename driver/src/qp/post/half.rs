//! The two sides of a queue pair, for a thread each.

use crate::post_error::PostError;
use crate::wr::{RecvWr, SendWr};
use crate::{AnyBackend, Backend, Qp};

/// The side of a queue pair that posts send requests, see [`Qp::split`].
#[derive(Debug)]
pub struct SendHalf<'a, B: Backend = AnyBackend>(&'a Qp<B>);

/// The side of a queue pair that posts receive requests, see [`Qp::split`].
#[derive(Debug)]
pub struct RecvHalf<'a, B: Backend = AnyBackend>(&'a Qp<B>);

impl<B: Backend> SendHalf<'_, B> {
    /// As [`Qp::post_send`].
    ///
    /// # Errors
    /// As of [`Qp::post_send`].
    #[inline]
    pub fn post_send(&mut self, wrs: &[SendWr<'_>]) -> Result<(), PostError> {
        self.0.send_all(wrs)
    }

    /// The queue pair.
    #[must_use]
    pub fn qp(&self) -> &Qp<B> {
        self.0
    }
}

impl<B: Backend> RecvHalf<'_, B> {
    /// As [`Qp::post_recv`].
    ///
    /// # Errors
    /// As of [`Qp::post_recv`].
    #[inline]
    pub fn post_recv(&mut self, wrs: &[RecvWr<'_>]) -> Result<(), PostError> {
        self.0.recv_all(wrs)
    }

    /// The queue pair.
    #[must_use]
    pub fn qp(&self) -> &Qp<B> {
        self.0
    }
}

impl<B: Backend> Qp<B> {
    /// Both sides of the queue pair: one thread posts sends while another posts receives. Neither takes a lock.
    ///
    /// ```
    /// # use ferroce_driver::{PostError, Qp, RecvWr, SendWr};
    /// fn both(qp: &mut Qp, sends: &[SendWr<'_>], receives: &[RecvWr<'_>]) -> Result<(), PostError> {
    ///     let (mut tx, mut rx) = qp.split();
    ///     std::thread::scope(|scope| {
    ///         let posted = scope.spawn(move || rx.post_recv(receives));
    ///         tx.post_send(sends)?;
    ///         posted.join().expect("it does not panic")
    ///     })
    /// }
    /// ```
    pub fn split(&mut self) -> (SendHalf<'_, B>, RecvHalf<'_, B>) {
        (SendHalf(self), RecvHalf(self))
    }
}
