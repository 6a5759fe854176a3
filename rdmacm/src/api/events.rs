//! Channels and events.

use std::ffi::{CStr, c_char, c_int};

use ferroce_cabi::handle::{Object, get};
use ferroce_cabi::mailbox::until_taken;

use super::done;
use crate::abi::*;
use crate::errno::or_null;
use crate::id::{Channel, Event};

#[unsafe(no_mangle)]
extern "C" fn rdma_create_event_channel() -> *mut rdma_event_channel {
    // Without a device there is nothing to tell.
    let channel = crate::id::port().and_then(|_| Channel::create());
    or_null(channel.map(|channel| channel.shown()))
}

#[unsafe(no_mangle)]
extern "C" fn rdma_destroy_event_channel(channel: *mut rdma_event_channel) {
    if let Ok(channel) = get::<Channel>(channel) {
        Channel::registry().remove(&channel);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn rdma_get_cm_event(
    channel: *mut rdma_event_channel,
    event: *mut *mut rdma_cm_event,
) -> c_int {
    let next = || {
        let channel = get::<Channel>(channel)?;
        let Some(found) = channel.try_take() else {
            return Ok(Some(channel.events.fd()));
        };
        found.id.follow(&found);
        // SAFETY: the caller gives a place for the event.
        unsafe { *event = found.give() };
        Ok(None)
    };
    done(until_taken(next))
}

#[unsafe(no_mangle)]
extern "C" fn rdma_ack_cm_event(event: *mut rdma_cm_event) -> c_int {
    done(Event::acknowledge(event))
}

#[unsafe(no_mangle)]
extern "C" fn rdma_event_str(event: c_int) -> *const c_char {
    const NAMES: [&CStr; 16] = [
        c"RDMA_CM_EVENT_ADDR_RESOLVED",
        c"RDMA_CM_EVENT_ADDR_ERROR",
        c"RDMA_CM_EVENT_ROUTE_RESOLVED",
        c"RDMA_CM_EVENT_ROUTE_ERROR",
        c"RDMA_CM_EVENT_CONNECT_REQUEST",
        c"RDMA_CM_EVENT_CONNECT_RESPONSE",
        c"RDMA_CM_EVENT_CONNECT_ERROR",
        c"RDMA_CM_EVENT_UNREACHABLE",
        c"RDMA_CM_EVENT_REJECTED",
        c"RDMA_CM_EVENT_ESTABLISHED",
        c"RDMA_CM_EVENT_DISCONNECTED",
        c"RDMA_CM_EVENT_DEVICE_REMOVAL",
        c"RDMA_CM_EVENT_MULTICAST_JOIN",
        c"RDMA_CM_EVENT_MULTICAST_ERROR",
        c"RDMA_CM_EVENT_ADDR_CHANGE",
        c"RDMA_CM_EVENT_TIMEWAIT_EXIT",
    ];
    let name = usize::try_from(event).ok().and_then(|at| NAMES.get(at));
    name.unwrap_or(&c"UNKNOWN EVENT").as_ptr()
}
