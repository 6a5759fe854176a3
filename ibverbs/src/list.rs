//! Lists of requests and of pieces of memory, as C programs give them.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use ferroce_driver::{PostCause, RecvWr, Sge};
use ferroce_proto::abi::wqe::MAX_SGE;

use crate::abi::{ibv_recv_wr, ibv_send_wr, ibv_sge};
use crate::errno::{Errno, ToErrno, status};
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

/// Calls `post` with the object and a place for the request that it refuses, which is the first one until it says otherwise.
/// `bad` gets that request if there is an error, and stays as it is if there is none.
///
/// # Safety
/// `first` is null or a list of requests, `bad` null or a place for a pointer.
pub(crate) unsafe fn on<T: Object, W>(
    object: *mut T::Abi,
    first: *mut W,
    bad: *mut *mut W,
    post: impl FnOnce(&T, &mut *mut W) -> Result<(), Errno>,
) -> c_int {
    if first.is_null() {
        return 0;
    }
    let mut refused = first;
    let posted = get::<T>(object).and_then(|object| post(&object, &mut refused));
    if posted.is_err() && !bad.is_null() {
        // SAFETY: the place for it.
        unsafe { *bad = refused };
    }
    status(posted)
}

/// Posts requests one after the other; the first that is refused is named in `bad`, and none behind it is posted.
///
/// # Safety
/// As of [`on`].
pub(crate) unsafe fn post<W: Linked>(
    first: *mut W,
    bad: &mut *mut W,
    mut each: impl FnMut(&W) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let mut at = first;
    while !at.is_null() {
        // SAFETY: a request of the list.
        let wr = unsafe { &*at };
        each(wr).inspect_err(|_| *bad = at)?;
        at = wr.next();
    }
    Ok(())
}

/// Calls `add` with each receive request of a list, as [`post`] does.
///
/// # Safety
/// As of [`on`], and each request names a list of its own, of which the promise of [`sges`] holds.
pub(crate) unsafe fn receives(
    first: *mut ibv_recv_wr,
    bad: &mut *mut ibv_recv_wr,
    mut add: impl FnMut(&RecvWr<'_>) -> Result<(), PostCause>,
) -> Result<(), Errno> {
    let each = |wr: &ibv_recv_wr| {
        let mut room = room();
        // SAFETY: the caller gives the list of the request.
        let sges = unsafe { sges(wr.sg_list, wr.num_sge, &mut room) }?;
        add(&RecvWr::new(wr.wr_id, sges)).map_err(ToErrno::errno)
    };
    // SAFETY: as above.
    unsafe { post(first, bad, each) }
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
