//! Memory of which the host takes parts back.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Fault, FaultKind, HostMemory, Ranges, Trouble};

/// The memory of a host as its card reaches it.
///
/// What the host [took back](Self::take_back) stays readable, so that what a card makes of it shows; each access to it is
/// a fault.
pub struct Watched {
    memory: Rc<Ranges>,
    /// Length of what is gone, by its first address; disjoint.
    gone: RefCell<BTreeMap<u64, u64>>,
    late: RefCell<Vec<Fault>>,
}

impl Watched {
    /// All of `memory` may be reached.
    #[must_use]
    pub fn new(memory: Rc<Ranges>) -> Self {
        Self {
            memory,
            gone: RefCell::default(),
            late: RefCell::default(),
        }
    }

    /// The card must not reach these bytes from now on.
    pub fn take_back(&self, addr: u64, len: u64) {
        self.give(addr, len);
        if len > 0 {
            self.gone.borrow_mut().insert(addr, len);
        }
    }

    /// The card may reach these bytes again.
    pub fn give(&self, addr: u64, len: u64) {
        let end = addr.saturating_add(len);
        let mut gone = self.gone.borrow_mut();
        while let Some((start, bytes)) = first(&gone, addr, len) {
            gone.remove(&start);
            if start < addr {
                gone.insert(start, addr - start);
            }
            if start + bytes > end {
                gone.insert(end, start + bytes - end);
            }
        }
    }

    fn look(&self, addr: u64, len: usize, kind: FaultKind) {
        if self.is_gone(addr, len) {
            let gone = true;
            let fault = Fault {
                addr,
                len,
                kind,
                gone,
            };
            self.late.borrow_mut().push(fault);
        }
    }
}

/// The first piece that meets `len` bytes at `addr`.
fn first(gone: &BTreeMap<u64, u64>, addr: u64, len: u64) -> Option<(u64, u64)> {
    let end = addr.saturating_add(len);
    let mut before = gone.range(..end).rev();
    // Pieces are disjoint, so the last that begins before the end reaches furthest.
    let (&start, &bytes) = before.next()?;
    (start + bytes > addr).then_some((start, bytes))
}

impl HostMemory for Watched {
    fn read(&self, addr: u64, data: &mut [u8]) -> Result<(), Fault> {
        self.look(addr, data.len(), FaultKind::Read);
        self.memory.read(addr, data)
    }

    fn write(&self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        self.look(addr, data.len(), FaultKind::Write);
        self.memory.write(addr, data)
    }

    fn mapped(&self, addr: u64, len: usize) -> usize {
        self.memory.mapped(addr, len)
    }

    fn is_gone(&self, addr: u64, len: usize) -> bool {
        let gone = self.gone.borrow();
        // a WRITE of no bytes may name any address
        len > 0 && !gone.is_empty() && first(&gone, addr, len as u64).is_some()
    }

    fn trouble(&self, addr: u64, kind: FaultKind) -> Trouble {
        self.memory.trouble(addr, kind)
    }

    fn faults(&self) -> Vec<Fault> {
        let mut faults = self.memory.faults();
        faults.extend(self.late.borrow().iter());
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_back_is_out_of_reach_and_readable() {
        let ranges = Rc::new(Ranges::new());
        ranges.map(100, vec![7; 100]).unwrap();
        let memory = Watched::new(Rc::clone(&ranges));
        memory.take_back(120, 40);
        memory.give(130, 10);
        let mut byte = [0];
        for (addr, gone) in [(119, false), (120, true), (129, true), (130, false)] {
            let before = memory.faults().len();
            memory.read(addr, &mut byte).unwrap();
            assert_eq!(byte, [7]);
            assert_eq!(memory.faults().len() > before, gone, "{addr}");
        }
        for (addr, len, gone) in [
            (130, 10, false),
            (130, 11, true),
            (159, 1, true),
            (160, 9, false),
            (150, 0, false),
        ] {
            assert_eq!(memory.is_gone(addr, len), gone, "{len} bytes at {addr}");
        }
        memory.write(150, &[1]).unwrap();
        let last = memory.faults().pop().expect("a fault");
        assert_eq!(
            (last.addr, last.kind, last.gone),
            (150, FaultKind::Write, true)
        );
        memory.give(0, 1000);
        assert!(!memory.is_gone(0, 1000));
        ranges.read(150, &mut byte).unwrap();
        assert_eq!(ranges.faults(), [], "the host itself may read");
    }
}
