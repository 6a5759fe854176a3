//! One Verilog text with many mutants in it, of which an input of the top module chooses one: it is built once.

use super::sites::{Mutant, Site};
use crate::verilator::{Port, Spec};

/// The input of the top module: 16 bits, the mutant to be from 1, or 0 for the design as it is.
pub const CHOICE: &str = "mutant";

/// An expression for a line of a text.
pub struct Choice {
    /// The mutant whose it is.
    pub number: usize,
    /// The line, from 0.
    pub line: usize,
    /// What takes the place of the line's own.
    pub expression: String,
}

impl Choice {
    /// Of a mutant with its number.
    #[must_use]
    pub fn of((number, mutant): (usize, &Mutant)) -> Self {
        Self {
            number,
            line: mutant.line,
            expression: mutant.expression.clone(),
        }
    }
}

/// Puts `choices`, which are of its lines, into a design, and the input that chooses. Every other line stays where it is.
///
/// # Panics
/// If the text has no module of the design's name, or there are more mutants than 16 bits can number.
pub fn put_into(spec: &mut Spec, choices: Vec<Choice>) {
    spec.source = with_choices(&spec.source, &spec.top, choices);
    spec.ports.push(Port::input(CHOICE, 16));
}

fn with_choices(source: &str, top: &str, mut choices: Vec<Choice>) -> String {
    choices.sort_by_key(|choice| (choice.line, choice.number));
    let mut lines: Vec<String> = source.lines().map(str::to_owned).collect();
    for group in choices.chunk_by(|a, b| a.line == b.line) {
        let line = group[0].line;
        let site = Site::of(&lines[line]).expect("a mutant is of a line with an expression");
        let choices: String = group
            .iter()
            .map(
                |Choice {
                     number, expression, ..
                 }| {
                    assert!(*number < 1 << 16, "{number} mutants");
                    // Parentheses keep the width that the context gives.
                    format!("({top}.{CHOICE} == 16'd{number}) ? ({expression}) : ")
                },
            )
            .collect();
        let (head, own, tail) = (site.head, site.expression, site.tail);
        let replaced = format!("{head}{choices}({own}){tail}");
        lines[line] = replaced;
    }
    let header = format!("module {top} (");
    let first = lines.iter().position(|line| *line == header);
    let first = first.unwrap_or_else(|| panic!("no line `{header}`"));
    lines[first] += &format!(" input wire [15:0] {CHOICE},");
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::sites::mutants;
    use super::*;

    #[test]
    fn every_mutant_is_a_choice_of_its_line() {
        let source = "module top (\n    input wire a\n);\n    assign y[7:0] = a & !b;\nendmodule\n";
        let mut spec = Spec::new("top", source);
        let mutants = mutants(source, &["top"]);
        put_into(&mut spec, (1..).zip(&mutants).map(Choice::of).collect());
        let expected = "module top ( input wire [15:0] mutant,\n    input wire a\n);\n    \
            assign y[7:0] = (top.mutant == 16'd1) ? (a | !b) : (top.mutant == 16'd2) ? (a & b) : (a & !b);\nendmodule\n";
        assert_eq!(spec.source, expected);
        assert_eq!(spec.ports, [Port::input(CHOICE, 16)]);
    }
}
