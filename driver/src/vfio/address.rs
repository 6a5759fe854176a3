//! The place of a card on the bus, and what the kernel says about it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::VfioError;
use crate::sysfs::{PCI_DEVICES, link_name};

/// Place of a function on the PCI bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

impl Address {
    /// `domain:bus:device.function` in hexadecimal; the domain may be left out if it is 0.
    pub(super) fn parse(text: &str) -> Result<Self, VfioError> {
        Self::fields(text).ok_or_else(|| VfioError::Address {
            address: text.into(),
        })
    }

    fn fields(text: &str) -> Option<Self> {
        let (place, function) = text.rsplit_once('.')?;
        let (place, device) = place.rsplit_once(':')?;
        let (domain, bus) = place.rsplit_once(':').unwrap_or(("0", place));
        // A sign is no hexadecimal digit, though the parser of numbers takes one.
        let number = |digits: &str, width, limit| {
            let is_hex = digits.len() <= width && digits.bytes().all(|b| b.is_ascii_hexdigit());
            let value = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
            (value <= limit).then_some(value)
        };
        Some(Self {
            domain: number(domain, 8, u32::MAX)?,
            bus: number(bus, 2, 0xff)? as u8,
            device: number(device, 2, 0x1f)? as u8,
            function: number(function, 1, 7)? as u8,
        })
    }

    /// Its folder in sysfs.
    pub(super) fn folder(self) -> PathBuf {
        Path::new(PCI_DEVICES).join(self.to_string())
    }

    /// Checks that a device is there, behind an IOMMU and bound to vfio-pci; answers its group.
    pub(super) fn group(self) -> Result<u32, VfioError> {
        let folder = self.folder();
        let address = self.to_string();
        if !folder.exists() {
            return Err(VfioError::Absent { address });
        }
        let group = link_name(&folder.join("iommu_group")).and_then(|n| n.parse().ok());
        let Some(group) = group else {
            return Err(VfioError::NoIommu { address });
        };
        match link_name(&folder.join("driver")) {
            Some(driver) if driver == "vfio-pci" => Ok(group),
            found => Err(VfioError::Driver { address, found }),
        }
    }

    /// The other devices of its IOMMU group that keep it from use, each with its driver.
    pub(super) fn neighbours(self) -> Vec<String> {
        let devices = self.folder().join("iommu_group/devices");
        let entries = fs::read_dir(devices).into_iter().flatten().flatten();
        let neighbour = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            let driver = link_name(&entry.path().join("driver"))?;
            // Bridges and devices without a driver do no harm.
            let harmless = ["vfio-pci", "pcieport", "pci-stub"];
            (!harmless.contains(&driver.as_str())).then(|| format!("{name} ({driver})"))
        };
        let mut found: Vec<_> = entries.filter_map(neighbour).collect();
        found.sort();
        found
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            domain,
            bus,
            device,
            function,
        } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_lspci_prints_them() {
        for (text, full) in [
            ("0000:01:00.0", "0000:01:00.0"),
            ("3b:1f.7", "0000:3b:1f.7"),
            ("10000:AB:05.1", "10000:ab:05.1"),
        ] {
            assert_eq!(Address::parse(text).unwrap().to_string(), full);
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "0000",
            "01:00",
            "01:20.0",
            "01:00.8",
            "100:00.0",
            "+1:00.0",
            "0000:01:00.0/..",
            "..:..",
            ":.",
        ] {
            let e = Address::parse(text).unwrap_err();
            assert!(matches!(e, VfioError::Address { .. }), "{text}");
        }
    }
}
