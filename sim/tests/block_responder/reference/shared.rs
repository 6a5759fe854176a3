//! Shared receive queues.

use std::cell::{RefCell, RefMut};
use std::rc::Rc;

use ferroce_proto::abi::qpc::SrqCtx;

/// A shared receive queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Srq {
    pub(crate) ctx: SrqCtx,
    pub(crate) exists: bool,
    pub(crate) producer: u16,
    pub(crate) consumer: u16,
    /// When fewer are left it is reported; 0 = never.
    pub(crate) limit: u16,
}

/// All of them, and those that fell below their limits: number and event queue.
#[derive(Clone, Debug, Default)]
struct State {
    queues: Vec<Srq>,
    low: Vec<(u16, u8)>,
}

impl State {
    fn look(&mut self, srqn: u16) {
        let srq = &mut self.queues[usize::from(srqn)];
        if srq.exists && srq.producer.wrapping_sub(srq.consumer) < srq.limit {
            srq.limit = 0;
            self.low.push((srqn, srq.ctx.eqn));
        }
    }
}

/// Shared receive queues of a card. A clone goes its own way.
#[derive(Debug, Default)]
pub(crate) struct Srqs(Rc<RefCell<State>>);

impl Clone for Srqs {
    fn clone(&self) -> Self {
        Self(Rc::new(RefCell::new(self.0.borrow().clone())))
    }
}

impl Srqs {
    pub(crate) fn new(number: usize) -> Self {
        let queues = vec![Srq::default(); number];
        let low = vec![];
        Self(Rc::new(RefCell::new(State { queues, low })))
    }

    /// The same queues.
    pub(crate) fn share(&self) -> Self {
        Self(Rc::clone(&self.0))
    }

    pub(crate) fn get(&self, srqn: u16) -> RefMut<'_, Srq> {
        RefMut::map(self.0.borrow_mut(), |state| {
            &mut state.queues[usize::from(srqn)]
        })
    }

    /// Those that fell below their limits since the last call.
    pub(crate) fn low(&self) -> Vec<(u16, u8)> {
        std::mem::take(&mut self.0.borrow_mut().low)
    }

    /// The next receive WQE, which is taken.
    pub(super) fn take(&self, srqn: u16) -> Option<u16> {
        let state = &mut *self.0.borrow_mut();
        let srq = &mut state.queues[usize::from(srqn)];
        if !srq.exists || srq.producer == srq.consumer {
            return None;
        }
        let taken = srq.consumer;
        srq.consumer = taken.wrapping_add(1);
        state.look(srqn);
        Some(taken)
    }

    /// The limit is set; above what is posted it is reported at once.
    pub(crate) fn arm(&self, srqn: u16, limit: u16) {
        let state = &mut *self.0.borrow_mut();
        state.queues[usize::from(srqn)].limit = limit;
        state.look(srqn);
    }
}
