//! Protection domains.

use std::ffi::c_int;
use std::sync::Arc;

use ferroce_driver::Pd;
use ferroce_driver::open::AnyBackend;

use crate::abi::{Zero, ibv_context, ibv_pd};
use crate::context::Opened;
use crate::errno::{Errno, or_null, status};
use crate::handle::{Object, Shown, Used, Users, get, object};

/// A protection domain.
pub(crate) struct PdHandle {
    shown: Shown<ibv_pd>,
    pub(crate) pd: Pd<AnyBackend>,
    pub(crate) context: Opened,
    users: Users,
}

object!(PdHandle, ibv_pd, used);

#[unsafe(no_mangle)]
extern "C" fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    let alloc = || {
        let opened = Opened::get(context)?;
        let mut shown = ibv_pd::zero();
        shown.context = context;
        let pd = PdHandle {
            shown: Shown::new(shown),
            pd: opened.card.context.alloc_pd(),
            context: opened,
            users: Users::default(),
        };
        Ok(PdHandle::registry().add(Arc::new(pd)))
    };
    or_null(alloc())
}

#[unsafe(no_mangle)]
extern "C" fn ibv_dealloc_pd(pd: *mut ibv_pd) -> c_int {
    let dealloc = || {
        let pd = get::<PdHandle>(pd)?;
        pd.check_unused()?;
        PdHandle::registry().remove(&pd);
        Ok(())
    };
    status(dealloc())
}

#[unsafe(no_mangle)]
extern "C" fn ibv_import_pd(_: *mut ibv_context, _: u32) -> *mut ibv_pd {
    or_null(Err(Errno::OPNOTSUPP))
}
