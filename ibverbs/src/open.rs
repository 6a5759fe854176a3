//! Opening a device: the context with its table of functions.

use std::ptr;

use crate::abi::*;
use crate::async_box::AsyncBox;
use crate::context::ContextHandle;
use crate::device::Device;
use crate::errno::{Errno, or_null};
use crate::{cq, events, limits, mw, pd, qp, srq};

/// Opens a device.
fn open(device: &'static Device) -> Result<*mut ibv_context, Errno> {
    let card = device.open(events::RECEIVERS)?;
    let events = AsyncBox::new()?;
    let mut shown = verbs_context::zero();
    shown.sz = size_of::<verbs_context>();
    shown.query_port = Some(limits::query_port);
    shown.query_device_ex = Some(limits::query_device_ex);
    shown.alloc_parent_domain = Some(pd::alloc_parent_domain);
    shown.create_cq_ex = Some(cq::create_cq_ex);
    shown.create_qp_ex = Some(qp::create_qp_ex);
    shown.modify_qp_rate_limit = Some(qp::modify_qp_rate_limit);
    let context = &mut shown.context;
    context.device = device.shown();
    // No commands go through it; programs duplicate it.
    context.cmd_fd = events.fd();
    context.async_fd = events.fd();
    context.num_comp_vectors = 1;
    context.mutex = libc::PTHREAD_MUTEX_INITIALIZER;
    // All ones: the functions that came later are there.
    context.abi_compat = ptr::without_provenance_mut(usize::MAX);
    context.ops.alloc_mw = Some(mw::alloc_mw);
    context.ops.bind_mw = Some(qp::bind_mw);
    context.ops.dealloc_mw = Some(mw::dealloc_mw);
    context.ops.poll_cq = Some(cq::poll_cq);
    context.ops.req_notify_cq = Some(cq::req_notify_cq);
    context.ops.post_send = Some(qp::post_send);
    context.ops.post_recv = Some(qp::post_recv);
    context.ops.post_srq_recv = Some(srq::post_srq_recv);
    Ok(ContextHandle::add(shown, card, events))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_open_device(device: *mut ibv_device) -> *mut ibv_context {
    or_null(Device::get(device).and_then(open))
}
