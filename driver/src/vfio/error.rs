//! Why a card cannot be opened through VFIO.

use std::io;

use ferroce_proto::abi::pci;
use thiserror::Error;

/// A card could not be opened through VFIO.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VfioError {
    /// Not the form of a PCI address.
    #[error(
        "`{address}` is no PCI address: give domain:bus:device.function as `lspci -D` prints it, 0000:01:00.0"
    )]
    Address {
        /// What was given.
        address: String,
    },
    /// No device at this address.
    #[error(
        "there is no PCI device at {address}: look for the card with `lspci -D -d {:04x}:{:04x}`; if it is not listed, have the bus searched again: echo 1 > /sys/bus/pci/rescan",
        pci::VENDOR,
        pci::DEVICE
    )]
    Absent {
        /// PCI address.
        address: String,
    },
    /// The device is not behind an IOMMU.
    #[error(
        "{address} is not behind an IOMMU, without which its DMA is not bounded: switch it on in the firmware (VT-d, AMD-Vi) and for the kernel (intel_iommu=on), see docs/vfio.md"
    )]
    NoIommu {
        /// PCI address.
        address: String,
    },
    /// The device is bound to another driver, or to none.
    #[error(
        "{address} is bound to {}, expected vfio-pci: bind it as root with: modprobe vfio-pci; echo vfio-pci > {folder}/driver_override; {unbind}echo {address} > /sys/bus/pci/drivers_probe",
        found.as_deref().map_or("no driver".into(), |d| format!("the driver {d}")),
        folder = format_args!("/sys/bus/pci/devices/{address}"),
        unbind = if found.is_some() { format!("echo {address} > /sys/bus/pci/devices/{address}/driver/unbind; ") } else { String::new() },
    )]
    Driver {
        /// PCI address.
        address: String,
        /// Driver that has it.
        found: Option<String>,
    },
    /// The kernel offers no VFIO.
    #[error("there is no {path}: load the kernel's part of VFIO with: modprobe vfio-pci")]
    NoVfio {
        /// File that is missing.
        path: String,
    },
    /// The process may not open a file of VFIO.
    #[error(
        "no right to open {path}: run as root, or give it to the user: chown USER {path} (for good by a udev rule, see docs/vfio.md)"
    )]
    NoRights {
        /// The file.
        path: String,
    },
    /// Another process, or another part of this one, has the card open.
    #[error("{path} is open already: a card has one user at a time; find it with: fuser -v {path}")]
    Busy {
        /// The file.
        path: String,
    },
    /// Devices of the same IOMMU group are in use by the kernel.
    #[error(
        "{address} shares IOMMU group {group} with devices that the kernel drives: {}; bind them to vfio-pci too, or put the card into another slot",
        others.join(", ")
    )]
    NotViable {
        /// PCI address.
        address: String,
        /// IOMMU group.
        group: u32,
        /// The other devices and their drivers.
        others: Vec<String>,
    },
    /// The kernel does not let the IOMMU be used.
    #[error(
        "the kernel refused the IOMMU: {source}; if not permitted, the platform does not remap interrupts, see docs/vfio.md"
    )]
    Iommu {
        /// Answer of the system.
        #[source]
        source: io::Error,
    },
    /// The configuration space reads as all ones.
    #[error("{address} reads as all ones: it is gone from the bus, or its link is down")]
    Gone {
        /// PCI address.
        address: String,
    },
    /// The card did not come back from reset.
    #[error("{address} cannot be reset: {source}; power-cycle the slot or the host")]
    Reset {
        /// PCI address.
        address: String,
        /// Answer of the system.
        #[source]
        source: io::Error,
    },
    /// BAR0 is absent or cannot be mapped.
    #[error("BAR0 of {address} ({bytes} bytes) cannot be mapped: {source}")]
    Bar {
        /// PCI address.
        address: String,
        /// Its size; 0 if it is absent.
        bytes: u64,
        /// Answer of the system.
        #[source]
        source: io::Error,
    },
    /// The card may not start transfers.
    #[error(
        "bus mastering of {address} cannot be switched on: its command register stays {command:#06x}"
    )]
    BusMaster {
        /// PCI address.
        address: String,
        /// What the register reads.
        command: u16,
    },
    /// No interrupts.
    #[error(
        "{vectors} interrupt vectors of {address} cannot be set up: {source} (for open files see `ulimit -n`)"
    )]
    Interrupts {
        /// PCI address.
        address: String,
        /// Vectors asked for.
        vectors: u32,
        /// Answer of the system.
        #[source]
        source: io::Error,
    },
    /// Another request was refused.
    #[error("VFIO refused {address}: {source}")]
    Refused {
        /// PCI address.
        address: String,
        /// Answer of the system.
        #[source]
        source: vfio_ioctls::VfioError,
    },
}
