//! What an opcode says about the packet behind the BTH, from the table of `ferroce_proto::wire::opcode`.

// The accessors that the derive generates have no documentation.
#![allow(missing_docs)]

use std::fmt::Write;

use ferroce_proto::wire::{Ext, Opcode};

use crate::prelude::*;

/// Properties of an opcode.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct OpcodeInfo {
    /// It is one of `Opcode::ALL`; else all is 0.
    pub known: Bit,
    /// It may carry payload.
    pub payload: Bit,
    /// Length of the extension headers in words of 4 bytes.
    pub ext_words: Bits<3>,
    /// An ImmDt or IETH is present.
    pub imm: Bit,
    /// Word of the extension headers at which it stands: 0, 2 or 4.
    pub imm_word: Bits<3>,
}

/// Properties of the opcode with this code, by the table.
fn info(code: u8) -> OpcodeInfo {
    let Some(opcode) = Opcode::from_code(code) else {
        return OpcodeInfo::default();
    };
    let place = opcode
        .ext_offset(Ext::ImmDt)
        .or(opcode.ext_offset(Ext::Ieth));
    let before = opcode.header_len() - opcode.ext_len();
    OpcodeInfo {
        known: true,
        payload: opcode.has_payload(),
        ext_words: (opcode.ext_len() / 4).to_bits(),
        imm: place.is_some(),
        imm_word: place.map_or(0, |offset| (offset - before) / 4).to_bits(),
    }
}

/// Decodes an opcode; one cycle.
#[derive(Clone, Debug, Block)]
pub struct OpcodeDecode {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// The code.
    pub opcode: Signal<In, Bits<8>>,
    /// Its properties.
    pub info: Signal<Out, OpcodeInfo>,
}

impl Logic for OpcodeDecode {
    describe!("opcode_decode", "Properties of a BTH opcode.");

    fn update(&mut self) {
        if self.clock.clk.pos_edge() {
            self.info.next = info(self.opcode.val().to_u32() as u8);
        }
    }

    fn connect(&mut self) {
        self.info.connect();
    }

    fn hdl(&self) -> Verilog {
        let mut text = String::from(
            "// {imm_word, imm, ext_words, payload, known}\n\
             always @(posedge clk)\n    case (opcode)\n",
        );
        for &opcode in Opcode::ALL {
            let info = info(opcode.code());
            let _ = writeln!(
                text,
                "        8'h{:02x}: info <= {{3'd{}, 1'b{}, 3'd{}, 1'b{}, 1'b1}}; // {opcode:?}",
                opcode.code(),
                info.imm_word.to_u32(),
                u8::from(info.imm),
                info.ext_words.to_u32(),
                u8::from(info.payload),
            );
        }
        let _ = writeln!(
            text,
            "        default: info <= {}'d0;\n    endcase",
            OpcodeInfo::BITS
        );
        Verilog::Custom(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_table() {
        assert_eq!(info(Opcode::RcAck.code()).ext_words, 1);
        assert_eq!(info(Opcode::Cnp.code()).ext_words, 4);
        assert!(!info(Opcode::Cnp.code()).payload);
        for (opcode, word) in [
            (Opcode::RcSendOnlyImm, 0),
            (Opcode::UdSendOnlyImm, 2),
            (Opcode::RcWriteOnlyImm, 4),
            (Opcode::RcSendOnlyInv, 0),
        ] {
            let info = info(opcode.code());
            assert!(info.imm && info.payload);
            assert_eq!(info.imm_word, word);
        }
        assert_eq!(info(0x15), OpcodeInfo::default());
    }

    #[test]
    fn every_length_is_whole_words_and_fits() {
        for opcode in Opcode::ALL {
            assert!(
                opcode.ext_len() % 4 == 0 && opcode.ext_len() < 32,
                "{opcode:?}"
            );
        }
    }
}
