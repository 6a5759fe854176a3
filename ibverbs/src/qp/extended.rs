//! Posting call by call: the functions behind `ibv_wr_*`. A request is begun by its operation, with the `wr_id` and the
//! flags that the structure has then, and described by the calls after it.

use std::ffi::{c_int, c_uint, c_void};
use std::slice;

use ferroce_driver::{Features, Remote, SendOp, Sge};

use super::batch::Batch;
use super::{QpHandle, create};
use crate::abi::*;
use crate::context::Opened;
use crate::errno::{Errno, or_null, status};
use crate::handle::{Object, get};
use crate::list;
use crate::mw::Bind;
use crate::pd::PdHandle;

/// Operations that a queue pair of a type has on a card with these features.
fn operations(qp_type: c_int, features: Features) -> u64 {
    let send = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
    let write = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
    let mut operations = match qp_type {
        IBV_QPT_RC | IBV_QPT_UC => send | write,
        _ => send,
    };
    if qp_type != IBV_QPT_UD && features.contains(Features::MEM_WINDOW) {
        operations |= IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
    }
    let atomics = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    for (feature, operation) in [
        (Features::READ, IBV_QP_EX_WITH_RDMA_READ),
        (Features::ATOMIC, atomics),
        (Features::INVALIDATE, IBV_QP_EX_WITH_SEND_WITH_INV),
    ] {
        if qp_type == IBV_QPT_RC && features.contains(feature) {
            operations |= operation;
        }
    }
    operations as u64
}

/// Creates a queue pair, with the functions below if their operations are asked for.
pub(crate) unsafe extern "C" fn create_qp_ex(
    context: *mut ibv_context,
    attr: *mut ibv_qp_init_attr_ex,
) -> *mut ibv_qp {
    // SAFETY: the caller gives the attributes, which start as those of every queue pair do, and has the actual sizes
    // written there. What came to the structure later is there if the mask says so: only that is read.
    let (init, comp_mask, qp_type) = unsafe {
        let init = &mut *attr.cast::<ibv_qp_init_attr>();
        (init, (*attr).comp_mask, (*attr).qp_type)
    };
    let mut create = || {
        let opened = Opened::get(context)?;
        let has = |flag: c_int| comp_mask & flag as u32 != 0;
        let known =
            IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        if comp_mask & !(known as u32) != 0
            // SAFETY: as above.
            || has(IBV_QP_INIT_ATTR_CREATE_FLAGS) && unsafe { (*attr).create_flags } != 0
        {
            return Err(Errno::OPNOTSUPP);
        }
        let pd = match has(IBV_QP_INIT_ATTR_PD) {
            // SAFETY: as above.
            true => unsafe { (*attr).pd },
            false => return Err(Errno::INVAL),
        };
        if get::<PdHandle>(pd)?.context.shown() != context {
            return Err(Errno::INVAL);
        }
        if !has(IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
            return create(pd, init, ibv_qp_ex::zero(), 0, false);
        }
        // SAFETY: as above.
        let asked = unsafe { (*attr).send_ops_flags };
        let features = opened.card.context.query_device().features;
        if asked & !operations(qp_type, features) != 0 {
            return Err(Errno::OPNOTSUPP);
        }
        create(pd, init, functions(), asked, false)
    };
    or_null(create())
}

fn functions() -> ibv_qp_ex {
    ibv_qp_ex {
        wr_atomic_cmp_swp: Some(wr_atomic_cmp_swp),
        wr_atomic_fetch_add: Some(wr_atomic_fetch_add),
        wr_bind_mw: Some(wr_bind_mw),
        wr_local_inv: Some(wr_local_inv),
        wr_rdma_read: Some(wr_rdma_read),
        wr_rdma_write: Some(wr_rdma_write),
        wr_rdma_write_imm: Some(wr_rdma_write_imm),
        wr_send: Some(wr_send),
        wr_send_imm: Some(wr_send_imm),
        wr_send_inv: Some(wr_send_inv),
        wr_send_tso: Some(wr_send_tso),
        wr_set_ud_addr: Some(wr_set_ud_addr),
        wr_set_xrc_srqn: Some(wr_set_xrc_srqn),
        wr_set_inline_data: Some(wr_set_inline_data),
        wr_set_inline_data_list: Some(wr_set_inline_data_list),
        wr_set_sge: Some(wr_set_sge),
        wr_set_sge_list: Some(wr_set_sge_list),
        wr_start: Some(wr_start),
        wr_complete: Some(wr_complete),
        wr_abort: Some(wr_abort),
        wr_atomic_write: Some(wr_atomic_write),
        ..ibv_qp_ex::zero()
    }
}

/// Other threads wait until `wr_complete` or `wr_abort`.
unsafe extern "C" fn wr_start(qp: *mut ibv_qp_ex) {
    let Ok(qp) = get::<QpHandle>(qp.cast()) else {
        return;
    };
    let is_new = qp.batch.start();
    on(&qp, |batch| {
        batch.clear();
        // The program did not end the batch before.
        if is_new { Ok(()) } else { Err(Errno::INVAL) }
    });
}

unsafe extern "C" fn wr_complete(qp: *mut ibv_qp_ex) -> c_int {
    status(get::<QpHandle>(qp.cast()).and_then(|qp| {
        let posted = qp.batch.with(|batch| batch.post(&qp)).flatten();
        qp.batch.end();
        posted
    }))
}

unsafe extern "C" fn wr_abort(qp: *mut ibv_qp_ex) {
    if let Ok(qp) = get::<QpHandle>(qp.cast()) {
        qp.batch.end();
    }
}

/// Works on the batch of this thread; a mistake is kept for `wr_complete`.
fn on(qp: &QpHandle, then: impl FnOnce(&mut Batch) -> Result<(), Errno>) {
    // Outside of a batch `wr_complete` finds that there is none.
    let _ = qp.batch.with(|batch| {
        if let Err(errno) = then(batch) {
            batch.fail(errno);
        }
    });
}

fn on_last(qp: *mut ibv_qp_ex, then: impl FnOnce(&QpHandle, &mut Batch) -> Result<(), Errno>) {
    if let Ok(qp) = get::<QpHandle>(qp.cast()) {
        on(&qp, |batch| then(&qp, batch));
    }
}

/// Begins a request of an operation that the queue pair was made for.
fn begin(qp: *mut ibv_qp_ex, operation: c_int, op: SendOp) {
    begin_as(qp, operation, |batch, wr_id, flags| {
        batch.begin(wr_id, flags, op)
    });
}

fn begin_as(
    qp: *mut ibv_qp_ex,
    operation: c_int,
    begin: impl FnOnce(&mut Batch, u64, c_uint) -> Result<(), Errno>,
) {
    on_last(qp, |handle, batch| {
        if handle.operations & operation as u64 == 0 {
            return Err(Errno::INVAL);
        }
        // SAFETY: the structure of a live queue pair, whose fields the program wrote in this thread.
        let (wr_id, flags) = unsafe { ((*qp).wr_id, (*qp).wr_flags) };
        begin(batch, wr_id, flags)
    });
}

unsafe extern "C" fn wr_send(qp: *mut ibv_qp_ex) {
    begin(qp, IBV_QP_EX_WITH_SEND, SendOp::Send);
}

unsafe extern "C" fn wr_send_imm(qp: *mut ibv_qp_ex, imm: u32) {
    let op = SendOp::SendImm(u32::from_be(imm));
    begin(qp, IBV_QP_EX_WITH_SEND_WITH_IMM, op);
}

unsafe extern "C" fn wr_send_inv(qp: *mut ibv_qp_ex, key: u32) {
    begin(qp, IBV_QP_EX_WITH_SEND_WITH_INV, SendOp::SendInv(key));
}

unsafe extern "C" fn wr_rdma_write(qp: *mut ibv_qp_ex, rkey: u32, addr: u64) {
    let op = SendOp::Write(Remote { addr, rkey });
    begin(qp, IBV_QP_EX_WITH_RDMA_WRITE, op);
}

unsafe extern "C" fn wr_rdma_write_imm(qp: *mut ibv_qp_ex, rkey: u32, addr: u64, imm: u32) {
    let op = SendOp::WriteImm(Remote { addr, rkey }, u32::from_be(imm));
    begin(qp, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, op);
}

unsafe extern "C" fn wr_rdma_read(qp: *mut ibv_qp_ex, rkey: u32, addr: u64) {
    let op = SendOp::Read(Remote { addr, rkey });
    begin(qp, IBV_QP_EX_WITH_RDMA_READ, op);
}

unsafe extern "C" fn wr_atomic_cmp_swp(
    qp: *mut ibv_qp_ex,
    rkey: u32,
    addr: u64,
    compare: u64,
    swap: u64,
) {
    let remote = Remote { addr, rkey };
    let op = SendOp::CmpSwap {
        remote,
        compare,
        swap,
    };
    begin(qp, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, op);
}

unsafe extern "C" fn wr_atomic_fetch_add(qp: *mut ibv_qp_ex, rkey: u32, addr: u64, add: u64) {
    let remote = Remote { addr, rkey };
    let op = SendOp::FetchAdd { remote, add };
    begin(qp, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, op);
}

unsafe extern "C" fn wr_set_ud_addr(qp: *mut ibv_qp_ex, ah: *mut ibv_ah, qpn: u32, qkey: u32) {
    on_last(qp, |qp, batch| {
        let own = || qp.qp.with(|qp| Ok(qp.qkey()));
        batch.address(qp.destination((ah, qpn, qkey), own)?)
    });
}

unsafe extern "C" fn wr_set_sge(qp: *mut ibv_qp_ex, lkey: u32, addr: u64, length: u32) {
    // SAFETY: of the memory the program keeps the promise of verbs, as of `list::sges`.
    let sge = unsafe { Sge::from_raw_parts(addr, length, lkey) };
    on_last(qp, |_, batch| batch.list(&[sge]));
}

unsafe extern "C" fn wr_set_sge_list(qp: *mut ibv_qp_ex, count: usize, list: *const ibv_sge) {
    on_last(qp, |_, batch| {
        let count = c_int::try_from(count).map_err(|_| Errno::INVAL)?;
        let mut room = list::room();
        // SAFETY: the caller gives a list of so many entries.
        batch.list(unsafe { list::sges(list, count, &mut room) }?)
    });
}

unsafe extern "C" fn wr_set_inline_data(qp: *mut ibv_qp_ex, addr: *mut c_void, length: usize) {
    let piece = ibv_data_buf { addr, length };
    // SAFETY: a list of one.
    unsafe { wr_set_inline_data_list(qp, 1, &raw const piece) };
}

unsafe extern "C" fn wr_set_inline_data_list(
    qp: *mut ibv_qp_ex,
    count: usize,
    list: *const ibv_data_buf,
) {
    on_last(qp, |_, batch| {
        let pieces = (0..count).map(|i| {
            // SAFETY: the caller gives a list of so many pieces of its memory.
            unsafe {
                let ibv_data_buf { addr, length } = *list.add(i);
                match length {
                    0 => &[][..],
                    _ => slice::from_raw_parts(addr.cast_const().cast::<u8>(), length),
                }
            }
        });
        batch.inline(pieces)
    });
}

/// Operations and details that no queue pair has.
fn refuse(qp: *mut ibv_qp_ex) {
    on_last(qp, |_, _| Err(Errno::OPNOTSUPP));
}

unsafe extern "C" fn wr_bind_mw(
    qp: *mut ibv_qp_ex,
    mw: *mut ibv_mw,
    key: u32,
    info: *const ibv_mw_bind_info,
) {
    // SAFETY: the caller gives what to bind the window to.
    let info = unsafe { *info };
    begin_as(qp, IBV_QP_EX_WITH_BIND_MW, |batch, wr_id, flags| {
        let bind = Bind::new(mw, Some(key), &info)?;
        batch.begin_bind(wr_id, flags, bind)
    });
}

unsafe extern "C" fn wr_local_inv(qp: *mut ibv_qp_ex, key: u32) {
    begin_as(qp, IBV_QP_EX_WITH_LOCAL_INV, |batch, wr_id, flags| {
        batch.begin(wr_id, flags, SendOp::LocalInv(key))
    });
}

unsafe extern "C" fn wr_send_tso(qp: *mut ibv_qp_ex, _: *mut c_void, _: u16, _: u16) {
    refuse(qp);
}

unsafe extern "C" fn wr_set_xrc_srqn(qp: *mut ibv_qp_ex, _: u32) {
    refuse(qp);
}

unsafe extern "C" fn wr_atomic_write(qp: *mut ibv_qp_ex, _: u32, _: u64, _: *mut c_void) {
    refuse(qp);
}
