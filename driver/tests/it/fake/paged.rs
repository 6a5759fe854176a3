//! A card whose doorbells are mapped memory, as those of a card in a slot: a store each.

use std::os::fd::{BorrowedFd, OwnedFd};

use ferroce_driver::{Backend, BackendError, DmaAccess, Opened};
use ferroce_proto::abi::{doorbell, regs};
use memmap2::MmapRaw;

use super::Fake;

/// The fake card with the doorbell pages of its BAR as memory.
pub(crate) struct Paged {
    pub(crate) fake: Fake,
    doorbells: MmapRaw,
}

impl Paged {
    pub(crate) fn new(fake: Fake) -> Self {
        let len = (regs::BAR0_BYTES - doorbell::QP_BASE) as usize;
        let doorbells = memmap2::MmapMut::map_anon(len).unwrap().into();
        Self { fake, doorbells }
    }

    /// Pointer to the doorbell at byte `offset` of the BAR.
    #[inline]
    fn doorbell(&self, offset: u64) -> *mut u32 {
        let at = (offset - doorbell::QP_BASE) as usize;
        assert!(at < self.doorbells.len());
        // SAFETY: within the mapping, see above.
        unsafe { self.doorbells.as_mut_ptr().add(at).cast() }
    }

    /// What was rung last.
    pub(crate) fn rung(&self, offset: u64) -> u32 {
        // SAFETY: within the mapping, aligned as doorbells are, and touched by raw pointers only.
        unsafe { self.doorbell(offset).read_volatile() }
    }
}

impl Backend for Paged {
    fn read32(&self, offset: u64) -> u32 {
        self.fake.read32(offset)
    }

    #[inline]
    unsafe fn write32(&self, offset: u64, value: u32) {
        if offset < doorbell::QP_BASE {
            // SAFETY: the rule is the caller's, unchanged.
            return unsafe { self.fake.write32(offset, value) };
        }
        // SAFETY: within the mapping, aligned as doorbells are, and touched by raw pointers only.
        unsafe { self.doorbell(offset).write_volatile(value) };
    }

    unsafe fn map(&self, addr: *mut u8, len: usize, access: DmaAccess) -> Result<(), BackendError> {
        // SAFETY: the rule is the caller's, unchanged.
        unsafe { self.fake.map(addr, len, access) }
    }

    unsafe fn unmap(&self, addr: *mut u8, len: usize) -> Result<(), BackendError> {
        // SAFETY: the rule is the caller's, unchanged.
        unsafe { self.fake.unmap(addr, len) }
    }

    fn opened(&self) -> &Opened {
        self.fake.opened()
    }

    fn seed(&self) -> Option<u64> {
        self.fake.seed()
    }

    fn relax(&self) {
        self.fake.relax();
    }

    fn now_ns(&self) -> u64 {
        self.fake.now_ns()
    }

    fn page_size(&self) -> usize {
        self.fake.page_size()
    }

    fn bar_len(&self) -> u64 {
        self.fake.bar_len()
    }

    fn vectors(&self) -> u32 {
        self.fake.vectors()
    }

    fn interrupt(&self, vector: u32) -> Result<OwnedFd, BackendError> {
        self.fake.interrupt(vector)
    }

    fn wait_readable(&self, fd: BorrowedFd<'_>, timeout_ns: u64) -> bool {
        self.fake.wait_readable(fd, timeout_ns)
    }
}
