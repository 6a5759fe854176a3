//! Chooses between two beats byte by byte. Combinational.
use crate::prelude::*;

/// Multiplexer for beats of `W` bits = `K` bytes.
#[derive(Clone, Debug, Block)]
#[block(check)]
pub struct ByteMux<const W: usize, const K: usize> {
    /// Lanes that show `one`; the others show `zero`.
    pub lanes: Signal<In, Bits<K>>,
    /// Beat for lanes that are 0.
    pub zero: Signal<In, Bits<W>>,
    /// Beat for lanes that are 1.
    pub one: Signal<In, Bits<W>>,
    /// The mixture.
    pub mixed: Signal<Out, Bits<W>>,
}

impl<const W: usize, const K: usize> ByteMux<W, K> {
    fn check() {
        assert!(
            W == 8 * K,
            "beats of {W} bits have {} bytes, not {K}",
            W / 8
        );
    }
}

impl<const W: usize, const K: usize> Logic for ByteMux<W, K> {
    describe!(
        "byte_mux",
        format!("{W}"),
        "Chooses between two beats byte by byte."
    );

    fn update(&mut self) {
        let mut mixed = self.zero.val();
        for i in (0..K).filter(|&i| self.lanes.val().get_bit(i)) {
            mixed.set_bits::<8>(8 * i, self.one.val().get_bits::<8>(8 * i));
        }
        self.mixed.next = mixed;
    }

    fn connect(&mut self) {
        self.mixed.connect();
    }

    fn hdl(&self) -> Verilog {
        let bytes: Vec<_> = (0..K)
            .rev()
            .map(|i| format!("{{8{{lanes[{i}]}}}}"))
            .collect();
        Verilog::Custom(format!(
            "wire [{high}:0] mask = {{{mask}}};\nassign mixed = (one & mask) | (zero & ~mask);\n",
            high = W - 1,
            mask = bytes.join(", "),
        ))
    }
}
