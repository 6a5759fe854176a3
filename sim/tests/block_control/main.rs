//! The control blocks against plain Rust: registers and doorbells, the command ring, the counters. `$FERROCE_SEED` seeds
//! them.
mod bus;
mod command;
mod csr;
mod stats;

use ferroce_sim::bench::Bench;
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::{Input, Output};

/// Random pauses.
fn uneven() -> Pauses {
    Pauses::new(0.3, 6)
}

/// Drives the input called `name`.
fn set(bench: &mut Bench, name: &str, value: u64) {
    let input: Input = bench.dut().input(name).expect("an input");
    bench.dut_mut().set(input, value);
}

/// The output called `name` in this cycle, with the inputs as they are.
fn get(bench: &mut Bench, name: &str) -> u64 {
    let output: Output = bench.dut().output(name).expect("an output");
    bench.dut_mut().settle();
    bench.dut().get(output)
}
