//! Counts: of things under way, which go up, down, or stay; and of 1 at least.
use crate::prelude::*;

/// One less than `count`, as a sum. Beside `count + 1` a difference would share the carry chain of that sum, behind the choice
/// between the two.
#[kernel_fn]
pub fn one_less<const N: usize>(count: Bits<N>) -> Bits<N> {
    !(!count + 1)
}

/// `count`, 1 at least.
#[kernel_fn]
pub fn one_at_least<const N: usize>(count: Bits<N>) -> Bits<N> {
    count.replace_bit(0, count.bit(0) | !count.any())
}
