//! Product of two unsigned numbers, in the multipliers of the device.
//!
//! One a cycle, three cycles behind its factors: a register in front of the multipliers, one behind, and one for what several of them
//! are added to.
use crate::prelude::*;

/// Multiplies `A` by `B` bits; `P` is their sum, up to 64.
#[derive(Clone, Debug, Block)]
#[block(check)]
pub struct Product<const A: usize, const B: usize, const P: usize> {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// A factor.
    pub a: Signal<In, Bits<A>>,
    /// The other.
    pub b: Signal<In, Bits<B>>,
    /// The product of three cycles ago.
    pub product: Signal<Out, Bits<P>>,
    #[init((0, 0))]
    _factors: (u64, u64),
    #[init(0)]
    _raw: u64,
}

impl<const A: usize, const B: usize, const P: usize> Product<A, B, P> {
    fn check() {
        assert!(
            A + B == P && P <= 64,
            "product of {A} and {B} bits: {} bits are needed, 64 at most, not {P}",
            A + B
        );
    }
}

impl<const A: usize, const B: usize, const P: usize> Logic for Product<A, B, P> {
    describe!(
        "product",
        format!("{A}x{B}"),
        "Product of two unsigned numbers, three cycles behind them."
    );

    fn update(&mut self) {
        if self.clock.clk.pos_edge() {
            self.product.next = self._raw.to_bits();
            self._raw = self._factors.0 * self._factors.1;
            self._factors = (self.a.val().index() as u64, self.b.val().index() as u64);
        }
    }

    fn connect(&mut self) {
        self.product.connect();
    }

    fn hdl(&self) -> Verilog {
        let (a, b, p) = (A - 1, B - 1, P - 1);
        Verilog::Custom(format!(
            "reg [{a}:0] a_1;\n\
             reg [{b}:0] b_1;\n\
             reg [{p}:0] raw;\n\
             always @(posedge clk) begin\n    \
                 a_1 <= a;\n    \
                 b_1 <= b;\n    \
                 raw <= a_1 * b_1;\n    \
                 product <= raw;\n\
             end\n"
        ))
    }
}
