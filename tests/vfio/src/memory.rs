//! Memory at addresses that `edu` can name: below 256 MiB.

use std::ptr::null_mut;

use anyhow::{Context, Result};
use ferroce_driver::vfio::Vfio;
use ferroce_driver::{Backend, BackendError, DmaAccess};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};

/// Where [`Memory::low`] begins; the program itself is far above.
const LOW: usize = 0x0800_0000;

/// Private zeroed memory, touched through raw pointers only.
pub(crate) struct Memory {
    start: *mut u8,
    len: usize,
}

impl Memory {
    /// At the lowest fixed address.
    pub(crate) fn low(len: usize) -> Result<Self> {
        Self::at(LOW, len, MapFlags::PRIVATE)
    }

    /// At fixed address `at`.
    pub(crate) fn at(at: usize, len: usize, flags: MapFlags) -> Result<Self> {
        let flags = flags | MapFlags::FIXED_NOREPLACE;
        Self::anonymous(std::ptr::without_provenance_mut(at), len, flags)
            .with_context(|| format!("{len:#x} bytes at {at:#x}"))
    }

    /// Where the system likes.
    pub(crate) fn high(len: usize) -> Result<Self> {
        Ok(Self::anonymous(null_mut(), len, MapFlags::PRIVATE)?)
    }

    fn anonymous(at: *mut u8, len: usize, flags: MapFlags) -> rustix::io::Result<Self> {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: new memory, at an address where the system finds none yet.
        let start = unsafe { mmap_anonymous(at.cast(), len, rights, flags) }?;
        Ok(Self {
            start: start.cast(),
            len,
        })
    }

    /// Memory of a device: `len` bytes of the BAR that `file` of sysfs is, at fixed address `at`.
    pub(crate) fn of_device(file: &str, at: usize, len: usize) -> Result<Self> {
        let opened = std::fs::File::options().read(true).write(true).open(file)?;
        let flags = MapFlags::SHARED | MapFlags::FIXED_NOREPLACE;
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        let at = std::ptr::without_provenance_mut(at);
        // SAFETY: a new mapping, at an address where the system finds none yet.
        let start = unsafe { mmap(at, len, rights, flags, opened, 0) };
        let start = start.with_context(|| format!("map {file}"))?.cast();
        Ok(Self { start, len })
    }

    pub(crate) fn addr(&self) -> usize {
        self.start.addr()
    }

    pub(crate) fn map(&self, card: &Vfio) -> Result<(), BackendError> {
        self.map_for(card, DmaAccess::ReadWrite)
    }

    pub(crate) fn map_for(&self, card: &Vfio, access: DmaAccess) -> Result<(), BackendError> {
        // SAFETY: the memory is freed by a drop only, which every check leaves to the end, or after
        // `unmap`; it is touched through raw pointers only.
        unsafe { card.map(self.start, self.len, access) }
    }

    /// Takes this process's right to write it.
    pub(crate) fn protect(&self) -> Result<()> {
        // SAFETY: the mapping is this value's own, and no reference into it exists.
        unsafe { mprotect(self.start.cast(), self.len, MprotectFlags::READ) }?;
        Ok(())
    }

    pub(crate) fn unmap(&self, card: &Vfio) -> Result<(), BackendError> {
        // SAFETY: it was mapped by this.
        unsafe { card.unmap(self.start, self.len) }
    }

    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.len);
        for (i, &byte) in bytes.iter().enumerate() {
            // SAFETY: inside of the mapping, see above.
            unsafe { self.start.add(offset + i).write_volatile(byte) }
        }
    }

    pub(crate) fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        assert!(offset + len <= self.len);
        // SAFETY: inside of the mapping, see above.
        let byte = |i| unsafe { self.start.add(offset + i).read_volatile() };
        (0..len).map(byte).collect()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own; what the card still has mapped stays pinned.
        if let Err(error) = unsafe { munmap(self.start.cast(), self.len) } {
            eprintln!("memory is not unmapped: {error}");
        }
    }
}
