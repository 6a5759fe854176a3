//! Header collection and field selection: the generated part of the parser.
//!
//! [`HeaderWindow`] keeps the first [`HEADER_BYTES`] bytes of the frame whose beats pass; [`FieldSelect`] picks fields
//! from them by layout, one LUT level a bit.
use std::fmt::Write;

use super::rx_fields::{EthFields, HeaderFields, Place, Wire};
use crate::bus::layout::{HEADER_BITS, HEADER_BYTES, Layout};
use crate::prelude::*;

/// The start of the frame that passes.
///
/// One cycle after a beat entered with `valid`, `header` holds it and the beats before it. Bytes that have not arrived
/// read as ones: no byte of another frame is ever seen, and a length not yet known is longer than any frame.
#[derive(Clone, Debug, Block)]
#[block(check)]
pub struct HeaderWindow<const W: usize> {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// A beat enters.
    pub valid: Signal<In, Bit>,
    /// Its number in the frame; may stop counting behind the headers.
    pub index: Signal<In, Bits<10>>,
    /// The beat, byte 0 in bits 7:0.
    pub data: Signal<In, Bits<W>>,
    /// The start of the frame, byte 0 in bits 7:0.
    pub header: Signal<Out, Bits<HEADER_BITS>>,
    /// Fields of the Ethernet header.
    pub eth: Signal<Out, EthFields>,
    _header: Bits<HEADER_BITS>,
}

impl<const W: usize> HeaderWindow<W> {
    fn check() {
        assert!(
            W > 0 && W.is_multiple_of(8),
            "beats of {W} bits: whole bytes are expected"
        );
    }
}

impl<const W: usize> Logic for HeaderWindow<W> {
    describe!(
        "header_window",
        format!("w{W}"),
        "The start of the frame that passes; bytes that have not arrived read as ones."
    );

    fn update(&mut self) {
        if !self.clock.clk.pos_edge() {
            return;
        }
        if self.valid.val() {
            let (start, data) = (self.index.val().index() * W, self.data.val());
            for i in 0..HEADER_BITS {
                if (start..start + W).contains(&i) {
                    self._header = self._header.replace_bit(i, data.get_bit(i - start));
                } else if start == 0 {
                    self._header = self._header.replace_bit(i, true);
                }
            }
        }
        let header = self._header;
        self.header.next = header;
        self.eth.next = EthFields::read(Layout::ALL[0], &|i| header.get_bit(i));
    }

    fn connect(&mut self) {
        self.header.connect();
        self.eth.connect();
    }

    fn hdl(&self) -> Verilog {
        let mut text = String::from("always @(posedge clk) begin\n");
        for (beat, low) in (0..HEADER_BITS).step_by(W).enumerate() {
            let bits = W.min(HEADER_BITS - low);
            let slice = format!("header[{}:{low}]", low + bits - 1);
            let _ = writeln!(
                text,
                "    if (valid & (index == 10'd{beat})) {slice} <= data[{}:0];",
                bits - 1
            );
            if beat > 0 {
                let _ = writeln!(
                    text,
                    "    else if (valid & (index == 10'd0)) {slice} <= {{{bits}{{1'b1}}}};"
                );
            }
        }
        let eth = concatenation("header", &EthFields::places(Layout::ALL[0]), "        ");
        let _ = write!(text, "end\nassign eth = {eth};\n");
        Verilog::Custom(text)
    }
}

/// The fields `F` of a header, by its layout, one cycle later.
#[derive(Clone, Debug, Block)]
pub struct FieldSelect<F: HeaderFields> {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// The start of the frame, byte 0 in bits 7:0.
    pub header: Signal<In, Bits<HEADER_BITS>>,
    /// It is IPv6.
    pub ipv6: Signal<In, Bit>,
    /// It has an 802.1Q tag.
    pub vlan: Signal<In, Bit>,
    /// The fields.
    pub fields: Signal<Out, F>,
}

impl<F: HeaderFields> Logic for FieldSelect<F> {
    describe!(
        "field_select",
        format!("{}of{HEADER_BYTES}", F::BITS),
        "Header fields by layout."
    );

    fn update(&mut self) {
        if self.clock.clk.pos_edge() {
            let header = self.header.val();
            let layout = Layout {
                ipv6: self.ipv6.val(),
                vlan: self.vlan.val(),
            };
            self.fields.next = F::read(layout, &|i| header.get_bit(i));
        }
    }

    fn connect(&mut self) {
        self.fields.connect();
    }

    fn hdl(&self) -> Verilog {
        let mut text = String::from("always @(posedge clk)\n    case ({ipv6, vlan})\n");
        for (number, layout) in Layout::ALL.into_iter().enumerate() {
            let fields = concatenation("header", &F::places(layout), "            ");
            let _ = writeln!(text, "        2'd{number}: fields <= {fields};");
        }
        text.push_str("    endcase\n");
        Verilog::Custom(text)
    }
}

/// The fields as one vector, the first in the lowest bits, a line each.
fn concatenation(vector: &str, fields: &[(&str, Place)], indent: &str) -> String {
    let lines = fields.iter().rev();
    let lines = lines.map(|(name, place)| format!("{indent}/* {name} */ {}", runs(vector, place)));
    format!("{{\n{}}}", lines.collect::<Vec<_>>().join(",\n"))
}

/// A place as a concatenation of slices and constants.
fn runs(vector: &str, place: &Place) -> String {
    let mut parts: Vec<String> = vec![];
    let mut low = 0;
    while low < place.len() {
        let mut high = low;
        while high + 1 < place.len() && follows(place[high], place[high + 1]) {
            high += 1;
        }
        parts.push(match (place[low], place[high]) {
            (Wire::Frame(a), Wire::Frame(b)) if a == b => format!("{vector}[{a}]"),
            (Wire::Frame(a), Wire::Frame(b)) => format!("{vector}[{b}:{a}]"),
            (Wire::Constant(value), _) => {
                format!("{{{}{{1'b{}}}}}", high - low + 1, u8::from(value))
            }
            (Wire::Frame(_), Wire::Constant(_)) => unreachable!("a run is of one kind"),
        });
        low = high + 1;
    }
    parts.reverse();
    match parts.as_slice() {
        [only] => only.clone(),
        parts => format!("{{{}}}", parts.join(", ")),
    }
}

fn follows(low: Wire, high: Wire) -> bool {
    match (low, high) {
        (Wire::Frame(a), Wire::Frame(b)) => b == a + 1,
        (a, b) => a == b,
    }
}
