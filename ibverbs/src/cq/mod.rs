//! Completion queues.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

use ferroce_driver::open::AnyBackend;
use ferroce_driver::{Cq, Notify, Wc, WcFlags, WcOpcode, WcStatus};

use crate::abi::*;
use crate::context::Opened;
use crate::errno::{Errno, ToErrno, or_null, status};
use crate::events::Channel;
use crate::handle::{Acks, Core, Held, Object, Shown, Used, Users, get, object};

/// Completions taken from the driver at a time.
const BATCH: usize = 16;

/// A completion queue.
pub(crate) struct CqHandle {
    shown: Shown<ibv_cq>,
    pub(crate) cq: Core<Cq<AnyBackend>>,
    /// Its number in the card.
    pub(crate) number: u32,
    pub(crate) context: Opened,
    pub(crate) channel: Option<Held<Channel>>,
    users: Users,
    /// Completion events.
    pub(crate) events: Acks,
    /// Asynchronous events.
    pub(crate) failures: Acks,
}

object!(CqHandle, ibv_cq, used);

impl CqHandle {
    /// What the program wants back with events.
    pub(crate) fn user_context(&self) -> *mut c_void {
        // SAFETY: the structure lives as long as the object; nobody writes the field but the program.
        unsafe { (*self.shown.get()).cq_context }
    }
}

fn create(
    context: *mut ibv_context,
    entries: c_int,
    cq_context: *mut c_void,
    channel: *mut ibv_comp_channel,
    vector: c_int,
) -> Result<*mut ibv_cq, Errno> {
    let opened = Opened::get(context)?;
    let entries = u32::try_from(entries).map_err(|_| Errno::INVAL)?;
    if vector != 0 {
        return Err(Errno::INVAL);
    }
    let held = match channel.is_null() {
        true => None,
        false => Some(Held::<Channel>::get(channel)?),
    };
    let device = &opened.card.context;
    let cq = match &held {
        None => device.create_cq(entries).map_err(ToErrno::errno)?,
        Some(channel) => channel.core.with(|channel| {
            device
                .create_cq_on(entries, channel)
                .map_err(ToErrno::errno)
        })?,
    };
    let mut shown = ibv_cq::zero();
    shown.context = context;
    shown.channel = channel;
    shown.cq_context = cq_context;
    shown.handle = cq.cqn();
    shown.cqe = cq.capacity() as c_int;
    shown.mutex = libc::PTHREAD_MUTEX_INITIALIZER;
    shown.cond = libc::PTHREAD_COND_INITIALIZER;
    let handle = CqHandle {
        shown: Shown::new(shown),
        number: cq.cqn(),
        cq: Core::new(cq),
        context: opened,
        channel: held,
        users: Users::default(),
        events: Acks::default(),
        failures: Acks::default(),
    };
    Ok(CqHandle::registry().add(Arc::new(handle)))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_create_cq(
    context: *mut ibv_context,
    entries: c_int,
    cq_context: *mut c_void,
    channel: *mut ibv_comp_channel,
    vector: c_int,
) -> *mut ibv_cq {
    or_null(create(context, entries, cq_context, channel, vector))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_destroy_cq(cq: *mut ibv_cq) -> c_int {
    let destroy = || {
        let cq = get::<CqHandle>(cq)?;
        cq.check_unused()?;
        cq.cq.destroy()?;
        if let Some(channel) = &cq.channel {
            channel.forget(&cq);
        }
        cq.context.events.forget(cq.shown().cast());
        cq.events.wait();
        cq.failures.wait();
        CqHandle::registry().remove(&cq);
        Ok(())
    };
    status(destroy())
}

/// The ring stays as it was created.
#[unsafe(no_mangle)]
extern "C" fn ibv_resize_cq(_: *mut ibv_cq, _: c_int) -> c_int {
    status(Err(Errno::OPNOTSUPP))
}

/// Takes up to `count` completions; how many, or less than 0.
pub(crate) unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, count: c_int, wcs: *mut ibv_wc) -> c_int {
    let poll = || {
        let handle = get::<CqHandle>(cq)?;
        let count = usize::try_from(count).map_err(|_| Errno::INVAL)?;
        let mut taken = 0;
        while taken < count {
            let mut batch = [Wc::default(); BATCH];
            let room = BATCH.min(count - taken);
            let found = handle.cq.with(|cq| Ok(cq.poll(&mut batch[..room])))?;
            for (i, wc) in batch[..found].iter().enumerate() {
                // SAFETY: the caller gives a place for `count` completions.
                unsafe { ptr::write(wcs.add(taken + i), convert(wc)) };
            }
            taken += found;
            if found < room {
                break;
            }
        }
        if taken == 0 {
            handle.context.card.idle();
        }
        Ok(taken as c_int)
    };
    poll().unwrap_or_else(|errno: Errno| -errno.raw_os_error())
}

/// Asks for an event at the next completion.
pub(crate) unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    let notify = match solicited_only {
        0 => Notify::Any,
        _ => Notify::Solicited,
    };
    let armed = get::<CqHandle>(cq).and_then(|cq| {
        cq.cq
            .with(|cq| cq.req_notify(notify).map_err(ToErrno::errno))
    });
    status(armed)
}

/// A completion as the header has it.
fn convert(wc: &Wc) -> ibv_wc {
    let mut flags = 0;
    for (flag, value) in [
        (WcFlags::GRH, IBV_WC_GRH),
        (WcFlags::WITH_IMM, IBV_WC_WITH_IMM),
        (WcFlags::WITH_INV, IBV_WC_WITH_INV),
    ] {
        if wc.flags.contains(flag) {
            flags |= value as u32;
        }
    }
    // Immediate data are in network order, keys are not.
    let imm_data = if wc.flags.contains(WcFlags::WITH_IMM) {
        wc.imm.to_be()
    } else {
        wc.imm
    };
    ibv_wc {
        wr_id: wc.wr_id,
        status: status_code(wc.status),
        opcode: match wc.opcode {
            WcOpcode::RdmaWrite => IBV_WC_RDMA_WRITE,
            WcOpcode::RdmaRead => IBV_WC_RDMA_READ,
            WcOpcode::CompSwap => IBV_WC_COMP_SWAP,
            WcOpcode::FetchAdd => IBV_WC_FETCH_ADD,
            WcOpcode::Recv => IBV_WC_RECV,
            WcOpcode::RecvRdmaWithImm => IBV_WC_RECV_RDMA_WITH_IMM,
            _ => IBV_WC_SEND,
        },
        vendor_err: wc.vendor_err.into(),
        byte_len: wc.byte_len,
        imm_data,
        qp_num: wc.qp_num,
        src_qp: wc.src_qp,
        wc_flags: flags,
        ..ibv_wc::zero()
    }
}

/// A result as the header counts.
fn status_code(status: WcStatus) -> c_int {
    match status {
        WcStatus::Success => IBV_WC_SUCCESS,
        WcStatus::LocLenErr => IBV_WC_LOC_LEN_ERR,
        WcStatus::LocQpOpErr => IBV_WC_LOC_QP_OP_ERR,
        WcStatus::LocProtErr => IBV_WC_LOC_PROT_ERR,
        WcStatus::WrFlushErr => IBV_WC_WR_FLUSH_ERR,
        WcStatus::BadRespErr => IBV_WC_BAD_RESP_ERR,
        WcStatus::RemInvReqErr => IBV_WC_REM_INV_REQ_ERR,
        WcStatus::RemAccessErr => IBV_WC_REM_ACCESS_ERR,
        WcStatus::RemOpErr => IBV_WC_REM_OP_ERR,
        WcStatus::RetryExcErr => IBV_WC_RETRY_EXC_ERR,
        WcStatus::RnrRetryExcErr => IBV_WC_RNR_RETRY_EXC_ERR,
        WcStatus::RemAbortErr => IBV_WC_REM_ABORT_ERR,
        WcStatus::FatalErr => IBV_WC_FATAL_ERR,
        _ => IBV_WC_GENERAL_ERR,
    }
}
