//! Restart: idle ports first, then reset, then the answer.

use ferroce_hdl::control::restart::{PARTS, Restart};
use ferroce_sim::bench::Bench;

use super::Block;

/// Every part of the core is in reset.
const ALL: u64 = (1 << PARTS) - 1;

fn after_reset() -> Block {
    let mut block = Block::new(Bench::of(Restart::default).unwrap());
    block.set("request", 0);
    block.set("idle", 1);
    block
}

fn block() -> Block {
    let mut block = after_reset();
    block.step();
    block
}

#[test]
fn the_pin_resets_the_core() {
    let mut block = after_reset();
    // a cycle behind the pin
    assert_eq!(block.get("core_rst"), ALL);
    block.step();
    assert_eq!((block.get("core_rst"), block.get("stall")), (0, 0));
    // it comes from registers, not from the pin by way of logic
    block.set("rst", 1);
    assert_eq!(block.get("core_rst"), 0);
    block.step();
    assert_eq!(block.get("core_rst"), ALL);
}

#[test]
fn reset_waits_for_idle_ports() {
    let mut block = block();
    block.set("request", 1);
    block.set("idle", 0);
    block.step();
    assert_eq!(block.get("stall"), 1);
    for gap in [1000, 31] {
        // 31 idle cycles are not enough
        block.set("idle", 0);
        for _ in 0..gap {
            assert_eq!((block.get("stall"), block.get("core_rst")), (1, 0));
            block.step();
        }
        block.set("idle", 1);
        for _ in 0..31 {
            assert_eq!((block.get("stall"), block.get("core_rst")), (1, 0));
            block.step();
        }
    }
    let mut resets = 0;
    let mut cycles = 0;
    while block.get("done") == 0 || block.get("core_rst") == ALL {
        resets += u64::from(block.get("core_rst") == ALL);
        block.step();
        cycles += 1;
        assert!(cycles < 100);
    }
    assert_eq!(resets, 16);
    assert_eq!(block.get("stall"), 0);
}

#[test]
fn done_stays_until_the_request_is_taken_back() {
    let mut block = block();
    block.set("request", 1);
    block.steps(100);
    assert_eq!((block.get("done"), block.get("core_rst")), (1, 0));
    block.set("request", 0);
    block.steps(2);
    assert_eq!((block.get("done"), block.get("stall")), (0, 0));
    block.steps(100);
    assert_eq!((block.get("core_rst"), block.get("stall")), (0, 0));
}
