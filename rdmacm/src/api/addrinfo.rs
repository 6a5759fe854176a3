//! Addresses by names: what the system knows of them.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int};
use std::ptr;
use std::sync::Mutex;

use ferroce_cabi::abi::{IBV_QPT_RC, IBV_QPT_UD, Zero};
use ferroce_cabi::handle::lock;
use libc::{addrinfo, sockaddr, sockaddr_storage, socklen_t};

use super::done;
use crate::abi::*;
use crate::errno::Errno;

/// An answer with the addresses it points to.
struct Found {
    info: rdma_addrinfo,
    from: sockaddr_storage,
    to: sockaddr_storage,
}

// SAFETY: its pointers go into itself.
unsafe impl Send for Found {}

/// Answers that programs have.
static FOUND: Mutex<BTreeMap<usize, Box<Found>>> = Mutex::new(BTreeMap::new());

/// The number that stands for an error of `getaddrinfo`.
fn number(error: c_int) -> Errno {
    match error {
        libc::EAI_MEMORY => Errno::NOMEM,
        libc::EAI_AGAIN => Errno::AGAIN,
        libc::EAI_FAMILY => Errno::AFNOSUPPORT,
        libc::EAI_SYSTEM => {
            let error = std::io::Error::last_os_error();
            Errno::from_io_error(&error).unwrap_or(Errno::IO)
        }
        libc::EAI_NONAME | libc::EAI_NODATA => Errno::NODEV,
        _ => Errno::INVAL,
    }
}

/// Copies an address; how many bytes it has.
///
/// # Safety
/// `from` has `len` bytes.
unsafe fn copy(
    to: &mut sockaddr_storage,
    from: *const sockaddr,
    len: socklen_t,
) -> Result<socklen_t, Errno> {
    if len as usize > size_of::<sockaddr_storage>() {
        return Err(Errno::INVAL);
    }
    // SAFETY: the promise of the caller, and there is room.
    unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), ptr::from_mut(to).cast(), len as usize) };
    Ok(len)
}

/// Finds an address.
///
/// # Safety
/// Names are null or end with a zero, `hints` is null or has addresses of the lengths it says.
unsafe fn find(
    node: *const c_char,
    service: *const c_char,
    hints: *const rdma_addrinfo,
) -> Result<Box<Found>, Errno> {
    // SAFETY: the promise of the caller.
    let hints = unsafe { hints.as_ref() }
        .copied()
        .unwrap_or(rdma_addrinfo::zero());
    let is_passive = hints.ai_flags & RAI_PASSIVE != 0;
    let is_udp = hints.ai_port_space == RDMA_PS_UDP || hints.ai_qp_type == IBV_QPT_UD;
    // SAFETY: all zero is an address of no family.
    let none = || unsafe { std::mem::zeroed::<sockaddr_storage>() };
    let mut found = Box::new(Found {
        info: rdma_addrinfo::zero(),
        from: none(),
        to: none(),
    });
    let info = &mut found.info;
    info.ai_flags = hints.ai_flags;
    (info.ai_port_space, info.ai_qp_type) = match is_udp {
        true => (RDMA_PS_UDP, IBV_QPT_UD),
        false => (RDMA_PS_TCP, IBV_QPT_RC),
    };
    if node.is_null() && service.is_null() && hints.ai_dst_len == 0 && hints.ai_src_len == 0 {
        return Err(Errno::INVAL);
    }
    if !(node.is_null() && service.is_null()) {
        // SAFETY: all zero are hints that say nothing.
        let mut asked: addrinfo = unsafe { std::mem::zeroed() };
        asked.ai_socktype = if is_udp {
            libc::SOCK_DGRAM
        } else {
            libc::SOCK_STREAM
        };
        asked.ai_family = hints.ai_family;
        if is_passive {
            asked.ai_flags |= libc::AI_PASSIVE;
        }
        if hints.ai_flags & RAI_NUMERICHOST != 0 {
            asked.ai_flags |= libc::AI_NUMERICHOST;
        }
        let mut list = ptr::null_mut();
        // SAFETY: the promise of the caller; the list is given back once.
        unsafe {
            match libc::getaddrinfo(node, service, &raw const asked, &raw mut list) {
                0 => {}
                error => return Err(number(error)),
            }
            let first = *list;
            info.ai_family = first.ai_family;
            let (to, len) = match is_passive {
                true => (&mut found.from, &mut info.ai_src_len),
                false => (&mut found.to, &mut info.ai_dst_len),
            };
            let copied = copy(to, first.ai_addr, first.ai_addrlen);
            libc::freeaddrinfo(list);
            *len = copied?;
        }
    }
    // SAFETY: the promise of the caller.
    unsafe {
        if info.ai_src_len == 0 && hints.ai_src_len > 0 {
            info.ai_src_len = copy(&mut found.from, hints.ai_src_addr, hints.ai_src_len)?;
            info.ai_family = (*hints.ai_src_addr).sa_family.into();
        }
        if info.ai_dst_len == 0 && hints.ai_dst_len > 0 {
            info.ai_dst_len = copy(&mut found.to, hints.ai_dst_addr, hints.ai_dst_len)?;
            info.ai_family = (*hints.ai_dst_addr).sa_family.into();
        }
    }
    if info.ai_src_len > 0 {
        info.ai_src_addr = (&raw mut found.from).cast();
    }
    if info.ai_dst_len > 0 {
        info.ai_dst_addr = (&raw mut found.to).cast();
    }
    Ok(found)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const rdma_addrinfo,
    place: *mut *mut rdma_addrinfo,
) -> c_int {
    // SAFETY: the promise of the caller.
    done(unsafe { find(node, service, hints) }.map(|mut found| {
        let info = &raw mut found.info;
        lock(&FOUND).insert(info.addr(), found);
        // SAFETY: the caller gives a place for the answer.
        unsafe { *place = info };
    }))
}

#[unsafe(no_mangle)]
extern "C" fn rdma_freeaddrinfo(info: *mut rdma_addrinfo) {
    lock(&FOUND).remove(&info.addr());
}
