//! Where emitted Verilog can be broken: expressions and assignments of its logic, values that registers take in reset.

use ferroce_hdl::emit::block_of;

use super::changes::{Scope, changes, is_name};

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
pub struct Site<'a> {
    /// What stands before the expression, with indentation.
    pub(super) head: &'a str,
    pub(super) expression: &'a str,
    pub(super) tail: &'a str,
    /// What is assigned; none for a condition.
    pub(super) target: Option<&'a str>,
}

impl<'a> Site<'a> {
    /// The parts of an assignment or a condition, if the line is one.
    #[must_use]
    pub fn of(line: &'a str) -> Option<Self> {
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
        let (left, expression, equals) = match body.split_once(" = ") {
            Some((left, expression)) => (left, expression, " = "),
            None => body.split_once(" <= ").map(|(l, e)| (l, e, " <= "))?,
        };
        let target = left.trim_start().trim_start_matches("assign ");
        // An arm of a case has its label in front; the ": " of a part select is behind more than a name.
        let labelled = target.split_once(": ").filter(|(label, _)| is_name(label));
        let target = labelled.map_or(target, |(_, target)| target);
        Some(Self {
            head: &line[..left.len() + equals.len()],
            expression,
            tail: ";",
            target: Some(target),
        })
    }

    fn with(&self, expression: &str) -> String {
        format!("{}{expression}{}", self.head, self.tail)
    }
}

/// The name of a module without its sizes: `track` of `track_q8`, `fifo_block` of `fifo_64x8_block`, all of `track_rules`.
pub(super) fn without_sizes(module: &str) -> String {
    let is_size = |part: &&str| {
        let number = part.strip_prefix(|c: char| c.is_ascii_lowercase());
        number
            .unwrap_or(part)
            .starts_with(|c: char| c.is_ascii_digit())
    };
    let parts: Vec<_> = module.split('_').filter(|part| !is_size(part)).collect();
    parts.join("_")
}

/// Where a line stands in its module.
#[derive(Default)]
struct Place<'a> {
    module: Option<&'a str>,
    /// Open `begin` and `case` of a combinational block; 0 outside of one.
    depth: u32,
    /// In a block of registers.
    is_clocked: bool,
    /// In what it does in reset.
    is_reset: bool,
    /// What this block has given a value on all of its paths.
    given: Vec<&'a str>,
}

impl<'a> Place<'a> {
    /// What a line here can become, and the expression alone.
    fn changes(&self, line: &str, scope: &Scope<'_>) -> Vec<(String, String)> {
        // A declaration of a constant is no logic, nor is an assertion.
        let assigned = line.trim_start().strip_prefix("assign ");
        let is_logic = assigned.is_some_and(|rest| !rest.starts_with("broken_")) || self.depth > 0;
        let site = Site::of(line).filter(|_| is_logic);
        let Some(site) = site else { return vec![] };
        let expressions = match (self.is_clocked, site.target) {
            (false, target) => {
                let is_given = |target: &str| {
                    let base = target.split('[').next().unwrap_or(target);
                    let mut given = self.given.iter();
                    given.any(|&given| given == base || given == target)
                };
                let held = self.depth > 1 && target.is_some_and(is_given);
                changes(&site, held, scope)
            }
            // reset leaves the register as it is
            (true, Some(target)) if self.is_reset => vec![target.to_owned()],
            (true, _) => vec![],
        };
        let made = expressions.into_iter();
        made.map(|expression| (site.with(&expression), expression))
            .collect()
    }

    /// Moves on to behind a line.
    fn pass(&mut self, line: &'a str) {
        let text = line.trim();
        if self.depth == 1 && !self.is_clocked {
            self.given
                .extend(Site::of(line).and_then(|site| site.target));
        }
        if let Some(rest) = text.strip_prefix("module ") {
            self.module = rest.split([' ', '(']).next().map(block_of);
        } else if text == "endmodule" {
            *self = Self::default();
        } else if text.starts_with("always @(posedge") {
            (self.is_clocked, self.depth) = (true, 1);
        } else if text == "if (rst) begin" && self.is_clocked {
            (self.is_reset, self.depth) = (true, self.depth + 1);
        } else if text.starts_with("always @*") {
            self.given.clear();
            self.depth = 1;
        } else if self.depth > 0 {
            let words = || text.split([' ', ';']);
            let ends = words().filter(|&w| w == "end" || w == "endcase").count();
            let begins = words().filter(|&w| w == "begin" || w == "case").count();
            self.is_reset &= ends == 0;
            self.depth = self.depth + begins as u32 - ends as u32;
            self.is_clocked &= self.depth > 0;
        }
    }
}

/// All mutants of the modules with one of these names, or of all without a name, in the order of the text. Sizes in the
/// name of a module (`track_q8`) do not count.
#[must_use]
pub fn mutants(source: &str, modules: &[&str]) -> Vec<Mutant> {
    let lines: Vec<_> = source.lines().collect();
    let mut found = Vec::new();
    let mut place = Place::default();
    let mut scope = Scope::default();
    let mut is_wanted = false;
    for (at, &line) in lines.iter().enumerate() {
        let module = place.module.unwrap_or_default();
        if is_wanted {
            let made = place.changes(line, &scope);
            found.extend(made.into_iter().map(|(mutated, expression)| Mutant {
                module: module.to_owned(),
                line: at,
                was: line.trim().to_owned(),
                mutated: mutated.trim().to_owned(),
                expression,
            }));
        }
        place.pass(line);
        if let Some(module) = place.module.filter(|_| line.starts_with("module ")) {
            is_wanted = modules.is_empty() || modules.contains(&without_sizes(module).as_str());
            let own = lines[at..].iter().position(|line| *line == "endmodule");
            scope = Scope::of(&lines[at..at + own.unwrap_or_default()]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
module ferroce_a_q8 (
    input  wire clk,
    output reg  [7:0] y
);
    localparam Record_b = 4;
    localparam Kind_C = 2'd3;
    wire [8:0] n, m;
    wire x, r;
    assign x = p[at + 3 +: 2] == (q >> 1);
    assign m = n + 9'd511;
    always @* begin
        y = 8'd0;
        z[7:4] = -w;
        r = 1'b0;
        if (!u) begin
            y = v - Kind_C;
            t[Record_a +: 8] = s[Record_b +: 4];
        end
        case (s)
            RUN: r = i[Record_a +: 8];
        endcase
    end
    always @(posedge clk) begin
        if (rst) begin
            s <= 1'b0;
        end else begin
            s <= a & b;
        end
    end
    assign d[1:0] = o[Record_c +: 4] ^ (a <= b);
    assign broken_1 = !a;
endmodule
module ferroce_a_b (
);
    assign d[1:0] = a | b;
endmodule
";

    #[test]
    fn what_can_be_broken_is_found() {
        let found = mutants(SOURCE, &["a"]);
        let lines: Vec<_> = found.iter().map(|m| m.mutated.as_str()).collect();
        let expected = [
            "assign x = p[at + 3 +: 2] != (q >> 1);",
            "assign x = 1'b1;",
            "assign x = 1'b0;",
            "assign m = n - 9'd511;",
            "assign m = n + 9'd0;",
            "assign m = (n + 9'd511) & 9'd255;",
            "y = 8'd1;",
            "r = 1'b1;",
            "if (u) begin",
            "if (1'b1) begin",
            "if (1'b0) begin",
            "y = v + Kind_C;",
            "y = v - 2'd0;",
            "y = y;",
            "t[Record_a +: 8] = 8'd0;",
            "t[Record_a +: 8] = s[Record_c +: 4];",
            "RUN: r = 1'b1;",
            "RUN: r = 1'b0;",
            "RUN: r = r;",
            "s <= s;",
            "assign d[1:0] = o[Record_c +: 4] | (a <= b);",
            "assign d[1:0] = o[Record_c +: 4] ^ (a < b);",
        ];
        assert_eq!(lines, expected);
        assert!(found.iter().all(|m| m.module == "a_q8"));
        assert_eq!(
            SOURCE.lines().nth(found[8].line).unwrap().trim(),
            found[8].was
        );
        let all = mutants(SOURCE, &[]);
        assert_eq!(all.len(), found.len() + mutants(SOURCE, &["a_b"]).len());
    }

    #[test]
    fn a_name_is_that_of_the_module_with_any_sizes() {
        for module in ["track_q8", "track_512_256", "track_w512_q8", "track_4x8"] {
            assert_eq!(without_sizes(module), "track");
        }
        for module in ["track_rules", "fifo_block"] {
            assert_eq!(without_sizes(module), module);
        }
        assert_eq!(without_sizes("fifo_64x8_block"), "fifo_block");
    }
}
