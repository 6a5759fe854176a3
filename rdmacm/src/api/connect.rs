//! Connections.

use std::ffi::{c_int, c_void};
use std::slice;

use ferroce_cabi::abi::ibv_ece;
use ferroce_cabi::handle::get;

use super::{acknowledge_last, complete, done};
use crate::abi::*;
use crate::errno::Errno;
use crate::id::{Asked, CmId};
use ferroce_cm::PortSpace;

/// `IBV_EVENT_COMM_EST`.
const COMMUNICATION_ESTABLISHED: c_int = 4;

/// What a program asks for, if it does.
///
/// # Safety
/// `param` is null, or its data are as long as it says.
unsafe fn asked(param: *const rdma_conn_param) -> Option<Asked> {
    // SAFETY: the promise of the caller.
    let param = unsafe { param.as_ref() }?;
    // SAFETY: as above.
    let private = unsafe { data(param.private_data, param.private_data_len) };
    Some(Asked {
        private: private.to_vec(),
        responder_resources: param.responder_resources,
        initiator_depth: param.initiator_depth,
        flow_control: param.flow_control != 0,
        retry: param.retry_count,
        rnr_retry: param.rnr_retry_count,
        srq: param.srq != 0,
        qpn: param.qp_num,
    })
}

/// Data of a program.
///
/// # Safety
/// `data` is null or has `len` bytes.
unsafe fn data<'a>(data: *const c_void, len: u8) -> &'a [u8] {
    match data.is_null() || len == 0 {
        true => &[],
        // SAFETY: the promise of the caller.
        false => unsafe { slice::from_raw_parts(data.cast(), len.into()) },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_connect(id: *mut rdma_cm_id, param: *mut rdma_conn_param) -> c_int {
    let connect = || {
        let id = get::<CmId>(id)?;
        // SAFETY: the caller gives what it asks for, or null.
        id.connect(&unsafe { asked(param) }.unwrap_or_default())?;
        complete(&id)
    };
    done(connect())
}

#[unsafe(no_mangle)]
extern "C" fn rdma_listen(id: *mut rdma_cm_id, backlog: c_int) -> c_int {
    done(get::<CmId>(id).and_then(|id| id.listen(backlog)))
}

/// Gives the event of a request back that is answered: the end of its listener waits for it.
fn release_request(id: &CmId) {
    if id.lock().is_sync {
        acknowledge_last(id);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_accept(id: *mut rdma_cm_id, param: *mut rdma_conn_param) -> c_int {
    let accept = || {
        let id = get::<CmId>(id)?;
        // SAFETY: the caller gives what it asks for, or null.
        id.accept(unsafe { asked(param) }.as_ref())?;
        match id.space {
            PortSpace::Tcp => complete(&id),
            // Nothing more comes.
            PortSpace::Udp => {
                release_request(&id);
                Ok(())
            }
        }
    };
    done(accept())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_reject(id: *mut rdma_cm_id, private: *const c_void, len: u8) -> c_int {
    done(get::<CmId>(id).and_then(|id| {
        // SAFETY: the caller gives so many bytes.
        id.reject(unsafe { data(private, len) })?;
        release_request(&id);
        Ok(())
    }))
}

/// As [`rdma_reject`]: there are no options of vendors.
#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_reject_ece(
    id: *mut rdma_cm_id,
    private: *const c_void,
    len: u8,
) -> c_int {
    // SAFETY: the promise of the caller.
    unsafe { rdma_reject(id, private, len) }
}

#[unsafe(no_mangle)]
extern "C" fn rdma_establish(id: *mut rdma_cm_id) -> c_int {
    done(get::<CmId>(id).and_then(|id| match id.qp() {
        // It is established by this library.
        Some(_) => Err(Errno::INVAL),
        None => id.establish(),
    }))
}

#[unsafe(no_mangle)]
extern "C" fn rdma_notify(id: *mut rdma_cm_id, event: c_int) -> c_int {
    done(get::<CmId>(id).and_then(|id| match event {
        COMMUNICATION_ESTABLISHED => id.communicates(),
        _ => Err(Errno::INVAL),
    }))
}

#[unsafe(no_mangle)]
extern "C" fn rdma_disconnect(id: *mut rdma_cm_id) -> c_int {
    let disconnect = || {
        let id = get::<CmId>(id)?;
        id.disconnect()?;
        complete(&id)
    };
    done(disconnect())
}

/// Only no options can be set.
#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_set_local_ece(id: *mut rdma_cm_id, ece: *mut ibv_ece) -> c_int {
    let check = || {
        get::<CmId>(id)?;
        // SAFETY: the caller gives the options, or null.
        match unsafe { ece.as_ref() } {
            Some(ece) if ece.vendor_id == 0 && ece.comp_mask == 0 => Ok(()),
            Some(_) => Err(Errno::OPNOTSUPP),
            None => Err(Errno::INVAL),
        }
    };
    done(check())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_get_remote_ece(id: *mut rdma_cm_id, ece: *mut ibv_ece) -> c_int {
    done(get::<CmId>(id).and_then(|_| {
        if ece.is_null() {
            return Err(Errno::INVAL);
        }
        // SAFETY: the caller gives a place for the options.
        unsafe {
            *ece = ibv_ece {
                vendor_id: 0,
                options: 0,
                comp_mask: 0,
            };
        }
        Ok(())
    }))
}
