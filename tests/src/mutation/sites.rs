//! Where emitted Verilog can be broken: operators, negations, constants and assignments of combinational logic.

use std::ops::Range;

use ferroce_hdl::emit::block_of;

/// A change of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// Block it stands in, with its sizes.
    pub module: String,
    /// Line in the Verilog, from 0.
    pub line: usize,
    /// The line, without indentation.
    pub was: String,
    /// The line as it is when broken.
    pub mutated: String,
    /// The expression that takes the place of the line's own.
    pub(super) expression: String,
}

/// A line with an expression that can be replaced.
pub(crate) struct Site<'a> {
    /// What stands before the expression, with indentation.
    pub(crate) head: &'a str,
    pub(crate) expression: &'a str,
    pub(crate) tail: &'a str,
    /// What is assigned; none for a condition.
    target: Option<&'a str>,
}

impl<'a> Site<'a> {
    /// The parts of an assignment or a condition, if the line is one.
    pub(crate) fn of(line: &'a str) -> Option<Self> {
        if let Some(body) = line.strip_suffix(") begin") {
            let start = body.find("if (")? + "if (".len();
            return Some(Self {
                head: &line[..start],
                expression: &body[start..],
                tail: ") begin",
                target: None,
            });
        }
        let body = line.strip_suffix(';')?;
        let (left, expression) = body.split_once(" = ")?;
        let target = left.trim_start().trim_start_matches("assign ");
        // An arm of a case has its label in front; the ": " of a part select is behind more than a name.
        let is_name = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let labelled = target.split_once(": ").filter(|(label, _)| is_name(label));
        let target = labelled.map_or(target, |(_, target)| target);
        Some(Self {
            head: &line[..left.len() + " = ".len()],
            expression,
            tail: ";",
            target: Some(target),
        })
    }

    fn with(&self, expression: &str) -> String {
        format!("{}{expression}{}", self.head, self.tail)
    }

    /// Other expressions for it; `held` if the target has a value that it can keep.
    fn changes(&self, held: bool) -> Vec<String> {
        let text = self.expression;
        let mut changes: Vec<_> = operators(text)
            .into_iter()
            .map(|(at, other)| format!("{}{other}{}", &text[..at.start], &text[at.end..]))
            .collect();
        match text {
            "1'b0" => changes.push("1'b1".into()),
            "1'b1" => changes.push("1'b0".into()),
            _ => {}
        }
        changes.extend(self.target.filter(|_| held).map(str::to_owned));
        changes
    }
}

/// What each operator becomes, the longer ones first: they begin like others. The empty ones stay.
const OTHERS: [(&str, &str); 15] = [
    ("<<", "<<"),
    (">>", ">>"),
    ("==", "!="),
    ("!=", "=="),
    ("<=", "<"),
    (">=", ">"),
    ("<", "<="),
    (">", ">="),
    ("&", "|"),
    ("|", "&"),
    ("^", "|"),
    ("+", "-"),
    ("-", "+"),
    ("!", ""),
    ("~", ""),
];

/// Operators of an expression, but for those in indices, and what they become.
fn operators(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let mut found = Vec::new();
    let (mut at, mut index) = (0, 0);
    while at < text.len() {
        match text.as_bytes()[at] {
            b'[' => index += 1,
            b']' => index -= 1,
            _ => {}
        }
        let operator = OTHERS.iter().find(|(from, _)| text[at..].starts_with(from));
        let Some(&(from, other)) = operator.filter(|_| index == 0) else {
            at += 1;
            continue;
        };
        // A minus in front of an operand alone has no counterpart.
        let before = text[..at].trim_end().chars().next_back();
        let binary =
            before.is_some_and(|c| c.is_alphanumeric() || matches!(c, ')' | ']' | '}' | '_'));
        if from != other && (binary || !matches!(from, "+" | "-")) {
            found.push((at..at + from.len(), other));
        }
        at += from.len();
    }
    found
}

/// Whether a module has this name, with or without sizes behind it: `track_q8` is `track`, `track_rules` is not.
fn is_named(module: &str, name: &str) -> bool {
    let is_size = |part: &str| {
        let digits = part.strip_prefix(|c: char| c.is_ascii_lowercase());
        let digits = digits.unwrap_or(part);
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    };
    let sizes = module.strip_prefix(name);
    sizes.is_some_and(|sizes| {
        sizes.is_empty() || sizes.starts_with('_') && sizes[1..].split('_').all(is_size)
    })
}

/// Where a line stands in its module.
#[derive(Default)]
struct Place<'a> {
    module: Option<&'a str>,
    /// Open `begin` and `case` of a combinational block; 0 outside of one.
    depth: u32,
    /// In a block of registers.
    is_clocked: bool,
    /// What this block has given a value on all of its paths.
    given: Vec<&'a str>,
}

impl<'a> Place<'a> {
    /// Moves on to behind a line.
    fn pass(&mut self, line: &'a str) {
        let text = line.trim();
        if let Some(rest) = text.strip_prefix("module ") {
            self.module = rest.split([' ', '(']).next().map(block_of);
        } else if text == "endmodule" {
            *self = Self::default();
        } else if text.starts_with("always @(posedge") {
            (self.is_clocked, self.depth) = (true, 1);
        } else if text.starts_with("always @*") {
            self.given.clear();
            self.depth = 1;
        } else if self.depth > 0 {
            let words = || text.split([' ', ';']);
            let ends = words().filter(|&w| w == "end" || w == "endcase").count();
            let begins = words().filter(|&w| w == "begin" || w == "case").count();
            self.depth = self.depth + begins as u32 - ends as u32;
            self.is_clocked &= self.depth > 0;
        }
    }
}

/// All mutants of the modules with one of these names, in the order of the text. Sizes in the name of a module
/// (`track_q8`) do not count.
#[must_use]
pub fn mutants(source: &str, modules: &[&str]) -> Vec<Mutant> {
    let mut found = Vec::new();
    let mut place = Place::default();
    for (at, line) in source.lines().enumerate() {
        let module = place.module.unwrap_or_default();
        let wanted = modules.iter().any(|name| is_named(module, name));
        // A declaration of a constant is no logic.
        let is_logic =
            line.trim_start().starts_with("assign ") || place.depth > 0 && !place.is_clocked;
        if let Some(site) = Site::of(line).filter(|_| wanted && is_logic) {
            let held = place.depth > 1
                && site.target.is_some_and(|target| {
                    let base = target.split('[').next().unwrap_or(target);
                    place
                        .given
                        .iter()
                        .any(|&given| given == base || given == target)
                });
            for expression in site.changes(held) {
                found.push(Mutant {
                    module: module.to_owned(),
                    line: at,
                    was: line.trim().to_owned(),
                    mutated: site.with(&expression).trim().to_owned(),
                    expression,
                });
            }
            place.given.extend(site.target.filter(|_| place.depth == 1));
        }
        place.pass(line);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
module ferroce_a_q8 (
    input  wire clk
);
    localparam one = 1'b1;
    assign x = p[at + 3 +: 2] == (q >> 1);
    always @* begin
        y = 1'b0;
        z[3] = -w;
        t = v;
        if (!u) begin
            y = v - 8'd1;
            t[at +: 8] = v;
        end
        case (s)
            RUN: y = ~v;
        endcase
    end
    always @(posedge clk) begin
        if (rst) begin
            s <= 1'b0;
            k = a & b;
        end
    end
    assign m = a <= b;
endmodule
module ferroce_a_b (
);
    assign x = a | b;
endmodule
";

    #[test]
    fn what_can_be_broken_is_found() {
        let found = mutants(SOURCE, &["a"]);
        let lines: Vec<_> = found.iter().map(|m| m.mutated.as_str()).collect();
        let expected = [
            "assign x = p[at + 3 +: 2] != (q >> 1);",
            "y = 1'b1;",
            "if (u) begin",
            "y = v + 8'd1;",
            "y = y;",
            "t[at +: 8] = t[at +: 8];",
            "RUN: y = v;",
            "RUN: y = y;",
            "assign m = a < b;",
        ];
        assert_eq!(lines, expected);
        assert!(found.iter().all(|m| m.module == "a_q8"));
        assert_eq!(
            SOURCE.lines().nth(found[2].line).unwrap().trim(),
            found[2].was
        );
    }

    #[test]
    fn a_name_is_that_of_the_module_with_any_sizes() {
        for module in ["track", "track_q8", "track_512_256", "track_w512_q8"] {
            assert!(is_named(module, "track"), "{module}");
        }
        for module in ["track_rules", "trackers", "rack"] {
            assert!(!is_named(module, "track"), "{module}");
        }
        assert_eq!(mutants(SOURCE, &["a_b"]).len(), 1);
    }
}
