//! Windows that a queue pair binds and invalidates.

use crate::card::Posted;
use crate::host::lock;
use crate::mr::{Mw, MwBind, MwError};
use crate::post_error::PostError;
use crate::wr::{Binding, SendFlags, SendOp, SendWr};
use crate::{Backend, Qp};

/// A request that sends nothing.
fn local(op: SendOp, (wr_id, flags): (u64, SendFlags)) -> SendWr<'static> {
    SendWr {
        wr_id,
        flags,
        ..SendWr::new(op, &[])
    }
}

impl<B: Backend> Qp<B> {
    /// Posts a bind of a window, under a key of which the lowest 8 bits count: its new key. The window is bound when the card
    /// has completed all in front of the request; if a rule of IB1 10.6.7.2 forbids it, the request fails with `MwBindErr`,
    /// and the queue pair with it.
    ///
    /// # Errors
    /// [`MwError`]: nothing was posted.
    pub fn post_bind(
        &mut self,
        mw: &mut Mw<B>,
        bind: &MwBind<'_, B>,
        key: Option<u32>,
        request: (u64, SendFlags),
    ) -> Result<u32, MwError> {
        let card = self.pd.card.clone();
        if !mw.is_of(&card) {
            // A request for a window that this card does not have.
            let none = Binding::of_nothing();
            self.post_send(&[local(SendOp::BindMw(none), request)])?;
            return Ok(mw.rkey());
        }
        let (binding, region) = mw.binding(bind, key);
        let posted = Posted::new(region, self.number, &self.queues);
        let number = lock(&card.windows).note(mw.place(), posted);
        if let Err(e) = self.post_send(&[local(SendOp::BindMw(binding), request)]) {
            lock(&card.windows).take_back(mw.place(), number);
            return Err(e.into());
        }
        mw.note(binding);
        Ok(mw.rkey())
    }

    /// Posts an invalidation of the key of a type 2 window that this queue pair bound. The key is invalid when the card has
    /// completed all in front of the request; the request fails with `MwBindErr` if there is no such key, and the queue pair
    /// with it. Once it completes the key reaches no memory.
    ///
    /// # Errors
    /// [`PostError`]: nothing was posted.
    pub fn post_invalidate(
        &mut self,
        key: u32,
        request: (u64, SendFlags),
    ) -> Result<(), PostError> {
        self.post_send(&[local(SendOp::LocalInv(key), request)])
    }
}
