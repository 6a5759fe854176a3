//! Extension headers of a packet to send, by its opcode.
//!
//! One cycle, three LUT levels. Which headers follow the BTH and where says `ferroce_proto::wire::Opcode`; the fields
//! come from the descriptor.
use std::fmt::Write;

use ferroce_proto::wire::{Ext, Field, Opcode, aeth, atomic, bth, deth, imm, reth};

use super::tx_types::EXT_BYTES;
use super::wiring::Wiring;
use crate::bus::types::TxDesc;
use crate::prelude::*;

/// The block.
#[derive(Clone, Debug, Block)]
pub struct ExtTx {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// The packet.
    pub desc: Signal<In, TxDesc>,
    /// Its extension headers, the first byte in the lowest bits, 0 behind them.
    pub bytes: Signal<Out, Bits<224>>,
    /// Their length in bytes.
    pub len: Signal<Out, Bits<5>>,
}

/// The source queue pair of a DETH: the local one, whose number has 16 bits.
const SOURCE: Field = Field {
    bit: deth::field::SRC_QP.bit + deth::field::SRC_QP.width - 16,
    width: 16,
};

/// Where the extension headers of an opcode come from.
fn wiring(opcode: Opcode) -> Wiring {
    let mut wires = Wiring::from::<TxDesc>();
    for ext in Ext::ALL {
        let Some(offset) = opcode.ext_offset(ext) else {
            continue;
        };
        let start = offset - bth::LEN;
        match ext {
            Ext::Reth => {
                wires.number(start, reth::field::VA, "va");
                wires.number(start, reth::field::R_KEY, "rkey");
                wires.number(start, reth::field::DMA_LEN, "dma_len");
            }
            Ext::AtomicEth => {
                wires.number(start, atomic::field::VA, "va");
                wires.number(start, atomic::field::R_KEY, "rkey");
                wires.number(start, atomic::field::SWAP_ADD, "swap_add");
                wires.number(start, atomic::field::COMPARE, "compare");
            }
            Ext::Aeth => {
                wires.number(start, aeth::field::SYNDROME, "syndrome");
                wires.number(start, aeth::field::MSN, "msn");
            }
            Ext::ImmDt => wires.number(start, imm::field::IMM, "imm"),
            Ext::Ieth => wires.number(start, imm::ieth::field::R_KEY, "imm"),
            Ext::Deth => {
                wires.number(start, deth::field::Q_KEY, "rkey");
                wires.number(start, SOURCE, "qpn");
            }
            Ext::AtomicAckEth => wires.number(start, atomic::ack::field::ORIGINAL, "va"),
            Ext::CnpReserved => {}
        }
    }
    wires
}

impl Logic for ExtTx {
    describe!("ext_tx", "Extension headers of a packet to send.");

    fn update(&mut self) {
        if self.clock.clk.pos_edge() {
            let desc = self.desc.val();
            let bits: Bits<{ TxDesc::BITS }> = desc.into();
            let opcode = Opcode::from_code(desc.opcode.to_u8());
            self.bytes.next = opcode.map_or(Default::default(), |opcode| {
                wiring(opcode).apply(|i| bits.get_bit(i))
            });
            self.len.next = opcode.map_or(0, Opcode::ext_len).to_bits();
        }
    }

    fn connect(&mut self) {
        self.bytes.connect();
        self.len.connect();
    }

    fn hdl(&self) -> Verilog {
        let (low, width) = Wiring::from::<TxDesc>().source("opcode");
        let mut text = format!(
            "always @(posedge clk) begin\n    bytes <= {}'h0;\n    len <= 5'd0;\n    case (desc[{}:{low}])\n",
            8 * EXT_BYTES,
            low + width - 1,
        );
        // Opcodes with the same headers share an arm.
        let mut arms: Vec<(Wiring, Vec<Opcode>)> = vec![];
        for &opcode in Opcode::ALL.iter().filter(|opcode| opcode.ext_len() > 0) {
            let wires = wiring(opcode);
            let same = |arm: &&mut (Wiring, Vec<Opcode>)| {
                arm.0 == wires && arm.1[0].ext_len() == opcode.ext_len()
            };
            match arms.iter_mut().find(same) {
                Some(arm) => arm.1.push(opcode),
                None => arms.push((wires, vec![opcode])),
            }
        }
        for (wires, opcodes) in &arms {
            let names: Vec<_> = opcodes.iter().map(|o| format!("{o:?}")).collect();
            let codes: Vec<_> = opcodes
                .iter()
                .map(|o| format!("8'h{:02x}", o.code()))
                .collect();
            let _ = write!(
                text,
                "        // {}\n        {}: begin\n            len <= 5'd{};\n{}        end\n",
                names.join(", "),
                codes.join(", "),
                opcodes[0].ext_len(),
                wires.verilog("            ", "bytes", "<=", "desc")
            );
        }
        text.push_str("        default: ;\n    endcase\nend\n");
        Verilog::Custom(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_opcode_fits() {
        for opcode in Opcode::ALL {
            assert!(opcode.ext_len() <= EXT_BYTES, "{opcode:?}");
        }
    }
}
