//! A card of this host, through the kernel's VFIO: [`Vfio`].
//!
//! Registers are mapped: a doorbell is one store. The card reaches memory through the IOMMU, at the virtual
//! addresses of the process, and nothing but what is mapped; mapped memory is pinned. Interrupts are
//! eventfds that the kernel writes. How a card is bound, and which limits count: `docs/vfio.md`.

mod address;
mod device;
mod error;
mod iommu;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ferroce_proto::abi::pci;
use memmap2::MmapRaw;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use vfio_ioctls::{VfioContainer, VfioError as Refusal};
use vmm_sys_util::eventfd::EventFd;

use crate::{Backend, BackendError, DmaAccess, Opened, eventfd};

pub use error::VfioError;

use address::Address;
use device::Device;
use iommu::IommuInfo;

/// Pause of a turn of a wait loop for a simulated card, which needs the processor that would spin.
const RELAX_SIMULATED: Duration = Duration::from_micros(50);

/// A card bound to `vfio-pci`, opened by its PCI address.
///
/// Dropped, or when the process ends in whatever way, the kernel stops and resets the card and unpins all memory.
/// A card that vanished reads as all ones.
pub struct Vfio {
    // Fields are dropped in this order: what uses the card, the card, its IOMMU context.
    bar: MmapRaw,
    vectors: Vec<Vector>,
    device: Device,
    container: Arc<VfioContainer>,
    iommu: IommuInfo,
    started: Instant,
    /// Nanoseconds of the host in one of the card.
    slowdown: u64,
    opened: Opened,
}

/// An interrupt vector.
struct Vector {
    event: EventFd,
    /// Somebody has asked for it.
    is_used: AtomicBool,
}

impl Vfio {
    /// Opens the card at PCI address `address` (`0000:01:00.0`, as `lspci -D` prints it), resets it, maps BAR0, lets
    /// the card start transfers, and sets up its interrupts.
    ///
    /// Any PCI function can be opened; that it is a Ferroce card is checked by [`Context::open`](crate::Context::open).
    ///
    /// # Errors
    /// [`VfioError`], which says what to do: the card is absent, not behind an IOMMU, bound to another driver, in
    /// use, or the process has no right to it.
    pub fn open(address: &str) -> Result<Self, VfioError> {
        let address = Address::parse(address)?;
        let group = address.group()?;
        let container = device::container(address)?;
        let device = Device::open(address, group, &container)?;
        let iommu = IommuInfo::read(&*container).map_err(|source| VfioError::Iommu { source })?;
        device.reset()?;
        let bar = device.map_bar0()?;
        let vectors = device.interrupts()?.into_iter().map(|event| Vector {
            event,
            is_used: AtomicBool::new(false),
        });
        let is_simulated = device.subsystem() == pci::SUBSYSTEM_SIMULATED;
        Ok(Self {
            bar,
            vectors: vectors.collect(),
            device,
            container,
            iommu,
            started: Instant::now(),
            opened: Opened::default(),
            slowdown: if is_simulated {
                pci::SIMULATED_SLOWDOWN
            } else {
                1
            },
        })
    }

    /// Its time is not the host's: a simulated card, passed on to this machine.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.slowdown > 1
    }

    /// Resets the function. Mapped memory stays mapped; the card loses all other state.
    ///
    /// # Errors
    /// [`VfioError`]: the card does not come back.
    pub fn reset(&self) -> Result<(), VfioError> {
        self.device.reset()
    }

    /// The register at byte `offset` of BAR0.
    ///
    /// # Panics
    /// Beyond the BAR, and if `offset` is no multiple of 4.
    #[inline]
    fn register(&self, offset: u64) -> *mut u32 {
        let is_inside = offset.is_multiple_of(4) && offset < self.bar.len() as u64;
        assert!(is_inside, "BAR0 has no register at byte {offset:#x}");
        // SAFETY: the offset is inside of the mapping, whose length is that of a BAR, a power of two.
        unsafe { self.bar.as_mut_ptr().add(offset as usize).cast() }
    }

    /// What a refused mapping is called.
    fn refused(
        &self,
        addr: usize,
        len: usize,
        access: DmaAccess,
        error: io::Error,
    ) -> BackendError {
        let errno = error.raw_os_error().map(Errno::from_raw_os_error);
        match errno {
            Some(Errno::EXIST) => BackendError::Overlap { addr, len },
            Some(Errno::FAULT) => BackendError::Fault { addr, len, access },
            Some(Errno::NOMEM) => BackendError::MemoryLimit {
                addr,
                len,
                limit: getrlimit(Resource::Memlock).current,
            },
            Some(Errno::NOSPC) => BackendError::Mappings {
                addr,
                len,
                limit: self.iommu.mappings,
            },
            _ => BackendError::System {
                operation: "DMA mapping",
                addr,
                len,
                source: error,
            },
        }
    }
}

impl Backend for Vfio {
    #[inline]
    fn read32(&self, offset: u64) -> u32 {
        // SAFETY: a register of the mapped BAR; accesses to it have no other effect on this process.
        u32::from_le(unsafe { self.register(offset).read_volatile() })
    }

    #[inline]
    unsafe fn write32(&self, offset: u64, value: u32) {
        // SAFETY: as above. Memory that the card changes in consequence was lent to it by `map`.
        unsafe { self.register(offset).write_volatile(value.to_le()) }
    }

    unsafe fn map(&self, addr: *mut u8, len: usize, access: DmaAccess) -> Result<(), BackendError> {
        let (start, page) = (addr.addr(), self.iommu.page);
        if len == 0 || !start.is_multiple_of(page) || !len.is_multiple_of(page) {
            let addr = start;
            return Err(BackendError::Unaligned { addr, len, page });
        }
        if !self.iommu.ranges.contain(start as u64, len as u64) {
            return Err(BackendError::OutOfReach {
                addr: start,
                len,
                ranges: self.iommu.ranges.to_string(),
            });
        }
        // SAFETY: the rule is the caller's, unchanged.
        unsafe { iommu::map(&*self.container, addr, len, access) }
            .map_err(|error| self.refused(start, len, access, error))
    }

    fn opened(&self) -> &Opened {
        &self.opened
    }

    unsafe fn unmap(&self, addr: *mut u8, len: usize) -> Result<(), BackendError> {
        let start = addr.addr();
        self.container
            .vfio_dma_unmap(start as u64, len)
            .map_err(|refusal| {
                let source = match refusal {
                    Refusal::IommuDmaUnmap(e) => io::Error::from(e),
                    // Less was unmapped than was asked for.
                    Refusal::InvalidDmaUnmapSize => io::ErrorKind::InvalidInput.into(),
                    other => io::Error::other(other),
                };
                match source.kind() {
                    // The kernel does not cut mappings.
                    io::ErrorKind::InvalidInput => BackendError::NotMapped { addr: start, len },
                    _ => BackendError::System {
                        operation: "DMA unmapping",
                        addr: start,
                        len,
                        source,
                    },
                }
            })
    }

    #[inline]
    fn relax(&self) {
        if self.slowdown == 1 {
            std::hint::spin_loop();
        } else {
            std::thread::sleep(RELAX_SIMULATED);
        }
    }

    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64 / self.slowdown
    }

    fn page_size(&self) -> usize {
        self.iommu.page
    }

    fn bar_len(&self) -> u64 {
        self.bar.len() as u64
    }

    fn vectors(&self) -> u32 {
        self.vectors.len() as u32
    }

    fn interrupt(&self, vector: u32) -> Result<OwnedFd, BackendError> {
        let Some(found) = self.vectors.get(vector as usize) else {
            let vectors = self.vectors();
            return Err(BackendError::NoVector { vector, vectors });
        };
        // SAFETY: the eventfd is open for as long as `found` is borrowed.
        let event = unsafe { BorrowedFd::borrow_raw(found.event.as_raw_fd()) };
        if !found.is_used.swap(true, Ordering::Relaxed) {
            // Interrupts raised before are not for this caller.
            eventfd::clear(event);
        }
        event
            .try_clone_to_owned()
            .map_err(|source| BackendError::Interrupt { vector, source })
    }

    fn wait_readable(&self, fd: BorrowedFd<'_>, timeout_ns: u64) -> bool {
        eventfd::wait(fd, timeout_ns.saturating_mul(self.slowdown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_may_share_a_card() {
        fn check<T: Send + Sync>() {}
        check::<Vfio>();
    }

    #[test]
    fn nothing_is_opened_without_a_device() {
        let open = |address| Vfio::open(address).map(drop).unwrap_err();
        assert!(matches!(open("eth0"), VfioError::Address { .. }));
        let absent = open("ffff:ff:1f.7");
        assert!(matches!(absent, VfioError::Absent { .. }), "{absent}");
    }
}
