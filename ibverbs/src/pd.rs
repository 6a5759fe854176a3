//! Protection domains.

use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;

use ferroce_driver::Pd;

use crate::abi::{Zero, ibv_context, ibv_parent_domain_init_attr, ibv_pd};
use crate::context::Opened;
use crate::errno::{Errno, or_null, status};
use crate::handle::{Core, Held, Object, Shown, Used, Users, get, object};

/// A protection domain.
pub(crate) struct PdHandle {
    shown: Shown<ibv_pd>,
    pub(crate) pd: Pd,
    pub(crate) context: Opened,
    users: Users,
    /// The domain that a parent domain is made of.
    of: Core<Option<Held<PdHandle>>>,
}

object!(PdHandle, ibv_pd, used);

#[unsafe(no_mangle)]
extern "C" fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    let opened = Opened::get(context);
    or_null(opened.map(|opened| {
        let pd = opened.card.context.alloc_pd();
        add(context, opened, pd, None)
    }))
}

fn add(
    context: *mut ibv_context,
    opened: Opened,
    pd: Pd,
    of: Option<Held<PdHandle>>,
) -> *mut ibv_pd {
    let mut shown = ibv_pd::zero();
    shown.context = context;
    shown.handle = pd.number();
    let pd = PdHandle {
        shown: Shown::new(shown),
        pd,
        context: opened,
        users: Users::default(),
        of: Core::new(of),
    };
    PdHandle::registry().add(Arc::new(pd))
}

/// Another handle of a domain. Memory of queues is the library's own: allocators of the program are not supported, nor are
/// thread domains.
pub(crate) unsafe extern "C" fn alloc_parent_domain(
    context: *mut ibv_context,
    attr: *mut ibv_parent_domain_init_attr,
) -> *mut ibv_pd {
    // SAFETY: the caller gives the attributes, of which those of the mask, of which there are none, may be missing.
    let (pd, td, comp_mask) = unsafe { ((*attr).pd, (*attr).td, (*attr).comp_mask) };
    let alloc = || {
        let opened = Opened::get(context)?;
        if comp_mask != 0 || !td.is_null() {
            return Err(Errno::OPNOTSUPP);
        }
        let of = Held::<PdHandle>::get(pd)?;
        if !ptr::eq(of.context.shown(), context) {
            return Err(Errno::INVAL);
        }
        Ok(add(context, opened, of.pd.clone(), Some(of)))
    };
    or_null(alloc())
}

#[unsafe(no_mangle)]
extern "C" fn ibv_dealloc_pd(pd: *mut ibv_pd) -> c_int {
    let dealloc = || {
        let pd = get::<PdHandle>(pd)?;
        pd.check_unused()?;
        PdHandle::registry().remove(&pd);
        pd.of.destroy()
    };
    status(dealloc())
}

#[unsafe(no_mangle)]
extern "C" fn ibv_import_pd(_: *mut ibv_context, _: u32) -> *mut ibv_pd {
    or_null(Err(Errno::OPNOTSUPP))
}
