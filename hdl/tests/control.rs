//! The control blocks in Verilog: Verilator's lint, Yosys.
mod common;

use common::accepted;
use ferroce_hdl::control::command::Command;
use ferroce_hdl::control::csr::Csr;
use ferroce_hdl::control::stats::Stats;
use ferroce_hdl::emit::{self, with_stack};
use ferroce_hdl::prelude::*;

/// Emits a block and has the tools read it.
fn emits<B: Block>(test: &'static str, make: impl FnOnce() -> B + Send) {
    let design = with_stack(|| emit::verilog(&make()));
    accepted(test, &design.unwrap_or_else(|errors| panic!("{errors:#?}")));
}

#[test]
fn csr() {
    emits("csr", Csr::<8, 8>::default);
}

#[test]
fn command() {
    emits(
        "command_512",
        Command::<512, 64, 8, 10, 8, 14, 3, 0x129, 6>::default,
    );
    emits(
        "command_64",
        Command::<64, 8, 4, 16, 16, 4, 4, 1, 2>::default,
    );
}

#[test]
fn stats() {
    emits("stats", Stats::default);
}
