//! AXI4-Stream, W bits of data and K = W / 8 byte enables: the network side of the engine.
//!
//! Byte 0 of a beat is `tdata[7:0]` and is first on the wire. `tkeep` is all ones except in the last beat, where it is
//! a run of ones from bit 0. Fields are named `s_axis*` for a slave and `m_axis*` for a master, which gives the
//! port names `s_axis_tdata` and so on.
#![expect(
    missing_docs,
    reason = "the derive adds `join`, which has no line of its own"
)]
use rust_hdl_core::prelude::*;

/// The master's end.
#[derive(Clone, Debug, Default, LogicInterface)]
#[join = "AxisIn"]
pub struct AxisOut<const W: usize, const K: usize> {
    /// Data, byte 0 in bits 7:0.
    pub tdata: Signal<Out, Bits<W>>,
    /// Byte enables.
    pub tkeep: Signal<Out, Bits<K>>,
    /// Last beat of the frame.
    pub tlast: Signal<Out, Bit>,
    /// In the last beat: the frame is bad and is to be dropped.
    pub tuser: Signal<Out, Bit>,
    /// The beat is there to be taken.
    pub tvalid: Signal<Out, Bit>,
    /// The slave takes it in this cycle.
    pub tready: Signal<In, Bit>,
}

/// The slave's end.
#[derive(Clone, Debug, Default, LogicInterface)]
#[join = "AxisOut"]
pub struct AxisIn<const W: usize, const K: usize> {
    /// Data, byte 0 in bits 7:0.
    pub tdata: Signal<In, Bits<W>>,
    /// Byte enables.
    pub tkeep: Signal<In, Bits<K>>,
    /// Last beat of the frame.
    pub tlast: Signal<In, Bit>,
    /// In the last beat: the frame is bad and is to be dropped.
    pub tuser: Signal<In, Bit>,
    /// The beat is there to be taken.
    pub tvalid: Signal<In, Bit>,
    /// This block takes it in this cycle.
    pub tready: Signal<Out, Bit>,
}
