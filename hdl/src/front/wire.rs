//! Clock, reset and hold of the fields of a block.
use rust_hdl_core::prelude::*;

use crate::cell::clock::ClkRst;
use crate::cell::reg::{Dff, Reg};
use crate::cell::zero::Zero;

/// Clock and reset as they stand.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    clk: Clock,
    rst: Bit,
}

impl Ticks {
    /// Those of a block.
    pub fn of(clock: &ClkRst) -> Self {
        Self {
            clk: clock.clk.val(),
            rst: clock.rst.val(),
        }
    }

    fn give(self, to: &mut ClkRst) {
        to.clk.next = self.clk;
        to.rst.next = self.rst;
    }
}

/// A block that may have a clock.
pub trait Clocked {
    /// Its clock interface.
    fn clock(&mut self) -> Option<&mut ClkRst>;
}

/// A block whose fields are wired by `#[derive(Block)]`.
pub trait Wired {
    /// Name and first line of documentation of each field that has one.
    const DOCS: &'static [(&'static str, &'static str)];
    /// Name and value of each size: the bits of the type parameters, and the numbers among the parameters.
    const SIZES: &'static [(&'static str, u64)];
    /// Hands clock and reset on and lets registers hold their values.
    fn wire(&mut self);
}

/// A field to be wired.
pub struct Wire<'a, X>(pub &'a mut X);

impl<T: Synth> Wire<'_, Reg<T>> {
    /// Clock, reset, hold.
    pub fn wire(self, clock: Ticks) {
        clock.give(&mut self.0.clock);
        self.0.d.next = self.0.q.val();
    }
}

impl<T: Synth> Wire<'_, Dff<T>> {
    /// Clock, hold.
    pub fn wire(self, clock: Ticks) {
        clock.give(&mut self.0.clock);
        self.0.d.next = self.0.q.val();
    }
}

impl<T: Synth> Wire<'_, Constant<T>> {
    /// Nothing.
    pub fn wire(self, _: Ticks) {}
}

impl<T: Synth> Wire<'_, Zero<T>> {
    /// Nothing.
    pub fn wire(self, _: Ticks) {}
}

/// Signals and interfaces have no clock.
pub trait WirePort: Sized {
    /// Nothing.
    fn wire(self, _: Ticks) {}
}

impl<L: LogicLink> WirePort for Wire<'_, L> {}

impl<T: Synth> Wire<'_, Signal<Local, T>> {
    /// Nothing.
    pub fn wire(self, _: Ticks) {}
}

/// Blocks may have one.
pub trait WireChild: Sized {
    /// Clock and reset.
    fn wire(self, clock: Ticks);
}

impl<B: Clocked> WireChild for Wire<'_, B> {
    fn wire(self, clock: Ticks) {
        if let Some(own) = self.0.clock() {
            clock.give(own);
        }
    }
}
