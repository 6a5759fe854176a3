//! Posting.

use std::ffi::{c_int, c_uint};
use std::mem::MaybeUninit;
use std::slice;

use ferroce_driver::{Data, Destination, Qp, Remote, SendFlags, SendOp, SendWr, Sends, Sge};

use super::QpHandle;
use crate::abi::*;
use crate::ah::AhHandle;
use crate::errno::{Errno, ToErrno, status};
use crate::handle::get;
use crate::list;
use crate::mw::Bind;

/// Most bytes of inline data that any card takes; a queue pair's own limit is checked by the driver.
pub(super) const MAX_INLINE: usize = 512;
/// Bit of a Q_Key that stands for the Q_Key of the queue pair (IB1 10.2.5).
const OWN_QKEY: u32 = 1 << 31;

impl QpHandle {
    /// Where a datagram goes; `own` is the Q_Key of the queue pair.
    pub(super) fn destination(
        &self,
        (ah, qpn, qkey): (*mut ibv_ah, u32, u32),
        own: impl FnOnce() -> Result<u32, Errno>,
    ) -> Result<Destination, Errno> {
        let qkey = match qkey & OWN_QKEY {
            0 => qkey,
            _ => own()?,
        };
        get::<AhHandle>(ah)?.to(&self.pd, qpn, qkey)
    }

    /// What a request does.
    fn operation(&self, qp: &Qp, wr: &ibv_send_wr) -> Result<SendOp, Errno> {
        // SAFETY: all fields of the union are numbers and a pointer that is not followed here: any bytes will do.
        let (rdma, atomic, ud) = unsafe { (wr.wr.rdma, wr.wr.atomic, wr.wr.ud) };
        let remote = Remote {
            addr: rdma.remote_addr,
            rkey: rdma.rkey,
        };
        let imm = u32::from_be(wr.imm_data);
        let to = (ud.ah, ud.remote_qpn, ud.remote_qkey);
        let destination = || self.destination(to, || Ok(qp.qkey()));
        Ok(match wr.opcode {
            IBV_WR_SEND if Self::is_ud(qp) => SendOp::Datagram(destination()?),
            IBV_WR_SEND_WITH_IMM if Self::is_ud(qp) => SendOp::DatagramImm(destination()?, imm),
            IBV_WR_SEND => SendOp::Send,
            IBV_WR_SEND_WITH_IMM => SendOp::SendImm(imm),
            IBV_WR_SEND_WITH_INV => SendOp::SendInv(wr.imm_data),
            IBV_WR_RDMA_WRITE => SendOp::Write(remote),
            IBV_WR_RDMA_WRITE_WITH_IMM => SendOp::WriteImm(remote, imm),
            IBV_WR_RDMA_READ => SendOp::Read(remote),
            IBV_WR_ATOMIC_CMP_AND_SWP => SendOp::CmpSwap {
                remote: Remote {
                    addr: atomic.remote_addr,
                    rkey: atomic.rkey,
                },
                compare: atomic.compare_add,
                swap: atomic.swap,
            },
            IBV_WR_ATOMIC_FETCH_AND_ADD => SendOp::FetchAdd {
                remote: Remote {
                    addr: atomic.remote_addr,
                    rkey: atomic.rkey,
                },
                add: atomic.compare_add,
            },
            _ => return Err(Errno::OPNOTSUPP),
        })
    }

    /// Posts a request of a list.
    ///
    /// # Safety
    /// As of [`post_send`].
    unsafe fn send(&self, sends: &mut Sends<'_>, wr: &ibv_send_wr) -> Result<(), Errno> {
        let flags = flags(wr.send_flags)?;
        let request = (wr.wr_id, flags);
        match wr.opcode {
            IBV_WR_BIND_MW => {
                let BindMw {
                    mw,
                    rkey,
                    bind_info,
                } = &wr.bind_mw;
                let bind = Bind::new(*mw, Some(*rkey), bind_info)?;
                return sends.with(|qp| bind.post(qp, request));
            }
            IBV_WR_LOCAL_INV => {
                return sends.with(|qp| {
                    qp.post_invalidate(wr.imm_data, request)
                        .map_err(ToErrno::errno)
                });
            }
            _ => {}
        }
        let (mut room, mut copy) = (list::room(), [const { MaybeUninit::uninit() }; MAX_INLINE]);
        // SAFETY: the caller gives the list.
        let sges = unsafe { list::sges(wr.sg_list, wr.num_sge, &mut room) }?;
        let data = match wr.send_flags & IBV_SEND_INLINE as c_uint {
            0 => Data::Sges(sges),
            // SAFETY: with this flag the entries name memory of the program itself.
            _ => Data::Inline(unsafe { gather(sges, &mut copy) }?),
        };
        let wr = SendWr {
            wr_id: wr.wr_id,
            op: self.operation(sends.qp(), wr)?,
            data,
            flags,
        };
        sends.add(&wr).map_err(ToErrno::errno)
    }
}

/// How a request runs; `IBV_SEND_INLINE` says what it works on and is left out.
pub(crate) fn flags(all: c_uint) -> Result<SendFlags, Errno> {
    let mut left = all & !(IBV_SEND_INLINE as c_uint);
    let mut flags = SendFlags::empty();
    for (flag, meant) in [
        (IBV_SEND_FENCE, SendFlags::FENCE),
        (IBV_SEND_SIGNALED, SendFlags::SIGNALED),
        (IBV_SEND_SOLICITED, SendFlags::SOLICITED),
    ] {
        if left & flag as c_uint != 0 {
            flags |= meant;
            left &= !(flag as c_uint);
        }
    }
    match left {
        0 => Ok(flags),
        _ => Err(Errno::INVAL),
    }
}

/// Copies the bytes that entries name.
///
/// # Safety
/// They are memory of this process that can be read.
unsafe fn gather<'a>(
    sges: &[Sge],
    to: &'a mut [MaybeUninit<u8>; MAX_INLINE],
) -> Result<&'a [u8], Errno> {
    let mut len = 0;
    for sge in sges.iter().filter(|sge| sge.length() > 0) {
        let from = std::ptr::with_exposed_provenance::<u8>(sge.addr() as usize);
        let bytes = sge.length() as usize;
        let room = to.get_mut(len..len + bytes).ok_or(Errno::INVAL)?;
        // SAFETY: memory of the caller, and room for as many bytes.
        unsafe { from.copy_to_nonoverlapping(room.as_mut_ptr().cast(), bytes) };
        len += bytes;
    }
    // SAFETY: as many were written.
    Ok(unsafe { slice::from_raw_parts(to.as_ptr().cast(), len) })
}

/// Posts a list of send requests, with one doorbell.
pub(crate) unsafe extern "C" fn post_send(
    qp: *mut ibv_qp,
    first: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> c_int {
    let post = |handle: &QpHandle, bad: &mut _| {
        handle.qp.with(|qp| {
            let mut sends = qp.sends();
            // SAFETY: the caller gives a list of requests.
            unsafe { list::post(first, bad, |wr| handle.send(&mut sends, wr)) }
        })
    };
    // SAFETY: as above.
    unsafe { list::on(qp, first, bad, post) }
}

/// Posts a list of receive requests, with one doorbell.
pub(crate) unsafe extern "C" fn post_recv(
    qp: *mut ibv_qp,
    first: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    let post = |handle: &QpHandle, bad: &mut _| {
        handle.qp.with(|qp| {
            let mut receives = qp.receives();
            // SAFETY: as of `post_send`.
            unsafe { list::receives(first, bad, |wr| receives.add(wr)) }
        })
    };
    // SAFETY: as of `post_send`.
    unsafe { list::on(qp, first, bad, post) }
}

/// Binds a window of type 1; its key is a new one then.
pub(crate) unsafe extern "C" fn bind_mw(
    qp: *mut ibv_qp,
    mw: *mut ibv_mw,
    bind: *mut ibv_mw_bind,
) -> c_int {
    // SAFETY: the caller gives what to bind the window to.
    let bind = unsafe { *bind };
    let posted = get::<QpHandle>(qp).and_then(|qp| {
        let request = (bind.wr_id, flags(bind.send_flags)?);
        qp.qp
            .with(|qp| Bind::new(mw, None, &bind.bind_info)?.post(qp, request))
    });
    status(posted)
}
