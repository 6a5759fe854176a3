//! Places of the memory region table, and keys.

use std::collections::{BTreeSet, VecDeque};

use crate::names::Names;

/// Which code may name the memory of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any code: no Rust reference to it exists.
    Open = 0,
    /// Code that made a promise for it, or owns it.
    Promised = 1,
}

/// Variants of keys of each kind: open memory has those below, promised memory the others. They are apart, so that an old list
/// of open memory, which is made without a promise, never names other memory.
const HALF: u8 = 0x80;

/// Places of the memory region table, and the variants of the keys given out last for each, by kind.
pub(crate) struct Keys {
    limit: u32,
    names: Names,
    /// The place given out first; the others are this one with other bits.
    first: u32,
    variants: Vec<[u8; 2]>,
    /// Keys that binds of windows chose, each passed over once.
    chosen: BTreeSet<u32>,
    back: VecDeque<u32>,
}

impl Keys {
    /// Of a table of `limit` entries, a power of two.
    pub(crate) fn new(limit: u32, names: Names) -> Self {
        Self {
            limit,
            first: names.first("keys", &(0..limit)),
            names,
            variants: Vec::new(),
            chosen: BTreeSet::new(),
            back: VecDeque::new(),
        }
    }

    /// A place and its key: the place in bits 8 and up, a variant from 1 to 255 below.
    pub(crate) fn take(&mut self, kind: Kind) -> Option<(u32, u32)> {
        let fresh = self.variants.len() as u32;
        let place = if fresh < self.limit {
            let place = fresh ^ self.first;
            self.variants.push([self.names.variant(place) % HALF; 2]);
            place
        } else {
            self.back.pop_front()?
        };
        Some((place, self.next(place, kind)))
    }

    /// Another key of a place that was taken.
    pub(crate) fn next(&mut self, place: u32, kind: Kind) -> u32 {
        let last = &mut self.variants[(place ^ self.first) as usize][kind as usize];
        loop {
            *last = (*last + 1) % HALF;
            let variant = kind as u8 * HALF + *last;
            let key = place << 8 | u32::from(variant);
            // no key is 0
            if variant != 0 && !self.chosen.remove(&key) {
                return key;
            }
        }
    }

    /// A bind chose this key.
    pub(crate) fn choose(&mut self, key: u32) {
        self.chosen.insert(key);
    }

    pub(crate) fn put(&mut self, place: u32) {
        self.back.push_back(place);
    }
}
