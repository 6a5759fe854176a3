//! Yosys makes the netlist in which the bits are looked for that can never change.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use ferroce_tests::coverage::exclude::Exclusion;
use ferroce_tests::coverage::netlist::Constants;

/// The instances of the modules, and all of them as one netlist.
const SCRIPT: &str = "read_verilog source.v; hierarchy -check -top TOP; proc; \
    design -save whole; delete t:$*; write_json modules.json; design -load whole; \
    flatten; memory_collect; opt_expr; write_json flat.json";

/// The bits of the design below module `top` that can never change: all of them, and if what the `held` exclusions mean is 0.
///
/// # Errors
/// Yosys is missing, or what it says.
pub(super) fn of(top: &str, source: &str, exclusions: &[Exclusion]) -> Result<[Constants; 2]> {
    let dir = tempfile::tempdir().context("no temporary directory")?;
    fs::write(dir.path().join("source.v"), source).context("the Verilog")?;
    let output = Command::new("yosys")
        .args(["-q", "-p", &SCRIPT.replace("TOP", top)])
        .current_dir(dir.path())
        .output()
        .context("yosys, which makes the netlist, cannot be started")?;
    let log = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "yosys: {log}");
    let read = |name| {
        let text = fs::read_to_string(dir.path().join(name));
        text.with_context(|| format!("yosys wrote no {name}"))
    };
    let (modules, flat) = (read("modules.json")?, read("flat.json")?);
    let is_held = |module: &str, signal: &str, bit| {
        let mut held = exclusions.iter().filter(|exclusion| exclusion.held);
        held.any(|exclusion| exclusion.means_bit(module, signal, Some(bit)))
    };
    Constants::read(top, &modules, &flat, &is_held).context("what yosys wrote")
}

#[cfg(test)]
mod tests {
    use ferroce_system::or_skip;
    use ferroce_system::packages::{YOSYS, check_present};

    use super::*;

    const SOURCE: &str = "
        module keep (input wire clk, input wire rst, input wire we, input wire [3:0] d, output reg [3:0] q);
            reg [3:0] mem [0:7];
            always @(posedge clk) begin
                if (we) mem[d[2:0]] <= d;
                q <= mem[0];
            end
        endmodule
        module top (input wire clk, input wire rst, input wire we, input wire [3:0] a, output wire [3:0] x, output wire [3:0] y);
            reg [3:0] held;
            reg [3:0] ones;
            reg [0:0] one [0:1];
            wire [3:0] unread = {2'b10, a[1:0]};
            always @(posedge clk) begin
                if (we) one[a[0]] <= 1'b1;
                ones <= {3'b101, one[a[1]]};
            end
            always @(posedge clk) begin
                if (rst) held <= 4'd0;
                else held <= {held[3], 1'b0, a[0] & held[2], a[1]};
            end
            keep u_one (.clk(clk), .rst(rst), .we(we), .d({1'b0, a[2:0]}), .q(x));
            keep u_two (.clk(clk), .rst(rst), .we(we), .d({1'b0, held[2:0]}), .q(y));
        endmodule\n";

    #[test]
    fn constants_pass_through_registers_and_memories() {
        if or_skip(check_present(&[YOSYS])).is_none() {
            return;
        }
        let [constants, _] = of("top", SOURCE, &[]).unwrap();
        let held = |module, signal| {
            let bits = (0..4).filter(|bit| constants.holds(module, &format!("{signal}[{bit}]")));
            bits.collect::<Vec<_>>()
        };
        // Bit 3 holds itself from 0 on; bit 1 is masked by bit 2, which is given 0.
        assert_eq!(held("top", "held"), [1, 2, 3]);
        assert_eq!(held("top", "unread"), [2, 3]);
        assert!(held("top", "a").is_empty());
        // Registers and memories begin at 0: what is given to them alone is not all they hold.
        assert_eq!(held("top", "ones"), [2]);
        // Only one of the two instances has more than bit 3 of its words constant.
        assert_eq!(held("keep", "q"), [3]);
        assert!(!constants.holds("top", "clk"));
        assert!(of("none", SOURCE, &[]).is_err());
    }
}
