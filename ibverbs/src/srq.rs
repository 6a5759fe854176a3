//! Shared receive queues.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ferroce_driver::Srq;

use crate::abi::*;
use crate::context::Opened;
use crate::errno::{Errno, ToErrno, or_null, status};
use crate::handle::{Acks, Core, Held, Object, Shown, Used, Users, get, object};
use crate::list;
use crate::pd::PdHandle;
use crate::using::Using;

/// A shared receive queue.
pub(crate) struct SrqHandle {
    shown: Shown<ibv_srq>,
    pub(crate) srq: Core<Using<Srq, Held<PdHandle>>>,
    pub(crate) number: u32,
    pd: Arc<PdHandle>,
    max_wr: u32,
    max_sge: u32,
    /// That is armed; 0 once it was reached.
    pub(crate) limit: AtomicU32,
    users: Users,
    pub(crate) events: Acks,
}

object!(SrqHandle, ibv_srq, used);

impl SrqHandle {
    pub(crate) fn context(&self) -> &Opened {
        &self.pd.context
    }

    /// Arms a limit. It shows first: the event that ends it may come at once.
    fn arm(&self, srq: &mut Srq, limit: u16) -> Result<(), Errno> {
        let new = limit.into();
        let before = self.limit.swap(new, Ordering::Relaxed);
        srq.arm(limit).map_err(ToErrno::errno).inspect_err(|_| {
            // Unless the limit before was reached meanwhile.
            let relaxed = Ordering::Relaxed;
            let _ = self.limit.compare_exchange(new, before, relaxed, relaxed);
        })
    }
}

fn create(pd: *mut ibv_pd, init: &mut ibv_srq_init_attr) -> Result<*mut ibv_srq, Errno> {
    let domain = get::<PdHandle>(pd)?;
    let held = Held::new(domain.clone());
    let asked = &mut init.attr;
    let srq = held.pd.create_srq(asked.max_wr, asked.max_sge.max(1));
    let srq = srq.map_err(ToErrno::errno)?;
    asked.max_wr = srq.free();
    asked.max_sge = asked.max_sge.max(1);
    let mut shown = ibv_srq::zero();
    shown.context = held.context.shown();
    shown.srq_context = init.srq_context;
    shown.pd = pd;
    shown.handle = srq.srqn();
    shown.mutex = libc::PTHREAD_MUTEX_INITIALIZER;
    shown.cond = libc::PTHREAD_COND_INITIALIZER;
    let handle = SrqHandle {
        shown: Shown::new(shown),
        number: srq.srqn(),
        srq: Core::new(Using::new(srq, held)),
        pd: domain,
        max_wr: asked.max_wr,
        max_sge: asked.max_sge,
        limit: AtomicU32::new(0),
        users: Users::default(),
        events: Acks::default(),
    };
    Ok(SrqHandle::registry().add(Arc::new(handle)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_srq(pd: *mut ibv_pd, init: *mut ibv_srq_init_attr) -> *mut ibv_srq {
    // SAFETY: the caller gives the attributes, and has the actual sizes written there.
    or_null(create(pd, unsafe { &mut *init }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_modify_srq(
    srq: *mut ibv_srq,
    attr: *mut ibv_srq_attr,
    mask: c_int,
) -> c_int {
    let modify = || {
        let handle = get::<SrqHandle>(srq)?;
        if mask & !(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) != 0 {
            return Err(Errno::INVAL);
        }
        if mask & IBV_SRQ_MAX_WR != 0 {
            return Err(Errno::OPNOTSUPP);
        }
        if mask & IBV_SRQ_LIMIT != 0 {
            // SAFETY: the caller gives the attributes that the mask names.
            let limit = unsafe { (*attr).srq_limit };
            let code = u16::try_from(limit).map_err(|_| Errno::INVAL)?;
            handle.srq.with(|srq| handle.arm(srq, code))?;
        }
        Ok(())
    };
    status(modify())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr) -> c_int {
    status(get::<SrqHandle>(srq).map(|srq| {
        let found = ibv_srq_attr {
            max_wr: srq.max_wr,
            max_sge: srq.max_sge,
            srq_limit: srq.limit.load(Ordering::Relaxed),
        };
        // SAFETY: the caller gives a place for the attributes.
        unsafe { *attr = found }
    }))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_destroy_srq(srq: *mut ibv_srq) -> c_int {
    let destroy = || {
        let srq = get::<SrqHandle>(srq)?;
        srq.check_unused()?;
        srq.context().card.between_events(|| srq.srq.destroy())?;
        srq.context().events.end(srq.shown().cast(), &srq.events);
        SrqHandle::registry().remove(&srq);
        Ok(())
    };
    status(destroy())
}

/// Posts a list of receive requests.
pub(crate) unsafe extern "C" fn post_srq_recv(
    srq: *mut ibv_srq,
    first: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    let post = |handle: &SrqHandle, bad: &mut _| {
        handle.srq.with(|srq| {
            let mut receives = srq.receives();
            // SAFETY: the caller gives a list of requests.
            unsafe { list::receives(first, bad, |wr| receives.add(wr)) }
        })
    };
    // SAFETY: as above.
    unsafe { list::on(srq, first, bad, post) }
}
