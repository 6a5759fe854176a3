//! When the senders of a host start: at a time, or when others have been received.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{FlowId, Start};
use crate::fabric::{NEVER, Time};

/// Senders, by their place at the host, that have not started.
#[derive(Clone, Debug, Default)]
pub(super) struct Starts {
    planned: BinaryHeap<Reverse<(Time, usize)>>,
    /// Flows still to be received, by sender.
    needs: Vec<Vec<FlowId>>,
}

impl Starts {
    /// The next sender of the host; without a start it is none.
    pub(super) fn add(&mut self, start: Option<&Start>) {
        match start {
            Some(Start::At(time)) => {
                self.planned.push(Reverse((*time, self.needs.len())));
                self.needs.push(Vec::new());
            }
            Some(Start::After(ids)) => self.needs.push(ids.clone()),
            None => self.needs.push(Vec::new()),
        }
    }

    /// When the next one starts.
    pub(super) fn due(&self) -> Time {
        self.planned
            .peek()
            .map_or(NEVER, |Reverse((time, _))| *time)
    }

    /// One that starts.
    pub(super) fn take(&mut self, now: Time) -> Option<usize> {
        if self.due() > now {
            return None;
        }
        self.planned.pop().map(|Reverse((_, place))| place)
    }

    /// A flow is complete: others may start.
    pub(super) fn received(&mut self, now: Time, id: FlowId) {
        for (place, needs) in self.needs.iter_mut().enumerate() {
            let before = needs.len();
            needs.retain(|&need| need != id);
            if needs.is_empty() && before > 0 {
                self.planned.push(Reverse((now, place)));
            }
        }
    }
}
