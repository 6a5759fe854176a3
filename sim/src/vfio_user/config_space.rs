//! Configuration space of the card: what every byte is after reset, and which bits may be written.
//!
//! Identity, BARs and vectors are those of [`pci`]. Two capabilities: MSI-X, and PCI Express with function-level reset.

use ferroce_proto::abi::{pci, regs};

/// Bytes of configuration space, with the extended part, which is empty.
pub const BYTES: usize = 4096;

const COMMAND: usize = 0x04;
const STATUS: usize = 0x06;
const REVISION: usize = 0x08;
const CACHE_LINE: usize = 0x0c;
const BARS: usize = 0x10;
const SUBSYSTEM: usize = 0x2c;
const CAPABILITIES: usize = 0x34;
const INTERRUPT_LINE: usize = 0x3c;
const MSIX: usize = 0x40;
const EXPRESS: usize = 0x50;

/// Command: memory space on.
const MEMORY: u8 = 1 << 1;
/// Command: bus mastering on.
const MASTER: u8 = 1 << 2;
/// Command: what may be written besides: parity and system errors, INTx off.
const COMMAND_OTHER: u16 = 0x0540;
/// Status: there is a list of capabilities.
const STATUS_LIST: u16 = 1 << 4;
/// BAR: 64 bits, not prefetchable.
const BAR_64: u32 = 0x4;

/// Capability IDs.
const CAP_MSIX: u8 = 0x11;
const CAP_EXPRESS: u8 = 0x10;
/// MSI-X control: enable and function mask may be written.
const MSIX_WRITABLE: u16 = 0xc000;

/// Express capability: version 2, endpoint.
const EXPRESS_V2_ENDPOINT: u16 = 0x0002;
/// Device capabilities: 256 bytes of payload, role-based errors, function-level reset.
const DEVICE_CAPS: u32 = 1 | 1 << 15 | 1 << 28;
/// Device control after reset: relaxed ordering, no snoop, read requests of 512 bytes.
const DEVICE_CONTROL: u16 = 0x2810;
/// Device control: what may be written and is kept.
const DEVICE_CONTROL_WRITABLE: u16 = 0x7fff;
/// Device control, high byte: a function-level reset.
const RESET: u8 = 1 << 7;
/// Link: 16 lanes of 8 GT/s.
const LINK: u32 = 0x0103;
/// Link control: common clock and what else software sets.
const LINK_CONTROL_WRITABLE: u16 = 0x01cb;

/// Offset of device control in [`EXPRESS`].
const DEVICE_CONTROL_AT: usize = EXPRESS + 0x08;

/// The configuration space of a card.
pub struct ConfigSpace {
    bytes: Vec<u8>,
    writable: Vec<u8>,
}

impl ConfigSpace {
    /// As after reset.
    #[must_use]
    pub fn new() -> Self {
        let mut space = Self {
            bytes: vec![0; BYTES],
            writable: vec![0; BYTES],
        };
        space.set16(0x00, pci::VENDOR, 0);
        space.set16(0x02, pci::DEVICE, 0);
        let command = u16::from(MEMORY | MASTER) | COMMAND_OTHER;
        space.set16(COMMAND, 0, command);
        space.set16(STATUS, STATUS_LIST, 0);
        space.set32(REVISION, pci::CLASS << 8 | u32::from(pci::REVISION), 0);
        space.set16(CACHE_LINE, 0, 0x00ff);
        space.set_bar(pci::REGISTER_BAR, regs::BAR0_BYTES);
        space.set_bar(pci::MSIX_BAR, pci::MSIX_BAR_BYTES);
        space.set16(SUBSYSTEM, pci::SUBSYSTEM_VENDOR, 0);
        space.set16(SUBSYSTEM + 2, pci::SUBSYSTEM_SIMULATED, 0);
        space.set16(CAPABILITIES, MSIX as u16, 0);
        space.set16(INTERRUPT_LINE, 0, 0x00ff);

        space.set_cap(MSIX, CAP_MSIX, EXPRESS);
        space.set16(MSIX + 2, pci::MSIX_VECTORS - 1, MSIX_WRITABLE);
        let bar = u32::from(pci::MSIX_BAR);
        space.set32(MSIX + 4, pci::MSIX_TABLE | bar, 0);
        space.set32(MSIX + 8, pci::MSIX_PBA | bar, 0);

        space.set_cap(EXPRESS, CAP_EXPRESS, 0);
        space.set16(EXPRESS + 0x02, EXPRESS_V2_ENDPOINT, 0);
        space.set32(EXPRESS + 0x04, DEVICE_CAPS, 0);
        space.set16(DEVICE_CONTROL_AT, DEVICE_CONTROL, DEVICE_CONTROL_WRITABLE);
        space.set32(EXPRESS + 0x0c, LINK, 0);
        space.set16(EXPRESS + 0x10, 0, LINK_CONTROL_WRITABLE);
        space.set16(EXPRESS + 0x12, LINK as u16, 0);
        space
    }

    fn set16(&mut self, at: usize, value: u16, writable: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        self.writable[at..at + 2].copy_from_slice(&writable.to_le_bytes());
    }

    fn set32(&mut self, at: usize, value: u32, writable: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        self.writable[at..at + 4].copy_from_slice(&writable.to_le_bytes());
    }

    fn set_bar(&mut self, bar: u8, bytes: u64) {
        let (at, writable) = (BARS + 4 * usize::from(bar), !(bytes - 1));
        self.set32(at, BAR_64, writable as u32);
        self.set32(at + 4, 0, (writable >> 32) as u32);
    }

    fn set_cap(&mut self, at: usize, id: u8, next: usize) {
        self.set16(at, u16::from(id) | (next as u16) << 8, 0);
    }

    /// `count` bytes at `offset`; `None` beyond the end.
    #[must_use]
    pub fn read(&self, offset: u64, count: u32) -> Option<&[u8]> {
        let start = usize::try_from(offset).ok()?;
        self.bytes.get(start..start.checked_add(count as usize)?)
    }

    /// Writes `data` at `offset`, as far as bits may be written; `None` beyond the end, else whether it asks for a
    /// function-level reset.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Option<bool> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(data.len()).filter(|&end| end <= BYTES)?;
        for (at, &new) in (start..end).zip(data) {
            let writable = self.writable[at];
            self.bytes[at] = self.bytes[at] & !writable | new & writable;
        }
        let high = DEVICE_CONTROL_AT + 1;
        Some((start..end).contains(&high) && data[high - start] & RESET != 0)
    }

    /// The card may answer to memory accesses.
    #[must_use]
    pub fn has_memory(&self) -> bool {
        self.bytes[COMMAND] & MEMORY != 0
    }

    /// The card may reach memory.
    #[must_use]
    pub fn is_master(&self) -> bool {
        self.bytes[COMMAND] & MASTER != 0
    }
}

impl Default for ConfigSpace {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read32(space: &ConfigSpace, at: u64) -> u32 {
        u32::from_le_bytes(space.read(at, 4).unwrap().try_into().unwrap())
    }

    /// Capability IDs and their places, as software walks the list.
    fn capabilities(space: &ConfigSpace) -> Vec<(u8, u64)> {
        let (mut found, mut at) = (Vec::new(), space.read(0x34, 1).unwrap()[0]);
        while at != 0 && found.len() < 48 {
            let cap = space.read(at.into(), 2).unwrap();
            found.push((cap[0], u64::from(at)));
            at = cap[1];
        }
        found
    }

    #[test]
    fn software_finds_identity_sizes_and_capabilities() {
        let mut space = ConfigSpace::new();
        assert_eq!(read32(&space, 0), 0x9038_10ee);
        assert_eq!(read32(&space, 8) >> 8, 0x02_0000);
        for (bar, bytes) in [(0x10, 4 << 20), (0x18, 64 << 10)] {
            assert_eq!(space.write(bar, &[0xff; 8]), Some(false));
            let low = read32(&space, bar);
            assert_eq!(low & 0xf, 4, "64 bits, not prefetchable");
            let size = u64::from(read32(&space, bar + 4)) << 32 | u64::from(low & !0xf);
            assert_eq!(!size + 1, bytes);
        }
        assert_eq!(space.write(0x20, &[0xff; 4]), Some(false));
        assert_eq!(read32(&space, 0x20), 0, "there is no BAR 4");
        assert_eq!(capabilities(&space), [(0x11, 0x40), (0x10, 0x50)]);
        assert_eq!(read32(&space, 0x40) >> 16, 63, "64 vectors");
        assert_eq!(read32(&space, 0x44), 2, "table at the start of BAR 2");
        assert_eq!(read32(&space, 0x48), 0x8002);
        assert_eq!(read32(&space, 0x100), 0, "no extended capabilities");
    }

    #[test]
    fn the_command_register_switches_the_card() {
        let mut space = ConfigSpace::new();
        assert!(!space.has_memory() && !space.is_master());
        assert_eq!(space.write(4, &[0xff, 0xff]), Some(false));
        assert!(space.has_memory() && space.is_master());
        assert_eq!(read32(&space, 4), 0x0010_0546);
    }

    #[test]
    fn a_function_level_reset_is_seen_and_not_kept() {
        let mut space = ConfigSpace::new();
        assert_eq!(space.write(0x58, &[0x10, 0xa8]), Some(true));
        assert_eq!(read32(&space, 0x58) & 0xffff, 0x2810);
        assert_eq!(space.write(0x58, &[0x10, 0x28]), Some(false));
        assert_eq!(space.write(0x59, &[0x80]), Some(true));
    }

    #[test]
    fn nothing_is_past_the_end() {
        let mut space = ConfigSpace::new();
        assert!(space.read(4095, 1).is_some());
        for (offset, count) in [(4096, 1), (4095, 2), (u64::MAX, 4), (0, u32::MAX)] {
            assert!(space.read(offset, count).is_none());
        }
        assert_eq!(space.write(4095, &[0; 2]), None);
        assert_eq!(space.write(u64::MAX, &[0; 2]), None);
    }
}
