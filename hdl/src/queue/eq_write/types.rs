//! Types of the event queue writer.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::bus::types::image::EqCtx;
use crate::prelude::*;

/// What the writer is doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum EqStep {
    /// Closes all queues, after reset.
    Sweep,
    /// Chooses an operation and reads its queue.
    Pick,
    /// Looks at the queue.
    Load,
    /// Decides.
    Act,
    /// Writes the queue's state, and an entry.
    Store,
}

/// What an operation is.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum EqOp {
    /// The next queue in turn: its interrupt, its consumer record.
    Scan,
    /// A command opens or closes a queue.
    Command,
    /// A consumer record was read.
    Update,
    /// An event that found its ring full before.
    Parked,
    /// A new event.
    Event,
}

payload! {
    /// A command opens or closes an event queue.
    EqCommand {
        /// Event queue.
        eqn: Bits<8>,
        /// Open it afresh with `image`; else close it.
        open: Bit,
        /// The image.
        image: EqCtx,
    }

    /// An event to report.
    EqEvent {
        /// Event queue.
        eqn: Bits<8>,
        /// Kind, see `ferroce_proto::abi::eq::event`.
        event: Bits<8>,
        /// Detail.
        detail: Bits<8>,
        /// Number of the queue pair, completion queue or shared receive queue.
        object: Bits<16>,
    }

    /// An event that waits for room in its ring.
    EqParked {
        /// Event queue.
        eqn: Bits<8>,
        /// Kind.
        event: Bits<8>,
        /// Detail.
        detail: Bits<8>,
        /// Object.
        object: Bits<16>,
        /// `turn` of its queue when it was parked.
        turn: Bit,
    }

    /// Dynamic state of an event queue.
    EqState {
        /// Exists.
        open: Bit,
        /// Changes with every command: what was parked before is forgotten.
        turn: Bit,
        /// Entries written, modulo 2^24.
        written: Bits<24>,
        /// Entries taken by the host when last looked, modulo 2^24.
        taken: Bits<24>,
        /// Events that are parked.
        parked: Bits<7>,
        /// The consumer record is to be read.
        want: Bit,
        /// An entry is not known to be in host memory.
        fresh: Bit,
        /// Count of entries of all queues, modulo 2^16, up to that one.
        mark: Bits<16>,
        /// The same count up to the last entry written.
        last: Bits<16>,
        /// Entries are in host memory and no interrupt was asked for.
        landed: Bit,
        /// An interrupt has to wait for `deadline`.
        waiting: Bit,
        /// Cycle, modulo 2^26, from which on an interrupt may be asked for.
        deadline: Bits<26>,
    }

    /// A queue as an operation finds it.
    EqFound {
        /// Its state.
        state: EqState,
        /// Its image.
        image: EqCtx,
        /// Entries of the ring less one.
        mask: Bits<24>,
        /// Entries that the host has not taken.
        level: Bits<24>,
        /// The EQE `mark` is in host memory.
        arrived: Bit,
        /// So is `last`.
        all_arrived: Bit,
        /// `deadline` has come.
        over: Bit,
    }

    /// An EQE on its way to the ring.
    EqEntry {
        /// Host address, a multiple of 16.
        addr: Bits<64>,
        /// Its bytes.
        eqe: Bits<128>,
    }
}
