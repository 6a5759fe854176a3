//! Yosys proves that a mutant is none: all that its module can do in a cycle is the same.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use ferroce_sim::mutation::sites::Mutant;

/// Seconds for a proof; usual is one.
const LIMIT: u32 = 60;

/// Whether a mutant leaves its module as it is in `source`: each output, next value of a register and input of a block inside
/// is the same for all values of the inputs, registers and outputs of blocks inside. Values that cannot come count too.
///
/// # Errors
/// Yosys cannot be started.
pub(super) fn is_equal(source: &str, mutant: &Mutant) -> Result<bool> {
    let lines: Vec<_> = source.lines().collect();
    let start = |line: &usize| lines[*line].starts_with("module ");
    let starts: Vec<_> = (0..lines.len()).filter(start).collect();
    let name = |at: usize| lines[at].split([' ', '(']).nth(1).unwrap_or_default();
    let end = |at: usize| {
        at + lines[at..]
            .iter()
            .position(|l| *l == "endmodule")
            .unwrap_or(0)
    };
    let blocks: BTreeMap<_, _> = starts.iter().map(|&at| (name(at), at)).collect();
    let Some(&own) = starts.iter().rfind(|&&at| at <= mutant.line) else {
        return Ok(false);
    };
    let text = |at: usize| lines[at..=end(at)].join("\n") + "\n";
    // of the blocks inside only the ports count
    let mut inside: Vec<_> = lines[own..end(own)]
        .iter()
        .filter_map(|line| blocks.get(line.trim_start().split(' ').next()?))
        .collect();
    inside.sort_unstable();
    inside.dedup();
    let inside: String = inside.into_iter().map(|&at| text(at)).collect();
    let mut broken: Vec<_> = lines[own..=end(own)].to_vec();
    broken[mutant.line - own] = &mutant.mutated;
    let top = name(own);
    let side = |side: &str| {
        format!(
            "read_verilog {side}.v; hierarchy -top {top}; proc; opt_clean; expose -evert -evert-dff c:*; \
             rename {top} {side}; design -stash {side}; "
        )
    };
    let script = [side("gold"), side("gate")].concat()
        + "design -copy-from gold gold; design -copy-from gate gate; \
           miter -equiv -flatten -make_outputs gold gate miter; hierarchy -top miter; opt_clean; "
        + &format!("sat -verify -prove trigger 0 -timeout {LIMIT} miter");
    let dir = tempfile::tempdir().context("no temporary folder")?;
    for (side, own) in [("gold", text(own)), ("gate", broken.join("\n") + "\n")] {
        let path = dir.path().join(side).with_extension("v");
        fs::write(path, own + &inside).context("no temporary file")?;
    }
    let mut yosys = Command::new("yosys");
    let output = yosys.args(["-q", "-p", &script]).current_dir(&dir).output();
    Ok(output.context("yosys cannot be started")?.status.success())
}

#[cfg(test)]
mod tests {
    use ferroce_sim::mutation::sites::mutants;
    use ferroce_system::or_skip;
    use ferroce_system::packages::check_present;

    use super::*;
    use crate::tools::YOSYS;

    const SOURCE: &str = "\
module ferroce_in (
    input  wire clk,
    input  wire [7:0] a,
    output reg  [7:0] y
);
    always @(posedge clk) y <= a + 8'd1;
endmodule
module ferroce_out (
    input  wire clk,
    input  wire rst,
    input  wire [7:0] s,
    output wire [7:0] m
);
    wire [7:0] next;
    wire [7:0] y;
    reg  [3:0] q;
    ferroce_in u_in (
        .clk(clk),
        .a({4'd0, q}),
        .y(y)
    );
    assign next = s + 8'd1;
    always @(posedge clk) begin
        if (rst) begin
            q <= 4'd0;
        end else begin
            q <= next[3:0];
        end
    end
    assign m = y;
endmodule
";

    #[test]
    fn only_what_makes_no_difference_is_equal() {
        if or_skip(check_present(&[YOSYS])).is_none() {
            return;
        }
        let mutants = mutants(SOURCE, &["out"]);
        let equal = |mutant: &&Mutant| is_equal(SOURCE, mutant).unwrap();
        let equal: Vec<_> = mutants
            .iter()
            .filter(equal)
            .map(|m| m.mutated.as_str())
            .collect();
        assert!(mutants.len() > 3, "{mutants:?}");
        assert_eq!(equal, ["assign next = (s + 8'd1) & 8'd127;"]);
    }
}
