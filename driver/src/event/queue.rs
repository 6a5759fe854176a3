//! An event queue of the card with its interrupt.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::eq::{self, EqCtx, Eqe, event};

use super::{EventAttr, EventError};
use crate::card::{ASYNC_EQN, Card, EventRing};
use crate::command::Command;
use crate::host::lock;
use crate::{Backend, Features, eventfd};

/// ns of a unit of `EqCtx::moderation`.
const MODERATION_UNIT_NS: u32 = 1024;
const MAX_ENTRIES: u32 = 1 << eq::MAX_LOG_EQE;
/// Longest sleep in ns of the card from one look for it to the next: of its end no interrupt tells.
const LOOK_NS: u64 = 20_000_000;

/// What `card` needs to have events at all.
pub(super) fn supported<B: Backend>(card: &Card<B>) -> Result<(), EventError> {
    if !card.info.features.contains(Features::EVENTS) {
        return Err(EventError::Unsupported);
    }
    if card.host.backend.vectors() == 0 {
        return Err(EventError::NoInterrupts);
    }
    Ok(())
}

/// Event queue `number` of a card, reported by the interrupt vector of the same number. It has one consumer.
pub(super) struct EventQueue<B: Backend> {
    pub(super) card: Arc<Card<B>>,
    pub(super) number: u32,
    pub(super) ring: Arc<EventRing<B>>,
    pub(super) fd: OwnedFd,
    /// Events taken.
    position: u64,
    /// The ring was full when an event was taken: the card may have lost later ones. The channel takes the mark away.
    pub(super) was_full: bool,
}

impl<B: Backend> EventQueue<B> {
    pub(super) fn new(
        card: &Arc<Card<B>>,
        number: u32,
        attr: &EventAttr,
    ) -> Result<Self, EventError> {
        let longest_ns = u32::from(u16::MAX) * MODERATION_UNIT_NS;
        for (attribute, value, minimum, maximum) in [
            ("entries", attr.entries, 1, MAX_ENTRIES),
            ("moderation_ns", attr.moderation_ns, 0, longest_ns),
        ] {
            if !(minimum..=maximum).contains(&value) {
                return Err(EventError::Limit {
                    attribute,
                    value,
                    minimum,
                    maximum,
                });
            }
        }
        let log_size = attr.entries.next_power_of_two().ilog2().max(1) as u8;
        let ring = Arc::new(EventRing::new(&card.host, log_size)?);
        let fd = card.host.backend.interrupt(number)?;
        // What an earlier user of the vector left there.
        eventfd::clear(&fd);
        let ctx = EqCtx {
            base: ring.base(),
            consumer: ring.consumer(),
            log_size,
            vector: number as u16,
            moderation: attr.moderation_ns.div_ceil(MODERATION_UNIT_NS) as u16,
        };
        let command = Command::new(opcode::CREATE_EQ, number).with(ctx.emit());
        card.execute("create EQ", &command)?;
        card.host.awaits(number, true);
        lock(&card.event_rings).add(number, &ring);
        Ok(Self {
            card: card.clone(),
            number,
            ring,
            fd,
            position: 0,
            was_full: false,
        })
    }

    /// The next event with its position, from `first` or the ring. Without one the eventfd is not readable afterwards
    /// and becomes so with the next event.
    pub(super) fn take(&mut self, mut first: impl FnMut() -> Option<Eqe>) -> Option<(u64, Eqe)> {
        loop {
            if let Some(eqe) = first() {
                return Some((self.position, eqe));
            }
            if let Some(bytes) = self.ring.read(self.position) {
                let (position, eqe) = (self.position, Eqe::parse(&bytes));
                let is_void = eqe.event != event::COMPLETION
                    && lock(&self.card.event_rings).is_void(self.number, position, &eqe);
                let last = self.position + (1 << self.ring.log_size()) - 1;
                self.was_full |= self.ring.is_written(last);
                self.position += 1;
                self.ring.consume(self.position);
                if is_void {
                    continue;
                }
                return Some((position, eqe));
            }
            // The interrupt comes after the event: what was written meanwhile is seen in the next turn, or wakes again.
            if !eventfd::clear(&self.fd) {
                return None;
            }
        }
    }

    /// As if so many events had come and been taken.
    pub(super) fn skip(&mut self, events: u64) {
        self.position += events;
        self.ring.consume(self.position);
    }

    /// Repeats `next` until it gives something, and sleeps in between, for `limit_ns` at most or until the card is
    /// lost.
    pub(super) fn wait<T>(
        &mut self,
        limit_ns: u64,
        mut next: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let host = self.card.host.clone();
        let start = host.backend.now_ns();
        loop {
            if let Some(found) = next(self) {
                return Some(found);
            }
            let left = limit_ns.saturating_sub(host.backend.now_ns().saturating_sub(start));
            if left == 0 || host.lost() {
                return None;
            }
            if !host
                .backend
                .wait_readable(self.fd.as_fd(), left.min(LOOK_NS))
            {
                host.look();
            }
        }
    }
}

impl<B: Backend> Drop for EventQueue<B> {
    fn drop(&mut self) {
        self.card.host.awaits(self.number, false);
        lock(&self.card.event_rings).remove(self.number);
        let command = Command::new(opcode::DESTROY_EQ, self.number);
        match self.card.execute("destroy EQ", &command) {
            Ok(_) if self.number == ASYNC_EQN => {}
            Ok(_) => lock(&self.card.eqs).put(self.number),
            Err(e) => tracing::error!("the number stays taken: {e}"),
        }
    }
}
