//! Takes a CRC register back over the zero bytes that fill a beat, and inverts it: the CRC of what came before them.
//!
//! The number of zero bytes is 2 modulo 4, as it is behind every RoCEv2 frame (14 bytes of Ethernet, then whole words).
//! Two steps, each one of four constant matrices: 2, 6, 10 or 14 bytes, then 0, 16, 32 or 48. Two cycles, a register a
//! cycle, four LUT levels.
use std::fmt::Write;

use crate::cell::crc::Map;
use crate::prelude::*;

/// Zero bytes that every step takes back.
const LEAST: usize = 2;

/// Takes a register back.
#[derive(Clone, Debug, Default, LogicBlock)]
pub struct CrcUndo {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// The register behind the zero bytes.
    pub register: Signal<In, Bits<32>>,
    /// How many they are, less 2, in words of 4: 0 to 15.
    pub words: Signal<In, Bits<4>>,
    /// The CRC of what came before them, two cycles later.
    pub crc: Signal<Out, Bits<32>>,
    _near: (u32, usize),
}

impl CrcUndo {
    fn near(digit: usize) -> Map {
        Map::undo_zero_bytes(LEAST + 4 * digit)
    }

    fn far(digit: usize) -> Map {
        Map::undo_zero_bytes(16 * digit)
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
            self.crc.next = (!Self::far(digit).apply(near)).to_bits();
            let words = self.words.val().index();
            let register = self.register.val().to_u32();
            self._near = (Self::near(words % 4).apply(register), words / 4);
        }
    }

    fn connect(&mut self) {
        self.crc.connect();
    }

    fn hdl(&self) -> Verilog {
        let mut text = String::from(
            "reg [31:0] near;\nreg [1:0] digit;\nalways @(posedge clk) begin\n    digit <= words[3:2];\n",
        );
        step(
            &mut text,
            ["words[1:0]", "near", "register", ""],
            Self::near,
        );
        step(&mut text, ["digit", "crc", "near", "~"], Self::far);
        text.push_str("end\n");
        Verilog::Custom(text)
    }
}

/// Appends a choice of four maps from one register to the next.
fn step(text: &mut String, [digit, to, from, invert]: [&str; 4], map: fn(usize) -> Map) {
    let _ = writeln!(text, "    case ({digit})");
    for value in 0..4 {
        let label = if value < 3 {
            format!("2'd{value}")
        } else {
            "default".into()
        };
        let rows: Vec<String> = map(value)
            .rows()
            .iter()
            .rev()
            .map(|row| format!("^({from} & 32'h{row:08x})"))
            .collect();
        let rows = rows.join(",\n            ");
        let _ = writeln!(
            text,
            "        {label}: {to} <= {invert}{{\n            {rows}}};"
        );
    }
    text.push_str("    endcase\n");
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
            let behind = Map::zero_bytes(2 + 4 * words).apply(before);
            u.register.next = behind.to_bits();
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
