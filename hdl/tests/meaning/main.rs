//! Kernels mean the same in Rust and in the emitted Verilog.
//!
//! Blocks that together use every construct of the kernel language get the same random vectors as Rust (rust-hdl's
//! simulator) and as Verilog (Verilator); all outputs are compared. `$FERROCE_SEED` sets the seed, `$FERROCE_VECTORS`
//! the number of vectors.
#[path = "../common/mod.rs"]
mod common;
mod constructs;
mod harness;
mod language;
mod operators;
mod sequential;
mod valid;

use ferroce_hdl::emit;

#[test]
fn rust_and_verilog_agree() {
    emit::with_stack(|| {
        let mut bench = harness::Bench::from_environment();
        operators::add(&mut bench);
        constructs::add(&mut bench);
        sequential::add(&mut bench);
        language::add(&mut bench);
        valid::add(&mut bench);
        bench.compare();
    });
}
