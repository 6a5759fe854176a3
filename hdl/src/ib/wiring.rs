//! Header fields wired from a packed structure, by table: printed as Verilog and applied in Rust.
//!
//! The target is a run of header bytes, byte 0 in bits 7:0. Places of fields come from `ferroce_proto::wire`.
use std::fmt::Write;

use ferroce_proto::wire::Field;

use crate::prelude::*;

/// Where a run of target bits comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// As many bits from this one of the structure on.
    Bits(usize),
    /// This number.
    Constant(u8),
}

/// A run of target bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    to: usize,
    width: usize,
    source: Source,
}

/// What of a header comes from where. Bits that no field names are 0.
#[derive(Clone, Debug)]
pub struct Wiring {
    runs: Vec<Run>,
    /// Name, lowest bit and width of the structure's fields.
    fields: Vec<(String, usize, usize)>,
}

impl PartialEq for Wiring {
    fn eq(&self, other: &Self) -> bool {
        self.runs == other.runs
    }
}

impl Wiring {
    /// No wires yet; they come from structure `T`.
    ///
    /// # Panics
    /// If `T` is no structure of `Bits` and `Bit`.
    pub fn from<T: Synth>() -> Self {
        let TypeKind::Composite(fields) = T::descriptor().kind else {
            panic!("headers are wired from a structure")
        };
        let mut low = 0;
        let place = |field: Box<TypeField>| {
            let TypeKind::Bits(width) = field.kind.kind else {
                panic!("`{}` is no bits", field.fieldname)
            };
            low += width;
            (field.fieldname, low - width, width)
        };
        Self {
            runs: vec![],
            fields: fields.into_iter().map(place).collect(),
        }
    }

    /// Lowest bit and width of a field of the structure.
    pub fn source(&self, name: &str) -> (usize, usize) {
        let found = self.fields.iter().find(|field| field.0 == name);
        let (_, low, width) = found.unwrap_or_else(|| panic!("no field `{name}` to wire from"));
        (*low, *width)
    }

    /// `field` of the header that starts at byte `start` is the number `name`.
    pub fn number(&mut self, start: usize, field: Field, name: &str) {
        let (low, width) = self.source(name);
        assert_eq!(width, field.width, "width of `{name}`");
        self.by_byte(start, field, |below, _| Source::Bits(low + below));
    }

    /// `field` is the constant `value`.
    pub fn constant(&mut self, start: usize, field: Field, value: u128) {
        self.by_byte(start, field, |below, width| {
            Source::Constant((value >> below) as u8 & (0xff >> (8 - width)))
        });
    }

    /// `field`, whole bytes, is a run of the bytes `name` from byte `first` on, in their order.
    pub fn bytes(&mut self, start: usize, field: Field, name: &str, first: usize) {
        let (low, width) = self.source(name);
        assert!(
            field.bit.is_multiple_of(8) && 8 * first + field.width <= width,
            "bytes of `{name}`"
        );
        self.runs.push(Run {
            to: 8 * start + field.bit,
            width: field.width,
            source: Source::Bits(low + 8 * first),
        });
    }

    /// A run for each byte the field touches; `source` takes the number of bits of the field below it, and its width.
    fn by_byte(&mut self, start: usize, field: Field, source: impl Fn(usize, usize) -> Source) {
        for byte in field.bytes() {
            let begin = field.bit.max(8 * byte);
            let end = field.end().min(8 * byte + 8);
            self.runs.push(Run {
                to: 8 * start + 8 * byte + (8 * byte + 8 - end),
                width: end - begin,
                source: source(field.end() - end, end - begin),
            });
        }
    }

    /// Assignments from vector `source` to vector `target`, one a line; `sign` is that of an assignment.
    pub fn verilog(&self, pad: &str, target: &str, sign: &str, source: &str) -> String {
        let mut text = String::new();
        let part = |low: usize, width: usize| {
            if width == 1 {
                format!("[{low}]")
            } else {
                format!("[{}:{low}]", low + width - 1)
            }
        };
        for run in &self.runs {
            let value = match run.source {
                Source::Bits(low) => format!("{source}{}", part(low, run.width)),
                Source::Constant(value) => format!("{}'h{value:x}", run.width),
            };
            let to = part(run.to, run.width);
            let _ = writeln!(text, "{pad}{target}{to} {sign} {value};");
        }
        text
    }

    /// The header, given the bits of the structure.
    pub fn apply<const N: usize>(&self, source: impl Fn(usize) -> bool) -> Bits<N> {
        let mut header: Bits<N> = Default::default();
        for run in &self.runs {
            for i in 0..run.width {
                let bit = match run.source {
                    Source::Bits(low) => source(low + i),
                    Source::Constant(value) => value >> i & 1 == 1,
                };
                header = header.replace_bit(run.to + i, bit);
            }
        }
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::types::TxDesc;
    use ferroce_proto::wire::bth;

    #[test]
    fn numbers_are_turned_and_bytes_are_not() {
        let mut wiring = Wiring::from::<TxDesc>();
        wiring.number(1, bth::field::PSN, "psn");
        wiring.number(1, bth::field::ACK_REQ, "ack_req");
        wiring.constant(1, bth::field::P_KEY, 0x8001);
        wiring.bytes(14, Field { bit: 0, width: 24 }, "va", 2);
        let desc = TxDesc {
            psn: 0x12_3456_u32.to_bits(),
            ack_req: true,
            va: 0x0807_0605_0403_0201_u64.to_bits(),
            ..Default::default()
        };
        let bits: Bits<{ TxDesc::BITS }> = desc.into();
        let header: Bits<136> = wiring.apply(|i| bits.get_bit(i));
        let byte = |i: usize| header.get_bits::<8>(8 * i).to_u32();
        assert_eq!([byte(3), byte(4)], [0x80, 0x01]);
        assert_eq!([9, 10, 11, 12].map(byte), [0x80, 0x12, 0x34, 0x56]);
        assert_eq!([14, 15, 16].map(byte), [3, 4, 5]);
    }
}
