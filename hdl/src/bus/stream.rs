//! The ready/valid stream between blocks.
//!
//! A transfer happens in a cycle with `valid && ready`. `valid` does not wait for `ready`; `payload` is stable while
//! `valid && !ready`. A producer has a [`StreamOut`], a consumer a [`StreamIn`]; `StreamOut::<T>::join(&mut a, &mut b)`
//! connects two siblings, `link(&mut own, &mut child)` passes an own port on to a child.
#![expect(
    missing_docs,
    reason = "the derive adds `join`, which has no line of its own"
)]
use rust_hdl_core::prelude::*;

/// The producer's end.
#[derive(Clone, Debug, Default, LogicInterface)]
#[join = "StreamIn"]
pub struct StreamOut<T: Synth> {
    /// What is handed over.
    pub payload: Signal<Out, T>,
    /// `payload` is there to be taken.
    pub valid: Signal<Out, Bit>,
    /// The consumer takes it in this cycle.
    pub ready: Signal<In, Bit>,
}

/// The consumer's end.
#[derive(Clone, Debug, Default, LogicInterface)]
#[join = "StreamOut"]
pub struct StreamIn<T: Synth> {
    /// What is handed over.
    pub payload: Signal<In, T>,
    /// `payload` is there to be taken.
    pub valid: Signal<In, Bit>,
    /// This block takes it in this cycle.
    pub ready: Signal<Out, Bit>,
}
