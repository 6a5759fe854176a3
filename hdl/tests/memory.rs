//! The memory blocks in Verilog: Verilator's lint, Yosys.
mod common;

use common::accepted;
use ferroce_hdl::cell::rotate::Rotate;
use ferroce_hdl::emit::{self, with_stack};
use ferroce_hdl::memory::dma_read::DmaRead;
use ferroce_hdl::memory::dma_write::DmaWrite;
use ferroce_hdl::memory::gather::Gather;
use ferroce_hdl::memory::mr_table::MrTable;
use ferroce_hdl::memory::scatter::Scatter;
use ferroce_hdl::prelude::*;

/// Emits a block and has the tools read it.
fn emits<B: Block>(test: &'static str, make: impl FnOnce() -> B + Send) {
    let design = with_stack(|| emit::verilog(&make()));
    accepted(test, &design.unwrap_or_else(|errors| panic!("{errors:#?}")));
}

#[test]
fn dma_read() {
    emits("dma_read_512", DmaRead::<512, 64, 7>::default);
    emits("dma_read_64", DmaRead::<64, 8, 7>::default);
}

#[test]
fn dma_write() {
    emits("dma_write_512", DmaWrite::<512, 64>::default);
    emits("dma_write_64", DmaWrite::<64, 8>::default);
}

#[test]
fn rotate() {
    emits("rotate_512", Rotate::<512, 64>::default);
    emits("rotate_64", Rotate::<64, 8>::default);
}

#[test]
fn mr_table() {
    emits("mr_table", MrTable::<10, 3>::default);
}

#[test]
fn gather() {
    emits("gather_512", Gather::<512, 64, 9, 7>::default);
    emits("gather_64", Gather::<64, 8, 11, 7>::default);
}

#[test]
fn scatter() {
    emits("scatter_512", Scatter::<512, 64, 10>::default);
    emits("scatter_64", Scatter::<64, 8, 10>::default);
}
