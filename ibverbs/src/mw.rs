//! Memory windows.

use std::ffi::{c_int, c_uint};
use std::sync::Arc;

use ferroce_driver::{Mr, Mw, MwBind, MwType, Qp, SendFlags};

use crate::abi::*;
use crate::errno::{Errno, ToErrno, or_null, status};
use crate::handle::{Core, Held, Object, Shown, get, object};
use crate::mr::{self, MrHandle};
use crate::pd::PdHandle;
use crate::using::Using;

/// A memory window.
pub(crate) struct MwHandle {
    shown: Shown<ibv_mw>,
    core: Core<Using<Mw, Held<PdHandle>>>,
}

object!(MwHandle, ibv_mw);

pub(crate) extern "C" fn alloc_mw(pd: *mut ibv_pd, mw_type: c_int) -> *mut ibv_mw {
    let alloc = || {
        let held = Held::<PdHandle>::get(pd)?;
        let kind = match mw_type {
            IBV_MW_TYPE_1 => MwType::Type1,
            IBV_MW_TYPE_2 => MwType::Type2,
            _ => return Err(Errno::INVAL),
        };
        let mw = held.pd.alloc_mw(kind).map_err(ToErrno::errno)?;
        let shown = ibv_mw {
            context: held.context.shown(),
            pd,
            rkey: mw.rkey(),
            handle: mw.rkey() >> 8,
            r#type: mw_type,
        };
        let handle = MwHandle {
            shown: Shown::new(shown),
            core: Core::new(Using::new(mw, held)),
        };
        Ok(MwHandle::registry().add(Arc::new(handle)))
    };
    or_null(alloc())
}

pub(crate) extern "C" fn dealloc_mw(mw: *mut ibv_mw) -> c_int {
    let dealloc = || {
        let mw = get::<MwHandle>(mw)?;
        MwHandle::registry().remove(&mw);
        mw.core.destroy()
    };
    status(dealloc())
}

/// A window that is to be bound.
#[derive(Clone, Copy)]
pub(crate) struct Bind {
    mw: *mut ibv_mw,
    /// Of type 2.
    key: Option<u32>,
    info: ibv_mw_bind_info,
}

impl Bind {
    /// Type 2 is what has a key.
    pub(crate) fn new(
        mw: *mut ibv_mw,
        key: Option<u32>,
        info: &ibv_mw_bind_info,
    ) -> Result<Self, Errno> {
        let window = get::<MwHandle>(mw)?;
        let is_2 = window.core.with(|mw| Ok(mw.mw_type()))? == MwType::Type2;
        if is_2 != key.is_some() {
            return Err(Errno::INVAL);
        }
        mr::access(info.mw_access_flags)?;
        // what a card would end the queue pair for
        if info.mr.is_null() {
            if info.addr != 0 || info.length != 0 {
                return Err(Errno::INVAL);
            }
        } else {
            let region = get::<MrHandle>(info.mr)?;
            // SAFETY: both are kept here, and the lock under which a region changes its domain is held.
            let domains = region.with(|_| Ok(unsafe { [(*info.mr).pd, (*mw).pd] }))?;
            if domains[0] != domains[1] {
                return Err(Errno::PERM);
            }
        }
        let info = *info;
        Ok(Self { mw, key, info })
    }

    /// Posts it.
    pub(crate) fn post(&self, qp: &mut Qp, request: (u64, SendFlags)) -> Result<(), Errno> {
        let handle = get::<MwHandle>(self.mw)?;
        let info = &self.info;
        let access = mr::access(info.mw_access_flags as c_uint)?;
        handle.core.with(|mw| {
            let mut post = |mr: Option<&Mr>| {
                let (addr, len) = (info.addr, info.length);
                let bind = MwBind {
                    mr,
                    addr,
                    len,
                    access,
                };
                qp.post_bind(mw, &bind, self.key, request)
                    .map_err(ToErrno::errno)?;
                if self.key.is_none() {
                    // SAFETY: the structure is valid as long as the object; the lock of the window is held.
                    unsafe { (*handle.shown.get()).rkey = mw.rkey() };
                }
                Ok(())
            };
            match info.mr.is_null() {
                true => post(None),
                false => get::<MrHandle>(info.mr)?.with(|mr| post(Some(mr))),
            }
        })
    }
}
