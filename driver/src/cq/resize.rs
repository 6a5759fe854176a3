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
    /// that were not polled, or the queue has overflowed. The queue is as before.
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
            let (ring, position) = (&self.ring, self.position);
            let is_more = || ring.end() - position > size.into();
            host.wait(RESIZE_WAIT_NS, || is_more().then_some(()));
        }
        let card = &self.core.card;
        let ring = Ring::from_position(&card.host, log_size, self.position)?;
        // `attach` waits meanwhile: it takes its positions in one ring
        let mut current = lock(&self.core.ring);
        let (number, channel) = (self.core.number, self.core.channel.as_ref());
        let mut command =
            Command::new(opcode::RESIZE_CQ, number).with(image(&ring, channel).emit());
        command.head.cq_taken = self.position as u32 & INDEX;
        let switched = card.execute("resize CQ", &command).map_err(|e| match e {
            CommandError::Refused {
                status: status::BAD_STATE,
                ..
            } => CqError::Waiting { entries },
            other => other.into(),
        })?;
        // What the card wrote before is in memory, and goes to places that it does not write before they are polled.
        let ahead = (switched as u32).wrapping_sub(self.position as u32) & INDEX;
        let end = self.position + u64::from(ahead);
        ring.adopt(&self.ring, self.position..end);
        self.ring = Arc::new(ring);
        *current = self.ring.clone();
        Ok(())
    }

    /// Slots of send queues that complete here and were not retired.
    fn sends_open(&self) -> u32 {
        let changes = lock(&self.core.changes);
        let known = self
            .table
            .iter()
            .chain(changes.incarnations.values())
            .flatten();
        known
            .filter(|life| life.completes.sends && !life.queues.is_over())
            .map(|life| life.queues.sq.size() - life.queues.sq.free())
            .sum()
    }
}
