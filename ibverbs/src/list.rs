//! Lists of requests and of pieces of memory, as C programs give them.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use ferroce_driver::Sge;
use ferroce_proto::abi::wqe::MAX_SGE;

use crate::abi::{ibv_recv_wr, ibv_send_wr, ibv_sge};
use crate::errno::{Errno, status};
use crate::handle::{Object, get};

/// A request in a list.
pub(crate) trait Linked {
    /// The next one, or null.
    fn next(&self) -> *mut Self;
}

impl Linked for ibv_send_wr {
    fn next(&self) -> *mut Self {
        self.next
    }
}

impl Linked for ibv_recv_wr {
    fn next(&self) -> *mut Self {
        self.next
    }
}

/// Calls `post` with the object, if there is something to post; until it says otherwise the first request is refused.
///
/// # Safety
/// `first` is null or a list of requests, `bad` null or a place for a pointer.
pub(crate) unsafe fn on<T: Object, W>(
    object: *mut T::Abi,
    first: *mut W,
    bad: *mut *mut W,
    post: impl FnOnce(&T) -> Result<(), Errno>,
) -> c_int {
    if first.is_null() {
        return 0;
    }
    if !bad.is_null() {
        // SAFETY: the place for it.
        unsafe { *bad = first };
    }
    status(get::<T>(object).and_then(|object| post(&object)))
}

/// Posts requests one after the other; the first that is refused is named in `bad`, and none behind it is posted.
///
/// # Safety
/// As of [`on`].
pub(crate) unsafe fn post<W: Linked>(
    first: *mut W,
    bad: *mut *mut W,
    mut each: impl FnMut(&W) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let mut at = first;
    while !at.is_null() {
        // SAFETY: a request of the list.
        let wr = unsafe { &*at };
        each(wr).inspect_err(|_| {
            if !bad.is_null() {
                // SAFETY: the place for it.
                unsafe { *bad = at };
            }
        })?;
        at = wr.next();
    }
    Ok(())
}

/// Room for the entries of a list.
pub(crate) type Room = [MaybeUninit<Sge>; MAX_SGE];

/// Room without entries.
#[inline]
pub(crate) const fn room() -> Room {
    [const { MaybeUninit::uninit() }; MAX_SGE]
}

/// The entries of a list.
///
/// # Safety
/// `list` has `count` entries. Of the memory that they name, the program keeps the promise of [`Sge::from_raw_parts`],
/// which is that of verbs.
pub(crate) unsafe fn sges(
    list: *const ibv_sge,
    count: c_int,
    room: &mut Room,
) -> Result<&[Sge], Errno> {
    let count = usize::try_from(count).map_err(|_| Errno::INVAL)?;
    if count > MAX_SGE || count > 0 && list.is_null() {
        return Err(Errno::INVAL);
    }
    for (i, to) in room[..count].iter_mut().enumerate() {
        // SAFETY: an entry of the list.
        let ibv_sge { addr, length, lkey } = unsafe { *list.add(i) };
        // SAFETY: the promise of the program.
        to.write(unsafe { Sge::from_raw_parts(addr, length, lkey) });
    }
    // SAFETY: as many were written.
    Ok(unsafe { std::slice::from_raw_parts(room.as_ptr().cast(), count) })
}
