//! No block of the engine is larger than the baseline says, or deeper than the clock allows.

use ferroce_system::or_skip;
use ferroce_system::packages::{YOSYS, check_present};

#[test]
fn no_block_is_larger_or_deeper_than_the_baseline() {
    if or_skip(check_present(&[YOSYS])).is_none() {
        return;
    }
    let failures = xtask::synth::gate().unwrap();
    assert!(
        failures.is_empty(),
        "{}\nif that is meant to be: cargo xtask synth --write",
        failures.join("\n")
    );
}
