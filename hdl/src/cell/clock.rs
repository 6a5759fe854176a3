//! Clock and reset as one interface.
use rust_hdl_core::prelude::*;

/// Clock and synchronous reset (active high).
///
/// The field is called `clock` in every block; it prints as the ports `clk` and `rst`. A second domain is called
/// `rx_clock` (say) and prints as `rx_clk` and `rx_rst`.
#[derive(Clone, Debug, Default, LogicInterface)]
pub struct ClkRst {
    /// The clock; registers take their input at its rising edge.
    pub clk: Signal<In, Clock>,
    /// Synchronous reset: registers go to their reset value while it is 1.
    pub rst: Signal<In, Bit>,
}

impl ClkRst {
    /// Drives the interface of a top block from a test: the clock level and the reset.
    pub fn drive(&mut self, clk: bool, rst: bool) {
        self.clk.next = clk.into();
        self.rst.next = rst;
    }
}
