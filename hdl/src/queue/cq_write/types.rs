//! Types of the completion queue writer.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::bus::types::image::CqCtx;
use crate::prelude::*;

/// What an operation is.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum CqOp {
    /// A token is to be completed.
    Token,
    /// A command sets the state.
    Command,
    /// A consumer record was read.
    Update,
    /// A doorbell arms the queue.
    Arm,
    /// A report is taken.
    Report,
}

payload! {
    /// A command opens, closes or resizes a completion queue.
    CqCommand {
        /// Completion queue.
        cqn: Bits<16>,
        /// Open it afresh with `image`; else close it.
        open: Bit,
        /// Go on with `image`; `open` does not count.
        resize: Bit,
        /// Resize: entries taken by the host, modulo 2^24.
        taken: Bits<24>,
        /// The image.
        image: CqCtx,
    }

    /// A command changed a completion queue.
    CqChange {
        /// Completion queue.
        cqn: Bits<16>,
        /// It is open now.
        open: Bit,
        /// Its event queue.
        eqn: Bits<8>,
    }

    /// A completion that was lost: its queue is not open, or has overflowed.
    CqLost {
        /// Queue pair whose completion it was.
        qpn: Bits<16>,
        /// Completion queue.
        cqn: Bits<16>,
        /// Of a receive that was flushed: its queue pair failed before.
        flushed: Bit,
        /// Of a receive.
        recv: Bit,
    }

    /// Dynamic state of a completion queue.
    CqState {
        /// Exists.
        open: Bit,
        /// Has overflowed.
        overflowed: Bit,
        /// Entries written, modulo 2^24.
        written: Bits<24>,
        /// Entries taken by the host when last looked, modulo 2^24.
        taken: Bits<24>,
        /// Value of `written` behind the last entry that was solicited or failed.
        solicited_end: Bits<24>,
        /// The next entry is to be reported.
        armed: Bit,
        /// The next entry that is solicited or failed is to be reported.
        armed_solicited: Bit,
        /// A report of an entry waits.
        completion_due: Bit,
        /// A report of the overflow waits.
        error_due: Bit,
    }

    /// Arm doorbell; the queue number is in range.
    CqArm {
        /// Completion queue.
        cqn: Bits<16>,
        /// Report the next entry.
        any: Bit,
        /// Report the next entry that is solicited or failed.
        solicited: Bit,
        /// Entries taken by the host, modulo 2^24.
        index: Bits<24>,
    }

    /// A completion queue with something to report.
    CqReport {
        /// Completion queue.
        cqn: Bits<16>,
        /// CQEs of all queues up to it, modulo 2^16.
        fence: Bits<16>,
    }

    /// A marker: an event that stands behind completions.
    CqMarked {
        /// Queue pair.
        qpn: Bits<16>,
        /// It took its last receive WQE of a shared receive queue; else its send queue drained.
        recv: Bit,
    }

    /// A marker behind the CQEs in front of it.
    CqMark {
        /// Queue pair.
        qpn: Bits<16>,
        /// See [`CqMarked`].
        recv: Bit,
        /// CQEs of all queues up to it, modulo 2^16.
        fence: Bits<16>,
    }

    /// A CQE on its way to the ring.
    CqEntry {
        /// Host address, a multiple of 32.
        addr: Bits<64>,
        /// Its bytes.
        cqe: Bits<256>,
    }
}
