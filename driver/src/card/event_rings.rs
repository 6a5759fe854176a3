//! The event queues of a card, as the queue pairs see them: LAST_WQE_REACHED of a flush that the driver asks for is not for
//! the program.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use ferroce_proto::abi::eq::{Eqe, event};

use crate::Backend;
use crate::ring::EntryRing;

/// The ring of an event queue.
pub(crate) type EventRing<B> = EntryRing<B, { Eqe::BYTES }>;

/// A queue pair that goes through ERR on the way to RESET, and the positions of its event queue at which its event may be.
struct Flush {
    qpn: u32,
    eqn: u32,
    positions: Range<u64>,
}

impl Flush {
    fn means(&self, position: u64, eqe: &Eqe) -> bool {
        eqe.event == event::LAST_WQE_REACHED
            && eqe.object == self.qpn
            && self.positions.contains(&position)
    }
}

/// Rings of the event queues by number, and the flushes whose events may be in them.
pub(crate) struct EventRings<B: Backend> {
    rings: BTreeMap<u32, Arc<EventRing<B>>>,
    flushes: Vec<Flush>,
}

impl<B: Backend> Default for EventRings<B> {
    fn default() -> Self {
        Self {
            rings: BTreeMap::new(),
            flushes: Vec::new(),
        }
    }
}

impl<B: Backend> EventRings<B> {
    pub(crate) fn add(&mut self, eqn: u32, ring: &Arc<EventRing<B>>) {
        self.rings.insert(eqn, ring.clone());
    }

    pub(crate) fn remove(&mut self, eqn: u32) {
        self.rings.remove(&eqn);
        self.flushes.retain(|flush| flush.eqn != eqn);
    }

    /// Queue pair `qpn`, whose events go to queue `eqn`, is about to be flushed.
    pub(crate) fn flush_begins(&mut self, eqn: u32, qpn: u32) {
        if let Some(ring) = self.rings.get(&eqn) {
            let positions = ring.end()..u64::MAX;
            self.flushes.push(Flush {
                qpn,
                eqn,
                positions,
            });
        }
    }

    /// Queue pair `qpn` is in RESET: an event of its flush is there, or does not come.
    pub(crate) fn flush_ends(&mut self, qpn: u32) {
        let Self { rings, flushes } = self;
        flushes.retain_mut(|flush| {
            if flush.qpn != qpn || flush.positions.end != u64::MAX {
                return true;
            }
            let ring = &rings[&flush.eqn];
            flush.positions.end = ring.end();
            let mut left = flush.positions.start.max(ring.consumed())..flush.positions.end;
            left.any(|position| {
                let eqe = ring.read(position).map(|bytes| Eqe::parse(&bytes));
                eqe.is_some_and(|eqe| flush.means(position, &eqe))
            })
        });
    }

    /// Whether an event of queue `eqn`, which is not consumed yet, is of such a flush; that has no other one.
    pub(crate) fn is_of_flush(&mut self, eqn: u32, position: u64, eqe: &Eqe) -> bool {
        let is_it = |flush: &Flush| flush.eqn == eqn && flush.means(position, eqe);
        let found = self.flushes.iter().position(is_it);
        found.map(|at| self.flushes.swap_remove(at)).is_some()
    }
}
