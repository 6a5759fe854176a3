//! Identifiers made in one call, whose functions wait.

use std::ffi::c_int;
use std::time::Duration;

use ferroce_cabi::abi::{ibv_pd, ibv_qp_init_attr};
use ferroce_cabi::handle::{Object, get};

use super::ids::{destroy, space};
use super::{acknowledge_last, complete, done, next};
use crate::abi::*;
use crate::errno::Errno;
use crate::id::{CmId, create_qp, socket_address};

/// How long finding a peer may take.
const LIMIT: Duration = Duration::from_secs(2);

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_create_ep(
    place: *mut *mut rdma_cm_id,
    info: *mut rdma_addrinfo,
    pd: *mut ibv_pd,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    let create = || {
        // SAFETY: the caller gives what `rdma_getaddrinfo` found, and attributes or null.
        let (info, mut init) = unsafe { (info.as_ref().ok_or(Errno::INVAL)?, init.as_mut()) };
        if let Some(init) = &mut init {
            init.qp_type = info.ai_qp_type;
        }
        let number = u32::try_from(info.ai_port_space).map_err(|_| Errno::INVAL)?;
        let (space, _) = space(number)?;
        crate::id::port()?;
        let id = CmId::create(None, std::ptr::null_mut(), space, info.ai_qp_type)?;
        let prepare = || {
            // SAFETY: addresses of the families that they say.
            let (from, to) = unsafe {
                (
                    socket_address(info.ai_src_addr),
                    socket_address(info.ai_dst_addr),
                )
            };
            if info.ai_flags & RAI_PASSIVE != 0 {
                id.bind(from?)?;
                // Queue pairs are made when somebody asks.
                id.lock().endpoint = init.map(|init| (pd, *init));
                return Ok(());
            }
            id.resolve(from.ok(), to?, LIMIT)?;
            complete(&id)?;
            id.route()?;
            complete(&id)?;
            match init {
                Some(init) => id.create_qp(init, |init| create_qp(pd, init)),
                None => Ok(()),
            }
        };
        prepare().inspect_err(|_| {
            destroy(&id);
        })?;
        Ok(id)
    };
    done(create().map(|id| {
        // SAFETY: the caller gives a place for the identifier.
        unsafe { *place = id.shown() }
    }))
}

#[unsafe(no_mangle)]
extern "C" fn rdma_destroy_ep(id: *mut rdma_cm_id) {
    if let Ok(id) = get::<CmId>(id) {
        id.destroy_qp();
        destroy(&id);
    }
}

/// Waits for a request; the identifier for it waits in its functions too.
#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_get_request(
    listener: *mut rdma_cm_id,
    place: *mut *mut rdma_cm_id,
) -> c_int {
    let request = || {
        let listener = get::<CmId>(listener)?;
        let (channel, endpoint) = {
            let inner = listener.lock();
            if !inner.is_sync {
                return Err(Errno::INVAL);
            }
            (inner.channel.clone(), inner.endpoint)
        };
        acknowledge_last(&listener);
        let event = next(&channel)?;
        if event.kind() != RDMA_CM_EVENT_CONNECT_REQUEST {
            return Err(Errno::INVAL);
        }
        let id = event.id.clone();
        let made = match endpoint {
            Some((pd, mut init)) => id.create_qp(&mut init, |init| create_qp(pd, init)),
            None => Ok(()),
        };
        if let Err(errno) = made.and_then(|()| id.migrate(None)) {
            id.destroy_qp();
            destroy(&id);
            return Err(errno);
        }
        // SAFETY: a structure of this library.
        unsafe { (*id.shown()).event = event.give() };
        Ok(id)
    };
    done(request().map(|id| {
        // SAFETY: the caller gives a place for the identifier.
        unsafe { *place = id.shown() }
    }))
}
