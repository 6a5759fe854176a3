//! Access to host memory: DMA, memory region checks, gather and scatter.

use std::rc::Rc;

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::mr::{Access, MrCtx, Right};
use ferroce_proto::abi::wqe::{Sge, WindowBind};

use crate::memory::HostMemory;

/// Reads and writes of host memory. An access that faults is remembered for `STATUS`; what it would
/// have read is zero.
#[derive(Clone)]
pub(super) struct Dma {
    memory: Rc<dyn HostMemory>,
    pub(super) failed: bool,
    /// That of an entry of a ring did.
    pub(super) ring_failed: bool,
}

impl Dma {
    pub(super) fn new(memory: Rc<dyn HostMemory>) -> Self {
        Self {
            memory,
            failed: false,
            ring_failed: false,
        }
    }

    pub(super) fn memory(&self) -> Rc<dyn HostMemory> {
        Rc::clone(&self.memory)
    }

    /// Whether it could be read.
    pub(super) fn read(&mut self, addr: u64, data: &mut [u8]) -> bool {
        let failed = self.memory.read(addr, data).is_err();
        self.failed |= failed;
        !failed
    }

    pub(super) fn read_array<const N: usize>(&mut self, addr: u64) -> [u8; N] {
        let mut data = [0; N];
        self.read(addr, &mut data);
        data
    }

    /// Whether it could be written.
    pub(super) fn write(&mut self, addr: u64, data: &[u8]) -> bool {
        let failed = self.memory.write(addr, data).is_err();
        self.failed |= failed;
        !failed
    }

    /// Writes an entry of a ring.
    pub(super) fn write_entry(&mut self, addr: u64, data: &[u8]) {
        self.ring_failed |= !self.write(addr, data);
    }
}

/// The access is not permitted by the memory region table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Denied;

/// The memory region table.
#[derive(Clone)]
pub(super) struct Regions(Vec<MrCtx>);

impl Regions {
    pub(super) fn new(log_size: u8) -> Self {
        Self(vec![MrCtx::default(); 1 << log_size])
    }

    /// Table index of a key.
    pub(super) fn index(&self, key: u32) -> usize {
        (key >> 8) as usize & (self.0.len() - 1)
    }

    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut MrCtx> {
        self.0.get_mut(index as usize)
    }

    /// Checks an access of `len` bytes at `addr`.
    pub(super) fn check(
        &self,
        key: u32,
        pd: u32,
        qpn: u32,
        addr: u64,
        len: u32,
        right: Right,
    ) -> Result<(), Denied> {
        let access = Access {
            key,
            pd,
            qpn,
            addr,
            len,
            right,
        };
        let permitted = self.0[self.index(key)].permits(&access);
        permitted.then_some(()).ok_or(Denied)
    }

    /// Binds the window at the place of `key` (IB1 10.6.7.2): C10-72 its domain and that of the region, C10-73 the right of the
    /// region, C10-74 its local write, C10-75 its bytes, o10-37.2.30 a type 2 window that is bound, o10-37.2.40 one of no bytes.
    /// As `rxe_check_bind_mw` of Linux has them, but that the key of before may be chosen again.
    pub(super) fn bind(
        &mut self,
        key: u32,
        bind: &WindowBind,
        (pd, qpn): (u32, u32),
    ) -> Result<(), Denied> {
        let index = self.index(key);
        let window = self.0[index];
        let is_own = window.window && window.key >> 8 == key >> 8 && window.pd == pd;
        if !is_own || window.qp_only && (window.valid || bind.length == 0) {
            return Err(Denied);
        }
        let unbound = MrCtx {
            key,
            pd,
            window: true,
            qp_only: window.qp_only,
            ..MrCtx::default()
        };
        let Some(more) = bind.length.checked_sub(1) else {
            self.0[index] = unbound;
            return Ok(());
        };
        let region = self.0[self.index(bind.lkey)];
        let last = bind.addr.checked_add(more).ok_or(Denied)?;
        let writes = bind.remote_write || bind.remote_atomic;
        let may = region.valid
            && !region.window
            && region.bindable
            // its windows would outlive its key
            && !region.invalidate
            && (region.key, region.pd) == (bind.lkey, pd)
            && (!writes || region.local_write)
            && bind.addr >= region.base
            && last <= region.last;
        if !may {
            return Err(Denied);
        }
        self.0[index] = MrCtx {
            base: bind.addr,
            last,
            valid: true,
            remote_write: bind.remote_write,
            remote_read: bind.remote_read,
            remote_atomic: bind.remote_atomic,
            qpn: if window.qp_only { qpn } else { 0 },
            ..unbound
        };
        Ok(())
    }

    /// Makes a key invalid, for a queue pair or its peer (LOCAL INVALIDATE, SEND with Invalidate).
    pub(super) fn invalidate(&mut self, key: u32, pd: u32, qpn: u32) -> Result<(), Denied> {
        let index = self.index(key);
        let mr = &mut self.0[index];
        // Of windows only those of type 2, of regions only those made for it (IB1 10.6.5, 10.6.7).
        let may = match mr.qp_only {
            true => mr.qpn == qpn,
            false => !mr.window && mr.invalidate,
        };
        if !(mr.valid && mr.key == key && mr.pd == pd && may) {
            return Err(Denied);
        }
        mr.valid = false;
        Ok(())
    }
}

/// The pieces of a gather or scatter list that hold `len` bytes from byte `offset` of the message.
/// Fewer when the list ends before.
fn pieces(list: &[Sge], offset: u32, len: usize) -> Vec<Sge> {
    let (mut skip, mut left) = (u64::from(offset), len as u64);
    let mut pieces = Vec::new();
    for sge in list {
        let length = u64::from(sge.length);
        let start = skip.min(length);
        let n = (length - start).min(left);
        if n > 0 {
            // An address that wraps is refused by the region check of the piece before it.
            pieces.push(Sge {
                addr: sge.addr.wrapping_add(start),
                length: n as u32,
                lkey: sge.lkey,
            });
        }
        skip -= start;
        left -= n;
    }
    pieces
}

/// Reads `data.len()` bytes from byte `offset` of the message that `list` describes; or the status with which the message
/// fails: a local protection error is one of keys alone (IB1 11.6.2), memory that cannot be read is a fault of the host's own.
pub(super) fn gather(
    dma: &mut Dma,
    regions: &Regions,
    (pd, qpn): (u32, u32),
    list: &[Sge],
    offset: u32,
    data: &mut [u8],
) -> Result<(), u8> {
    let mut data = data;
    for p in pieces(list, offset, data.len()) {
        let check = regions.check(p.lkey, pd, qpn, p.addr, p.length, Right::LocalRead);
        check.map_err(|_| status::LOC_PROT_ERR)?;
        let (now, rest) = data.split_at_mut(p.length as usize);
        if !dma.read(p.addr, now) {
            return Err(status::GENERAL_ERR);
        }
        data = rest;
    }
    Ok(())
}

/// Writes `data` at byte `offset` of the message that `list` describes; nothing if any piece of it is
/// not permitted. The list holds offset + length bytes. The status with which the message fails is that of [`gather`].
pub(super) fn scatter(
    dma: &mut Dma,
    regions: &Regions,
    (pd, qpn): (u32, u32),
    list: &[Sge],
    offset: u32,
    data: &[u8],
) -> Result<(), u8> {
    let pieces = pieces(list, offset, data.len());
    for p in &pieces {
        let check = regions.check(p.lkey, pd, qpn, p.addr, p.length, Right::LocalWrite);
        check.map_err(|_| status::LOC_PROT_ERR)?;
    }
    let (mut data, mut written) = (data, true);
    for p in &pieces {
        let (now, rest) = data.split_at(p.length as usize);
        written &= dma.write(p.addr, now);
        data = rest;
    }
    written.then_some(()).ok_or(status::GENERAL_ERR)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: u32 = 0x0000_0342;

    fn regions() -> Regions {
        let mut r = Regions::new(4);
        *r.get_mut(3).unwrap() = MrCtx {
            base: 0x1000,
            last: 0x1fff,
            key: KEY,
            pd: 7,
            valid: true,
            remote_write: true,
            ..MrCtx::default()
        };
        r
    }

    #[test]
    fn bounds_are_inclusive_and_do_not_wrap() {
        let mut r = regions();
        let check =
            |r: &Regions, addr, len| r.check(KEY, 7, 2, addr, len, Right::RemoteWrite).is_ok();
        assert!(check(&r, 0x1000, 0x1000));
        assert!(check(&r, 0x1fff, 1));
        assert!(!check(&r, 0xfff, 1));
        assert!(!check(&r, 0x1fff, 2));
        assert!(!check(&r, 0x1000, 0x1001));
        assert!(!check(&r, u64::MAX, 2));
        assert!(check(&r, 0, 0), "zero bytes reach everywhere");
        let mr = r.get_mut(3).unwrap();
        (mr.base, mr.last) = (u64::MAX - 9, u64::MAX);
        assert!(check(&r, u64::MAX - 9, 10));
        assert!(!check(&r, u64::MAX - 9, 11), "no wrap to address 0");
    }

    #[test]
    fn key_domain_and_right_count() {
        let mut r = regions();
        assert_eq!(r.check(KEY, 7, 2, 0x1000, 1, Right::LocalRead), Ok(()));
        assert_eq!(
            r.check(KEY + 1, 7, 2, 0x1000, 1, Right::LocalRead),
            Err(Denied),
            "key variant"
        );
        assert_eq!(
            r.check(KEY + 0x1000, 7, 2, 0x1000, 1, Right::LocalRead),
            Err(Denied),
            "index alias"
        );
        assert_eq!(
            r.check(KEY, 8, 2, 0x1000, 1, Right::LocalRead),
            Err(Denied),
            "protection domain"
        );
        for right in [Right::LocalWrite, Right::RemoteRead, Right::RemoteAtomic] {
            assert_eq!(
                r.check(KEY, 7, 2, 0x1000, 1, right),
                Err(Denied),
                "{right:?}"
            );
        }
        assert_eq!(r.invalidate(KEY, 7, 2), Err(Denied), "registered for good");
        r.get_mut(3).unwrap().invalidate = true;
        assert_eq!(r.invalidate(KEY, 8, 2), Err(Denied));
        assert_eq!(r.invalidate(KEY, 7, 2), Ok(()));
        assert_eq!(r.check(KEY, 7, 2, 0x1000, 1, Right::LocalRead), Err(Denied));
    }

    #[test]
    fn windows_are_of_their_queue_pair() {
        let mut r = regions();
        let remote = |r: &Regions, qpn| r.check(KEY, 7, qpn, 0x1000, 1, Right::RemoteWrite).is_ok();
        *r.get_mut(3).unwrap() = MrCtx {
            window: true,
            ..*r.get_mut(3).unwrap()
        };
        for right in [Right::LocalRead, Right::LocalWrite] {
            assert_eq!(r.check(KEY, 7, 2, 0x1000, 1, right), Err(Denied));
        }
        assert!(remote(&r, 2) && remote(&r, 3), "type 1");
        assert_eq!(r.invalidate(KEY, 7, 2), Err(Denied));
        let mr = r.get_mut(3).unwrap();
        (mr.qp_only, mr.qpn) = (true, 2);
        assert!(remote(&r, 2) && !remote(&r, 3), "type 2");
        assert_eq!(r.invalidate(KEY, 7, 3), Err(Denied));
        assert_eq!(r.invalidate(KEY, 7, 2), Ok(()));
    }

    #[test]
    fn pieces_of_a_list() {
        let sge = |addr, length| Sge {
            addr,
            length,
            lkey: 1,
        };
        let list = [sge(100, 10), sge(0, 0), sge(200, 5), sge(300, 100)];
        assert_eq!(pieces(&list, 0, 10), [sge(100, 10)]);
        assert_eq!(
            pieces(&list, 8, 10),
            [sge(108, 2), sge(200, 5), sge(300, 3)]
        );
        assert_eq!(pieces(&list, 15, 1), [sge(300, 1)]);
        assert_eq!(pieces(&list, 114, 5), [sge(399, 1)], "the list ends");
    }
}
