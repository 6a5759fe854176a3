//! Numbers of objects and ranges of the outstanding pool.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

/// Numbers of one kind of object. One given back is given out again as late as possible.
#[derive(Default)]
pub(crate) struct Numbers {
    /// Those that were never given out, in this order.
    fresh: [Range<u32>; 2],
    back: VecDeque<u32>,
}

impl Numbers {
    pub(crate) fn new(range: Range<u32>) -> Self {
        Self::starting(range.start, range)
    }

    /// Those of `range`, from `first` on.
    pub(crate) fn starting(first: u32, range: Range<u32>) -> Self {
        Self {
            fresh: [first..range.end, range.start..first],
            back: VecDeque::new(),
        }
    }

    pub(crate) fn take(&mut self) -> Option<u32> {
        let fresh = self.fresh.iter_mut().find_map(Iterator::next);
        fresh.or_else(|| self.back.pop_front())
    }

    pub(crate) fn put(&mut self, number: u32) {
        self.back.push_back(number);
    }
}

/// A pool of 2^n entries, given out in ranges of a power of two that are aligned to their size (a buddy system).
pub(crate) struct Pool {
    /// First entries of the free ranges of 2^i, at place i. Buddies never stand here both.
    free: Vec<BTreeSet<u32>>,
}

impl Pool {
    pub(crate) fn new(log_size: u32) -> Self {
        let mut free = vec![BTreeSet::new(); log_size as usize + 1];
        free[log_size as usize].insert(0);
        Self { free }
    }

    /// The lowest first entry of the smallest free range that holds 2^`log` entries.
    pub(crate) fn take(&mut self, log: u32) -> Option<u32> {
        let log = log as usize;
        let mut found = (log..self.free.len()).find(|&i| !self.free[i].is_empty())?;
        let base = self.free[found].pop_first()?;
        while found > log {
            found -= 1;
            self.free[found].insert(base + (1 << found));
        }
        Some(base)
    }

    pub(crate) fn put(&mut self, base: u32, log: u32) {
        let (mut base, mut log) = (base, log as usize);
        while log + 1 < self.free.len() && self.free[log].remove(&(base ^ (1 << log))) {
            base &= !(1 << log);
            log += 1;
        }
        self.free[log].insert(base);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_come_back_last() {
        let mut numbers = Numbers::new(2..5);
        assert_eq!((numbers.take(), numbers.take()), (Some(2), Some(3)));
        numbers.put(2);
        assert_eq!((numbers.take(), numbers.take()), (Some(4), Some(2)));
        assert_eq!(numbers.take(), None);
    }

    proptest! {
        #[test]
        fn ranges_are_aligned_and_disjoint_and_merge(steps in prop::collection::vec((0u32..6, any::<prop::sample::Index>(), any::<bool>()), 1..200)) {
            let mut pool = Pool::new(6);
            let mut held: Vec<(u32, u32)> = Vec::new();
            for (log, which, take) in steps {
                if take {
                    if let Some(base) = pool.take(log) {
                        prop_assert_eq!(base % (1 << log), 0);
                        prop_assert!(base + (1 << log) <= 64);
                        for &(b, l) in &held {
                            prop_assert!(base + (1 << log) <= b || b + (1 << l) <= base);
                        }
                        held.push((base, log));
                    } else {
                        let free = 64 - held.iter().map(|(_, l)| 1 << l).sum::<u32>();
                        prop_assert!(free < 64);
                    }
                } else if !held.is_empty() {
                    let (base, log) = held.swap_remove(which.index(held.len()));
                    pool.put(base, log);
                }
            }
            for (base, log) in held {
                pool.put(base, log);
            }
            prop_assert_eq!(pool.take(6), Some(0));
        }
    }
}
