//! What a card does at host memory, seen and disturbed between the two.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;

use fastrand::Rng;
use ferroce_proto::abi::cq::Cqe;
use ferroce_proto::abi::eq::Eqe;
use ferroce_sim::memory::{Fault, FaultKind, HostMemory, Ranges, Trouble};

/// What a memory wrapper and a test share.
#[derive(Default)]
pub(crate) struct Watch {
    /// Accesses of the card.
    pub(crate) accesses: Cell<u64>,
    /// What the host has, to change it from within an access.
    memory: RefCell<Option<Rc<Ranges>>>,
    rings: RefCell<BTreeMap<u64, Ring>>,
    ambushes: RefCell<Vec<Ambush>>,
    troubles: RefCell<Option<Troubles>>,
}

/// A ring whose entries are read as the card writes them, whatever the host makes of its consumer record.
struct Ring {
    /// Bytes of an entry.
    size: usize,
    /// Entries by place, that came and are not taken.
    entries: Vec<VecDeque<Vec<u8>>>,
    next: usize,
}

/// Bytes that stand at an address from the card's n-th read of it on.
struct Ambush {
    at: u64,
    reads: u32,
    bytes: Vec<u8>,
}

/// How a bus fails.
pub(crate) struct Troubles {
    /// Accesses that may fail; all if there is none.
    places: Vec<Range<u64>>,
    /// One access in so many fails.
    one_in: u32,
    /// Half of the writes that fail are not refused but vanish.
    loses: bool,
    /// One access in so many is late, by 2^8 to 2^`longest` cycles.
    late_in: u32,
    longest: u8,
    rng: Rng,
    /// Accesses that failed, and that were late.
    pub(crate) failed: u64,
    pub(crate) late: u64,
}

impl Troubles {
    pub(crate) fn new(places: Vec<Range<u64>>, one_in: u32, late_in: u32, seed: u64) -> Self {
        Self {
            places,
            one_in,
            loses: true,
            late_in,
            longest: 13,
            rng: Rng::with_seed(seed),
            failed: 0,
            late: 0,
        }
    }

    /// One access in so many is refused.
    pub(crate) fn refuse(places: Vec<Range<u64>>, one_in: u32, seed: u64) -> Self {
        Self {
            loses: false,
            ..Self::new(places, one_in, 0, seed)
        }
    }

    /// All memory stands, for up to 2^15 cycles.
    pub(crate) fn stand(seed: u64) -> Self {
        Self {
            longest: 15,
            ..Self::new(Vec::new(), 0, 1, seed)
        }
    }
}

impl Watch {
    pub(crate) fn attach(&self, memory: Rc<Ranges>) {
        *self.memory.borrow_mut() = Some(memory);
    }

    /// Reads a ring of completions or events from now on.
    pub(crate) fn follow(&self, base: u64, log_size: u8, size: usize) {
        let ring = Ring {
            size,
            entries: vec![VecDeque::new(); 1 << log_size],
            next: 0,
        };
        self.rings.borrow_mut().insert(base, ring);
    }

    /// The next completion.
    pub(crate) fn take(&self, base: u64) -> Option<Cqe> {
        let entry = self.entry(base)?;
        Some(Cqe::parse(entry.first_chunk().expect("32 bytes")))
    }

    /// The next event.
    pub(crate) fn event(&self, base: u64) -> Option<Eqe> {
        let entry = self.entry(base)?;
        Some(Eqe::parse(entry.first_chunk().expect("16 bytes")))
    }

    fn entry(&self, base: u64) -> Option<Vec<u8>> {
        let mut rings = self.rings.borrow_mut();
        let ring = rings.get_mut(&base)?;
        let place = ring.next % ring.entries.len();
        let entry = ring.entries[place].pop_front()?;
        ring.next += 1;
        Some(entry)
    }

    pub(crate) fn leave(&self, base: u64) {
        self.rings.borrow_mut().remove(&base);
    }

    /// At the card's `reads`-th read from now on of the slot at `at` its bytes change, behind the read.
    pub(crate) fn ambush(&self, at: u64, reads: u32, bytes: Vec<u8>) {
        self.ambushes.borrow_mut().push(Ambush { at, reads, bytes });
    }

    pub(crate) fn disarm(&self) {
        self.ambushes.borrow_mut().clear();
    }

    /// How the bus fails from now on; how it did.
    pub(crate) fn trouble(&self, troubles: Option<Troubles>) -> Option<Troubles> {
        self.troubles.replace(troubles)
    }

    fn was_read(&self, addr: u64, len: usize) {
        self.accesses.set(self.accesses.get() + 1);
        let mut ambushes = self.ambushes.borrow_mut();
        ambushes.retain_mut(|ambush| {
            if !(addr..addr.saturating_add(len as u64)).contains(&ambush.at) {
                return true;
            }
            ambush.reads -= 1;
            if ambush.reads == 0
                && let Some(memory) = &*self.memory.borrow()
            {
                // Its memory may be gone since.
                let _ = memory.write(ambush.at, &ambush.bytes);
            }
            ambush.reads > 0
        });
    }

    fn was_written(&self, inner: &dyn HostMemory, addr: u64, len: usize) {
        self.accesses.set(self.accesses.get() + 1);
        let mut rings = self.rings.borrow_mut();
        let Some((&base, ring)) = rings.range_mut(..=addr).next_back() else {
            return;
        };
        let size = ring.size as u64;
        let place = ((addr - base) / size) as usize;
        let end = base + (place as u64 + 1) * size;
        if place < ring.entries.len() && addr + len as u64 == end {
            let mut bytes = vec![0; ring.size];
            if inner.read(end - size, &mut bytes).is_ok() {
                ring.entries[place].push_back(bytes);
            }
        }
    }

    fn draw(&self, addr: u64, kind: FaultKind) -> Trouble {
        let mut troubles = self.troubles.borrow_mut();
        let Some(t) = &mut *troubles else {
            return Trouble::None;
        };
        if t.late_in > 0 && t.rng.u32(..t.late_in) == 0 {
            t.late += 1;
            return Trouble::Late(1 << t.rng.u8(8..=t.longest));
        }
        let here = t.places.is_empty() || t.places.iter().any(|place| place.contains(&addr));
        if !here || t.one_in == 0 || t.rng.u32(..t.one_in) > 0 {
            return Trouble::None;
        }
        t.failed += 1;
        if t.loses && kind == FaultKind::Write && t.rng.bool() {
            return Trouble::Vanishes;
        }
        Trouble::Refused {
            beat: t.rng.u8(..),
            response: t.rng.u8(2..=3),
            ones: t.rng.bool(),
        }
    }
}

/// Host memory with a [`Watch`] before it.
pub(crate) struct Tapped {
    pub(crate) inner: Rc<dyn HostMemory>,
    pub(crate) watch: Rc<Watch>,
    /// The card asks for bytes alone, not how the bus carries them.
    pub(crate) direct: bool,
}

impl Tapped {
    fn refusal(&self, addr: u64, len: usize, kind: FaultKind) -> Option<Trouble> {
        self.direct
            .then(|| self.watch.draw(addr, kind))
            .filter(|trouble| !matches!(trouble, Trouble::None | Trouble::Late(_)) && len > 0)
    }
}

impl HostMemory for Tapped {
    fn read(&self, addr: u64, data: &mut [u8]) -> Result<(), Fault> {
        let (len, kind) = (data.len(), FaultKind::Read);
        if self.refusal(addr, len, kind).is_some() {
            let gone = false;
            return Err(Fault {
                addr,
                len,
                kind,
                gone,
            });
        }
        let result = self.inner.read(addr, data);
        self.watch.was_read(addr, len);
        result
    }

    fn write(&self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        let (len, kind, gone) = (data.len(), FaultKind::Write, false);
        match self.refusal(addr, len, kind) {
            Some(Trouble::Vanishes) => return Ok(()),
            Some(_) => {
                return Err(Fault {
                    addr,
                    len,
                    kind,
                    gone,
                });
            }
            None => {}
        }
        self.inner.write(addr, data)?;
        self.watch.was_written(&*self.inner, addr, len);
        Ok(())
    }

    fn mapped(&self, addr: u64, len: usize) -> usize {
        self.inner.mapped(addr, len)
    }

    fn is_gone(&self, addr: u64, len: usize) -> bool {
        self.inner.is_gone(addr, len)
    }

    fn trouble(&self, addr: u64, kind: FaultKind) -> Trouble {
        self.watch.draw(addr, kind)
    }

    fn faults(&self) -> Vec<Fault> {
        self.inner.faults()
    }
}
