//! The exception queue: raw Ethernet frames for what the transport does not handle.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ferroce_proto::abi::exception::{
    Config, Consumer, HEAD_BYTES, Head, MAX_LOG_SLOTS, MIN_FRAME, Status,
};
use ferroce_proto::abi::regs;
use thiserror::Error;

use crate::barrier;
use crate::card::Card;
use crate::dma::DmaBuf;
use crate::ring::phase;
use crate::{AnyBackend, Backend, BackendError, Context, Features};

/// Longest wait in ns for the card to be done with the memory of a queue that is dropped.
pub const EXCEPTION_LIMIT_NS: u64 = 100_000_000;

/// An exception queue could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExceptionError {
    /// The card has none.
    #[error("this build of the card has no exception queue: load one with feature EXCEPTION")]
    Unsupported,
    /// There is one already.
    #[error("the exception queue of the card is in use: drop the other one first")]
    InUse,
    /// Too many slots, or none.
    #[error("an exception queue of {slots} slots: use 1 to {limit}")]
    Slots {
        /// Slots asked for.
        slots: u32,
        /// Most.
        limit: u32,
    },
    /// Pauses are sent with headroom for smaller frames.
    #[error(
        "a queue of jumbo frames while the card sends pauses (PFC): make it before set_classes, which sees to the headroom"
    )]
    Headroom,
    /// No memory for the rings.
    #[error("no memory for the exception queue")]
    Memory(#[from] BackendError),
}

/// A frame was not sent.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// It is shorter than an Ethernet header or longer than a slot.
    #[error("a frame of {len} bytes: this queue sends {min} to {max}")]
    Length {
        /// Bytes of the frame.
        len: usize,
        /// Fewest.
        min: usize,
        /// Most.
        max: usize,
    },
    /// All slots are taken.
    #[error("all {slots} slots hold frames that the card has not read: try again later")]
    Full {
        /// Slots of the ring.
        slots: u16,
    },
}

/// Frames that are not RoCEv2, to and from the host. Dropping it turns it off.
pub struct ExceptionQueue<B: Backend = AnyBackend> {
    card: Arc<Card<B>>,
    rings: DmaBuf<B>,
    config: Config,
    /// Received frames taken.
    received: u16,
    /// Frames handed to the card, and of those the ones known to be read.
    sent: u16,
    read: u16,
}

impl<B: Backend> Context<B> {
    /// The queue of frames that are not RoCEv2, with `slots` slots each way (rounded up to a power of two, 1 to 256). A
    /// slot holds a frame of 1984 bytes, or with `jumbo` of 16320. There is one such queue.
    ///
    /// # Errors
    /// [`ExceptionError`]: the card has none, it is in use, too many slots, no memory, or `jumbo` while pauses
    /// are sent.
    pub fn create_exception_queue(
        &self,
        slots: u32,
        jumbo: bool,
    ) -> Result<ExceptionQueue<B>, ExceptionError> {
        ExceptionQueue::new(&self.card, slots, jumbo)
    }
}

impl<B: Backend> ExceptionQueue<B> {
    pub(crate) fn new(
        card: &Arc<Card<B>>,
        slots: u32,
        jumbo: bool,
    ) -> Result<Self, ExceptionError> {
        if !card.info.features.contains(Features::EXCEPTION) {
            return Err(ExceptionError::Unsupported);
        }
        let limit = 1 << MAX_LOG_SLOTS;
        if !(1..=limit).contains(&slots) {
            return Err(ExceptionError::Slots { slots, limit });
        }
        let config = Config {
            log_slots: slots.next_power_of_two().ilog2() as u8,
            large: jumbo,
            on: true,
        };
        let has_classes = card.info.features.contains(Features::CLASSES);
        if jumbo && has_classes && card.host.backend.read32(regs::PFC_CONFIG.into()) >> 8 != 0 {
            return Err(ExceptionError::Headroom);
        }
        let len = (2 * config.slot_bytes()) << config.log_slots;
        let rings = DmaBuf::new(&card.host, len)?;
        if card.has_exception_queue.swap(true, Ordering::Relaxed) {
            return Err(ExceptionError::InUse);
        }
        let queue = Self {
            card: card.clone(),
            rings,
            config,
            received: 0,
            sent: 0,
            read: 0,
        };
        let base = queue.rings.iova(0);
        queue.write(regs::EXC_BASE_LO, base as u32);
        queue.write(regs::EXC_BASE_HI, (base >> 32) as u32);
        queue.write(regs::EXC_CONFIG, u32::from_le_bytes(config.emit()));
        Ok(queue)
    }

    /// Bytes of the longest frame.
    #[must_use]
    pub fn max_frame(&self) -> usize {
        self.config.max_frame()
    }

    /// Takes the next received frame, from its destination address on and without frame check sequence: copies it to
    /// `buffer`, cut to its length, and gives the bytes of the whole. `None` if there is no frame.
    pub fn poll(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let at = self.slot(self.received);
        let word = self.rings.read_u64(at);
        let head = Head::parse(&word.to_le_bytes());
        if head.owner != phase(self.received.into(), self.config.log_slots) {
            return None;
        }
        barrier::after_read();
        let len = usize::from(head.length).min(self.max_frame());
        let copied = len.min(buffer.len());
        self.rings.read(at + HEAD_BYTES, &mut buffer[..copied]);
        self.received = self.received.wrapping_add(1);
        // What was read must not be overwritten before it is.
        barrier::after_read();
        self.consumed(false);
        Some(len)
    }

    /// Asks for one event ([`AsyncEvent::Exception`](crate::AsyncEvent::Exception)) when there is a frame to poll; at once if there is one.
    pub fn arm(&mut self) {
        self.consumed(true);
    }

    /// Hands over a frame, from its destination address on and without frame check sequence. The card sends it as it is.
    ///
    /// # Errors
    /// [`SendError`]: too short or too long, or no room.
    pub fn send(&mut self, frame: &[u8]) -> Result<(), SendError> {
        let (len, max) = (frame.len(), self.max_frame());
        if !(MIN_FRAME..=max).contains(&len) {
            let min = MIN_FRAME;
            return Err(SendError::Length { len, min, max });
        }
        let slots = 1 << self.config.log_slots;
        if self.sent.wrapping_sub(self.read) >= slots {
            self.read = self.status().tx_consumer;
        }
        if self.sent.wrapping_sub(self.read) >= slots {
            return Err(SendError::Full { slots });
        }
        let at = self.slot(self.sent) + (self.config.slot_bytes() << self.config.log_slots);
        let head = Head {
            length: len as u16,
            ..Head::default()
        };
        self.rings.write(at, &head.emit());
        self.rings.write(at + HEAD_BYTES, frame);
        self.sent = self.sent.wrapping_add(1);
        barrier::before_register();
        self.write(regs::EXC_TX_PI, self.sent.into());
        Ok(())
    }

    /// Byte of the slot of an index in its ring.
    fn slot(&self, index: u16) -> usize {
        let slot = usize::from(index) & ((1 << self.config.log_slots) - 1);
        slot * self.config.slot_bytes()
    }

    /// Tells the card which frames are taken.
    fn consumed(&self, arm: bool) {
        let consumer = Consumer {
            index: self.received,
            arm,
        };
        self.write(regs::EXC_RX_CI, u32::from_le_bytes(consumer.emit()));
    }

    fn status(&self) -> Status {
        let value = self.card.host.backend.read32(regs::EXC_STATUS.into());
        Status::parse(&value.to_le_bytes())
    }

    fn write(&self, register: u32, value: u32) {
        self.card.host.write32(register.into(), value);
    }
}

impl<B: Backend> Drop for ExceptionQueue<B> {
    fn drop(&mut self) {
        let off = Config {
            on: false,
            ..self.config
        };
        self.write(regs::EXC_CONFIG, u32::from_le_bytes(off.emit()));
        let done = || (!self.status().busy).then_some(());
        match self.card.host.wait(EXCEPTION_LIMIT_NS, done) {
            Some(()) => self
                .card
                .has_exception_queue
                .store(false, Ordering::Relaxed),
            None => tracing::error!(
                "the card did not turn its exception queue off within {EXCEPTION_LIMIT_NS} ns: open it anew to use one again"
            ),
        }
    }
}
