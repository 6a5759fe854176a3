//! The transmit back end is clean Verilog.
mod common;

use ferroce_hdl::emit;
use ferroce_hdl::eth::tx_back::TxBack;
use ferroce_hdl::prelude::Block;

fn accepted<const W: usize, const K: usize>(test: &str) {
    let design = emit::with_stack(|| {
        let mut block = TxBack::<W, K, 8>::default();
        block.connect_all();
        emit::verilog(&block)
    });
    common::accepted(test, &design.expect("the block can be emitted"));
}

#[test]
fn at_512_bits() {
    accepted::<512, 64>("tx_back_512");
}

#[test]
fn at_64_bits() {
    accepted::<64, 8>("tx_back_64");
}
