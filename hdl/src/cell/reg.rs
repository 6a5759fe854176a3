//! Registers. They print as an `always @(posedge clk)` of the block they stand in, not as modules of their own.
use rust_hdl_core::prelude::*;

use crate::cell::clock::ClkRst;
use crate::emit::register;

/// A register of type `T` with synchronous reset: `q` follows `d` one cycle later.
///
/// `Default` resets to zero (the first variant of an enum); [`Reg::new`] takes the reset value.
#[derive(Clone, Debug, LogicBlock)]
pub struct Reg<T: Synth> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// The next value.
    pub d: Signal<In, T>,
    /// The value held.
    pub q: Signal<Out, T>,
    _reset: T,
}

impl<T: Synth> Reg<T> {
    /// A register with the reset value `reset`.
    pub fn new(reset: T) -> Self {
        Self {
            clock: ClkRst::default(),
            d: Signal::default(),
            q: Signal::new_with_default(reset),
            _reset: reset,
        }
    }
}

impl<T: Synth> Default for Reg<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: Synth> Logic for Reg<T> {
    fn update(&mut self) {
        if self.clock.clk.pos_edge() {
            self.q.next = if self.clock.rst.val() {
                self._reset
            } else {
                self.d.val()
            };
        }
    }
    fn connect(&mut self) {
        self.q.connect();
    }
    fn hdl(&self) -> Verilog {
        register(Some(self._reset.verilog()))
    }
}

/// A register without reset, for payload that a reset `valid` guards: saves the reset net of wide data.
#[derive(Clone, Debug, Default, LogicBlock)]
pub struct Dff<T: Synth> {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// The next value.
    pub d: Signal<In, T>,
    /// The value held; undefined until the first clock edge.
    pub q: Signal<Out, T>,
}

impl<T: Synth> Logic for Dff<T> {
    fn update(&mut self) {
        if self.clock.clk.pos_edge() {
            self.q.next = self.d.val();
        }
    }
    fn connect(&mut self) {
        self.q.connect();
    }
    fn hdl(&self) -> Verilog {
        register(None)
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[derive(Block)]
    struct Counter {
        clock: ClkRst,
        step: Signal<In, Bit>,
        count: Signal<Out, Bits<8>>,
        late: Signal<Out, Bits<8>>,
        #[init(Reg::new(5.into()))]
        value: Reg<Bits<8>>,
        delayed: Dff<Bits<8>>,
    }

    impl Logic for Counter {
        describe!("counter", "Counts steps up from 5.");
        #[kernel]
        fn update(&mut self) {
            if step {
                value = value + 1;
            }
            delayed = value;
            count = value;
            late = delayed;
        }
    }

    fn cycle(u: &mut Counter, rst: bool) {
        u.clock.drive(false, rst);
        assert!(simulate(u, 50));
        u.clock.drive(true, rst);
        assert!(simulate(u, 50));
    }

    #[test]
    fn reset_hold_and_step() {
        let mut u = Counter::default();
        cycle(&mut u, true);
        assert_eq!(u.count.val(), 5);
        cycle(&mut u, false);
        assert_eq!(u.count.val(), 5);
        u.step.next = true;
        cycle(&mut u, false);
        assert_eq!((u.count.val(), u.late.val()), (6.into(), 5.into()));
        cycle(&mut u, false);
        assert_eq!((u.count.val(), u.late.val()), (7.into(), 6.into()));
        cycle(&mut u, true);
        assert_eq!(u.count.val(), 5);
    }
}
