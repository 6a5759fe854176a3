//! A PCI function in the hands of this process.

use std::io;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use memmap2::{MmapOptions, MmapRaw};
use rustix::io::Errno;
use std::os::fd::AsRawFd;
use vfio_bindings::bindings::vfio::{
    VFIO_BASE, VFIO_PCI_BAR0_REGION_INDEX, VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_MSI_IRQ_INDEX,
    VFIO_PCI_MSIX_IRQ_INDEX, VFIO_REGION_INFO_FLAG_MMAP, VFIO_TYPE,
};
use vfio_ioctls::{VfioContainer, VfioDevice, VfioError as Refusal};
use vmm_sys_util::eventfd::{EFD_CLOEXEC, EFD_NONBLOCK, EventFd};
use vmm_sys_util::ioctl::ioctl;
use vmm_sys_util::ioctl_io_nr;

use super::VfioError;
use super::address::Address;

ioctl_io_nr!(VFIO_DEVICE_RESET, VFIO_TYPE.into(), VFIO_BASE + 11);

/// Offsets in the configuration space.
mod config {
    pub(super) const VENDOR: u64 = 0x00;
    pub(super) const COMMAND: u64 = 0x04;
    pub(super) const SUBSYSTEM: u64 = 0x2e;
}

/// Command register: memory space and bus mastering on.
const MEMORY_AND_MASTER: u16 = 0x6;

/// A PCI function, its IOMMU context not included.
///
/// Closed, by a drop or by the end of the process, the kernel switches its interrupts and bus mastering
/// off and resets it.
pub(super) struct Device {
    address: Address,
    inner: ManuallyDrop<VfioDevice>,
}

impl Device {
    /// Opens the function at `address`, of IOMMU group `group`, within `container`.
    pub(super) fn open(
        address: Address,
        group: u32,
        container: &Arc<VfioContainer>,
    ) -> Result<Self, VfioError> {
        let inner = VfioDevice::new(&address.folder(), container.clone(), false)
            .map_err(|refusal| named(address, group, refusal))?;
        let inner = ManuallyDrop::new(inner);
        let device = Self { address, inner };
        device.check_present()?;
        Ok(device)
    }

    /// Resets the function, if it can be reset, and lets it answer and start transfers.
    pub(super) fn reset(&self) -> Result<(), VfioError> {
        // SAFETY: the request has no argument.
        if unsafe { ioctl(&*self.inner, VFIO_DEVICE_RESET()) } != 0 {
            match io::Error::last_os_error() {
                // What the function offers: neither FLR nor a reset of its bus.
                e if is(&e, Errno::NOTTY) || is(&e, Errno::INVAL) => tracing::warn!(
                    "{} has no function-level reset: only its own reset ends what an earlier user left",
                    self.address
                ),
                source => {
                    let address = self.address.to_string();
                    return Err(VfioError::Reset { address, source });
                }
            }
        }
        self.check_present()?;
        let index = VFIO_PCI_CONFIG_REGION_INDEX;
        let command = self.config(config::COMMAND) | MEMORY_AND_MASTER;
        self.inner
            .region_write(index, &command.to_le_bytes(), config::COMMAND);
        let command = self.config(config::COMMAND);
        if command & MEMORY_AND_MASTER != MEMORY_AND_MASTER {
            let address = self.address.to_string();
            return Err(VfioError::BusMaster { address, command });
        }
        Ok(())
    }

    /// Maps the registers of BAR0.
    pub(super) fn map_bar0(&self) -> Result<MmapRaw, VfioError> {
        let index = VFIO_PCI_BAR0_REGION_INDEX;
        let bytes = self.inner.get_region_size(index);
        let failed = |source| VfioError::Bar {
            address: self.address.to_string(),
            bytes,
            source,
        };
        let is_mappable = self.inner.get_region_flags(index) & VFIO_REGION_INFO_FLAG_MMAP != 0;
        if !is_mappable || bytes == 0 {
            return Err(failed(io::ErrorKind::Unsupported.into()));
        }
        let len = usize::try_from(bytes).map_err(|_| failed(io::ErrorKind::OutOfMemory.into()))?;
        MmapOptions::new()
            .offset(self.inner.get_region_offset(index))
            .len(len)
            .map_raw(self.inner.as_raw_fd())
            .map_err(failed)
    }

    /// An eventfd for each interrupt vector: of MSI-X, or of MSI if the function has no MSI-X.
    pub(super) fn interrupts(&self) -> Result<Vec<EventFd>, VfioError> {
        let count = |index| self.inner.get_irq_info(index).map_or(0, |irq| irq.count);
        let kinds = [VFIO_PCI_MSIX_IRQ_INDEX, VFIO_PCI_MSI_IRQ_INDEX];
        let Some(index) = kinds.into_iter().find(|&index| count(index) > 0) else {
            return Ok(Vec::new());
        };
        let vectors = count(index);
        let failed = |source| VfioError::Interrupts {
            address: self.address.to_string(),
            vectors,
            source,
        };
        let events = (0..vectors).map(|_| EventFd::new(EFD_CLOEXEC | EFD_NONBLOCK));
        let events: Vec<_> = events.collect::<io::Result<_>>().map_err(failed)?;
        // The crate drops the answer of the system, which is still the last one.
        self.inner
            .enable_irq(index, events.iter().collect())
            .map_err(|_| failed(io::Error::last_os_error()))?;
        Ok(events)
    }

    /// Subsystem ID.
    pub(super) fn subsystem(&self) -> u16 {
        self.config(config::SUBSYSTEM)
    }

    fn check_present(&self) -> Result<(), VfioError> {
        if self.config(config::VENDOR) == u16::MAX {
            let address = self.address.to_string();
            return Err(VfioError::Gone { address });
        }
        Ok(())
    }

    /// Two bytes of the configuration space; all ones if it cannot be read.
    fn config(&self, offset: u64) -> u16 {
        let mut bytes = [0xff; 2];
        self.inner
            .region_read(VFIO_PCI_CONFIG_REGION_INDEX, &mut bytes, offset);
        u16::from_le_bytes(bytes)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: dropped here only, and not used afterwards.
        let close = || unsafe { ManuallyDrop::drop(&mut self.inner) };
        // It panics if the card left the bus meanwhile, after it has closed the function: nothing is left to do.
        if catch_unwind(AssertUnwindSafe(close)).is_err() {
            tracing::warn!("{} left the bus while it was open", self.address);
        }
    }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

/// Opens the container, the IOMMU context that a device is put into.
pub(super) fn container(address: Address) -> Result<Arc<VfioContainer>, VfioError> {
    let container = VfioContainer::new(None).map_err(|refusal| named(address, 0, refusal))?;
    Ok(Arc::new(container))
}

/// The error of ours for a refusal at opening.
fn named(address: Address, group: u32, refusal: Refusal) -> VfioError {
    let file = |e: io::Error, path: String, refusal: fn(io::Error) -> Refusal| match e.kind() {
        io::ErrorKind::NotFound => VfioError::NoVfio { path },
        io::ErrorKind::PermissionDenied => VfioError::NoRights { path },
        io::ErrorKind::ResourceBusy => VfioError::Busy { path },
        _ => VfioError::Refused {
            address: address.to_string(),
            source: refusal(e),
        },
    };
    let group_path = || format!("/dev/vfio/{group}");
    match refusal {
        Refusal::OpenContainer(e) => file(e, "/dev/vfio/vfio".into(), Refusal::OpenContainer),
        Refusal::OpenGroup(e, _) => file(e, group_path(), |e| Refusal::OpenGroup(e, String::new())),
        Refusal::GroupViable => VfioError::NotViable {
            address: address.to_string(),
            group,
            others: address.neighbours(),
        },
        Refusal::ContainerSetIOMMU(e) => VfioError::Iommu { source: e.into() },
        source => VfioError::Refused {
            address: address.to_string(),
            source,
        },
    }
}
