//! Exception queue: two rings of frames in host memory, for what the transport does not handle.
//!
//! At EXC_BASE, a multiple of 4096, stand 2^`log_slots` slots for received frames and behind them as many for frames to
//! send. A slot begins with a [`Head`]; the frame, from its destination address on and without frame check sequence,
//! begins at byte [`HEAD_BYTES`].
//!
//! * Receive: the card fills slots in order and writes the head last, with the phase `owner`: 1 in the first round over
//!   the ring, then 0, and so on. The host gives slots back by EXC_RX_CI.
//! * Transmit: the host fills slots in order, head and frame, and hands them over by EXC_TX_PI. The card sends them in
//!   order; it has read those before EXC_STATUS.tx_consumer.
//!
//! Indices run freely modulo 2^16. They are 0 when the queue is turned on; it is turned on when EXC_STATUS.busy is 0, and stays off else.

use super::layout::layout;

/// Bytes of a slot in front of its frame.
pub const HEAD_BYTES: usize = 64;
/// Bytes of a slot.
pub const SLOT_BYTES: usize = 2048;
/// Bytes of a slot for large frames.
pub const LARGE_SLOT_BYTES: usize = 16384;
/// Largest `log_slots`; a larger one counts as this.
pub const MAX_LOG_SLOTS: u8 = 8;
/// Bytes of the shortest frame that is sent: an Ethernet header.
pub const MIN_FRAME: usize = 14;

layout! { $
    /// Start of a slot. The other bytes up to the frame have no meaning.
    pub struct Head (with_exception_head) [8] {
        /// Bytes of the frame.
        length: u16 [16],
        /// Reserved, 0.
        rsv0: u64 [47],
        /// Phase of a received frame; the card does not look at that of a frame to send.
        owner: bool [1],
    }
}

layout! { $
    /// Value of [`EXC_CONFIG`](super::regs::EXC_CONFIG).
    pub struct Config (with_exception_config) [4] {
        /// Log2 of the slots of each ring, 0 to [`MAX_LOG_SLOTS`].
        log_slots: u8 [4],
        /// Slots of [`LARGE_SLOT_BYTES`]; else of [`SLOT_BYTES`].
        large: bool [1],
        /// The queue is on.
        on: bool [1],
    }
}

impl Config {
    /// Bytes of a slot.
    #[must_use]
    pub const fn slot_bytes(&self) -> usize {
        if self.large {
            LARGE_SLOT_BYTES
        } else {
            SLOT_BYTES
        }
    }

    /// Bytes of the longest frame that fits.
    #[must_use]
    pub const fn max_frame(&self) -> usize {
        self.slot_bytes() - HEAD_BYTES
    }
}

layout! { $
    /// Value of [`EXC_RX_CI`](super::regs::EXC_RX_CI).
    pub struct Consumer (with_exception_consumer) [4] {
        /// Received frames that the host is done with.
        index: u16 [16],
        /// One event when there is a frame beyond these.
        arm: bool [1],
    }
}

layout! { $
    /// Value of [`EXC_STATUS`](super::regs::EXC_STATUS).
    pub struct Status (with_exception_status) [4] {
        /// Frames to send that the card has read, or passed over.
        tx_consumer: u16 [16],
        /// The queue is on, or the card is not done with its memory.
        busy: bool [1],
    }
}
