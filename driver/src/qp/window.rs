//! Windows that a queue pair binds and invalidates.

use crate::card::Bound;
use crate::command::CommandError;
use crate::host::lock;
use crate::mr::{Mw, MwBind, MwError};
use crate::wr::{SendFlags, SendOp, SendWr};
use crate::{Backend, Qp};

/// A request that sends nothing.
fn local(op: SendOp, (wr_id, flags): (u64, SendFlags)) -> SendWr<'static> {
    SendWr {
        wr_id,
        flags,
        ..SendWr::new(op, &[])
    }
}

impl<B: Backend> Mw<B> {
    /// Binds the window at once, as a request at the head of the send queue of `qp` would, under a key of which the
    /// lowest 8 bits count: whether it was bound. If a rule of IB1 10.6.7.2 forbids it nothing has changed.
    ///
    /// # Errors
    /// [`MwError::Command`]: nothing has changed.
    pub fn bind(
        &mut self,
        qp: &Qp<B>,
        bind: &MwBind<'_, B>,
        key: Option<u32>,
    ) -> Result<bool, MwError> {
        self.bind_for((qp.pd(), qp.qpn()), bind, key)
    }
}

impl<B: Backend> Qp<B> {
    /// Binds a window and posts a request that tells of it: its new key. The window is bound when this returns, whatever was
    /// posted before and is not done; if a rule forbids it the request fails with `MwBindErr`, and the queue pair with it.
    ///
    /// # Errors
    /// [`MwError`]: nothing was posted, and nothing is bound.
    pub fn post_bind(
        &mut self,
        mw: &mut Mw<B>,
        bind: &MwBind<'_, B>,
        key: Option<u32>,
        request: (u64, SendFlags),
    ) -> Result<u32, MwError> {
        let local_op = |bound| local(SendOp::BindMw { bound }, request);
        self.check_send(&[local_op(true)])?;
        let bound = mw.bind(self, bind, key)?;
        self.post_send(&[local_op(bound)])?;
        Ok(mw.rkey())
    }

    /// Invalidates the key of a type 2 window that this queue pair bound, at once, as a request at the head of the send
    /// queue would: whether there was such a key.
    ///
    /// # Errors
    /// [`CommandError`]: nothing has changed.
    pub fn invalidate(&self, key: u32) -> Result<bool, CommandError> {
        let card = &self.pd().card;
        let mut windows = lock(&card.windows);
        let (pd, qpn) = (self.pd().number, Some(self.qpn()));
        let is_own = |bound: &Bound| {
            (bound.key, bound.pd, bound.qpn) == (key, pd, qpn) && !bound.invalidated
        };
        if !windows.0.values().any(is_own) {
            return Ok(false);
        }
        windows.end(card, is_own)?;
        Ok(true)
    }

    /// Invalidates a key as [`invalidate`](Self::invalidate) does, and posts a request that tells of it.
    ///
    /// # Errors
    /// [`MwError`]: nothing was posted, and nothing is invalidated.
    pub fn post_invalidate(&mut self, key: u32, request: (u64, SendFlags)) -> Result<(), MwError> {
        let local_op = |invalidated| local(SendOp::LocalInv { invalidated }, request);
        self.check_send(&[local_op(true)])?;
        let invalidated = self.invalidate(key)?;
        self.post_send(&[local_op(invalidated)])?;
        Ok(())
    }
}
