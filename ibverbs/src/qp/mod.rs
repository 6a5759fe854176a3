//! Queue pairs.

mod batch;
mod extended;
mod modify;
mod post;
mod query;

use std::ffi::c_int;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use ferroce_driver::{Qp, QpBuilder, QpState, QpType};

use crate::abi::*;
use crate::context::Opened;
use crate::cq::CqHandle;
use crate::errno::{Errno, ToErrno, or_null, status};
use crate::handle::{Acks, Core, Held, Object, Shown, get, object};
use crate::pd::PdHandle;
use crate::srq::SrqHandle;
use crate::turn::Turn;
use crate::using::Using;
use batch::Batch;
pub(crate) use extended::create_qp_ex;
pub(crate) use modify::modify_qp_rate_limit;
pub(crate) use post::{bind_mw, post_recv, post_send};

/// What a queue pair uses.
type Uses = (Held<PdHandle>, [Held<CqHandle>; 2], Option<Held<SrqHandle>>);

/// A queue pair.
pub(crate) struct QpHandle {
    shown: Shown<ibv_qp_ex>,
    pub(crate) qp: Core<Using<Qp, Uses>>,
    pub(crate) number: u32,
    /// As it was made, with the sizes it got.
    init: ibv_qp_init_attr,
    /// Attributes as they were set. Whoever has their lock may take that of `qp`, not the other way round.
    attr: Mutex<ibv_qp_attr>,
    pd: Arc<PdHandle>,
    pub(crate) events: Acks,
    /// The transition to SQD asked for an event when the send queue has drained.
    pub(crate) reports_drained: AtomicBool,
    /// Operations of `ibv_wr_*` that it was made for; 0 if for none.
    operations: u64,
    /// Requests from `wr_start` to `wr_complete`.
    batch: Turn<Batch>,
}

// SAFETY: its pointers are handles, which are looked up before they are followed.
unsafe impl Send for QpHandle {}
// SAFETY: as above; what changes is behind locks.
unsafe impl Sync for QpHandle {}

object!(QpHandle, ibv_qp);

impl QpHandle {
    pub(crate) fn context(&self) -> &Opened {
        &self.pd.context
    }

    /// Shows the program a state.
    fn show(&self, state: QpState) {
        // SAFETY: the structure is valid as long as the object; programs read the field.
        unsafe { (*self.shown.get()).qp_base.state = code(state) };
    }
}

/// A state as the header counts.
fn code(state: QpState) -> c_int {
    match state {
        QpState::Reset => IBV_QPS_RESET,
        QpState::Init => IBV_QPS_INIT,
        QpState::Rtr => IBV_QPS_RTR,
        QpState::Rts => IBV_QPS_RTS,
        QpState::Sqd => IBV_QPS_SQD,
        QpState::Sqe => IBV_QPS_SQE,
        _ => IBV_QPS_ERR,
    }
}

/// A queue of 0 requests is one of 1, which stays unused; with a shared receive queue the sizes of the own one do not count.
fn sized<'a>(builder: QpBuilder<'a>, init: &ibv_qp_init_attr) -> QpBuilder<'a> {
    let cap = &init.cap;
    let (max_recv_wr, max_recv_sge) = match init.srq.is_null() {
        true => (cap.max_recv_wr.max(1), cap.max_recv_sge),
        false => (1, 1),
    };
    let builder = builder
        .max_send_wr(cap.max_send_wr.max(1))
        .max_recv_wr(max_recv_wr)
        .max_send_sge(cap.max_send_sge)
        .max_recv_sge(max_recv_sge)
        .max_inline_data(cap.max_inline_data);
    if init.sq_sig_all != 0 {
        builder.signal_all()
    } else {
        builder
    }
}

/// Makes a queue pair that has the functions of `shown` for `operations`; what it can hold is written into `init`.
fn create(
    pd: *mut ibv_pd,
    init: &mut ibv_qp_init_attr,
    mut shown: ibv_qp_ex,
    operations: u64,
    is_gsi: bool,
) -> Result<*mut ibv_qp, Errno> {
    let domain = get::<PdHandle>(pd)?;
    let held = Held::new(domain.clone());
    let send = Held::<CqHandle>::get(init.send_cq)?;
    let recv = Held::<CqHandle>::get(init.recv_cq)?;
    let srq = match init.srq.is_null() {
        true => None,
        false => Some(Held::<SrqHandle>::get(init.srq)?),
    };
    let builder = Qp::builder(&held.pd);
    let builder = match init.qp_type {
        _ if is_gsi => builder.gsi(),
        IBV_QPT_RC => builder.rc(),
        IBV_QPT_UC => builder.uc(),
        IBV_QPT_UD => builder.ud(),
        _ => return Err(Errno::OPNOTSUPP),
    };
    let builder = sized(builder, init);
    // Threads that poll or post meanwhile do not wait until the queue pair is built.
    let builder = send.cq.with(|cq| Ok(builder.send_cq(cq)))?;
    let builder = recv.cq.with(|cq| Ok(builder.recv_cq(cq)))?;
    let builder = match &srq {
        None => builder,
        Some(srq) => srq.srq.with(|srq| Ok(builder.srq(srq)))?,
    };
    let qp = builder.build().map_err(ToErrno::errno)?;

    init.cap.max_send_wr = qp.max_send_wr();
    match srq {
        None => init.cap.max_recv_wr = qp.max_recv_wr(),
        Some(_) => (init.cap.max_recv_wr, init.cap.max_recv_sge) = (0, 0),
    }
    let number = qp.qpn();
    shown.qp_base = ibv_qp {
        context: held.context.shown(),
        qp_context: init.qp_context,
        pd,
        send_cq: init.send_cq,
        recv_cq: init.recv_cq,
        srq: init.srq,
        handle: number,
        qp_num: number,
        state: code(qp.state()),
        qp_type: init.qp_type,
        mutex: libc::PTHREAD_MUTEX_INITIALIZER,
        cond: libc::PTHREAD_COND_INITIALIZER,
        events_completed: 0,
    };
    let mut attr = ibv_qp_attr::zero();
    attr.cap = init.cap;
    let handle = QpHandle {
        shown: Shown::new(shown),
        qp: Core::new(Using::new(qp, (held, [send, recv], srq))),
        number,
        init: *init,
        attr: Mutex::new(attr),
        pd: domain,
        events: Acks::default(),
        reports_drained: AtomicBool::default(),
        operations,
        batch: Turn::new(Batch::default()),
    };
    Ok(QpHandle::registry().add(Arc::new(handle)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_qp(pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> *mut ibv_qp {
    // SAFETY: the caller gives the attributes, and has the actual sizes written there.
    or_null(create(
        pd,
        unsafe { &mut *init },
        ibv_qp_ex::zero(),
        0,
        false,
    ))
}

/// The queue pair of management, number 1, which in Linux is the kernel's: for the connection manager beside this library.
#[unsafe(no_mangle)]
unsafe extern "C" fn ferroce_create_gsi_qp(
    pd: *mut ibv_pd,
    init: *mut ibv_qp_init_attr,
) -> *mut ibv_qp {
    // SAFETY: the caller gives the attributes, and has the actual sizes written there.
    let init = unsafe { &mut *init };
    init.qp_type = IBV_QPT_UD;
    or_null(create(pd, init, ibv_qp_ex::zero(), 0, true))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_destroy_qp(qp: *mut ibv_qp) -> c_int {
    let destroy = || {
        let qp = get::<QpHandle>(qp)?;
        qp.context().card.between_events(|| qp.qp.destroy())?;
        qp.context().events.end(qp.shown().cast(), &qp.events);
        QpHandle::registry().remove(&qp);
        Ok(())
    };
    status(destroy())
}

impl QpHandle {
    fn is_ud(qp: &Qp) -> bool {
        qp.qp_type() == QpType::Ud
    }
}

/// The interface of posting call by call, of a queue pair that was made with it.
#[unsafe(no_mangle)]
extern "C" fn ibv_qp_to_qp_ex(qp: *mut ibv_qp) -> *mut ibv_qp_ex {
    or_null(get::<QpHandle>(qp).and_then(|qp| match qp.operations {
        0 => Err(Errno::OPNOTSUPP),
        _ => Ok(qp.shown.get()),
    }))
}

/// The card writes data of a message in any order.
#[unsafe(no_mangle)]
extern "C" fn ibv_query_qp_data_in_order(_: *mut ibv_qp, _: c_int, _: u32) -> c_int {
    0
}

/// No options of vendors: all zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_ece(qp: *mut ibv_qp, ece: *mut ibv_ece) -> c_int {
    status(get::<QpHandle>(qp).map(|_| {
        // SAFETY: the caller gives a place for the options.
        unsafe {
            *ece = ibv_ece {
                vendor_id: 0,
                options: 0,
                comp_mask: 0,
            };
        }
    }))
}

/// Only no options can be set.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_set_ece(qp: *mut ibv_qp, ece: *mut ibv_ece) -> c_int {
    status(get::<QpHandle>(qp).and_then(|_| {
        // SAFETY: the caller gives the options.
        let ece = unsafe { *ece };
        match (ece.vendor_id, ece.comp_mask) {
            (_, 1..) => Err(Errno::INVAL),
            (0, 0) => Ok(()),
            _ => Err(Errno::OPNOTSUPP),
        }
    }))
}
