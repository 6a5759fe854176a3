//! Memory of this process that the card may reach.

use std::collections::BTreeMap;

use crate::{DmaAccess, words};

/// A mapped range. The pointer keeps its provenance.
struct Range {
    start: *mut u8,
    len: usize,
    access: DmaAccess,
}

// SAFETY: the pointer is used by whoever holds the `Memory`, under the rules of `Memory::insert`, on any thread.
unsafe impl Send for Range {}

/// Mapped ranges by address; disjoint.
#[derive(Default)]
pub(super) struct Memory(BTreeMap<usize, Range>);

impl Memory {
    /// Adds a range; false if it overlaps another or wraps.
    ///
    /// # Safety
    /// Until [`remove`](Self::remove) the bytes stay allocated and `start` may be used for that access at any time.
    pub(super) unsafe fn insert(&mut self, start: *mut u8, len: usize, access: DmaAccess) -> bool {
        let Some(end) = start.addr().checked_add(len) else {
            return false;
        };
        let below = self.0.range(..end).next_back();
        if below.is_some_and(|(&at, range)| at + range.len > start.addr()) {
            return false;
        }
        self.0.insert(start.addr(), Range { start, len, access });
        true
    }

    /// Takes a range out; false if it is not there as such.
    pub(super) fn remove(&mut self, start: usize, len: usize) -> bool {
        let found = self.0.get(&start).is_some_and(|range| range.len == len);
        if found {
            self.0.remove(&start);
        }
        found
    }

    /// Reads `data.len()` bytes; false, and nothing read, unless all of them are mapped.
    pub(super) fn read(&self, address: u64, data: &mut [u8]) -> bool {
        let Some(pieces) = self.pieces(address, data.len(), DmaAccess::Read) else {
            return false;
        };
        let mut data = data;
        for (from, len) in pieces {
            let (now, rest) = data.split_at_mut(len);
            // SAFETY: `pieces` gives mapped memory only, which `insert` says may be read.
            unsafe { words::read(from, now) };
            data = rest;
        }
        true
    }

    /// Writes `data`; false, and nothing written, unless all of it is mapped for that.
    pub(super) fn write(&self, address: u64, data: &[u8]) -> bool {
        let Some(pieces) = self.pieces(address, data.len(), DmaAccess::ReadWrite) else {
            return false;
        };
        let mut data = data;
        for (to, len) in pieces {
            let (now, rest) = data.split_at(len);
            // SAFETY: `pieces` gives mapped memory only, which `insert` says may be written.
            unsafe { words::write(to, now) };
            data = rest;
        }
        true
    }

    /// The parts of an access in their ranges; `None` unless all of it is mapped for `access`.
    fn pieces(&self, address: u64, len: usize, access: DmaAccess) -> Option<Vec<(*mut u8, usize)>> {
        let mut at = usize::try_from(address).ok()?;
        let end = at.checked_add(len)?;
        let mut pieces = Vec::new();
        while at < end {
            let (&start, range) = self.0.range(..=at).next_back()?;
            let here = (start + range.len).min(end).checked_sub(at)?;
            if here == 0 || (access == DmaAccess::ReadWrite && range.access == DmaAccess::Read) {
                return None;
            }
            // SAFETY: `at` lies in the range, whose bytes are one allocation.
            pieces.push((unsafe { range.start.add(at - start) }, here));
            at += here;
        }
        Some(pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::DmaAccess::{Read, ReadWrite};
    use super::*;

    #[test]
    fn an_access_reaches_what_is_mapped_and_nothing_else() {
        let mut bytes = vec![0u64; 12];
        let start = bytes.as_mut_ptr().cast::<u8>();
        let at = start.addr() as u64;
        let mut memory = Memory::default();
        // SAFETY: `bytes` is valid until the end of the test and is touched through `start` only.
        unsafe {
            assert!(memory.insert(start, 32, ReadWrite));
            assert!(memory.insert(start.add(32), 32, ReadWrite));
            assert!(
                !memory.insert(start.add(24), 16, ReadWrite),
                "overlaps both"
            );
            assert!(!memory.insert(start.add(8), 8, ReadWrite), "inside of one");
            assert!(
                !memory.insert(start.with_addr(usize::MAX - 3), 8, ReadWrite),
                "wraps"
            );
        }
        let data: Vec<u8> = (1..=40).collect();
        for offset in 0..16 {
            assert!(memory.write(at + offset, &data));
            let mut back = [0; 40];
            assert!(memory.read(at + offset, &mut back));
            assert_eq!(back.as_slice(), data);
        }
        let mut back = [9; 40];
        for bad in [at - 1, at + 25, at + 64, u64::MAX - 3, 0] {
            assert!(!memory.write(bad, &data), "{bad:#x}");
            assert!(!memory.read(bad, &mut back));
        }
        assert_eq!(back, [9; 40], "a refused read changes nothing");
        assert!(!memory.remove(at as usize, 64));
        assert!(memory.remove(at as usize, 32));
        assert!(!memory.read(at + 31, &mut back[..1]));
        assert!(memory.read(at + 32, &mut back[..1]));
        // SAFETY: as above.
        assert!(unsafe { memory.insert(start, 32, Read) });
        assert!(memory.read(at + 30, &mut back[..4]));
        assert!(!memory.write(at + 30, &data[..4]), "may be read only");
        assert!(memory.write(at + 32, &data[..4]));
    }
}
