//! Delay line: a value some cycles later.
use std::fmt::Write;

use crate::prelude::*;

/// Hands `d` to `q` `N` cycles later. There is no reset, so that the line becomes LUT shift registers: it carries
/// payload, or flags that are 0 during the `N` cycles before the end of reset.
#[derive(Clone, Debug, Block)]
#[block(check)]
pub struct Delay<T: Synth, const N: usize> {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// The value that enters.
    pub d: Signal<In, T>,
    /// The value that entered `N` cycles ago.
    pub q: Signal<Out, T>,
    #[init([T::default(); N])]
    _line: [T; N],
}

impl<T: Synth, const N: usize> Delay<T, N> {
    fn check() {
        assert!(N > 0, "a delay of 0 cycles is a wire");
    }
}

impl<T: Synth, const N: usize> Logic for Delay<T, N> {
    describe!("delay", format!("{}x{N}", T::BITS), "Delay line.");

    fn update(&mut self) {
        if self.clock.clk.pos_edge() {
            self._line.rotate_right(1);
            self._line[0] = self.d.val();
            self.q.next = self._line[N - 1];
        }
    }

    fn connect(&mut self) {
        self.q.connect();
    }

    fn hdl(&self) -> Verilog {
        let stages: Vec<String> = (1..=N).map(|n| format!("stage_{n}")).collect();
        let mut text = format!(
            "reg [{}:0] {};\nalways @(posedge clk) begin\n    stage_1 <= d;\n",
            T::BITS - 1,
            stages.join(", ")
        );
        for pair in stages.windows(2) {
            let _ = writeln!(text, "    {} <= {};", pair[1], pair[0]);
        }
        let _ = writeln!(text, "end\nassign q = stage_{N};");
        Verilog::Custom(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_out_after_n_cycles() {
        let mut u = Delay::<Bits<9>, 3>::default();
        u.connect_all();
        for cycle in 0..20_u64 {
            u.d.next = ((cycle * 29) & 0x1ff).to_bits();
            u.clock.drive(false, false);
            assert!(simulate(&mut u, 50));
            u.clock.drive(true, false);
            assert!(simulate(&mut u, 50));
            // The value that entered in this cycle has passed one register.
            let expected = cycle.checked_sub(2).map_or(0, |c| (c * 29) & 0x1ff);
            assert_eq!(u.q.val().to_u64(), expected);
        }
    }
}
