//! Naming, merging and stability of the emitted modules, and how they read.
mod common;

use ferroce_hdl::emit::{self, Direction, Field};
use ferroce_hdl::prelude::*;

/// Adds a constant.
#[derive(Block)]
#[block(no_default)]
struct Adder<const N: usize> {
    x: Signal<In, Bits<N>>,
    y: Signal<Out, Bits<N>>,
    by: Constant<Bits<N>>,
}

impl<const N: usize> Adder<N> {
    fn new(by: u64) -> Self {
        Self {
            x: Default::default(),
            y: Default::default(),
            by: Constant::new(by.into()),
        }
    }
}

impl<const N: usize> Logic for Adder<N> {
    describe!(
        "adder",
        |this| format!("w{N}_{}", this.by.val().to_u64()),
        "Adds a constant."
    );
    #[kernel]
    fn update(&mut self) {
        y = x + by;
    }
}

/// Something with parts.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Pair {
    left: Bits<8>,
    valid: Bit,
}

/// A struct in a struct.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Job {
    kind: Bits<3>,
    pair: Pair,
}

/// Four adders of two kinds.
#[derive(Block)]
#[block(no_default)]
struct Top {
    clock: ClkRst,
    s_axis_rx: AxisIn<64, 8>,
    job: Signal<In, Job>,
    out: Signal<Out, Bits<8>>,
    first: Adder<8>,
    other: [Adder<8>; 3],
    sum: Reg<Bits<8>>,
}

impl Top {
    fn new() -> Self {
        Self {
            clock: Default::default(),
            s_axis_rx: Default::default(),
            job: Default::default(),
            out: Default::default(),
            first: Adder::new(1),
            other: [Adder::new(2), Adder::new(1), Adder::new(2)],
            sum: Default::default(),
        }
    }
}

impl Logic for Top {
    describe!("top_of_four", "Four adders of two kinds.");
    #[kernel]
    fn update(&mut self) {
        s_axis_rx.tready = true;
        first.x = s_axis_rx.tdata.low::<8>();
        for i in 0..3 {
            other[i].x = s_axis_rx.tdata.slice::<8>(8 + 8 * i);
        }
        if job.kind == 5 {
            sum = first.y + other[0].y;
        }
        out = sum ^ (other[1].y & other[2].y);
    }
}

#[test]
fn equal_blocks_share_a_module() {
    let design = emit::verilog(&Top::new()).expect("emits");
    let names: Vec<&str> = design.modules.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "ferroce_adder_w8_1",
            "ferroce_adder_w8_2",
            "ferroce_top_of_four"
        ]
    );
    assert_eq!(design.top, "ferroce_top_of_four");
    assert_eq!(design.source().matches("ferroce_adder_w8_1 u_").count(), 2);
    common::accepted("merging", &design);
}

#[test]
fn the_same_text_every_time() {
    let (first, second) = (
        emit::verilog(&Top::new()).expect("emits"),
        emit::verilog(&Top::new()).expect("emits"),
    );
    assert_eq!(first, second);
    assert_eq!(first.hash(), second.hash());
    assert_eq!(first.hash().len(), 32);
    let other = emit::verilog(&Adder::<8>::new(1)).expect("emits");
    assert_ne!(first.hash(), other.hash());
}

#[test]
fn ports_and_fields() {
    let design = emit::verilog(&Top::new()).expect("emits");
    let named = |name: &str| {
        design
            .ports
            .iter()
            .find(|p| p.name == name)
            .expect("a port")
    };
    assert_eq!(design.ports[0].name, "clk");
    assert_eq!(design.ports[1].path, "clock.rst");
    assert_eq!(
        (
            named("s_axis_rx_tdata").width,
            named("s_axis_rx_tdata").direction
        ),
        (64, Direction::In)
    );
    assert_eq!(
        (named("out").width, named("out").direction),
        (8, Direction::Out)
    );
    assert!(named("out").fields.is_empty());
    let field = |path: &str, offset, width| Field {
        path: path.into(),
        offset,
        width,
    };
    assert_eq!(
        named("job").fields,
        [
            field("kind", 0, 3),
            field("pair.left", 3, 8),
            field("pair.valid", 11, 1)
        ]
    );
}

#[test]
fn it_reads_well() {
    let design = emit::verilog(&Top::new()).expect("emits");
    let expected = "\
// Four adders of two kinds.
module ferroce_top_of_four (
    input  wire clk,
    input  wire rst,
    input  wire [63:0] s_axis_rx_tdata,
    input  wire [7:0] s_axis_rx_tkeep,
    input  wire s_axis_rx_tlast,
    input  wire s_axis_rx_tuser,
    input  wire s_axis_rx_tvalid,
    output wire s_axis_rx_tready,
    input  wire [11:0] job,
    output wire [7:0] out
);

    localparam Job_kind = 0;

    wire [7:0] first_y;
    wire [7:0] other_0_y;
    wire [7:0] other_1_y;
    wire [7:0] other_2_y;
    reg  [7:0] sum_d, sum_q;

    ferroce_adder_w8_1 u_first (
        .x(s_axis_rx_tdata[7:0]),
        .y(first_y)
    );
    ferroce_adder_w8_2 u_other_0 (
        .x(s_axis_rx_tdata[15:8]),
        .y(other_0_y)
    );
    ferroce_adder_w8_1 u_other_1 (
        .x(s_axis_rx_tdata[23:16]),
        .y(other_1_y)
    );
    ferroce_adder_w8_2 u_other_2 (
        .x(s_axis_rx_tdata[31:24]),
        .y(other_2_y)
    );

    assign s_axis_rx_tready = 1'b1;

    always @* begin
        sum_d = sum_q;
        if (job[Job_kind +: 3] == 3'd5) begin
            sum_d = first_y + other_0_y;
        end
    end

    assign out = sum_q ^ (other_1_y & other_2_y);

    always @(posedge clk) begin
        if (rst) begin
            sum_q <= 8'd0;
        end else begin
            sum_q <= sum_d;
        end
    end

    // Nothing here reads these bits.
    wire unused_bits = &{1'b0, job[11:3], s_axis_rx_tdata[63:32], s_axis_rx_tkeep, s_axis_rx_tlast,
        s_axis_rx_tuser, s_axis_rx_tvalid};
endmodule
";
    assert_eq!(design.modules.last().expect("a top").text, expected);
}

/// A block of text.
#[derive(Block)]
struct Text {
    clock: ClkRst,
    s: StreamIn<Bits<4>>,
    now: Signal<Out, Bits<4>>,
    then: Signal<Out, Bits<4>>,
}

impl Logic for Text {
    describe!("text", "Verilog by hand.");
    fn update(&mut self) {}
    fn hdl(&self) -> Verilog {
        let text = "\
assign now = s_payload;
assign s_ready = !rst;
always @(posedge clk)
    if (s_valid) then <= s_payload;";
        Verilog::Custom(text.into())
    }
}

#[test]
fn text_by_hand() {
    let design = emit::verilog(&Text::default()).expect("emits");
    assert!(
        design
            .source()
            .contains("    output wire [3:0] now,\n    output reg  [3:0] then\n);")
    );
    common::accepted("text", &design);
}

#[test]
fn a_large_stack() {
    fn deep(n: usize) -> usize {
        let frame = std::hint::black_box([n; 8192]);
        if n == 0 {
            frame[0]
        } else {
            deep(n - 1) + frame[8191]
        }
    }
    assert_eq!(emit::with_stack(|| deep(1000)), 500_500);
}

/// A slice at a run-time place that may reach beyond the end.
#[derive(Block)]
struct PastEnd {
    a: Signal<In, Bits<37>>,
    i: Signal<In, Bits<5>>,
    y: Signal<Out, Bits<8>>,
    z: Signal<Out, Bits<5>>,
}

impl Logic for PastEnd {
    describe!("beyond", "Slices at run-time places.");
    #[kernel]
    fn update(&mut self) {
        y = a.slice::<8>(i);
        z = a.slice::<5>(i);
    }
}

/// Verilog reads X beyond the end, which Verilator does not show; Rust reads zeros.
#[test]
fn slices_past_the_end_are_shifted() {
    let source = emit::verilog(&PastEnd::default()).expect("emits").source();
    assert!(
        source.contains("assign t0 = a >> i;\n    assign y = t0[7:0];"),
        "{source}"
    );
    assert!(source.contains("assign z = a[{1'b0, i} +: 5];"), "{source}");
}

/// Constants of which one replaces bits of another.
#[derive(Block)]
struct Fixed {
    y: Signal<Out, Bits<8>>,
    z: Signal<Out, Bits<4>>,
}

impl Logic for Fixed {
    describe!("fixed", "Reads nothing.");
    #[kernel]
    fn update(&mut self) {
        y = bits::<8>(0x81);
        y = y.replace_bit(3, true);
        z = bits::<4>(5);
    }
}

/// An `always @*` that reads nothing never runs (IEEE 1364-2005, 9.7.5).
#[test]
fn constants_need_no_event() {
    let source = emit::verilog(&Fixed::default()).expect("emits").source();
    assert!(!source.contains("always"), "{source}");
    assert!(source.contains("assign y[3] = 1'b1;"), "{source}");
    assert!(source.contains("assign y[7:4] = 4'd8;"), "{source}");
    assert!(source.contains("assign y[2:0] = 3'd1;"), "{source}");
}
