//! A look at the counters of a card in hardware that another program uses.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use ferroce_proto::abi::regs;
use memmap2::{MmapOptions, MmapRaw};
use thiserror::Error;

/// A card cannot be looked at.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PeekError {
    /// No such card, or no right to its registers.
    #[error("{path} cannot be mapped: check the PCI address by lspci, and run as root", path = .path.display())]
    Map {
        /// The file of its registers.
        path: PathBuf,
        /// Answer of the system.
        #[source]
        source: io::Error,
    },
    /// Another device.
    #[error(
        "{path}: register MAGIC reads {found:#010x}, expected {expected:#010x}: this is not a Ferroce card, or its memory access is off",
        path = .path.display(),
        expected = regs::MAGIC_VALUE
    )]
    Magic {
        /// The file of its registers.
        path: PathBuf,
        /// Value read.
        found: u32,
    },
}

/// The registers of a card, mapped to be read. The card's user does not notice, except that counters that both read at
/// the same moment may come out torn.
#[derive(Debug)]
pub struct Peek {
    registers: MmapRaw,
}

impl Peek {
    /// Maps the registers of the card at a PCI address, by sysfs.
    ///
    /// # Errors
    /// [`PeekError`].
    pub fn open(address: &str) -> Result<Self, PeekError> {
        Self::file(format!("/sys/bus/pci/devices/{address}/resource0").into())
    }

    fn file(path: PathBuf) -> Result<Self, PeekError> {
        let map = |path| {
            let len = regs::BAR0_BYTES as usize;
            let file = File::open(path)?;
            MmapOptions::new().len(len).map_raw_read_only(&file)
        };
        let registers = match map(&path) {
            Ok(registers) => registers,
            Err(source) => return Err(PeekError::Map { path, source }),
        };
        let peek = Self { registers };
        match peek.read(regs::MAGIC.into()) {
            regs::MAGIC_VALUE => Ok(peek),
            found => Err(PeekError::Magic { path, found }),
        }
    }

    /// The statistics counters with their names.
    #[must_use]
    pub fn statistics(&self) -> Vec<(&'static str, u64)> {
        crate::device::statistics(|offset| self.read(offset))
    }

    fn read(&self, offset: u64) -> u32 {
        debug_assert!(offset.is_multiple_of(4) && offset < regs::BAR0_BYTES);
        // SAFETY: within the mapping, which has the length of the BAR, and aligned.
        let value = unsafe {
            self.registers
                .as_ptr()
                .cast::<u32>()
                .add(offset as usize / 4)
                .read_volatile()
        };
        u32::from_le(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_a_file_of_registers() {
        let path = std::env::temp_dir().join(format!("ferroce-peek-{}", std::process::id()));
        let mut bytes = vec![0; regs::BAR0_BYTES as usize];
        bytes[regs::MAGIC as usize..][..4].copy_from_slice(&regs::MAGIC_VALUE.to_le_bytes());
        bytes[regs::STATS_BASE as usize + 8..][..8]
            .copy_from_slice(&0x1_2345_6789_u64.to_le_bytes());
        std::fs::write(&path, &bytes).unwrap();
        let found = Peek::file(path.clone()).unwrap().statistics();
        assert_eq!(found.len(), regs::STATS.len());
        assert_eq!(found[..2], [("rx_frames", 0), ("rx_bytes", 0x1_2345_6789)]);
        std::fs::write(&path, vec![0; regs::BAR0_BYTES as usize]).unwrap();
        assert!(matches!(
            Peek::file(path.clone()),
            Err(PeekError::Magic { found: 0, .. })
        ));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(Peek::file(path), Err(PeekError::Map { .. })));
    }
}
