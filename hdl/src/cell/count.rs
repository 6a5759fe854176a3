//! Counters of things under way: they go up, down, or stay.
use crate::prelude::*;

/// One less than `count`, as a sum. Beside `count + 1` a difference would share the carry chain of that sum, behind the choice
/// between the two.
#[kernel_fn]
pub fn one_less<const N: usize>(count: Bits<N>) -> Bits<N> {
    !(!count + 1)
}
