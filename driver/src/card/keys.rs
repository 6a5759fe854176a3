//! Places of the memory region table, and keys.

use std::collections::VecDeque;

use crate::names::Names;

/// Which code may name the memory of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any code: no Rust reference to it exists.
    Open,
    /// Code that made a promise for it, or owns it.
    Promised,
}

/// Variants of keys of each kind. They are apart, so that an old list of open memory, which is made without a promise, never
/// names other memory.
const HALF: u8 = 0x80;

/// Places of the memory region table, and the variants of the keys given out last for each, by kind.
pub(crate) struct Keys {
    limit: u32,
    names: Names,
    /// The place given out first; the others are this one with other bits.
    first: u32,
    variants: Vec<[u8; 2]>,
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
        let [open, promised] = &mut self.variants[(place ^ self.first) as usize];
        let variant = match kind {
            // Not 0: no key is 0.
            Kind::Open => {
                *open = *open % (HALF - 1) + 1;
                *open
            }
            Kind::Promised => {
                *promised = (*promised + 1) % HALF;
                HALF | *promised
            }
        };
        Some((place, place << 8 | u32::from(variant)))
    }

    pub(crate) fn put(&mut self, place: u32) {
        self.back.push_back(place);
    }
}
