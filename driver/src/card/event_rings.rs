//! The event queues of a card, as its objects see them: LAST_WQE_REACHED of a flush that the driver asks for is not for the
//! program, nor is an event of an object that has ended.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use ferroce_proto::abi::eq::{Eqe, event};

use super::Card;
use crate::Backend;
use crate::host::lock;
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

/// An object that has events, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    Qp(u32),
    Cq(u32),
    Srq(u32),
}

impl Object {
    /// That of an event; a completion is left out, as channels know theirs.
    pub(crate) fn of(eqe: &Eqe) -> Option<Self> {
        use event::*;
        match eqe.event {
            QP_FATAL | QP_REQ_ERR | QP_ACCESS_ERR | SQ_DRAINED | COMM_EST | LAST_WQE_REACHED => {
                Some(Self::Qp(eqe.object))
            }
            CQ_ERROR => Some(Self::Cq(eqe.object)),
            SRQ_LIMIT => Some(Self::Srq(eqe.object)),
            _ => None,
        }
    }
}

/// An object that has ended: its events in queue `eqn` before position `end` are void, as its number is used again.
struct Gone {
    object: Object,
    eqn: u32,
    end: u64,
}

/// Rings of the event queues by number, the flushes whose events may be in them, and objects that have ended with events there.
pub(crate) struct EventRings<B: Backend> {
    rings: BTreeMap<u32, Arc<EventRing<B>>>,
    flushes: Vec<Flush>,
    gone: Vec<Gone>,
}

impl<B: Backend> Default for EventRings<B> {
    fn default() -> Self {
        Self {
            rings: BTreeMap::new(),
            flushes: Vec::new(),
            gone: Vec::new(),
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
        self.gone.retain(|gone| gone.eqn != eqn);
    }

    /// An object is gone from the card, whose events of it are all in memory.
    fn ended(&mut self, object: Object) {
        for (&eqn, ring) in &self.rings {
            let end = ring.end();
            let is_it = |_, eqe: &Eqe| Object::of(eqe) == Some(object);
            if is_in(ring, ring.consumed()..end, is_it) {
                // One that ended before with this number is part of it.
                let is_other = |gone: &Gone| (gone.object, gone.eqn) != (object, eqn);
                self.gone.retain(is_other);
                self.gone.push(Gone { object, eqn, end });
            }
        }
    }

    /// Whether an event of queue `eqn`, which is not consumed yet, is void: of an object that has ended, or of a flush.
    pub(crate) fn is_void(&mut self, eqn: u32, position: u64, eqe: &Eqe) -> bool {
        self.gone
            .retain(|gone| gone.eqn != eqn || position < gone.end);
        let object = Object::of(eqe);
        let is_it = |gone: &Gone| gone.eqn == eqn && Some(gone.object) == object;
        self.gone.iter().any(is_it) || self.is_of_flush(eqn, position, eqe)
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
        let Self { rings, flushes, .. } = self;
        flushes.retain_mut(|flush| {
            if flush.qpn != qpn || flush.positions.end != u64::MAX {
                return true;
            }
            let ring = &rings[&flush.eqn];
            flush.positions.end = ring.end();
            let left = flush.positions.start.max(ring.consumed())..flush.positions.end;
            is_in(ring, left, |position, eqe| flush.means(position, eqe))
        });
    }

    /// Whether an event of queue `eqn`, which is not consumed yet, is of such a flush; that has no other one.
    fn is_of_flush(&mut self, eqn: u32, position: u64, eqe: &Eqe) -> bool {
        let is_it = |flush: &Flush| flush.eqn == eqn && flush.means(position, eqe);
        let found = self.flushes.iter().position(is_it);
        found.map(|at| self.flushes.swap_remove(at)).is_some()
    }
}

/// Whether one of the events at `positions` is looked for.
fn is_in<B: Backend>(
    ring: &EventRing<B>,
    mut positions: Range<u64>,
    is_it: impl Fn(u64, &Eqe) -> bool,
) -> bool {
    positions.any(|position| {
        let eqe = ring.read(position).map(|bytes| Eqe::parse(&bytes));
        eqe.is_some_and(|eqe| is_it(position, &eqe))
    })
}

impl<B: Backend> Card<B> {
    /// An object is gone, and its number is about to be free: the program gets no more events of it.
    pub(crate) fn end_events(&self, object: Object) {
        lock(&self.event_rings).ended(object);
        let is_other = |eqe: &Eqe| Object::of(eqe) != Some(object);
        lock(&self.parked).events.retain(is_other);
    }
}
