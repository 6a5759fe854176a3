//! How fast models build and run. Not part of a normal run:
//! `cargo test --release -p ferroce-sim --test speed -- --ignored --nocapture`

use std::fs;
use std::time::Instant;

use ferroce_hdl::emit;
use ferroce_hdl::prelude::*;
use ferroce_sim::verilator::{self, Dut, Input, Optimise, Options, Port, Spec};

/// CRC-32 of 512 bits a cycle, as XOR trees over state and data: the widest logic the engine has.
fn crc() -> Spec {
    let step = |state: u32, bit: u32| {
        let low = (state ^ bit) & 1;
        (state >> 1) ^ (0xedb8_8320 & low.wrapping_neg())
    };
    // Column i: the state after 512 zero bits, or after data bit i and zeros.
    let after = |state: u32, bits: usize| (0..bits).fold(state, |state, _| step(state, 0));
    let columns: Vec<u32> = (0..512)
        .map(|i| after(step(0, 1), 511 - i))
        .chain((0..32).map(|i| after(1 << i, 512)))
        .collect();
    let mut body = String::new();
    for row in 0..32 {
        let mask: String = columns
            .iter()
            .rev()
            .map(|column| char::from(b'0' + (column >> row & 1) as u8))
            .collect();
        body += &format!("    crc[{row}] <= !rst && ^({{crc, data}} & 544'b{mask});\n");
    }
    let source = format!(
        "module crc512(input wire clk, input wire rst, input wire [511:0] data, output reg [31:0] crc);\n  \
         always @(posedge clk) begin\n{body}  end\nendmodule\n"
    );
    Spec::new("crc512", source).clock("clk").ports([
        Port::input("clk", 1),
        Port::input("rst", 1),
        Port::input("data", 512),
        Port::output("crc", 32),
    ])
}

/// Time this thread has run, in s.
fn cpu() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let ns: f64 = text.split(' ').next().unwrap().parse().unwrap();
    ns * 1e-9
}

/// Millions of cycles per CPU-second, `step` being one cycle.
fn rate(dut: &mut Dut, mut step: impl FnMut(&mut Dut, u32)) -> f64 {
    let (mut cycles, start) = (0, cpu());
    while cpu() - start < 1.0 {
        (0..10_000).for_each(|i| step(dut, i));
        cycles += 10_000;
    }
    f64::from(cycles) * 1e-6 / (cpu() - start)
}

/// The block that `make` makes.
fn emitted<B: Block>(make: impl FnOnce() -> B + Send) -> Spec {
    let design = emit::with_stack(|| emit::verilog(&make()).unwrap());
    Spec::from(&design)
}

#[test]
#[ignore = "measures; takes a minute"]
fn build_time_and_speed() {
    let specs = [
        crc(),
        emitted(Skid::<Bits<512>>::default),
        emitted(Fifo::<Bits<512>, 9>::default),
        emitted(ferroce_hdl::transport::requester::top::Requester::<512, 8, 12>::default),
    ];
    let cache = tempfile::tempdir().unwrap();
    println!(
        "{:24} {:>9} {:>8} {:>6} {:>12}",
        "module", "Verilog", "options", "build", "Mcycle/CPU-s"
    );
    for (trace, optimise) in [
        (false, Optimise::Fast),
        (false, Optimise::Full),
        (true, Optimise::Full),
    ] {
        let options = Options {
            trace,
            optimise,
            cache: Some(cache.path().into()),
            ..Options::default()
        };
        // The run-time library comes before the clock starts.
        verilator::build(&Spec::new("none", "module none(); endmodule"), &options).unwrap();
        for spec in &specs {
            let start = Instant::now();
            let model = verilator::build(spec, &options).unwrap();
            let built = start.elapsed().as_secs_f64();
            let mut dut = model.instance_randomised(1).unwrap();
            if let Ok(rst) = dut.input("rst") {
                dut.set(rst, 1);
                dut.ticks(16);
                dut.set(rst, 0);
            }
            let inputs: Vec<Input> = spec
                .ports
                .iter()
                .filter(|port| !["clk", "rst"].contains(&port.name.as_str()))
                .filter_map(|port| dut.input(&port.name).ok())
                .collect();
            let noise: Vec<u32> = (0..4096u32)
                .map(|i| i.wrapping_mul(0x9e37_79b9).rotate_left(i))
                .collect();
            let rate = rate(&mut dut, |dut, cycle| {
                for (index, input) in inputs.iter().enumerate() {
                    let at = (cycle as usize * 7 + index * 61) % 4000;
                    let words = input.width().div_ceil(32);
                    dut.write(*input, &noise[at..at + words]);
                }
                dut.tick();
            });
            let kind = format!("{optimise:?}{}", if trace { "+fst" } else { "" });
            println!(
                "{:24} {:>7} B {kind:>8} {built:>5.1}s {rate:>12.2}",
                spec.top,
                spec.source.len()
            );
        }
    }
}

#[test]
#[ignore = "measures; takes seconds"]
fn cost_of_a_call() {
    let source = "module wire_only(input wire clk, input wire [511:0] a, input wire [63:0] b, output wire [511:0] q);
        assign q = a; endmodule";
    let spec = Spec::new("wire_only", source).clock("clk").ports([
        Port::input("clk", 1),
        Port::input("a", 512),
        Port::input("b", 64),
        Port::output("q", 512),
    ]);
    let mut dut = verilator::build(&spec, &Options::default())
        .unwrap()
        .instance()
        .unwrap();
    let (a, b, q) = (
        dut.input("a").unwrap(),
        dut.input("b").unwrap(),
        dut.output("q").unwrap(),
    );
    let data = [7; 16];
    let mut sum = 0;
    let ns = |rate: f64| 1e3 / rate;
    println!(
        "tick             {:6.1} ns",
        ns(rate(&mut dut, |dut, _| dut.tick()))
    );
    println!(
        "eval             {:6.1} ns",
        ns(rate(&mut dut, |dut, _| dut.eval()))
    );
    println!(
        "set 64 bits      {:6.1} ns",
        ns(rate(&mut dut, |dut, i| dut.set(b, i.into())))
    );
    println!(
        "get 64 bits      {:6.1} ns",
        ns(rate(&mut dut, |dut, _| sum += dut.get(b)))
    );
    println!(
        "write 512 bits   {:6.1} ns",
        ns(rate(&mut dut, |dut, _| dut.write(a, &data)))
    );
    println!(
        "edit 512 bits    {:6.1} ns",
        ns(rate(&mut dut, |dut, _| dut.edit(a, |w| w.copy_from_slice(&data))))
    );
    println!(
        "view 512 bits    {:6.1} ns",
        ns(rate(&mut dut, |dut, _| sum += u64::from(dut.view(q)[9])))
    );
    assert_ne!(sum, 1);
}
