//! Queue pairs of identifiers.

use std::ffi::c_int;
use std::mem::offset_of;

use ferroce_cabi::abi::*;
use ferroce_cabi::handle::get;

use super::done;
use crate::abi::*;
use crate::errno::Errno;
use crate::id::{CmId, create_qp};
use crate::port::pointer;

/// `IBV_QP_INIT_ATTR_PD`: the attributes name a domain.
const HAS_PD: u32 = 1;

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_create_qp(
    id: *mut rdma_cm_id,
    pd: *mut ibv_pd,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    done(get::<CmId>(id).and_then(|id| {
        // SAFETY: the caller gives the attributes, and has the actual sizes written there.
        let init = unsafe { init.as_mut() }.ok_or(Errno::INVAL)?;
        id.create_qp(init, |init| create_qp(pd, init))
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_create_qp_ex(
    id: *mut rdma_cm_id,
    extended: *mut ibv_qp_init_attr_ex,
) -> c_int {
    done(get::<CmId>(id).and_then(|id| {
        // SAFETY: the caller gives the attributes.
        let asked = unsafe { extended.as_mut() }.ok_or(Errno::INVAL)?;
        if asked.comp_mask & HAS_PD == 0 || asked.pd.is_null() {
            asked.pd = crate::id::port()?.pd;
            asked.comp_mask |= HAS_PD;
        }
        let mut init = ibv_qp_init_attr {
            qp_context: asked.qp_context,
            send_cq: asked.send_cq,
            recv_cq: asked.recv_cq,
            srq: asked.srq,
            cap: asked.cap,
            qp_type: asked.qp_type,
            sq_sig_all: asked.sq_sig_all,
        };
        id.create_qp(&mut init, |init| {
            asked.send_cq = init.send_cq;
            asked.recv_cq = init.recv_cq;
            let context = crate::id::port()?.context;
            // SAFETY: the context of this library is the last part of a larger one, as its mark says.
            unsafe {
                if (*context).abi_compat.addr() != usize::MAX {
                    return Err(Errno::OPNOTSUPP);
                }
                let whole = context.byte_sub(offset_of!(verbs_context, context));
                let whole = whole.cast::<verbs_context>();
                let make = (*whole).create_qp_ex.ok_or(Errno::OPNOTSUPP)?;
                pointer(make(context, asked))
            }
        })
    }))
}

#[unsafe(no_mangle)]
extern "C" fn rdma_destroy_qp(id: *mut rdma_cm_id) {
    if let Ok(id) = get::<CmId>(id) {
        id.destroy_qp();
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_init_qp_attr(
    id: *mut rdma_cm_id,
    attr: *mut ibv_qp_attr,
    mask: *mut c_int,
) -> c_int {
    done(get::<CmId>(id).and_then(|id| {
        if attr.is_null() || mask.is_null() {
            return Err(Errno::INVAL);
        }
        // SAFETY: the caller gives a place for the attributes, in which it names the state.
        unsafe {
            let (found, which) = id.attributes((*attr).qp_state)?;
            *attr = found;
            *mask = which;
        }
        Ok(())
    }))
}
