//! A completion queue is moved to a ring of another size while the card writes it.

use std::sync::Arc;

use ferroce_proto::abi::cmd::{opcode, status};

use super::core::{Ring, image, log_size};
use super::{Cq, CqError};
use crate::command::{Command, CommandError};
use crate::host::lock;
use crate::{Backend, Features};

/// Longest wait, before a queue becomes shorter, for what was posted, in ns.
const RESIZE_WAIT_NS: u64 = 1_000_000;
/// Bits of a position that the card counts.
const INDEX: u32 = (1 << 24) - 1;

impl<B: Backend> Cq<B> {
    /// Gives the queue room for `entries` completions, more or fewer, while completions arrive: none is lost and none comes
    /// twice, and an event that was asked for comes. If more send requests are posted than the queue would hold, their
    /// completions are waited for, for a millisecond at most, to see whether they fit.
    ///
    /// # Errors
    /// [`CqError::Entries`], [`CqError::Unsupported`], [`CqError::Memory`]; [`CqError::Waiting`]: more completions than
    /// that were not polled, or the queue has overflowed. The queue is as before, unless the card does not answer: then it is given up.
    pub fn resize(&mut self, entries: u32) -> Result<(), CqError> {
        let card = &self.core.card;
        if !card.info.features.contains(Features::RESIZE_CQ) {
            return Err(CqError::Unsupported);
        }
        let log_size = log_size(card, entries)?;
        if log_size == self.ring.log_size() {
            return Ok(());
        }
        let size = 1 << log_size;
        if self.sends_open() > size {
            // What is on its way may not fit: it shows, or stays away, within this time.
            let host = self.core.card.host.clone();
            let ring = &self.ring;
            let is_more = || {
                let taken = ring.consumed();
                ring.end() - taken > size.into()
            };
            host.wait(RESIZE_WAIT_NS, || is_more().then_some(()));
        }
        let card = &self.core.card;
        // queue pairs do not come or go meanwhile
        let mut pending = lock(&self.core.pending);
        let position = pending.ring.consumed();
        let ring = Ring::from_position(&card.host, log_size, position)?;
        let (number, channel) = (self.core.number, self.core.channel.as_ref());
        let mut command =
            Command::new(opcode::RESIZE_CQ, number).with(image(&ring, channel).emit());
        command.head.cq_taken = position as u32 & INDEX;
        // Without an answer the card may write to either ring.
        let switched = card.execute_for_sure("resize CQ", &command);
        let switched = switched.map_err(|e| match e {
            CommandError::Refused {
                status: status::BAD_STATE,
                ..
            } => CqError::Waiting { entries },
            other => other.into(),
        })?;
        // What the card wrote before is in memory, and goes to places that it does not write before they are polled.
        let ahead = (switched as u32).wrapping_sub(position as u32) & INDEX;
        let end = position + u64::from(ahead);
        ring.adopt(&pending.ring, position..end);
        pending.ring = Arc::new(ring);
        self.ring = pending.ring.clone();
        Ok(())
    }

    /// Slots of send queues that complete here and were not retired.
    fn sends_open(&self) -> u32 {
        let pending = lock(&self.core.pending);
        let known = pending.attached.iter().flatten();
        known
            .filter(|life| life.completes.sends)
            .map(|life| life.queues.sq.size() - life.queues.sq.free())
            .sum()
    }
}
