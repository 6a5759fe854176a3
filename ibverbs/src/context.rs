//! Contexts: a device opened, its limits, its port, its address tables.

use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;

use crate::abi::*;
use crate::async_box::AsyncBox;
use crate::card::Card;
use crate::errno::{Errno, or_minus_one, or_null, status};
use crate::handle::{Held, Object, Shown, Used, Users, get, places};

/// The one port.
pub(crate) const PORT: u8 = 1;

/// An opened device.
pub(crate) struct ContextHandle {
    shown: Shown<verbs_context>,
    pub(crate) card: Arc<Card>,
    pub(crate) events: AsyncBox,
    users: Users,
}

impl Object for ContextHandle {
    type Abi = ibv_context;

    places!(ContextHandle);

    fn shown(&self) -> *mut ibv_context {
        // SAFETY: the context is a field of the structure.
        unsafe { &raw mut (*self.shown.get()).context }
    }
}

impl Used for ContextHandle {
    fn users(&self) -> &Users {
        &self.users
    }
}

/// The card stays open while the program has objects on it. It is not that of a child of `fork`, whose end of it ends nothing.
#[unsafe(no_mangle)]
extern "C" fn ibv_close_device(context: *mut ibv_context) -> c_int {
    let closed = get::<ContextHandle>(context);
    status(closed.map(|context| {
        ContextHandle::registry().remove(&context);
        if !context.card.is_own() {
            std::mem::forget(context);
        }
    }))
}

impl ContextHandle {
    /// Files an opened device; the structure that the program knows it by.
    pub(crate) fn add(shown: verbs_context, card: Arc<Card>, events: AsyncBox) -> *mut ibv_context {
        let handle = Self {
            shown: Shown::new(shown),
            card,
            events,
            users: Users::default(),
        };
        Self::registry().add(Arc::new(handle))
    }

    /// `EINVAL` for a port that is not there.
    pub(crate) fn check_port(port: impl Into<u32>) -> Result<(), Errno> {
        if port.into() == u32::from(PORT) {
            Ok(())
        } else {
            Err(Errno::INVAL)
        }
    }
}

/// Writes as much of `found` as a place of `len` bytes holds, and zeros behind it.
///
/// # Safety
/// `to` has `len` bytes.
pub(crate) unsafe fn write_as_known<T>(to: *mut T, found: &T, len: usize) {
    let to = to.cast::<u8>();
    let known = len.min(size_of::<T>());
    // SAFETY: the place has the bytes, and the value has those that are known.
    unsafe {
        ptr::copy_nonoverlapping(ptr::from_ref(found).cast::<u8>(), to, known);
        ptr::write_bytes(to.add(known), 0, len - known);
    }
}

/// Entry of the GID table; an empty one is all zero.
fn gid(context: *mut ibv_context, port: u32, index: i64) -> Result<ibv_gid, Errno> {
    let context = get::<ContextHandle>(context)?;
    ContextHandle::check_port(port)?;
    let limit = context.card.context.query_device().max_gid;
    let index = u8::try_from(index).map_err(|_| Errno::INVAL)?;
    if u32::from(index) >= limit {
        return Err(Errno::INVAL);
    }
    let raw = context.card.context.gid(index).unwrap_or_default().0;
    Ok(ibv_gid { raw })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_gid(
    context: *mut ibv_context,
    port: u8,
    index: c_int,
    found: *mut ibv_gid,
) -> c_int {
    or_minus_one(gid(context, port.into(), index.into()).map(|gid| {
        // SAFETY: the caller gives a place for the GID.
        unsafe { *found = gid };
        0
    }))
}

/// Type of a GID, for `ibv_devinfo`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_gid_type(
    context: *mut ibv_context,
    port: u8,
    index: u32,
    found: *mut c_int,
) -> c_int {
    /// As this function counts: RoCE v2.
    const ROCE_V2: c_int = 1;
    or_minus_one(gid(context, port.into(), index.into()).map(|_| {
        // SAFETY: the caller gives a place for the type.
        unsafe { *found = ROCE_V2 };
        0
    }))
}

fn gid_entry(context: *mut ibv_context, port: u32, index: u32) -> Result<ibv_gid_entry, Errno> {
    let gid = gid(context, port, index.into())?;
    if gid.raw == [0; 16] {
        return Err(Errno::NODATA);
    }
    Ok(ibv_gid_entry {
        gid,
        gid_index: index,
        port_num: port,
        gid_type: IBV_GID_TYPE_ROCE_V2 as u32,
        ndev_ifindex: 0,
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _ibv_query_gid_ex(
    context: *mut ibv_context,
    port: u32,
    index: u32,
    entry: *mut ibv_gid_entry,
    flags: u32,
    size: usize,
) -> c_int {
    if flags != 0 {
        return status(Err(Errno::INVAL));
    }
    status(gid_entry(context, port, index).map(|found| {
        // SAFETY: the caller gives a place of `size` bytes.
        unsafe { write_as_known(entry, &found, size) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _ibv_query_gid_table(
    context: *mut ibv_context,
    entries: *mut ibv_gid_entry,
    max: usize,
    flags: u32,
    size: usize,
) -> isize {
    let limit = match get::<ContextHandle>(context) {
        Ok(context) if flags == 0 => context.card.context.query_device().max_gid,
        _ => return -(Errno::INVAL.raw_os_error() as isize),
    };
    let found = (0..limit).filter_map(|index| gid_entry(context, PORT.into(), index).ok());
    let mut count = 0;
    for entry in found {
        if count == max {
            return -(Errno::INVAL.raw_os_error() as isize);
        }
        // SAFETY: the caller gives a place for `max` entries of `size` bytes.
        unsafe { write_as_known(entries.byte_add(count * size), &entry, size) };
        count += 1;
    }
    count as isize
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_pkey(
    context: *mut ibv_context,
    port: u8,
    index: c_int,
    pkey: *mut u16,
) -> c_int {
    let checked = get::<ContextHandle>(context).and_then(|_| ContextHandle::check_port(port));
    let checked = checked.and(if index == 0 { Ok(0) } else { Err(Errno::INVAL) });
    or_minus_one(checked.inspect(|_| {
        // SAFETY: the caller gives a place for the P_Key.
        unsafe { *pkey = ferroce_driver::DEFAULT_PKEY.to_be() };
    }))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_get_pkey_index(context: *mut ibv_context, port: u8, pkey: u16) -> c_int {
    let checked = get::<ContextHandle>(context).and_then(|_| ContextHandle::check_port(port));
    let is_there = pkey == ferroce_driver::DEFAULT_PKEY.to_be();
    or_minus_one(checked.and(if is_there { Ok(0) } else { Err(Errno::INVAL) }))
}

/// A context that objects of it keep.
pub(crate) type Opened = Held<ContextHandle>;

/// Cards whose memory a child of `fork` shares: the kernel copies pinned pages for the child.
#[unsafe(no_mangle)]
extern "C" fn ibv_fork_init() -> c_int {
    0
}

#[unsafe(no_mangle)]
extern "C" fn ibv_is_fork_initialized() -> c_int {
    IBV_FORK_UNNEEDED
}

#[unsafe(no_mangle)]
extern "C" fn ibv_import_device(_: c_int) -> *mut ibv_context {
    or_null(Err(Errno::OPNOTSUPP))
}
