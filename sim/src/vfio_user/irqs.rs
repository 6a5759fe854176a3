//! MSI-X vectors and the eventfds that the client attached to them.

use std::os::fd::OwnedFd;

use bitvec::{order::Lsb0, vec::BitVec};
use ferroce_proto::abi::pci::MSIX_VECTORS;
use ferroce_vfio_user::Errno;
use ferroce_vfio_user::payload::{SetIrqs, irq};
use rustix::event::PollFlags;

/// The vectors of a card.
pub struct Irqs {
    events: Vec<Option<OwnedFd>>,
    /// Raised while nothing was attached.
    pending: BitVec<u8, Lsb0>,
}

impl Default for Irqs {
    fn default() -> Self {
        let vectors = usize::from(MSIX_VECTORS);
        Self {
            events: (0..vectors).map(|_| None).collect(),
            pending: BitVec::repeat(false, vectors),
        }
    }
}

impl Irqs {
    /// Raises a vector. While nothing is attached it is pending; one beyond the table is lost, as on PCIe.
    pub fn raise(&mut self, vector: usize) {
        match self.events.get(vector) {
            Some(Some(event)) => signal(event),
            Some(None) => self.pending.set(vector, true),
            None => {}
        }
    }

    /// Nothing is pending any more.
    pub fn reset(&mut self) {
        self.pending.fill(false);
    }

    /// Pending bits as the PBA has them, bit 0 for vector 0.
    #[must_use]
    pub fn pending(&self) -> Vec<u8> {
        self.pending.as_raw_slice().to_vec()
    }

    /// Interrupts of a type.
    #[must_use]
    pub fn count(index: u32) -> u32 {
        if index == irq::MSIX {
            MSIX_VECTORS.into()
        } else {
            0
        }
    }

    /// Carries out SET_IRQS.
    ///
    /// # Errors
    /// Interrupts that are not there, data that does not fit, or an action that MSI-X does not have.
    pub fn set(&mut self, set: &SetIrqs, data: &[u8], fds: Vec<OwnedFd>) -> Result<(), Errno> {
        let end = set.start.checked_add(set.count).ok_or(Errno::INVAL)?;
        if set.index >= irq::COUNT || end > Self::count(set.index) {
            return Err(Errno::INVAL);
        }
        let vectors = set.start as usize..end as usize;
        let (kind, action) = (set.flags & 0x7, set.flags & 0x38);
        match (kind, action) {
            // The card has no other type; that one is off already.
            (irq::DATA_NONE, irq::ACTION_TRIGGER) if set.index != irq::MSIX => {}
            (irq::DATA_NONE, irq::ACTION_TRIGGER) if set.count == 0 => {
                self.events.iter_mut().for_each(|event| *event = None);
                self.reset();
            }
            (irq::DATA_NONE, irq::ACTION_TRIGGER) => vectors.for_each(|v| self.raise(v)),
            (irq::DATA_BOOL, irq::ACTION_TRIGGER) if data.len() == vectors.len() => {
                let raised = vectors.zip(data).filter(|(_, on)| **on != 0);
                raised.for_each(|(vector, _)| self.raise(vector));
            }
            (irq::DATA_EVENTFD, irq::ACTION_TRIGGER) if fds.is_empty() => {
                self.events[vectors].iter_mut().for_each(|e| *e = None);
            }
            (irq::DATA_EVENTFD, irq::ACTION_TRIGGER) if fds.len() == vectors.len() => {
                for (vector, event) in vectors.zip(fds) {
                    if self.pending.replace(vector, false) {
                        signal(&event);
                    }
                    self.events[vector] = Some(event);
                }
            }
            // MSI-X is masked in its table, not here.
            _ => return Err(Errno::INVAL),
        }
        Ok(())
    }
}

fn signal(event: &OwnedFd) {
    // A counter that is full is readable, and may not hold the card up; what else a client passed gets nothing.
    if super::is_now(event, PollFlags::OUT) {
        let _ = rustix::io::write(event, &1u64.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    fn event() -> (OwnedFd, OwnedFd) {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        (event.try_clone().unwrap(), event)
    }

    fn count(event: impl AsFd) -> u64 {
        let mut count = [0; 8];
        rustix::io::read(event, &mut count).map_or(0, |_| u64::from_ne_bytes(count))
    }

    fn set(flags: u32, start: u32, count: u32) -> SetIrqs {
        SetIrqs {
            argsz: 20,
            flags,
            index: irq::MSIX,
            start,
            count,
        }
    }

    const ATTACH: u32 = irq::DATA_EVENTFD | irq::ACTION_TRIGGER;
    const RAISE: u32 = irq::DATA_NONE | irq::ACTION_TRIGGER;

    #[test]
    fn what_was_raised_before_is_delivered_when_attached() {
        let mut irqs = Irqs::default();
        let (mine, theirs) = event();
        irqs.raise(3);
        irqs.raise(9999);
        assert_eq!(irqs.pending(), [8, 0, 0, 0, 0, 0, 0, 0]);
        irqs.set(&set(ATTACH, 3, 1), &[], vec![theirs]).unwrap();
        assert_eq!(irqs.pending(), [0; 8]);
        assert_eq!(count(&mine), 1);
        irqs.raise(3);
        irqs.set(&set(RAISE, 2, 2), &[], vec![]).unwrap();
        assert_eq!(count(&mine), 2);
        irqs.set(&set(ATTACH, 3, 1), &[], vec![]).unwrap();
        irqs.raise(3);
        assert_eq!(count(&mine), 0, "detached");
        assert_eq!(irqs.pending()[0], 0x0c);
        irqs.set(&set(RAISE, 0, 0), &[], vec![]).unwrap();
        assert_eq!(irqs.pending(), [0; 8]);
    }

    #[test]
    fn the_end_of_another_type_leaves_msi_x() {
        let mut irqs = Irqs::default();
        let (mine, theirs) = event();
        irqs.set(&set(ATTACH, 3, 1), &[], vec![theirs]).unwrap();
        // Index 0 is INTx.
        let mut intx = set(RAISE, 0, 0);
        intx.index = 0;
        irqs.set(&intx, &[], vec![]).unwrap();
        irqs.raise(3);
        assert_eq!(count(&mine), 1);
    }

    #[test]
    fn a_full_event_holds_nothing_up() {
        let mut irqs = Irqs::default();
        let mine = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let theirs = vec![mine.try_clone().unwrap()];
        irqs.set(&set(ATTACH, 3, 1), &[], theirs).unwrap();
        let most = u64::MAX - 1;
        rustix::io::write(&mine, &most.to_ne_bytes()).unwrap();
        irqs.raise(3);
        assert_eq!(count(&mine), most);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut irqs = Irqs::default();
        let bool = irq::DATA_BOOL | irq::ACTION_TRIGGER;
        for (flags, start, count) in [
            (ATTACH, 64, 1),
            (ATTACH, 0, 65),
            (ATTACH, u32::MAX, 2),
            (bool, 0, 2),
            (irq::DATA_NONE | irq::ACTION_MASK, 0, 1),
            (0, 0, 1),
        ] {
            let refused = irqs.set(&set(flags, start, count), &[], vec![]);
            assert_eq!(refused, Err(Errno::INVAL), "{flags:#x} {start} {count}");
        }
        let (_, theirs) = event();
        let refused = irqs.set(&set(ATTACH, 0, 2), &[], vec![theirs]);
        assert_eq!(refused, Err(Errno::INVAL), "one for two");
    }
}
