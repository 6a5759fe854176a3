//! Takes a CRC register back over the zero bytes that fill a beat, and inverts it: the CRC of what came before them.
//!
//! The number of zero bytes is a multiple of 4. Four steps, each a constant matrix or none: 4, 8, 16 and 32 bytes. The
//! register comes in the coordinates in which the first is a shift ([`CrcUndo::coordinates`]): the matrices have 2 to 9
//! ones a row, not 16, and the CRC is made of it behind them. Two cycles, a register a cycle, five LUT levels.
use std::fmt::Write;
use std::sync::LazyLock;

use crate::cell::crc::Map;
use crate::cell::shared_sums::{Shared, assign, xor};
use crate::prelude::*;

/// Out of the coordinates of the steps.
static OUT: LazyLock<Map> = LazyLock::new(|| CrcUndo::coordinates().inverse());

/// Takes a register back.
#[derive(Clone, Debug, Block)]
pub struct CrcUndo {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// The register behind the zero bytes, in the coordinates of the steps.
    pub register: Signal<In, Bits<32>>,
    /// How many they are, in words of 4 bytes: 0 to 15.
    pub words: Signal<In, Bits<4>>,
    /// The CRC of what came before them, two cycles later.
    pub crc: Signal<Out, Bits<32>>,
    _near: (u32, usize),
}

impl CrcUndo {
    /// The map through which `register` is to be seen ([`Crc::seen_through`](crate::cell::crc::Crc::seen_through)).
    #[must_use]
    pub fn coordinates() -> Map {
        Map::shifting(&Map::undo_zero_bytes(4))
    }

    /// Takes `register` back by two of the steps, the lower of 4 * 2^`step` bytes, as the bits of `digit` say.
    fn taken_back(register: u32, step: usize, digit: usize) -> u32 {
        let steps = (0..2).filter(|bit| digit >> bit & 1 == 1);
        steps.fold(register, |register, bit| {
            Map::undo_zero_bytes(4 << (step + bit)).apply(register)
        })
    }
}

impl Logic for CrcUndo {
    describe!(
        "crc_undo",
        "CRC before the zero bytes that fill a beat, two cycles of latency."
    );

    fn update(&mut self) {
        if self.clock.clk.pos_edge() {
            let (near, digit) = self._near;
            self.crc.next = (!Self::taken_back(near, 2, digit)).to_bits();
            let words = self.words.val().index();
            let register = OUT.apply(self.register.val().to_u32());
            self._near = (Self::taken_back(register, 0, words % 4), words / 4);
        }
    }

    fn connect(&mut self) {
        self.crc.connect();
    }

    fn hdl(&self) -> Verilog {
        let mut text = String::from("reg [31:0] near;\nreg [1:0] digit;\n");
        let names = ["register", "back_1", "near", "back_3"];
        let chosen = ["words[0]", "words[1]", "digit[0]", "digit[1]"];
        let (into, out) = (Self::coordinates(), &*OUT);
        for (step, chosen) in chosen.into_iter().enumerate() {
            let from = names[step];
            let map = out.then(&Map::undo_zero_bytes(4 << step)).then(&into);
            let row = |row: usize| {
                let moved = xor(map.row(row).map(|bit| format!("{from}[{bit}]")));
                format!("{chosen} ? {moved} : {from}[{row}]")
            };
            let name = format!("back_{}", step + 1);
            let _ = writeln!(text, "wire [31:0] {name};");
            assign(&mut text, &format!("assign {name} ="), 32, row);
        }
        let out = Shared::new(out.columns(), 3);
        for (g, (_, sums)) in out.groups.iter().enumerate() {
            let bits = |at: usize| xor(sums[at].iter().map(|bit| format!("back_4[{bit}]")));
            let _ = writeln!(text, "wire [{}:0] sum_{g};", sums.len() - 1);
            assign(&mut text, &format!("assign sum_{g} ="), sums.len(), bits);
        }
        text.push_str("wire [31:0] taken_back;\n");
        assign(&mut text, "assign taken_back =", 32, |row| {
            xor(out.terms(row, "sum"))
        });
        text.push_str(
            "always @(posedge clk) begin\n    near <= back_2;\n    digit <= words[3:2];\n    \
             crc <= ~taken_back;\nend\n",
        );
        Verilog::Custom(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_zero_bytes() {
        let mut u = CrcUndo::default();
        u.connect_all();
        for words in 0..16 {
            let before = 0x1357_9bdf_u32.wrapping_mul(words as u32 + 1);
            let moved = Map::zero_bytes(4 * words).apply(before);
            u.register.next = CrcUndo::coordinates().apply(moved).to_bits();
            u.words.next = words.to_bits();
            for _ in 0..2 {
                u.clock.drive(false, false);
                assert!(simulate(&mut u, 50));
                u.clock.drive(true, false);
                assert!(simulate(&mut u, 50));
            }
            assert_eq!(u.crc.val().to_u32(), !before, "{words} words");
        }
    }
}
