//! Lists of requests and of pieces of memory, as C programs give them.

use std::ffi::c_int;

use ferroce_driver::Sge;
use ferroce_proto::abi::wqe::MAX_SGE;

use crate::abi::{ibv_recv_wr, ibv_send_wr, ibv_sge};
use crate::errno::{Errno, status};

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

/// Posts requests one after the other; the first that is refused is named in `bad`, and none behind it is posted.
///
/// # Safety
/// `first` is null or a list of requests, `bad` a place for a pointer.
pub(crate) unsafe fn post<W: Linked>(
    first: *mut W,
    bad: *mut *mut W,
    mut each: impl FnMut(&W) -> Result<(), Errno>,
) -> c_int {
    let mut at = first;
    while !at.is_null() {
        // SAFETY: a request of the list.
        let wr = unsafe { &*at };
        if let Err(errno) = each(wr) {
            if !bad.is_null() {
                // SAFETY: the place for it.
                unsafe { *bad = at };
            }
            return status(Err(errno));
        }
        at = wr.next();
    }
    0
}

/// The entries of a list, and how many they are.
///
/// # Safety
/// `list` has `count` entries. Of the memory that they name, the program keeps the promise of [`Sge::from_raw_parts`],
/// which is that of verbs.
pub(crate) unsafe fn sges(
    list: *const ibv_sge,
    count: c_int,
) -> Result<([Sge; MAX_SGE], usize), Errno> {
    let count = usize::try_from(count).map_err(|_| Errno::INVAL)?;
    if count > MAX_SGE || count > 0 && list.is_null() {
        return Err(Errno::INVAL);
    }
    let mut sges = [Sge::default(); MAX_SGE];
    for (i, to) in sges[..count].iter_mut().enumerate() {
        // SAFETY: an entry of the list.
        let ibv_sge { addr, length, lkey } = unsafe { *list.add(i) };
        // SAFETY: the promise of the program.
        *to = unsafe { Sge::from_raw_parts(addr, length, lkey) };
    }
    Ok((sges, count))
}
