//! The world under the driver: register access, memory for DMA, waiting, interrupts.
//!
//! One trait, implemented by the simulated card and by VFIO. The driver is generic over it, so that
//! with VFIO a doorbell is one volatile store.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use ferroce_proto::abi::regs;
use thiserror::Error;

use crate::DmaAccess;

/// What the driver needs from the world.
///
/// The order of register accesses is program order. A write is not reordered with writes to ordinary
/// memory that a release fence put before it.
pub trait Backend {
    /// Reads the 32-bit register at byte `offset` of BAR0, a multiple of 4.
    ///
    /// A card that does not answer reads as all ones, as on PCIe.
    fn read32(&self, offset: u64) -> u32;

    /// Writes the 32-bit register at byte `offset` of BAR0, a multiple of 4.
    ///
    /// # Safety
    /// A register may tell the card what memory to read and write: it touches none that others have a reference to.
    unsafe fn write32(&self, offset: u64, value: u32);

    /// Makes `[addr, addr + len)` reachable for the card at IOVA = `addr`, for `access` and no more.
    ///
    /// Both are multiples of [`page_size`](Self::page_size). Ranges that are mapped at the same time do not overlap.
    ///
    /// # Errors
    /// [`BackendError`]: the range is unaligned or overlaps a mapped one, or the system refuses (limits, no memory).
    /// [`BackendError::Fault`] if the process itself may not access all of it so.
    ///
    /// # Safety
    /// Until [`unmap`](Self::unmap) the memory stays allocated and keeps its rights, and the card may access it at any
    /// time: no Rust reference exists to bytes that a request or a right lets the card write.
    unsafe fn map(&self, addr: *mut u8, len: usize, access: DmaAccess) -> Result<(), BackendError>;

    /// Takes a range mapped by [`map`](Self::map), the whole of it, from the card.
    ///
    /// After the return the card reaches none of it.
    ///
    /// # Errors
    /// [`BackendError`]: the range is not mapped as such, or the system refuses.
    ///
    /// # Safety
    /// The caller mapped it, or acts for the code that did: no other code relies on the card's access to it.
    unsafe fn unmap(&self, addr: *mut u8, len: usize) -> Result<(), BackendError>;

    /// By which contexts see to it that there is one at a time; references to a backend and clones of it share it.
    fn opened(&self) -> &Opened;

    /// What the numbers that a peer sees are made of, for simulations that are the same each time. Unless a backend says
    /// one they are random, so that others do not guess them.
    fn seed(&self) -> Option<u64> {
        None
    }

    /// One turn of a wait loop: a pause on hardware; in simulation time advances.
    fn relax(&self);

    /// Time of the card's world in ns since some start; never goes back. Bounds waits.
    fn now_ns(&self) -> u64;

    /// Granularity of [`map`](Self::map) in bytes, a power of two.
    fn page_size(&self) -> usize;

    /// Bytes of BAR0 that [`read32`](Self::read32) and [`write32`](Self::write32) reach.
    fn bar_len(&self) -> u64;

    /// MSI-X vectors that can be waited on, numbered from 0. With 0 there is only polling.
    fn vectors(&self) -> u32;

    /// An [`eventfd`](crate::eventfd) that becomes readable when the card raises `vector`. Each call hands out a
    /// duplicate of the same one, which counts from its first call on.
    ///
    /// # Errors
    /// [`BackendError::NoVector`] beyond [`vectors`](Self::vectors); [`BackendError::Interrupt`] if the system refuses.
    fn interrupt(&self, vector: u32) -> Result<OwnedFd, BackendError>;

    /// Waits until `fd` is readable or `timeout_ns` of the card's time have passed; whether it is readable.
    ///
    /// On hardware this sleeps, see [`eventfd::wait`](crate::eventfd::wait); in simulation time advances.
    fn wait_readable(&self, fd: BorrowedFd<'_>, timeout_ns: u64) -> bool;

    /// The card is gone. Asked now and then by whatever waits for the card for long.
    ///
    /// Unless a backend knows better: register MAGIC, whose value is fixed, reads as all ones.
    fn is_lost(&self) -> bool {
        self.read32(regs::MAGIC.into()) == u32::MAX
    }
}

/// Whether a context has a card open; not, at first.
#[derive(Debug, Default)]
pub struct Opened(AtomicBool);

impl Opened {
    /// A context opens the card, if no other one has it.
    pub(crate) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    /// It has let go of it.
    pub(crate) fn release(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A [`Backend`] could not change what memory the card reaches, or hand out an interrupt.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BackendError {
    /// Address or length is not a multiple of the page size.
    #[error(
        "memory {addr:#x}+{len:#x} is not aligned to pages of {page} bytes: round both to whole pages"
    )]
    Unaligned {
        /// First address.
        addr: usize,
        /// Bytes.
        len: usize,
        /// Page size in bytes.
        page: usize,
    },
    /// The range overlaps one that is mapped.
    #[error("memory {addr:#x}+{len:#x} overlaps memory that is mapped already: unmap that first")]
    Overlap {
        /// First address.
        addr: usize,
        /// Bytes.
        len: usize,
    },
    /// The range is not mapped, or only part of a mapping.
    #[error("memory {addr:#x}+{len:#x} is not mapped: unmap exactly what was mapped")]
    NotMapped {
        /// First address.
        addr: usize,
        /// Bytes.
        len: usize,
    },
    /// A mapping leaves the card only as a whole: what was given back of it may be other memory by now.
    #[error(
        "memory at {addr:#x} was registered before and is still mapped for the card as it was then: deregister all that lies in {from:#x}..{to:#x} first, or use memory elsewhere"
    )]
    Stale {
        /// First address that is.
        addr: usize,
        /// First address of what is mapped.
        from: usize,
        /// End of what is mapped.
        to: usize,
    },
    /// The IOMMU does not translate these addresses.
    #[error(
        "memory {addr:#x}+{len:#x} is out of the card's reach: the IOMMU translates {ranges}, and the card uses the addresses of the process; map memory at a fixed address in there (a virtual IOMMU takes more address bits with aw-bits=48)"
    )]
    OutOfReach {
        /// First address.
        addr: usize,
        /// Bytes.
        len: usize,
        /// Ranges that the IOMMU translates.
        ranges: String,
    },
    /// The process has no such memory, or may not do with it what the card is to do.
    #[error(
        "memory {addr:#x}+{len:#x} is not, or not all, {access} memory of this process: map it so before it is registered"
    )]
    Fault {
        /// First address.
        addr: usize,
        /// Bytes.
        len: usize,
        /// What the card is to do with it.
        access: DmaAccess,
    },
    /// What a mapping permits does not change: the card might be reading by it.
    #[error(
        "memory at {addr:#x} was not writable when it was registered, so that the card may only read {from:#x}..{to:#x}: deregister all that lies there first"
    )]
    ReadOnly {
        /// First address that is.
        addr: usize,
        /// First address of what is mapped.
        from: usize,
        /// End of what is mapped.
        to: usize,
    },
    /// The process may not pin so much memory.
    #[error(
        "memory {addr:#x}+{len:#x} cannot be pinned: the limit RLIMIT_MEMLOCK of this process is {}; raise it by `ulimit -l`, LimitMEMLOCK= of a service, or /etc/security/limits.conf",
        .limit.map_or("not set, so the system itself has no memory left".into(), |bytes| format!("{bytes} bytes"))
    )]
    MemoryLimit {
        /// First address.
        addr: usize,
        /// Bytes.
        len: usize,
        /// Bytes that may be locked, if there is a limit.
        limit: Option<u64>,
    },
    /// The process has too many mappings.
    #[error(
        "memory {addr:#x}+{len:#x} cannot be mapped: the kernel allows {} mappings; register larger regions, or raise dma_entry_limit of the module vfio_iommu_type1",
        .limit.map_or("no more".into(), |n| n.to_string())
    )]
    Mappings {
        /// First address.
        addr: usize,
        /// Bytes.
        len: usize,
        /// Mappings that a card may have, if the kernel says.
        limit: Option<u32>,
    },
    /// The system refused.
    #[error(
        "the system refused {operation} of {addr:#x}+{len:#x} (for mapping see the locked-memory limit, `ulimit -l`)"
    )]
    System {
        /// What was asked for.
        operation: &'static str,
        /// First address.
        addr: usize,
        /// Bytes.
        len: usize,
        /// Answer of the system.
        #[source]
        source: std::io::Error,
    },
    /// There is no such interrupt vector.
    #[error("interrupt vector {vector} was asked for, the card has {vectors}, numbered from 0")]
    NoVector {
        /// Vector asked for.
        vector: u32,
        /// Vectors there are.
        vectors: u32,
    },
    /// The system refused an interrupt.
    #[error(
        "the system refused an eventfd for interrupt vector {vector} (see the limit of open files, `ulimit -n`)"
    )]
    Interrupt {
        /// Vector asked for.
        vector: u32,
        /// Answer of the system.
        #[source]
        source: std::io::Error,
    },
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<T: Backend + ?Sized> Backend for $pointer {
            #[inline]
            fn read32(&self, offset: u64) -> u32 {
                (**self).read32(offset)
            }
            #[inline]
            unsafe fn write32(&self, offset: u64, value: u32) {
                // SAFETY: the rule is the caller's, unchanged.
                unsafe { (**self).write32(offset, value) };
            }
            unsafe fn map(
                &self,
                addr: *mut u8,
                len: usize,
                access: DmaAccess,
            ) -> Result<(), BackendError> {
                // SAFETY: the rule is the caller's, unchanged.
                unsafe { (**self).map(addr, len, access) }
            }
            unsafe fn unmap(&self, addr: *mut u8, len: usize) -> Result<(), BackendError> {
                // SAFETY: the rule is the caller's, unchanged.
                unsafe { (**self).unmap(addr, len) }
            }
            fn opened(&self) -> &Opened {
                (**self).opened()
            }
            fn seed(&self) -> Option<u64> {
                (**self).seed()
            }
            #[inline]
            fn relax(&self) {
                (**self).relax();
            }
            fn now_ns(&self) -> u64 {
                (**self).now_ns()
            }
            fn page_size(&self) -> usize {
                (**self).page_size()
            }
            fn bar_len(&self) -> u64 {
                (**self).bar_len()
            }
            fn vectors(&self) -> u32 {
                (**self).vectors()
            }
            fn interrupt(&self, vector: u32) -> Result<OwnedFd, BackendError> {
                (**self).interrupt(vector)
            }
            fn wait_readable(&self, fd: BorrowedFd<'_>, timeout_ns: u64) -> bool {
                (**self).wait_readable(fd, timeout_ns)
            }
            fn is_lost(&self) -> bool {
                (**self).is_lost()
            }
        }
    )*};
}
forward!(&T, std::rc::Rc<T>, std::sync::Arc<T>);
