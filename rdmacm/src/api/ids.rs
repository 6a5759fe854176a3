//! Identifiers and their addresses.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;
use std::time::Duration;

use ferroce_cabi::abi::{IBV_QPT_RC, IBV_QPT_UD, Opaque, ibv_context};
use ferroce_cabi::handle::{Object, get};
use libc::sockaddr;

use super::{acknowledge_last, complete, done};
use crate::abi::*;
use crate::errno::{Errno, or_null};
use crate::id::{Channel, CmId, socket_address};
use ferroce_cm::PortSpace;

/// The port space by its number.
pub(super) fn space(number: c_uint) -> Result<(PortSpace, c_int), Errno> {
    match i32::try_from(number) {
        Ok(RDMA_PS_TCP) => Ok((PortSpace::Tcp, IBV_QPT_RC)),
        Ok(RDMA_PS_UDP) => Ok((PortSpace::Udp, IBV_QPT_UD)),
        Ok(RDMA_PS_IPOIB | RDMA_PS_IB) => Err(Errno::OPNOTSUPP),
        _ => Err(Errno::INVAL),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_create_id(
    channel: *mut rdma_event_channel,
    id: *mut *mut rdma_cm_id,
    context: Opaque,
    ps: c_uint,
) -> c_int {
    let create = || {
        let (space, qp_type) = space(ps)?;
        let channel = match channel.is_null() {
            true => None,
            false => Some(get::<Channel>(channel)?),
        };
        crate::id::port()?;
        CmId::create(channel, context, space, qp_type)
    };
    done(create().map(|made| {
        // SAFETY: the caller gives a place for the identifier.
        unsafe { *id = made.shown() }
    }))
}

#[unsafe(no_mangle)]
extern "C" fn rdma_destroy_id(id: *mut rdma_cm_id) -> c_int {
    done(get::<CmId>(id).map(|id| destroy(&id)))
}

pub(super) fn destroy(id: &Arc<CmId>) {
    acknowledge_last(id);
    id.destroy(crate::id::port().ok());
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_bind_addr(id: *mut rdma_cm_id, address: *mut sockaddr) -> c_int {
    let bind = || {
        let id = get::<CmId>(id)?;
        // SAFETY: the caller gives an address.
        id.bind(unsafe { socket_address(address) }?)
    };
    done(bind())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_resolve_addr(
    id: *mut rdma_cm_id,
    from: *mut sockaddr,
    to: *mut sockaddr,
    timeout_ms: c_int,
) -> c_int {
    let resolve = || {
        let id = get::<CmId>(id)?;
        let from = match from.is_null() {
            true => None,
            // SAFETY: the caller gives an address.
            false => Some(unsafe { socket_address(from) }?),
        };
        // SAFETY: as above.
        let to = unsafe { socket_address(to) }?;
        let limit = u64::try_from(timeout_ms).map_err(|_| Errno::INVAL)?;
        id.resolve(from, to, Duration::from_millis(limit))?;
        complete(&id)
    };
    done(resolve())
}

#[unsafe(no_mangle)]
extern "C" fn rdma_resolve_route(id: *mut rdma_cm_id, _timeout_ms: c_int) -> c_int {
    let resolve = || {
        let id = get::<CmId>(id)?;
        id.route()?;
        complete(&id)
    };
    done(resolve())
}

/// A port of one end, in network order; 0 if it has none.
fn port_of(id: *mut rdma_cm_id, address: impl FnOnce(*mut rdma_cm_id) -> *const sockaddr) -> u16 {
    let found = get::<CmId>(id).and_then(|id| {
        // SAFETY: an address in a structure of this library.
        unsafe { socket_address(address(id.shown())) }
    });
    found.map_or(0, |found| found.port().to_be())
}

#[unsafe(no_mangle)]
extern "C" fn rdma_get_src_port(id: *mut rdma_cm_id) -> u16 {
    // SAFETY: a field of a valid structure.
    port_of(id, |id| unsafe {
        (&raw const (*id).route.addr.src_storage).cast()
    })
}

#[unsafe(no_mangle)]
extern "C" fn rdma_get_dst_port(id: *mut rdma_cm_id) -> u16 {
    // SAFETY: a field of a valid structure.
    port_of(id, |id| unsafe {
        (&raw const (*id).route.addr.dst_storage).cast()
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_set_option(
    id: *mut rdma_cm_id,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: usize,
) -> c_int {
    let set = || {
        let id = get::<CmId>(id)?;
        let mut inner = id.lock();
        let sized = |size: usize| match len == size && !value.is_null() {
            true => Ok(()),
            false => Err(Errno::INVAL),
        };
        // SAFETY: the caller gives a value of the length that it says.
        let byte = || sized(1).map(|()| unsafe { *value.cast::<u8>() });
        // SAFETY: as above.
        let flag = || sized(4).map(|()| unsafe { value.cast::<c_int>().read_unaligned() } != 0);
        match (level, name) {
            (RDMA_OPTION_ID, RDMA_OPTION_ID_TOS) => inner.traffic_class = byte()?,
            (RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR) => inner.is_reusable = flag()?,
            (RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY) => inner.is_v6_only = Some(flag()?),
            (RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT) => {
                inner.ack_timeout = Some(byte().map(|code| code.min(31))?);
            }
            (RDMA_OPTION_IB, RDMA_OPTION_IB_PATH) => return Err(Errno::OPNOTSUPP),
            _ => return Err(Errno::NOSYS),
        }
        Ok(())
    };
    done(set())
}

#[unsafe(no_mangle)]
extern "C" fn rdma_migrate_id(id: *mut rdma_cm_id, channel: *mut rdma_event_channel) -> c_int {
    let migrate = || {
        let id = get::<CmId>(id)?;
        let channel = match channel.is_null() {
            true => None,
            false => Some(get::<Channel>(channel)?),
        };
        if channel.is_none() && id.lock().is_sync {
            return Err(Errno::INVAL);
        }
        acknowledge_last(&id);
        id.migrate(channel)
    };
    done(migrate())
}

/// Contexts of the devices, and how many they are: there is one.
#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_get_devices(count: *mut c_int) -> *mut *mut ibv_context {
    or_null(crate::id::port().map(|port| {
        if !count.is_null() {
            // SAFETY: the caller gives a place for the number.
            unsafe { *count = 1 };
        }
        let list = [port.context, std::ptr::null_mut()];
        Box::into_raw(Box::new(list)).cast()
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_free_devices(list: *mut *mut ibv_context) {
    if !list.is_null() {
        // SAFETY: the caller gives back what `rdma_get_devices` made, which is such a box.
        drop(unsafe { Box::from_raw(list.cast::<[*mut ibv_context; 2]>()) });
    }
}
