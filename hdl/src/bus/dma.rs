//! Beats between the DMA blocks and their clients, and the port of a memory region check.

// The methods that the derive generates have no documentation.
#![allow(missing_docs)]

use rust_hdl_core::prelude::*;

use super::types::{KeyChange, MrReq};

/// Answer beats of one read client, `dma_read`'s end. There is no ready: the client has room for all it asked for.
#[derive(Clone, Debug, Default, LogicInterface)]
#[join = "ReadBeatIn"]
pub struct ReadBeatOut<const W: usize> {
    /// The aligned beat of memory; bytes outside of the requested range are undefined.
    pub data: Signal<Out, Bits<W>>,
    /// Last beat of the request.
    pub last: Signal<Out, Bit>,
    /// The read of this beat failed; its data is undefined.
    pub error: Signal<Out, Bit>,
    /// The beat is there in this cycle.
    pub valid: Signal<Out, Bit>,
}

/// Answer beats of one read client, the client's end.
#[derive(Clone, Debug, Default, LogicInterface)]
#[join = "ReadBeatOut"]
pub struct ReadBeatIn<const W: usize> {
    /// The aligned beat of memory; bytes outside of the requested range are undefined.
    pub data: Signal<In, Bits<W>>,
    /// Last beat of the request.
    pub last: Signal<In, Bit>,
    /// The read of this beat failed; its data is undefined.
    pub error: Signal<In, Bit>,
    /// The beat is there in this cycle.
    pub valid: Signal<In, Bit>,
}

/// Beats to write, the client's end: a stream. They belong to the client's commands in order.
#[derive(Clone, Debug, Default, LogicInterface)]
#[join = "WriteBeatIn"]
pub struct WriteBeatOut<const W: usize, const K: usize> {
    /// The aligned beat of memory.
    pub data: Signal<Out, Bits<W>>,
    /// Bytes to write.
    pub strb: Signal<Out, Bits<K>>,
    /// Last beat of the command.
    pub last: Signal<Out, Bit>,
    /// The beat is there to be taken.
    pub valid: Signal<Out, Bit>,
    /// The beat is taken in this cycle.
    pub ready: Signal<In, Bit>,
}

/// Beats to write, `dma_write`'s end.
#[derive(Clone, Debug, Default, LogicInterface)]
#[join = "WriteBeatOut"]
pub struct WriteBeatIn<const W: usize, const K: usize> {
    /// The aligned beat of memory.
    pub data: Signal<In, Bits<W>>,
    /// Bytes to write.
    pub strb: Signal<In, Bits<K>>,
    /// Last beat of the command.
    pub last: Signal<In, Bit>,
    /// The beat is there to be taken.
    pub valid: Signal<In, Bit>,
    /// The beat is taken in this cycle.
    pub ready: Signal<Out, Bit>,
}

/// Payload beats of packets, the producer's end (`gather`, the packet buffer): a stream, one beat a cycle within a packet.
#[derive(Clone, Debug, Default, LogicInterface)]
#[join = "PayloadIn"]
pub struct PayloadOut<const W: usize> {
    /// Data; undefined outside of the payload's bytes.
    pub data: Signal<Out, Bits<W>>,
    /// Last beat of the packet.
    pub last: Signal<Out, Bit>,
    /// The beat is there to be taken.
    pub valid: Signal<Out, Bit>,
    /// The beat is taken in this cycle.
    pub ready: Signal<In, Bit>,
}

/// Payload beats of packets, the consumer's end (the assembler, `scatter`).
#[derive(Clone, Debug, Default, LogicInterface)]
#[join = "PayloadOut"]
pub struct PayloadIn<const W: usize> {
    /// Data; undefined outside of the payload's bytes.
    pub data: Signal<In, Bits<W>>,
    /// Last beat of the packet.
    pub last: Signal<In, Bit>,
    /// The beat is there to be taken.
    pub valid: Signal<In, Bit>,
    /// The beat is taken in this cycle.
    pub ready: Signal<Out, Bit>,
}

/// A memory region check, the asking block's end: a request may enter in every cycle, answers come in order after
/// [`MR_LATENCY`] cycles.
#[derive(Clone, Debug, Default, LogicInterface)]
#[join = "MrCheckIn"]
pub struct MrCheckOut {
    /// The access to check.
    pub request: Signal<Out, MrReq>,
    /// An access enters in this cycle.
    pub valid: Signal<Out, Bit>,
    /// The answer: the access is allowed.
    pub ok: Signal<In, Bit>,
    /// The answer is there in this cycle.
    pub done: Signal<In, Bit>,
}

/// A memory region check, the table's end.
#[derive(Clone, Debug, Default, LogicInterface)]
#[join = "MrCheckOut"]
pub struct MrCheckIn {
    /// The access to check.
    pub request: Signal<In, MrReq>,
    /// An access enters in this cycle.
    pub valid: Signal<In, Bit>,
    /// The answer: the access is allowed.
    pub ok: Signal<Out, Bit>,
    /// The answer is there in this cycle.
    pub done: Signal<Out, Bit>,
}

/// A change of the memory region table, the asking block's end: one at a time, the next one after the answer.
#[derive(Clone, Debug, Default, LogicInterface)]
#[join = "KeyChangeIn"]
pub struct KeyChangeOut {
    /// The change.
    pub request: Signal<Out, KeyChange>,
    /// It is asked for in this cycle.
    pub valid: Signal<Out, Bit>,
    /// The answer: it was made.
    pub ok: Signal<In, Bit>,
    /// The answer is there in this cycle.
    pub done: Signal<In, Bit>,
}

/// A change of the memory region table, the table's end.
#[derive(Clone, Debug, Default, LogicInterface)]
#[join = "KeyChangeOut"]
pub struct KeyChangeIn {
    /// The change.
    pub request: Signal<In, KeyChange>,
    /// It is asked for in this cycle.
    pub valid: Signal<In, Bit>,
    /// The answer: it was made.
    pub ok: Signal<Out, Bit>,
    /// The answer is there in this cycle.
    pub done: Signal<Out, Bit>,
}

/// Cycles from a memory region request to its answer.
pub const MR_LATENCY: usize = 4;
