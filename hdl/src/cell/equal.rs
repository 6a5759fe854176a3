//! Says whether two words are the same: three bits a LUT, and a carry chain for the AND of them. Combinational.
use std::fmt::Write;

use crate::prelude::*;

/// Bits of each word that a LUT compares.
const BITS: usize = 3;

/// Comparator for words of `N` bits.
#[derive(Clone, Debug, Block)]
pub struct Equal<const N: usize> {
    /// A word.
    pub a: Signal<In, Bits<N>>,
    /// Another.
    pub b: Signal<In, Bits<N>>,
    /// They are the same.
    pub equal: Signal<Out, Bit>,
}

impl<const N: usize> Logic for Equal<N> {
    describe!(
        "equal",
        format!("{N}"),
        "Says whether two words are the same."
    );

    fn update(&mut self) {
        self.equal.next = self.a.val() == self.b.val();
    }

    fn connect(&mut self) {
        self.equal.connect();
    }

    fn hdl(&self) -> Verilog {
        let parts = N.div_ceil(BITS);
        let mut text = format!("wire [{}:0] same;\n", parts - 1);
        for part in 0..parts {
            let (low, end) = (BITS * part, N.min(BITS * part + BITS));
            let slice = format!("[{}:{low}]", end - 1);
            let _ = writeln!(text, "assign same[{part}] = a{slice} == b{slice};");
        }
        let _ = write!(
            text,
            "// A one added below carries through if all are.\n\
             wire [{parts}:0] chain = {{1'b0, same}} + {}'d1;\n\
             assign equal = chain[{parts}];\n",
            parts + 1
        );
        Verilog::Custom(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_counts() {
        let mut u = Equal::<128>::default();
        u.connect_all();
        let word: Bits<128> = 0x0123_4567_89ab_cdef_u64.to_bits();
        u.a.next = word;
        u.b.next = word;
        assert!(simulate(&mut u, 50));
        assert!(u.equal.val());
        for bit in 0..128 {
            u.b.next = word.replace_bit(bit, !word.get_bit(bit));
            assert!(simulate(&mut u, 50));
            assert!(!u.equal.val(), "bit {bit}");
        }
    }
}
