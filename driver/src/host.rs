//! The backend and the memory that it makes reachable for the card.

use std::collections::{BTreeMap, BTreeSet};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ferroce_proto::abi::regs::{self, control, status};

use crate::{Backend, BackendError, DmaAccess, eventfd};

/// Time in ns of the card from one look for it to the next in a wait that polls.
const LOOK_NS: u64 = 1_000_000;

/// Takes a lock; what it guards is kept consistent, also when a thread panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A limit of the card's time; one too long to count is for ever.
pub(crate) fn nanoseconds(limit: Duration) -> u64 {
    limit.as_nanos().try_into().unwrap_or(u64::MAX)
}

/// Pages mapped as a unit; they stay until their last user is gone.
struct Pin {
    end: usize,
    access: DmaAccess,
    users: usize,
    /// Users of the pages from an address to the next one.
    parts: BTreeMap<usize, usize>,
}

impl Pin {
    fn new(start: usize, end: usize, access: DmaAccess) -> Self {
        let parts = BTreeMap::from([(start, 1)]);
        Self {
            end,
            access,
            users: 1,
            parts,
        }
    }

    /// First address of the parts that meet `[from, to)`, the first of which holds `from`.
    fn parts(&self, from: usize, to: usize) -> impl Iterator<Item = (usize, usize)> {
        let first = self.parts.range(..=from).next_back();
        let first = first.map_or(from, |(&at, _)| at);
        self.parts.range(first..to).map(|(&at, &users)| (at, users))
    }

    /// First address in `[from, to)` whose users are all gone.
    ///
    /// It stays mapped to the memory that was there, which need not be what the process has there now.
    fn stale(&self, from: usize, to: usize) -> Option<usize> {
        let mut unused = self.parts(from, to).filter(|&(_, users)| users == 0);
        unused.next().map(|(at, _)| at.max(from))
    }

    /// A user of `[from, to)` comes, or goes.
    fn count(&mut self, from: usize, to: usize, change: isize) {
        for at in [from, to] {
            if let Some((_, &users)) = self.parts.range(..=at).next_back()
                && at < self.end
            {
                self.parts.entry(at).or_insert(users);
            }
        }
        for users in self.parts.range_mut(from..to).map(|(_, users)| users) {
            *users = users.saturating_add_signed(change);
        }
        // What is alike on both sides is no boundary.
        for at in [to, from] {
            let below = self.parts.range(..at).next_back().map(|(_, users)| users);
            if below.is_some() && below == self.parts.get(&at) {
                self.parts.remove(&at);
            }
        }
        self.users = self.users.saturating_add_signed(change);
    }
}

/// The backend, shared by everything that was opened on it, and the pages mapped through it.
pub(crate) struct Host<B: Backend> {
    pub(crate) backend: B,
    /// Disjoint ranges of pages by their first address.
    pins: Mutex<BTreeMap<usize, Pin>>,
    /// The card is gone, and reaches no memory any more.
    lost: AtomicBool,
    /// Interrupt vectors that are waited for.
    awaited: Mutex<BTreeSet<u32>>,
}

impl<B: Backend> Host<B> {
    /// Takes the card; `None` if another context has it.
    pub(crate) fn new(backend: B) -> Option<Self> {
        if !backend.opened().take() {
            return None;
        }
        Some(Self {
            backend,
            pins: Mutex::default(),
            lost: AtomicBool::new(false),
            awaited: Mutex::default(),
        })
    }

    /// Writes a register.
    #[inline]
    pub(crate) fn write32(&self, offset: u64, value: u32) {
        // SAFETY: the driver names to the card only memory that it mapped, and its objects keep references away from that.
        unsafe { self.backend.write32(offset, value) };
    }

    /// The card was found to be gone.
    #[inline]
    pub(crate) fn lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Checks whether the card is lost.
    ///
    /// A lost card stays lost, even if it answers again: its state is gone. The driver first unmaps all memory, so that
    /// the card never writes to memory that is freed, then wakes every thread that waits for an interrupt.
    pub(crate) fn look(&self) -> bool {
        if self.lost() {
            return true;
        }
        (self.backend.is_lost() || self.stops_for_ring_error()) && self.give_up()
    }

    /// The card could not write an entry of a ring, for which somebody may wait for ever. It is stopped.
    fn stops_for_ring_error(&self) -> bool {
        let value = self.backend.read32(regs::STATUS.into());
        let lacks = value != u32::MAX && value & status::RING_ERROR != 0;
        if lacks {
            self.stop();
            tracing::error!(
                "a completion or an event is missing (STATUS.ring_error): its memory refused the write"
            );
        }
        lacks
    }

    /// Resets the card, so that it serves no peer without memory: to one behind PCIe a write that the IOMMU drops counts as done.
    pub(crate) fn stop(&self) {
        self.write32(regs::CONTROL.into(), control::ENGINE_RESET);
    }

    /// Unmaps all memory from the card, which counts as lost from then on: it is lost, or the memory it would reach is
    /// unknown. Returns whether the unmapping succeeded.
    pub(crate) fn give_up(&self) -> bool {
        let mut pins = lock(&self.pins);
        pins.retain(|&start, pin| {
            // Only the address counts: nothing is read through the pointer.
            let addr = ptr::without_provenance_mut(start);
            // SAFETY: a range that was mapped here.
            let left = unsafe { self.backend.unmap(addr, pin.end - start) };
            left.inspect_err(|e| tracing::error!("a card that is gone keeps memory: {e}"))
                .is_err()
        });
        if !pins.is_empty() {
            return false;
        }
        self.lost.store(true, Ordering::Release);
        drop(pins);
        for &vector in &*lock(&self.awaited) {
            let woken = self.backend.interrupt(vector).map(eventfd::raise);
            if !matches!(woken, Ok(Ok(()))) {
                tracing::debug!("cannot wake the threads that wait for vector {vector}");
            }
        }
        true
    }

    /// Notes that a thread waits for interrupt `vector`, or no longer does: the loss of the card wakes it.
    pub(crate) fn awaits(&self, vector: u32, awaits: bool) {
        let mut awaited = lock(&self.awaited);
        if awaits {
            awaited.insert(vector);
        } else {
            awaited.remove(&vector);
        }
    }

    /// Turns the wait loop until `done` answers; `None` after `limit_ns`, or when the card is gone.
    pub(crate) fn wait<T>(&self, limit_ns: u64, mut done: impl FnMut() -> Option<T>) -> Option<T> {
        let start = self.backend.now_ns();
        let mut look_at = LOOK_NS;
        loop {
            // The time is taken first: after a long pause of this thread the card still gets its chance.
            let waited = self.backend.now_ns().saturating_sub(start);
            if let Some(value) = done() {
                return Some(value);
            }
            if waited >= look_at || self.lost() {
                look_at = waited.saturating_add(LOOK_NS);
                if self.look() {
                    // What was posted to a card that is gone is done.
                    return done();
                }
            }
            if waited > limit_ns {
                return None;
            }
            self.backend.relax();
        }
    }

    /// Makes the pages of `[addr, addr + len)` reachable. Pages may be pinned many times. A card that is gone reaches none.
    ///
    /// What a mapping permits cannot change while the card uses it. So memory that the process may write is mapped for
    /// both even if only reads are asked for: a later pin of the same pages may ask for writes.
    ///
    /// # Safety
    /// As of [`Backend::map`], for the bytes and until the matching [`unpin`](Self::unpin).
    pub(crate) unsafe fn pin(
        &self,
        addr: *mut u8,
        len: usize,
        access: DmaAccess,
    ) -> Result<(), BackendError> {
        let page = self.backend.page_size();
        let (start, end) = pages(addr.addr(), len, page).ok_or(BackendError::Unaligned {
            addr: addr.addr(),
            len,
            page,
        })?;
        let mut pins = lock(&self.pins);
        if self.lost() {
            return Ok(());
        }
        let held = held(&pins, start, end);
        for (&at, pin) in held.iter().map(|at| (at, &pins[at])) {
            if let Some(stale) = pin.stale(start.max(at), end.min(pin.end)) {
                return Err(BackendError::Stale {
                    addr: stale,
                    from: at,
                    to: pin.end,
                });
            }
            if access == DmaAccess::ReadWrite && pin.access == DmaAccess::Read {
                return Err(BackendError::ReadOnly {
                    addr: start.max(at),
                    from: at,
                    to: pin.end,
                });
            }
        }
        let mut mapped = Vec::new();
        for (from, to) in gaps(&pins, &held, start, end)
            .into_iter()
            .flat_map(|gap| split_edges(gap, addr.addr(), len, page))
        {
            // SAFETY: the pages hold the caller's bytes; what shares the edge pages is not named to the card.
            match unsafe { self.map(addr.with_addr(from), to - from, access) } {
                Ok(access) => mapped.push((from, to, access)),
                Err(e) => {
                    for (from, to, _) in mapped {
                        // SAFETY: a range that was mapped here.
                        let undone = unsafe { self.backend.unmap(addr.with_addr(from), to - from) };
                        if let Err(e) = undone {
                            tracing::error!("memory stays mapped for the card: {e}");
                        }
                    }
                    return Err(e);
                }
            }
        }
        for at in held {
            if let Some(pin) = pins.get_mut(&at) {
                pin.count(start.max(at), end.min(pin.end), 1);
            }
        }
        pins.extend(
            mapped
                .into_iter()
                .map(|(from, end, access)| (from, Pin::new(from, end, access))),
        );
        Ok(())
    }

    /// Maps for both, if the process may do both, and at least for `access`; what it became.
    ///
    /// # Safety
    /// As of [`Backend::map`].
    unsafe fn map(
        &self,
        addr: *mut u8,
        len: usize,
        access: DmaAccess,
    ) -> Result<DmaAccess, BackendError> {
        // SAFETY: the rule is the caller's, unchanged.
        match unsafe { self.backend.map(addr, len, DmaAccess::ReadWrite) } {
            Err(BackendError::Fault { .. }) if access == DmaAccess::Read => {
                // SAFETY: as above.
                unsafe { self.backend.map(addr, len, access) }.map(|()| access)
            }
            mapped => mapped.map(|()| DmaAccess::ReadWrite),
        }
    }

    /// Takes back one [`pin`](Self::pin) of the same range; pages without another user leave the card's reach.
    pub(crate) fn unpin(&self, addr: *mut u8, len: usize) -> Result<(), BackendError> {
        let page = self.backend.page_size();
        let (start, end) = pages(addr.addr(), len, page).ok_or(BackendError::Unaligned {
            addr: addr.addr(),
            len,
            page,
        })?;
        let mut pins = lock(&self.pins);
        let mut result = Ok(());
        for at in held(&pins, start, end) {
            let Some(pin) = pins.get_mut(&at) else {
                continue;
            };
            pin.count(start.max(at), end.min(pin.end), -1);
            if pin.users == 0 {
                let len = pin.end - at;
                pins.remove(&at);
                // SAFETY: a range that was mapped here.
                result = result.and(unsafe { self.backend.unmap(addr.with_addr(at), len) });
            }
        }
        result
    }
}

impl<B: Backend> Drop for Host<B> {
    fn drop(&mut self) {
        self.backend.opened().release();
    }
}

/// First address and end of the pages that hold `[addr, addr + len)`; `None` if empty or at the end of the address space.
fn pages(addr: usize, len: usize, page: usize) -> Option<(usize, usize)> {
    let end = addr.checked_add(len)?.checked_next_multiple_of(page)?;
    (len > 0).then_some((addr - addr % page, end))
}

/// First addresses of the pins that meet `[start, end)`, ascending.
fn held(pins: &BTreeMap<usize, Pin>, start: usize, end: usize) -> Vec<usize> {
    let before = pins
        .range(..start)
        .next_back()
        .filter(|(_, pin)| pin.end > start);
    before
        .into_iter()
        .chain(pins.range(start..end))
        .map(|(&at, _)| at)
        .collect()
}

/// The parts of `[start, end)` that no pin of `held` covers.
fn gaps(
    pins: &BTreeMap<usize, Pin>,
    held: &[usize],
    start: usize,
    end: usize,
) -> Vec<(usize, usize)> {
    let mut gaps = Vec::new();
    let mut at = start;
    for &pin in held {
        if pin > at {
            gaps.push((at, pin));
        }
        at = pins[&pin].end;
    }
    if at < end {
        gaps.push((at, end));
    }
    gaps
}

/// Cuts off a first and a last page that the bytes fill only in part: others may share those, and a
/// range once mapped leaves only as a whole.
fn split_edges(
    (from, to): (usize, usize),
    addr: usize,
    len: usize,
    page: usize,
) -> impl Iterator<Item = (usize, usize)> {
    let head = if from < addr { from + page } else { from };
    let tail = if to > addr + len { to - page } else { to };
    let cuts = [from, head, tail.max(head), to];
    [0, 1, 2]
        .map(|i| (cuts[i], cuts[i + 1]))
        .into_iter()
        .filter(|(from, to)| from < to)
}
