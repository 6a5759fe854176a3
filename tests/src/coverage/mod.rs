//! Coverage of the emitted Verilog by the conformance suite and the differential test.
//!
//! [`run`] has Verilator count in an engine what the tests reach, [`data`] reads the counters, [`tally`] sums them by
//! block, without what [`exclude`] names and what [`netlist`] proves to be constant.

mod cells;
pub mod data;
pub mod exclude;
pub mod netlist;
pub mod run;
pub mod tally;

use ferroce_hdl::emit::block_of;

/// The name of a block: that of its module without the project's prefix and the sizes.
///
/// ```
/// assert_eq!(ferroce_tests::coverage::block("ferroce_mr_table_1024x4"), "mr_table");
/// assert_eq!(ferroce_tests::coverage::block("ferroce_crc32_w64_00000000"), "crc32");
/// ```
#[must_use]
pub fn block(module: &str) -> &str {
    let module = block_of(module);
    let sized = |part: &str| part.bytes().any(|b| b.is_ascii_digit());
    let ends = module.match_indices('_').map(|(at, _)| at);
    let mut ends = ends.filter(|&at| module[at + 1..].split('_').next().is_some_and(sized));
    ends.next().map_or(module, |at| &module[..at])
}
