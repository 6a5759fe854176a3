//! What a card may do with memory: [`DmaAccess`].

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};

/// What a card may do with memory that is mapped for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaAccess {
    /// Read it.
    Read,
    /// Read and write it.
    ReadWrite,
}

impl DmaAccess {
    /// Whether this process itself may access all of `[addr, addr + len)` so; without a `/proc` that tells, it may.
    ///
    /// For backends whose accesses this process makes: one that it may not make would end it.
    #[must_use]
    pub fn is_permitted(self, addr: usize, len: usize) -> bool {
        match File::open("/proc/self/maps") {
            Ok(maps) => self.is_among(BufReader::new(maps), addr, len),
            Err(_) => true,
        }
    }

    /// Whether `maps`, in the form of `/proc/self/maps`, has all of `[addr, addr + len)` with these rights.
    fn is_among(self, maps: impl BufRead, addr: usize, len: usize) -> bool {
        let end = addr.saturating_add(len);
        let mut at = addr;
        for line in maps.split(b'\n').map_while(Result::ok) {
            let Some((from, to, rights)) = mapping(&line) else {
                continue;
            };
            if to <= at {
                continue;
            }
            let is_right = match self {
                Self::Read => rights.starts_with("r"),
                Self::ReadWrite => rights.starts_with("rw"),
            };
            if from > at || !is_right {
                return false;
            }
            at = to;
            if at >= end {
                return true;
            }
        }
        false
    }
}

impl fmt::Display for DmaAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "readable",
            Self::ReadWrite => "readable and writable",
        })
    }
}

/// First address, end and rights of a mapping: `7f00a000-7f00c000 r--p ...`. The name behind may be no text.
fn mapping(line: &[u8]) -> Option<(usize, usize, &str)> {
    let mut words = line.splitn(3, |&byte| byte == b' ');
    let mut text = || std::str::from_utf8(words.next()?).ok();
    let (from, to) = text()?.split_once('-')?;
    let address = |hex| usize::from_str_radix(hex, 16).ok();
    Some((address(from)?, address(to)?, text()?))
}

#[cfg(test)]
mod tests {
    use super::DmaAccess::{Read, ReadWrite};

    const MAPS: &[u8] = b"1000-3000 r--p 00000000 fe:00 12 /bin/a\xff b\n\
        3000-4000 rw-p 00000000 00:00 0\n\
        4000-5000 ---p 00000000 00:00 0\n\
        6000-8000 rw-s 00000000 00:00 0 [heap]\n\
        ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";

    #[test]
    fn rights_are_those_of_all_mappings_that_memory_lies_in() {
        for (addr, len, may_read, may_write) in [
            (0x1000, 0x2000, true, false),
            (0x1800, 0x2800, true, false),
            (0x3000, 0x1000, true, true),
            (0x2fff, 2, true, false),
            (0x3fff, 2, false, false),
            (0x4000, 1, false, false),
            (0x5000, 1, false, false),
            (0x5fff, 2, false, false),
            (0x6000, 0x2000, true, true),
            (0x7fff, 2, false, false),
            (0, 1, false, false),
            (usize::MAX, 1, false, false),
        ] {
            assert_eq!(Read.is_among(MAPS, addr, len), may_read, "{addr:#x}");
            assert_eq!(ReadWrite.is_among(MAPS, addr, len), may_write, "{addr:#x}");
        }
    }

    #[test]
    fn this_process_may_not_write_its_constants() {
        static CONSTANT: [u8; 64] = [1; 64];
        let mut memory = vec![0u8; 64];
        let (constant, memory) = (CONSTANT.as_ptr().addr(), memory.as_mut_ptr().addr());
        assert!(Read.is_permitted(constant, 64) && !ReadWrite.is_permitted(constant, 64));
        assert!(Read.is_permitted(memory, 64) && ReadWrite.is_permitted(memory, 64));
    }
}
