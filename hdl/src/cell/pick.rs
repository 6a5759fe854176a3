//! Multiplexer that a one-hot vector steers. Combinational.
use crate::prelude::*;

/// Shows one of `N` items of type `T`, all zero if none is chosen.
///
/// An OR of masked items: flat where a chain of conditions would be `N` multiplexers deep.
#[derive(Clone, Debug, Block)]
pub struct Pick<T: Synth, const N: usize> {
    /// Which one: at most one bit, as an [`Arbiter`] grants.
    pub choice: Signal<In, Bits<N>>,
    /// The items.
    pub item: [Signal<In, T>; N],
    /// The one that is chosen.
    pub picked: Signal<Out, T>,
}

impl<T: Synth, const N: usize> Logic for Pick<T, N> {
    describe!(
        "pick",
        format!("{N}x{}", T::BITS),
        "Multiplexer that a one-hot vector steers."
    );

    fn update(&mut self) {
        let chosen = (0..N).find(|&i| self.choice.val().get_bit(i));
        self.picked.next = chosen.map_or_else(T::default, |i| self.item[i].val());
    }

    fn connect(&mut self) {
        self.picked.connect();
    }

    fn hdl(&self) -> Verilog {
        let masked: Vec<_> = (0..N)
            .map(|i| format!("({{{}{{choice[{i}]}}}} & item_{i})", T::BITS))
            .collect();
        Verilog::Custom(format!("assign picked = {};\n", masked.join("\n    | ")))
    }
}
