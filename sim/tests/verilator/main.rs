//! The Verilator harness, with small modules written for it.

mod build;
mod run;

use ferroce_sim::verilator::{self, Model, Options, Port, Spec};

/// Registers of every storage class of Verilator, and a combinational output.
fn delay() -> Spec {
    let widths = [1, 8, 9, 16, 17, 32, 33, 64, 65, 512, 1000, 1024];
    let mut source = String::from("module delay(input wire clk");
    let mut body = String::new();
    let mut ports = vec![Port::input("clk", 1)];
    for width in widths {
        let high = width - 1;
        source += &format!(",\n  input wire [{high}:0] d{width}, output reg [{high}:0] q{width}");
        body += &format!("  always @(posedge clk) q{width} <= d{width};\n");
        ports.push(Port::input(format!("d{width}"), width));
        ports.push(Port::output(format!("q{width}"), width));
    }
    source += ",\n  output wire any);\n  assign any = |d8;\n";
    ports.push(Port::output("any", 1));
    Spec::new("delay", source + &body + "endmodule\n")
        .clock("clk")
        .ports(ports)
}

/// A counter with a reset, and a register that nothing resets.
const COUNTER: &str = "module counter(input wire clk, input wire rst, output reg [31:0] count,
                                      output wire [63:0] never_set);
  reg [63:0] left;
  assign never_set = left;
  always @(posedge clk) begin
    count <= rst ? 32'd0 : count + 32'd1;
    left <= left;
  end
endmodule
";

fn counter() -> Spec {
    Spec::new("counter", COUNTER).clock("clk").ports([
        Port::input("clk", 1),
        Port::input("rst", 1),
        Port::output("count", 32),
        Port::output("never_set", 64),
    ])
}

fn build(spec: &Spec) -> Model {
    verilator::build(spec, &Options::default()).unwrap()
}
