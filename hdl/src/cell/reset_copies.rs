//! Copies of a reset: what drives thousands of registers drives them by several, each near what it resets.
use crate::prelude::*;

/// `N` registers that hold `d`, and 1 in a reset of their own. `keep` tells Vivado not to merge them (UG901), and its placer
/// may copy them again; Yosys, which knows no fan-out, makes one of them. They begin with 1: what they reset runs in no
/// cycle before the first reset.
#[derive(Clone, Debug, Block)]
pub struct ResetCopies<const N: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// The reset of the next cycle.
    pub d: Signal<In, Bit>,
    /// The copies.
    #[init(Signal::new_with_default(all(true)))]
    pub q: Signal<Out, Bits<N>>,
}

/// All bits are `bit`.
fn all<const N: usize>(bit: bool) -> Bits<N> {
    (0..N).fold(0.into(), |bits: Bits<N>, i| bits.replace_bit(i, bit))
}

impl<const N: usize> Logic for ResetCopies<N> {
    describe!("reset_copies", format!("{N}"), "Copies of a reset.");

    fn update(&mut self) {
        if self.clock.clk.pos_edge() {
            self.q.next = all(self.clock.rst.val() || self.d.val());
        }
    }

    fn connect(&mut self) {
        self.q.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "(* keep = \"true\" *) reg [{high}:0] copies = {{{N}{{1'b1}}}};\n\
             always @(posedge clk) copies <= {{{N}{{rst | d}}}};\n\
             assign q = copies;\n",
            high = N - 1
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_follow_the_reset_by_a_cycle() {
        let mut u = ResetCopies::<3>::default();
        u.connect_all();
        for (rst, d) in [(true, false), (false, false), (false, true), (false, false)] {
            u.d.next = d;
            u.clock.drive(false, rst);
            assert!(simulate(&mut u, 50));
            u.clock.drive(true, rst);
            assert!(simulate(&mut u, 50));
            let expected = if rst || d { 0b111 } else { 0 };
            assert_eq!(u.q.val().to_u64(), expected, "rst {rst}, d {d}");
        }
    }
}
