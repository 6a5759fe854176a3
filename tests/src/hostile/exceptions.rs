//! The receive ring of the exception queue, amid hostile frames.

use std::collections::VecDeque;

use ferroce_sim::testhost::{ExceptionQueue, Host};

/// Log2 of the slots.
const SLOTS: u8 = 4;
/// Frames before the last look that may come behind it.
const RECENT: usize = 128;

/// The receive ring of the exception queue.
pub(super) struct Exceptions {
    queue: ExceptionQueue,
    /// Frames since the look before the last one, about.
    sent: VecDeque<Vec<u8>>,
}

impl Exceptions {
    /// Turns the queue on.
    pub(super) fn open(host: &mut Host, large: bool) -> Self {
        Self {
            queue: ExceptionQueue::open(host, SLOTS, large),
            sent: VecDeque::new(),
        }
    }

    /// A frame was sent to the card.
    pub(super) fn sent(&mut self, frame: &[u8]) {
        self.sent.push_back(frame.to_vec());
    }

    /// Takes what came: frames that were sent.
    pub(super) fn look(&mut self, host: &mut Host) {
        while let Some(frame) = self.queue.take(host) {
            let len = frame.len();
            assert!(
                self.sent.contains(&frame),
                "a frame of {len} bytes in the exception queue"
            );
        }
        self.queue.give_back(host, false);
        let old = self.sent.len().saturating_sub(RECENT);
        self.sent.drain(..old);
    }
}
