//! Host memory as the card's DMA sees it.
//!
//! Addresses are IOVAs, equal to virtual addresses. An access outside of what the host made
//! reachable is refused as a whole, changes nothing and is recorded: a run with faults has failed
//! unless it asked for them.

mod watched;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use ferroce_driver::DmaAccess;

pub use watched::Watched;

/// Direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The card read.
    Read,
    /// The card wrote.
    Write,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

/// A DMA access to memory that the host did not make reachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("DMA {kind} of {len} bytes at {addr:#x} reaches memory that {}", Self::why(*.gone))]
pub struct Fault {
    /// First address of the access.
    pub addr: u64,
    /// Bytes of the access.
    pub len: usize,
    /// Direction.
    pub kind: FaultKind,
    /// The memory is there, and the host took it back.
    pub gone: bool,
}

impl Fault {
    fn why(gone: bool) -> &'static str {
        if gone {
            "the host took back; its end was answered"
        } else {
            "is not mapped for the card; map the buffer first"
        }
    }
}

/// What the bus makes of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trouble {
    /// What was asked for.
    #[default]
    None,
    /// It fails.
    Refused {
        /// The beat of a read that fails, modulo their number.
        beat: u8,
        /// xRESP: SLVERR or DECERR.
        response: u8,
        /// The data of that beat are all ones.
        ones: bool,
    },
    /// A write that is answered well and goes nowhere, as an IOMMU has it.
    Vanishes,
    /// It takes so many cycles more.
    Late(u64),
}

/// The memory of a host, shared between the host and its card as `Rc<dyn HostMemory>`.
pub trait HostMemory {
    /// Reads `data.len()` bytes at `addr`; zero bytes always succeed.
    ///
    /// # Errors
    /// [`Fault`] if any byte is not mapped; `data` is then unchanged.
    fn read(&self, addr: u64, data: &mut [u8]) -> Result<(), Fault>;

    /// Writes `data` at `addr`; zero bytes always succeed.
    ///
    /// # Errors
    /// [`Fault`] if any byte is not mapped; memory is then unchanged.
    fn write(&self, addr: u64, data: &[u8]) -> Result<(), Fault>;

    /// Bytes from `addr` on that are mapped, at most `len`. Asking is no access and never a fault.
    fn mapped(&self, addr: u64, len: usize) -> usize;

    /// The host took some of these bytes back: an access to them is a fault that changes nothing else.
    fn is_gone(&self, _addr: u64, _len: usize) -> bool {
        false
    }

    /// What the bus makes of an access that begins at `addr`; asked once of each.
    fn trouble(&self, addr: u64, kind: FaultKind) -> Trouble;

    /// All faults so far, oldest first.
    fn faults(&self) -> Vec<Fault>;
}

/// A range that cannot be added, because it is empty, wraps round 2^64 or meets one already there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot map {len} bytes at {addr:#x}: the range is empty, wraps round 2^64 or overlaps a mapped one; unmap that first"
)]
pub struct BadRange {
    /// First address asked for.
    pub addr: u64,
    /// Bytes asked for.
    pub len: usize,
}

/// Pieces of memory at sorted, disjoint addresses, and the faults seen.
struct Windows<T> {
    windows: BTreeMap<u64, T>,
    faults: Vec<Fault>,
}

/// A piece of memory with a length.
trait Window {
    fn len(&self) -> usize;

    fn permits(&self, _kind: FaultKind) -> bool {
        true
    }
}

impl<T: Window> Windows<T> {
    const fn new() -> Self {
        Self {
            windows: BTreeMap::new(),
            faults: Vec::new(),
        }
    }

    fn insert(&mut self, addr: u64, window: T) -> Result<(), BadRange> {
        let len = window.len();
        let bad = BadRange { addr, len };
        if len == 0 {
            return Err(bad);
        }
        let last = addr.checked_add(len as u64 - 1).ok_or(bad)?;
        if let Some((&below, w)) = self.windows.range(..=last).next_back()
            && below + (w.len() as u64 - 1) >= addr
        {
            return Err(bad);
        }
        self.windows.insert(addr, window);
        Ok(())
    }

    /// Calls `piece(window, offset in window, offset in access, bytes)` for the parts of an access
    /// that may span neighbouring windows, after all of it is known to be mapped.
    fn access(
        &mut self,
        addr: u64,
        len: usize,
        kind: FaultKind,
        mut piece: impl FnMut(&mut T, usize, usize, usize),
    ) -> Result<(), Fault> {
        if self.mapped(addr, len, |window| window.permits(kind)) < len {
            let gone = false;
            let fault = Fault {
                addr,
                len,
                kind,
                gone,
            };
            self.faults.push(fault);
            return Err(fault);
        }
        let mut done = 0;
        while done < len {
            let at = addr + done as u64;
            let (&start, window) = self.windows.range_mut(..=at).next_back().expect("mapped");
            let offset = (at - start) as usize;
            let bytes = (window.len() - offset).min(len - done);
            piece(window, offset, done, bytes);
            done += bytes;
        }
        Ok(())
    }

    /// Bytes from `addr` on that are mapped, by windows that are `fit`, at most `len`.
    fn mapped(&self, addr: u64, len: usize, fit: impl Fn(&T) -> bool) -> usize {
        let mut done = 0;
        while done < len {
            let Some(at) = addr.checked_add(done as u64) else {
                break;
            };
            let Some((&start, window)) = self.windows.range(..=at).next_back() else {
                break;
            };
            let end = u128::from(start) + window.len() as u128;
            if end <= u128::from(at) || !fit(window) {
                break;
            }
            done += (end - u128::from(at)).min((len - done) as u128) as usize;
        }
        done
    }
}

impl Window for Vec<u8> {
    fn len(&self) -> usize {
        Vec::len(self)
    }
}

/// Memory made of owned buffers at chosen addresses, as replaying a capture needs it.
#[derive(Default)]
pub struct Ranges {
    inner: RefCell<Windows<Vec<u8>>>,
}

impl<T: Window> Default for Windows<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl Ranges {
    /// Empty memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a buffer at `addr`.
    ///
    /// # Errors
    /// [`BadRange`] if it is empty, wraps round 2^64 or overlaps another.
    pub fn map(&self, addr: u64, bytes: Vec<u8>) -> Result<(), BadRange> {
        self.inner.borrow_mut().insert(addr, bytes)
    }

    /// Takes out the buffer that starts at `addr`.
    pub fn unmap(&self, addr: u64) -> Option<Vec<u8>> {
        self.inner.borrow_mut().windows.remove(&addr)
    }
}

impl HostMemory for Ranges {
    fn read(&self, addr: u64, data: &mut [u8]) -> Result<(), Fault> {
        let len = data.len();
        self.inner
            .borrow_mut()
            .access(addr, len, FaultKind::Read, |w, offset, done, n| {
                data[done..done + n].copy_from_slice(&w[offset..offset + n]);
            })
    }

    fn write(&self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        self.inner
            .borrow_mut()
            .access(addr, data.len(), FaultKind::Write, |w, offset, done, n| {
                w[offset..offset + n].copy_from_slice(&data[done..done + n]);
            })
    }

    fn mapped(&self, addr: u64, len: usize) -> usize {
        self.inner.borrow().mapped(addr, len, |_| true)
    }

    fn trouble(&self, _addr: u64, _kind: FaultKind) -> Trouble {
        Trouble::None
    }

    fn faults(&self) -> Vec<Fault> {
        self.inner.borrow().faults.clone()
    }
}

/// A window of this process's memory. The pointer keeps its provenance.
struct Raw {
    start: *mut u8,
    len: usize,
    access: DmaAccess,
}

impl Window for Raw {
    fn len(&self) -> usize {
        self.len
    }

    fn permits(&self, kind: FaultKind) -> bool {
        kind == FaultKind::Read || self.access == DmaAccess::ReadWrite
    }
}

/// Memory made of windows of this very process, at their own virtual addresses.
///
/// It is neither `Send` nor `Sync`: card and host take turns on one thread, so an access never races
/// with the host's own.
#[derive(Default)]
pub struct ProcessMemory {
    inner: RefCell<Windows<Raw>>,
}

impl ProcessMemory {
    /// Nothing mapped.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the card reach `len` bytes from `start`, at the address of `start`, for `access`.
    ///
    /// # Safety
    /// Until [`unmap`](Self::unmap) is called with the same address, the bytes stay allocated and
    /// `start` may be used for that access. No reference to them is used across a call that
    /// may step the card; shared data is touched through raw pointers.
    ///
    /// # Errors
    /// [`BadRange`] if the window is empty, wraps round 2^64 or overlaps another.
    pub unsafe fn map(
        &self,
        start: *mut u8,
        len: usize,
        access: DmaAccess,
    ) -> Result<(), BadRange> {
        let window = Raw { start, len, access };
        self.inner.borrow_mut().insert(start.addr() as u64, window)
    }

    /// Takes back the window that starts at `addr`; `false` if there is none. The card cannot reach
    /// it any more when this returns.
    pub fn unmap(&self, addr: u64) -> bool {
        self.inner.borrow_mut().windows.remove(&addr).is_some()
    }
}

impl HostMemory for ProcessMemory {
    fn read(&self, addr: u64, data: &mut [u8]) -> Result<(), Fault> {
        let len = data.len();
        self.inner
            .borrow_mut()
            .access(addr, len, FaultKind::Read, |w, offset, done, n| {
                let to = &mut data[done..done + n];
                // SAFETY: `access` passes offset + n <= w.len, which `map`'s caller keeps allocated and
                // readable; `to` has n bytes; `copy` permits the two to overlap.
                unsafe { std::ptr::copy(w.start.add(offset), to.as_mut_ptr(), n) };
            })
    }

    fn write(&self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        self.inner
            .borrow_mut()
            .access(addr, data.len(), FaultKind::Write, |w, offset, done, n| {
                let from = &data[done..done + n];
                // SAFETY: `access` passes offset + n <= w.len, which `map`'s caller keeps allocated and
                // writable; `from` has n bytes; `copy` permits the two to overlap.
                unsafe { std::ptr::copy(from.as_ptr(), w.start.add(offset), n) };
            })
    }

    fn mapped(&self, addr: u64, len: usize) -> usize {
        self.inner.borrow().mapped(addr, len, |_| true)
    }

    fn trouble(&self, _addr: u64, _kind: FaultKind) -> Trouble {
        Trouble::None
    }

    fn faults(&self) -> Vec<Fault> {
        self.inner.borrow().faults.clone()
    }
}

#[cfg(test)]
mod tests;
