//! One Verilog text with many mutants in it, of which an input of the top module chooses one: it is built once.

use super::sites::{Mutant, Site};

/// The input of the top module: 16 bits, the mutant to be from 1, or 0 for the engine as it is.
pub use crate::conformance::run::CHOICE;

/// An expression for a line of a text.
pub(crate) struct Choice {
    /// The mutant whose it is.
    pub(crate) number: usize,
    /// The line, from 0.
    pub(crate) line: usize,
    pub(crate) expression: String,
}

/// The text with all `mutants`, which are of it. Every other line stays where it is.
///
/// # Panics
/// If `source` has no module `top`, or there are more mutants than 16 bits can number.
#[must_use]
pub fn with_all(source: &str, top: &str, mutants: &[Mutant]) -> String {
    let choice = |(number, mutant): (usize, &Mutant)| Choice {
        number,
        line: mutant.line,
        expression: mutant.expression.clone(),
    };
    with_choices(source, top, (1..).zip(mutants).map(choice).collect())
}

/// The text with `choices`, as [`with_all`].
pub(crate) fn with_choices(source: &str, top: &str, mut choices: Vec<Choice>) -> String {
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
        let source = "module top (\n    input wire a\n);\n    assign y = a & !b;\nendmodule\n";
        let text = with_all(source, "top", &mutants(source, &["top"]));
        let expected = "module top ( input wire [15:0] mutant,\n    input wire a\n);\n    \
            assign y = (top.mutant == 16'd1) ? (a | !b) : (top.mutant == 16'd2) ? (a & b) : (a & !b);\nendmodule\n";
        assert_eq!(text, expected);
    }
}
