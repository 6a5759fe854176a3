//! What the library exports: one table of all symbols with their versions, and the functions that only refuse.
//!
//! Programs are bound eagerly, so every symbol of rdma-core's library is there.

use std::ffi::{c_int, c_void};

use crate::errno::{Errno, or_minus_one, or_null};

/// Declares the exported symbols by version. Those after `status` answer -1 and `EOPNOTSUPP`, those after `null` null.
macro_rules! symbols {
    ($($version:literal {
        $(real $($real:ident)+;)?
        $(status $($status:ident)+;)?
        $(null $($null:ident)+;)?
    })+) => {
        /// The exported symbols: name and version.
        pub const SYMBOLS: &[(&str, &str)] = &[$(
            $($((stringify!($real), $version),)+)?
            $($((stringify!($status), $version),)+)?
            $($((stringify!($null), $version),)+)?
        )+];

        $($($(
            #[unsafe(no_mangle)]
            extern "C" fn $status() -> isize {
                // Some answer an `int`, some a number of bytes: -1 is both.
                or_minus_one(Err(Errno::OPNOTSUPP)) as isize
            }
        )+)?)+
        $($($(
            #[unsafe(no_mangle)]
            extern "C" fn $null() -> *mut c_void {
                or_null(Err(Errno::OPNOTSUPP))
            }
        )+)?)+
    };
}

symbols! {
    "RDMACM_1.0" {
        real rdma_accept rdma_ack_cm_event rdma_bind_addr rdma_connect rdma_create_ep rdma_create_event_channel
            rdma_create_id rdma_create_qp rdma_create_qp_ex rdma_destroy_ep rdma_destroy_event_channel
            rdma_destroy_id rdma_destroy_qp rdma_destroy_srq rdma_disconnect rdma_event_str rdma_free_devices
            rdma_freeaddrinfo rdma_get_cm_event rdma_get_devices rdma_get_dst_port rdma_get_request
            rdma_get_src_port rdma_getaddrinfo rdma_listen rdma_migrate_id rdma_notify rdma_reject
            rdma_resolve_addr rdma_resolve_route rdma_set_option rpoll;
        status raccept rbind rclose rconnect rdma_create_srq rdma_create_srq_ex rdma_join_multicast
            rdma_leave_multicast rfcntl rgetpeername rgetsockname rgetsockopt riounmap riowrite rlisten rread
            rreadv rrecv rrecvfrom rrecvmsg rselect rsend rsendmsg rsendto rsetsockopt rshutdown rsocket rwrite
            rwritev;
        null riomap;
    }
    "RDMACM_1.1" { status rdma_join_multicast_ex; }
    "RDMACM_1.2" { real rdma_establish rdma_init_qp_attr; }
    "RDMACM_1.3" {
        real rdma_get_remote_ece rdma_reject_ece rdma_set_local_ece;
    }
}

/// The version script for the linker: each symbol at its version, nothing else.
#[must_use]
pub fn version_script() -> String {
    ferroce_cabi::symbols::version_script(SYMBOLS)
}

/// There are no rsockets, so all descriptors are those of the system.
#[unsafe(no_mangle)]
unsafe extern "C" fn rpoll(fds: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int) -> c_int {
    // SAFETY: the caller gives what `poll` takes.
    unsafe { libc::poll(fds, count, timeout) }
}

/// There are no shared receive queues of identifiers.
#[unsafe(no_mangle)]
extern "C" fn rdma_destroy_srq(_: *mut c_void) {}
