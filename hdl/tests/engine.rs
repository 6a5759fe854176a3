//! The whole engine in Verilog: Verilator's lint, Yosys, and the same text from run to run.
mod common;

use common::accepted;
use ferroce_hdl::emit::Design;
use ferroce_hdl::engine::builds::{self, WIDTHS};

fn engine(width: usize) -> Design {
    builds::verilog(width).unwrap_or_else(|errors| panic!("{errors}"))
}

/// What is simulated; both widths as `ferroce emit` writes them are below.
#[test]
fn the_tools_accept_a_module_for_each_size() {
    accepted("engine_64", &engine(64));
}

#[test]
fn the_tools_accept_every_width_with_one_module_for_all_sizes() {
    for width in WIDTHS {
        let (sized, design) = (engine(width), engine(width).parametric());
        // most modules are sizes of a few cells
        assert!(
            design.modules.len() * 10 < sized.modules.len() * 6,
            "{width}"
        );
        accepted(&format!("engine_{width}_parametric"), &design);
    }
}

#[test]
fn the_text_is_the_same_from_run_to_run() {
    for width in WIDTHS {
        let (first, second) = (engine(width), engine(width));
        assert_eq!(first.hash(), second.hash(), "{width} bits");
        assert!(
            first.source() == second.source(),
            "{width} bits: texts differ"
        );
    }
}
