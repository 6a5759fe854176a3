//! Prints the Verilog of a block by name: `cargo run -p ferroce-hdl --example emit_block -- requester`.
use ferroce_hdl::{emit, transport::requester};
fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let design = emit::with_stack(move || {
        use rust_hdl_core::prelude::Block;
        fn go<B: Block>(mut b: B) -> emit::Design {
            b.connect_all();
            emit::verilog(&b).unwrap_or_else(|e| {
                for e in e {
                    eprintln!("{e}");
                }
                std::process::exit(1)
            })
        }
        match name.as_str() {
            "sq_state" => go(requester::sq_state::SqStateTable::<8>::default()),
            "segmenter" => go(requester::segmenter::Segmenter::default()),
            "wqe_check" => go(requester::wqe_check::WqeCheck::<8>::default()),
            "retire" => go(requester::retire::Retire::<8, 14>::default()),
            "timer" => go(requester::timer::Timer::<8>::default()),
            _ => go(requester::top::Requester::<512, 8, 14>::default()),
        }
    });
    print!("{}", design.source());
}
