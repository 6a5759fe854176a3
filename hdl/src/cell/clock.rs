//! Clock and reset as one interface, and the two macros that hand it on.
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

/// Kernel macro: `clock!(self, clock, a, b)` connects clock and reset of the sub-blocks `a` and `b`.
///
/// Takes plain fields only; elements of an array need `ClkRst::link(&mut self.clock, &mut self.a[i].clock)`.
#[macro_export]
macro_rules! clock {
    ($self: ident, $clock: ident, $($sub: ident),+ $(,)?) => {
        $($crate::cell::clock::ClkRst::link(&mut $self.$clock, &mut $self.$sub.clock);)+
    };
}

/// Kernel macro: `dff_setup!(self, clock, a, b)` connects clock and reset of the registers `a` and `b` and lets them
/// hold their value unless the kernel assigns `d` further down.
#[macro_export]
macro_rules! dff_setup {
    ($self: ident, $clock: ident, $($reg: ident),+ $(,)?) => {
        $($crate::cell::clock::ClkRst::link(&mut $self.$clock, &mut $self.$reg.clock);)+
        $($self.$reg.d.next = $self.$reg.q.val();)+
    };
}
