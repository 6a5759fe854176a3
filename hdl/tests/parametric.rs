//! One module for all sizes of a block.
mod common;

use common::accepted;
use ferroce_hdl::emit::{self, Design, Kind, Module, parametric};
use ferroce_hdl::prelude::*;

/// Queues of three sizes, and an item that stands in a register stage.
#[derive(Block)]
struct Sizes {
    clock: ClkRst,
    a: Fifo<Bits<8>, 4>,
    b: Fifo<Bits<24>, 6>,
    c: Fifo<Bits<40>, 5>,
    d: Skid<Bits<9>>,
    s: StreamIn<Bits<8>>,
    t: StreamIn<Bits<24>>,
    u: StreamIn<Bits<40>>,
    v: StreamIn<Bits<9>>,
    m: StreamOut<Bits<8>>,
    n: StreamOut<Bits<24>>,
    o: StreamOut<Bits<40>>,
    p: StreamOut<Bits<9>>,
}

impl Logic for Sizes {
    describe!("sizes", "Queues of three sizes.");

    #[kernel]
    fn update(&mut self) {
        forward!(a.s <= s);
        forward!(b.s <= t);
        forward!(c.s <= u);
        forward!(d.s <= v);
        forward!(m <= a.m);
        forward!(n <= b.m);
        forward!(o <= c.m);
        forward!(p <= d.m);
    }
}

fn sizes() -> Design {
    emit::verilog(&Sizes::default()).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn named<'a>(modules: &'a [Module], name: &str) -> &'a str {
    let found = modules.iter().find(|m| m.name == name);
    &found.unwrap_or_else(|| panic!("no {name}")).text
}

#[test]
fn sizes_of_a_block_share_a_module() {
    let design = sizes().parametric();
    let names: Vec<_> = design.modules.iter().map(|m| m.name.as_str()).collect();
    let expected = [
        "ferroce_fifo_ram_distributed",
        "ferroce_fifo_distributed",
        "ferroce_skid_9",
        "ferroce_sizes",
    ];
    assert_eq!(names, expected);
    let top = named(&design.modules, "ferroce_sizes");
    // the item count at which a queue is full is no one expression of its size
    let instance = "ferroce_fifo_distributed #(.WIDTH(24), .LOG_DEPTH(6), .MOST(16'h3f)) u_b (";
    assert!(top.contains(instance), "{top}");
    let fifo = named(&design.modules, "ferroce_fifo_distributed");
    let ram = "ferroce_fifo_ram_distributed #(.WIDTH(WIDTH), .LOG_DEPTH(LOG_DEPTH)) u_ram (";
    assert!(fifo.contains(ram), "{fifo}");
    accepted("parametric", &design);
}

fn module(name: &str, width: u64, body: &str) -> Module {
    Module {
        name: name.into(),
        text: format!("module {name} ();\n{body}endmodule\n"),
        kind: Kind {
            block: "x".into(),
            sizes: vec![("WIDTH".into(), width)],
        },
    }
}

#[test]
fn a_number_that_no_size_explains_leaves_the_modules_as_they_are() {
    let given = [
        module("ferroce_x_3", 3, "    assign a = b[4];\n"),
        module("ferroce_x_5", 5, "    assign a = b[9];\n"),
    ];
    assert_eq!(parametric(&given), given);
}

#[test]
fn a_line_through_two_sizes_is_no_explanation() {
    // 2 * WIDTH - 2 fits both
    let given = [
        module("ferroce_x_3", 3, "    wire [4:0] a;\n"),
        module("ferroce_x_5", 5, "    wire [8:0] a;\n"),
    ];
    assert_eq!(parametric(&given), given);
}

#[test]
fn a_number_with_a_name_is_a_parameter_where_no_size_explains_it() {
    let given = [
        module(
            "ferroce_x_3",
            3,
            "    localparam MOST = 8'h1f;\n    wire [2:0] a;\n    wire b;\n",
        ),
        module(
            "ferroce_x_1",
            1,
            "    localparam MOST = 8'd7;\n    wire a;\n    wire b;\n",
        ),
    ];
    let [one] = &parametric(&given)[..] else {
        panic!("one module");
    };
    let expected = "module ferroce_x #(\n    parameter WIDTH = 3,\n    parameter [7:0] MOST_VALUE = 8'h1f\n) ();\n    \
                    localparam MOST = MOST_VALUE;\n    wire [WIDTH-1:0] a;\n    wire b;\nendmodule\n";
    assert_eq!(one.text, expected);
}
