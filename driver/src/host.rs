//! The backend and the memory that it makes reachable for the card.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Backend, BackendError};

/// Takes a lock; what it guards is kept consistent, also when a thread panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Pages mapped as a unit; they stay until their last user is gone.
struct Pin {
    end: usize,
    users: usize,
}

/// The backend, shared by everything that was opened on it, and the pages mapped through it.
pub(crate) struct Host<B> {
    pub(crate) backend: B,
    /// Disjoint ranges of pages by their first address.
    pins: Mutex<BTreeMap<usize, Pin>>,
}

impl<B: Backend> Host<B> {
    pub(crate) fn new(backend: B) -> Self {
        Self {
            backend,
            pins: Mutex::default(),
        }
    }

    /// Turns the wait loop until `done` answers; `None` after `limit_ns`.
    pub(crate) fn wait<T>(&self, limit_ns: u64, mut done: impl FnMut() -> Option<T>) -> Option<T> {
        let start = self.backend.now_ns();
        loop {
            // The time is taken first: after a long pause of this thread the card still gets its chance.
            let late = self.backend.now_ns().saturating_sub(start) > limit_ns;
            if let Some(value) = done() {
                return Some(value);
            }
            if late {
                return None;
            }
            self.backend.relax();
        }
    }

    /// Makes the pages of `[addr, addr + len)` reachable. Pages may be pinned many times.
    ///
    /// # Safety
    /// As of [`Backend::map`], for the bytes and until the matching [`unpin`](Self::unpin).
    pub(crate) unsafe fn pin(&self, addr: *mut u8, len: usize) -> Result<(), BackendError> {
        let page = self.backend.page_size();
        let (start, end) = pages(addr.addr(), len, page).ok_or(BackendError::Unaligned {
            addr: addr.addr(),
            len,
            page,
        })?;
        let mut pins = lock(&self.pins);
        let held = held(&pins, start, end);
        let mut mapped = Vec::new();
        for (from, to) in gaps(&pins, &held, start, end)
            .into_iter()
            .flat_map(|gap| split_edges(gap, addr.addr(), len, page))
        {
            // SAFETY: the pages hold the caller's bytes; what shares the edge pages is not named to the card.
            if let Err(e) = unsafe { self.backend.map(addr.with_addr(from), to - from) } {
                for &(from, to) in &mapped {
                    if let Err(e) = self.backend.unmap(addr.with_addr(from), to - from) {
                        tracing::error!("memory stays mapped for the card: {e}");
                    }
                }
                return Err(e);
            }
            mapped.push((from, to));
        }
        for start in held {
            if let Some(pin) = pins.get_mut(&start) {
                pin.users += 1;
            }
        }
        pins.extend(
            mapped
                .into_iter()
                .map(|(from, end)| (from, Pin { end, users: 1 })),
        );
        Ok(())
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
        for start in held(&pins, start, end) {
            let Some(pin) = pins.get_mut(&start) else {
                continue;
            };
            pin.users -= 1;
            if pin.users == 0 {
                let len = pin.end - start;
                pins.remove(&start);
                result = result.and(self.backend.unmap(addr.with_addr(start), len));
            }
        }
        result
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
