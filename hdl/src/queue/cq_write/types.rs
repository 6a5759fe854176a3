//! Types of the completion queue writer.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::bus::types::image::CqCtx;
use crate::prelude::*;

payload! {
    /// A command opens or closes a completion queue.
    CqCommand {
        /// Completion queue.
        cqn: Bits<16>,
        /// Open it afresh with `image`; else close it.
        open: Bit,
        /// The image.
        image: CqCtx,
    }

    /// A completion that was lost: its queue is not open, or has overflowed.
    CqLost {
        /// Queue pair whose completion it was.
        qpn: Bits<16>,
        /// Completion queue.
        cqn: Bits<16>,
    }

    /// Dynamic state of a completion queue.
    CqState {
        /// Exists.
        open: Bit,
        /// Has overflowed.
        dead: Bit,
        /// Entries written, modulo 2^24.
        written: Bits<24>,
        /// Entries taken by the host when last looked, modulo 2^24.
        taken: Bits<24>,
    }

    /// A CQE on its way to the ring.
    CqEntry {
        /// Host address, a multiple of 32.
        addr: Bits<64>,
        /// Its bytes.
        cqe: Bits<256>,
    }
}
