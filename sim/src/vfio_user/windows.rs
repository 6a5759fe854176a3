//! Ranges that the client mapped for DMA.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use ferroce_vfio_user::Errno;
use ferroce_vfio_user::payload::{DmaMap, dma};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Most ranges at a time, the protocol's default.
const MAX: usize = 65_535;
/// Writes up to this many bytes, a ring entry's, show their last word no earlier than the rest.
const ENTRY: usize = 64;
/// Bytes of that word.
const WORD: usize = 8;

/// A mapped range.
struct Window {
    last: u64,
    flags: u32,
    /// The memory itself and the offset of the first byte in it, if the client shares it.
    file: Option<(File, u64)>,
}

/// Mapped ranges by address; disjoint.
#[derive(Default)]
pub(super) struct Windows(BTreeMap<u64, Window>);

impl Windows {
    /// Adds a range, with the file that came with it.
    ///
    /// # Errors
    /// The range is empty, wraps, or meets another; or there are too many.
    pub(super) fn map(&mut self, map: &DmaMap, file: Option<OwnedFd>) -> Result<(), Errno> {
        let more = map.size.checked_sub(1).ok_or(Errno::INVAL)?;
        let last = map.address.checked_add(more).ok_or(Errno::INVAL)?;
        map.offset.checked_add(more).ok_or(Errno::INVAL)?;
        let below = self.0.range(..=last).next_back();
        if below.is_some_and(|(_, window)| window.last >= map.address) {
            return Err(Errno::EXIST);
        }
        if self.0.len() >= MAX {
            return Err(Errno::NOSPC);
        }
        let window = Window {
            last,
            flags: map.flags,
            file: file.map(|fd| (File::from(fd), map.offset)),
        };
        self.0.insert(map.address, window);
        Ok(())
    }

    /// Takes out the ranges that lie inside of the one given; the bytes that were.
    ///
    /// # Errors
    /// It is empty, wraps, or cuts a range in two: nothing is taken out then.
    pub(super) fn unmap(&mut self, address: u64, size: u64) -> Result<u64, Errno> {
        let more = size.checked_sub(1).ok_or(Errno::INVAL)?;
        let last = address.checked_add(more).ok_or(Errno::INVAL)?;
        let before = self.0.range(..address).next_back();
        let after = self.0.range(address..=last).next_back();
        if before.is_some_and(|(_, window)| window.last >= address)
            || after.is_some_and(|(_, window)| window.last > last)
        {
            return Err(Errno::INVAL);
        }
        let inside: Vec<u64> = self.0.range(address..=last).map(|(&at, _)| at).collect();
        let gone = inside
            .iter()
            .filter_map(|at| Some((at, self.0.remove(at)?)));
        Ok(gone.map(|(at, window)| window.last - at + 1).sum())
    }

    /// Takes out all; the bytes that were.
    pub(super) fn clear(&mut self) -> u64 {
        let windows = std::mem::take(&mut self.0);
        let sizes = windows.iter().map(|(at, window)| window.last - at + 1);
        sizes.fold(0, u64::wrapping_add)
    }

    /// Reads shared memory; `None` if part of the range is not shared, or not to be read.
    pub(super) fn read(&self, addr: u64, data: &mut [u8]) -> Option<()> {
        let mut data = data;
        for (file, offset, len) in self.pieces(addr, data.len(), dma::READ)? {
            let (now, rest) = data.split_at_mut(len);
            file.read_exact_at(now, offset).ok()?;
            data = rest;
        }
        Some(())
    }

    /// Writes shared memory; `None` if part of the range is not shared, or not to be written.
    pub(super) fn write(&self, addr: u64, data: &[u8]) -> Option<()> {
        let mut data = data;
        for (file, offset, len) in self.pieces(addr, data.len(), dma::WRITE)? {
            let (now, rest) = data.split_at(len);
            // The owner bit of a ring entry is in its last word.
            let cut = if (WORD + 1..=ENTRY).contains(&len) {
                len - WORD
            } else {
                len
            };
            file.write_all_at(&now[..cut], offset).ok()?;
            file.write_all_at(&now[cut..], offset + cut as u64).ok()?;
            data = rest;
        }
        Some(())
    }

    /// The parts of an access in their files; `None` unless all of it is shared and permitted.
    fn pieces(&self, addr: u64, len: usize, right: u32) -> Option<Vec<(&File, u64, usize)>> {
        let last = addr.checked_add((len as u64).checked_sub(1)?)?;
        let (mut at, mut pieces) = (addr, Vec::new());
        loop {
            let (&start, window) = self.0.range(..=at).next_back()?;
            let (file, offset) = window.file.as_ref()?;
            if window.last < at || window.flags & right == 0 {
                return None;
            }
            let end = window.last.min(last);
            pieces.push((file, offset + (at - start), (end - at + 1) as usize));
            if end == last {
                return Some(pieces);
            }
            at = end + 1;
        }
    }
}

/// As many descriptors as this process may have: each range that a client shares needs one.
pub(super) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // What is refused leaves the limit as it was.
    let _ = setrlimit(Resource::Nofile, most);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(address: u64, size: u64, offset: u64, flags: u32) -> DmaMap {
        DmaMap {
            argsz: 32,
            flags,
            offset,
            address,
            size,
        }
    }

    const BOTH: u32 = dma::READ | dma::WRITE;

    #[test]
    fn ranges_are_mapped_and_unmapped_whole() {
        let mut windows = Windows::default();
        let mut add = |address, size| windows.map(&map(address, size, 0, BOTH), None);
        assert_eq!(add(0x1000, 0x1000), Ok(()));
        assert_eq!(add(0x3000, 0x1000), Ok(()));
        assert_eq!(add(u64::MAX - 0xfff, 0x1000), Ok(()));
        for (address, size) in [(0x1000, 1), (0xfff, 2), (0x1fff, 1), (0, 0x8000)] {
            assert_eq!(add(address, size), Err(Errno::EXIST), "{address:#x}");
        }
        for (address, size) in [(0x5000, 0), (u64::MAX, 2)] {
            assert_eq!(add(address, size), Err(Errno::INVAL));
        }
        assert_eq!(windows.unmap(0x1800, 0x2000), Err(Errno::INVAL), "cuts one");
        assert_eq!(windows.unmap(0x2000, 0x1800), Err(Errno::INVAL), "cuts one");
        assert_eq!(windows.unmap(0x2000, 0x1000), Ok(0));
        assert_eq!(windows.unmap(0, 0x10000), Ok(0x2000));
        assert_eq!(windows.clear(), 0x1000);
        assert_eq!(windows.clear(), 0);
    }

    #[test]
    fn shared_memory_is_reached_over_neighbours_and_by_right() {
        let file: File = tempfile::tempfile().unwrap();
        file.set_len(0x3000).unwrap();
        let share = || Some(OwnedFd::from(file.try_clone().unwrap()));
        let mut windows = Windows::default();
        windows
            .map(&map(0x1000, 0x1000, 0x2000, BOTH), share())
            .unwrap();
        windows.map(&map(0x2000, 0x1000, 0, BOTH), share()).unwrap();
        windows
            .map(&map(0x3000, 0x1000, 0x1000, dma::READ), share())
            .unwrap();
        windows.map(&map(0x5000, 0x1000, 0, BOTH), None).unwrap();
        windows
            .map(&map(0x6000, 0x1000, 0x2800, BOTH), share())
            .unwrap();

        let data: Vec<u8> = (0..40).collect();
        windows.write(0x1ff0, &data).unwrap();
        let mut back = [0; 40];
        windows.read(0x1ff0, &mut back).unwrap();
        assert_eq!(back.as_slice(), data);
        let mut end = [0; 16];
        file.read_exact_at(&mut end, 0x2ff0).unwrap();
        assert_eq!(end.as_slice(), &data[..16]);

        assert!(windows.read(0x2ff0, &mut back).is_some());
        assert!(windows.write(0x2ff0, &back).is_none(), "read only");
        assert!(windows.read(0x3ff0, &mut back).is_none(), "nothing there");
        assert!(windows.read(0x5000, &mut back).is_none(), "not shared");
        assert!(windows.read(0x6800, &mut back).is_none(), "the file ends");
        assert!(windows.read(u64::MAX, &mut back).is_none());
    }
}
