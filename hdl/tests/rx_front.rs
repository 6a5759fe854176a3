//! The receive front in Verilog: accepted by Verilator's lint and by Yosys, at both widths. Small buffers: Yosys reads
//! large memories slowly.
mod common;

use ferroce_hdl::emit;
use ferroce_hdl::eth::rx_front::RxFront;

#[test]
fn accepted_at_both_widths() {
    emit::with_stack(|| {
        let wide = emit::verilog(&RxFront::<512, 64, 4, 4>::default());
        common::accepted("rx_front_w512", &wide.expect("emits"));
        let narrow = emit::verilog(&RxFront::<64, 8, 4, 4>::default());
        common::accepted("rx_front_w64", &narrow.expect("emits"));
    });
}
