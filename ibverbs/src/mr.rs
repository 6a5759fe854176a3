//! Memory regions.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use ferroce_driver::{Access, Mr, MrChange};

use crate::abi::*;
use crate::errno::{Errno, ToErrno, or_null, status};
use crate::handle::{Core, Held, Object, Shown, get, object};
use crate::pd::PdHandle;

/// Rights that a region, or a peer over a queue pair, can have.
const RIGHTS: [(c_int, Access); 5] = [
    (IBV_ACCESS_LOCAL_WRITE, Access::LOCAL_WRITE),
    (IBV_ACCESS_REMOTE_WRITE, Access::REMOTE_WRITE),
    (IBV_ACCESS_REMOTE_READ, Access::REMOTE_READ),
    (IBV_ACCESS_REMOTE_ATOMIC, Access::REMOTE_ATOMIC),
    (IBV_ACCESS_MW_BIND, Access::MW_BIND),
];

/// The rights that flags name. Hints are left out; what the card does not have is `EOPNOTSUPP`.
pub(crate) fn access(flags: c_uint) -> Result<Access, Errno> {
    let mut left = flags & !((IBV_ACCESS_OPTIONAL_RANGE | IBV_ACCESS_HUGETLB) as c_uint);
    let mut access = Access::empty();
    for (flag, right) in RIGHTS {
        if left & flag as c_uint != 0 {
            access |= right;
            left &= !(flag as c_uint);
        }
    }
    if left != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    Ok(access)
}

/// A memory region.
pub(crate) struct MrHandle {
    shown: Shown<ibv_mr>,
    core: Core<Registered>,
}

/// A region and its protection domain.
struct Registered {
    mr: Mr,
    pd: Held<PdHandle>,
}

object!(MrHandle, ibv_mr);

/// Registers memory. The card names it by the addresses of the process, so that `iova` is `addr`.
fn register(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    flags: c_uint,
) -> Result<*mut ibv_mr, Errno> {
    let held = Held::<PdHandle>::get(pd)?;
    let access = access(flags)?;
    if iova != addr.addr() as u64 {
        return Err(Errno::OPNOTSUPP);
    }
    // SAFETY: the program promises registered memory to the card until it is deregistered (ibv_reg_mr(3)).
    let mr = unsafe { held.pd.reg_mr(addr.cast(), length, access) }.map_err(ToErrno::errno)?;
    let shown = ibv_mr {
        context: held.context.shown(),
        pd,
        addr,
        length,
        handle: mr.lkey() >> 8,
        lkey: mr.lkey(),
        rkey: mr.rkey(),
    };
    let handle = MrHandle {
        shown: Shown::new(shown),
        core: Core::new(Registered { mr, pd: held }),
    };
    Ok(MrHandle::registry().add(Arc::new(handle)))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_reg_mr(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    access: c_int,
) -> *mut ibv_mr {
    or_null(register(
        pd,
        addr,
        length,
        addr.addr() as u64,
        access as c_uint,
    ))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_reg_mr_iova(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: c_int,
) -> *mut ibv_mr {
    or_null(register(pd, addr, length, iova, access as c_uint))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_reg_mr_iova2(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: c_uint,
) -> *mut ibv_mr {
    or_null(register(pd, addr, length, iova, access))
}

impl MrHandle {
    /// Calls `then` with the region; `EINVAL` if it was deregistered.
    pub(crate) fn with<R>(&self, then: impl FnOnce(&Mr) -> Result<R, Errno>) -> Result<R, Errno> {
        self.core.with(|core| then(&core.mr))
    }

    /// Changes what the flags name; the key stays.
    fn reregister(
        &self,
        flags: c_int,
        pd: *mut ibv_pd,
        (addr, length): (*mut c_void, usize),
        rights: c_uint,
    ) -> Result<(), Errno> {
        let has = |flag| flags & flag != 0;
        let domain = match has(IBV_REREG_MR_CHANGE_PD) {
            true => Some(Held::<PdHandle>::get(pd)?),
            false => None,
        };
        let memory = has(IBV_REREG_MR_CHANGE_TRANSLATION).then_some((addr.cast(), length));
        let access = match has(IBV_REREG_MR_CHANGE_ACCESS) {
            true => Some(access(rights)?),
            false => None,
        };
        self.core.with(|core| {
            let change = MrChange {
                pd: domain.as_ref().map(|domain| &domain.pd),
                memory,
                access,
            };
            // SAFETY: the promise of `register`, of what the region is from now on.
            unsafe { core.mr.rereg(&change) }.map_err(ToErrno::errno)?;
            // SAFETY: the structure is valid as long as the object; a region is changed by a thread at a time.
            let shown = unsafe { &mut *self.shown.get() };
            if memory.is_some() {
                (shown.addr, shown.length) = (addr, length);
            }
            if let Some(domain) = domain {
                (shown.pd, shown.context) = (pd, domain.context.shown());
                core.pd = domain;
            }
            Ok(())
        })
    }
}

/// What the card refuses has changed nothing.
#[unsafe(no_mangle)]
extern "C" fn ibv_rereg_mr(
    mr: *mut ibv_mr,
    flags: c_int,
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    access: c_int,
) -> c_int {
    let known =
        IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
    let changed = match flags & !known {
        0 => get::<MrHandle>(mr)
            .and_then(|mr| mr.reregister(flags, pd, (addr, length), access as c_uint)),
        _ => Err(Errno::INVAL),
    };
    match status(changed) {
        0 => 0,
        _ => IBV_REREG_MR_ERR_INPUT,
    }
}

#[unsafe(no_mangle)]
extern "C" fn ibv_dereg_mr(mr: *mut ibv_mr) -> c_int {
    let deregister = || {
        let mr = get::<MrHandle>(mr)?;
        MrHandle::registry().remove(&mr);
        mr.core.destroy()
    };
    status(deregister())
}
