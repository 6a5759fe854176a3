//! A frame of registers in place of the pins that a module has too many of.
//!
//! A shift register drives every input and a tree of registers folds every output into one, so that all paths are those
//! between registers.

use std::fmt::Write as _;

use anyhow::{Result, ensure};

/// Name of the frame.
pub(super) const FRAME: &str = "frame";

/// A port of a module in Verilog.
#[derive(Debug, PartialEq, Eq)]
struct Port<'a> {
    input: bool,
    width: usize,
    name: &'a str,
}

/// The ports of the module `top` of emitted Verilog: a line each.
fn ports<'a>(source: &'a str, top: &str) -> Vec<Port<'a>> {
    let head = format!("module {top} (");
    let lines = source.lines().skip_while(|line| *line != head);
    let lines = lines.skip(1).take_while(|line| !line.starts_with(')'));
    lines
        .filter_map(|line| {
            let words: Vec<_> = line
                .trim()
                .trim_end_matches(',')
                .split_whitespace()
                .collect();
            let (input, name) = (*words.first()? == "input", *words.last()?);
            let range = words.iter().find_map(|word| word.strip_prefix('['));
            let high = range.map_or(Some(0), |range| range.split(':').next()?.parse().ok())?;
            let width = high + 1usize;
            ["input", "output"]
                .contains(words.first()?)
                .then_some(Port { input, width, name })
        })
        .collect()
}

/// Verilog of the frame round the module `top` of `source`, with cells of the ECP5.
///
/// # Errors
/// It has no ports to speak of.
pub(super) fn frame(source: &str, top: &str) -> Result<String> {
    let ports = ports(source, top);
    let of = |input| {
        let ports = ports
            .iter()
            .filter(move |p| p.input == input && p.name != "clk");
        ports.map(|p| p.width).sum::<usize>()
    };
    let (inputs, outputs) = (of(true), of(false));
    ensure!(
        inputs > 1 && outputs > 0,
        "{top} has no ports to drive and to fold"
    );
    let mut text = format!(
        "module {FRAME}(input clk, input si, output so);\n\
         reg [{}:0] in;\nalways @(posedge clk) in <= {{in[{}:0], si}};\n\
         wire [{high}:0] out;\nreg [{high}:0] fold_0;\nalways @(posedge clk) fold_0 <= out;\n",
        inputs - 1,
        inputs - 2,
        high = outputs - 1
    );
    // By cells: an output bit that Yosys finds undefined would make an expression of it undefined, and all before it unused.
    let (mut width, mut stage) = (outputs, 0);
    while width > 1 {
        let next = width.div_ceil(4);
        let _ = writeln!(text, "wire [{}:0] sum_{stage};", next - 1);
        for i in 0..next {
            let bit = |at: usize| match 4 * i + at {
                bit if bit < width => format!("fold_{stage}[{bit}]"),
                _ => "1'b0".to_owned(),
            };
            let _ = writeln!(
                text,
                "LUT4 #(.INIT(16'h6996)) u_{stage}_{i} (.A({}), .B({}), .C({}), .D({}), .Z(sum_{stage}[{i}]));",
                bit(0),
                bit(1),
                bit(2),
                bit(3)
            );
        }
        stage += 1;
        width = next;
        let _ = writeln!(
            text,
            "reg [{}:0] fold_{stage};\nalways @(posedge clk) fold_{stage} <= sum_{};",
            width - 1,
            stage - 1
        );
    }
    let _ = write!(
        text,
        "assign so = fold_{stage}[0];\n{top} framed (.clk(clk)"
    );
    let (mut input, mut output) = (0, 0);
    for port in ports.iter().filter(|p| p.name != "clk") {
        let (bus, low) = if port.input {
            ("in", &mut input)
        } else {
            ("out", &mut output)
        };
        let _ = write!(
            text,
            ",\n    .{}({bus}[{low} +: {}])",
            port.name, port.width
        );
        *low += port.width;
    }
    text.push_str(");\nendmodule\n");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "// Doc.\nmodule t (\n    input  wire clk,\n    input  wire [7:0] a,\n    input  wire b,\n    \
                        output reg [4:0] y\n);\nassign y = a;\nendmodule\n";

    #[test]
    fn a_frame_holds_every_port_but_the_clock() {
        let port = |input, width, name| Port { input, width, name };
        let expected = [
            port(true, 1, "clk"),
            port(true, 8, "a"),
            port(true, 1, "b"),
            port(false, 5, "y"),
        ];
        assert_eq!(ports(TEXT, "t"), expected);
        let text = frame(TEXT, "t").unwrap();
        for part in [
            "reg [8:0] in;",
            "u_0_0 (.A(fold_0[0]), .B(fold_0[1]), .C(fold_0[2]), .D(fold_0[3]), .Z(sum_0[0]))",
            "u_0_1 (.A(fold_0[4]), .B(1'b0)",
            "so = fold_2[0]",
            ".a(in[0 +: 8])",
            ".b(in[8 +: 1])",
            ".y(out[0 +: 5])",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(frame(TEXT, "u").is_err());
    }
}
