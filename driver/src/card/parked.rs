//! Events on their way from one queue to another.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use ferroce_proto::abi::eq::Eqe;

use crate::eventfd;

/// Events that came to a channel, on their way to the handle for asynchronous events.
#[derive(Default)]
pub(crate) struct Parked {
    pub(crate) events: VecDeque<Eqe>,
    /// Raised with each event; `None`: there is no handle for asynchronous events.
    pub(crate) fd: Option<OwnedFd>,
}

impl Parked {
    /// Hands an event on, or drops it if there is no handle.
    pub(crate) fn put(&mut self, eqe: Eqe) {
        let Some(fd) = &self.fd else { return };
        self.events.push_back(eqe);
        eventfd::signal(fd);
    }
}
