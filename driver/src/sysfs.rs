//! What the kernel shows of the devices of this host.

use std::fs;
use std::path::Path;

/// A folder for each function on the PCI bus, by address.
pub(crate) const PCI_DEVICES: &str = "/sys/bus/pci/devices";

/// Last name of what a symbolic link points to.
pub(crate) fn link_name(link: &Path) -> Option<String> {
    let target = fs::read_link(link).ok()?;
    Some(target.file_name()?.to_str()?.to_owned())
}
