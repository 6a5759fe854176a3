//! Posting.

use std::ffi::{c_int, c_uint};
use std::slice;

use ferroce_driver::open::AnyBackend;
use ferroce_driver::{Data, Destination, Qp, RecvWr, Remote, SendFlags, SendOp, SendWr, Sge};

use super::QpHandle;
use crate::abi::*;
use crate::ah::AhHandle;
use crate::errno::{Errno, ToErrno};
use crate::handle::get;
use crate::list;
use crate::mw::Bind;

/// Most bytes of inline data that any card takes; a queue pair's own limit is checked by the driver.
pub(super) const MAX_INLINE: usize = 512;
/// Bit of a Q_Key that stands for the Q_Key of the queue pair (IB1 10.2.5).
const OWN_QKEY: u32 = 1 << 31;

impl QpHandle {
    /// Where a datagram goes.
    pub(super) fn destination(
        &self,
        ah: *mut ibv_ah,
        qpn: u32,
        qkey: u32,
    ) -> Result<Destination, Errno> {
        let qkey = match qkey & OWN_QKEY {
            0 => qkey,
            _ => self.qkey(),
        };
        get::<AhHandle>(ah)?.to(&self.pd, qpn, qkey)
    }

    /// What a request does.
    fn operation(&self, qp: &Qp<AnyBackend>, wr: &ibv_send_wr) -> Result<SendOp, Errno> {
        // SAFETY: all fields of the union are numbers and a pointer that is not followed here: any bytes will do.
        let (rdma, atomic, ud) = unsafe { (wr.wr.rdma, wr.wr.atomic, wr.wr.ud) };
        let remote = Remote {
            addr: rdma.remote_addr,
            rkey: rdma.rkey,
        };
        let imm = u32::from_be(wr.imm_data);
        let destination = || self.destination(ud.ah, ud.remote_qpn, ud.remote_qkey);
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

    fn send(&self, wr: &ibv_send_wr) -> Result<(), Errno> {
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
                return self.qp.with(|qp| bind.post(qp, request));
            }
            IBV_WR_LOCAL_INV => {
                return self.qp.with(|qp| {
                    qp.post_invalidate(wr.imm_data, request)
                        .map_err(ToErrno::errno)
                });
            }
            _ => {}
        }
        let is_inline = wr.send_flags & IBV_SEND_INLINE as c_uint != 0;
        // SAFETY: the caller of `post_send` gives the list.
        let (sges, count) = unsafe { list::sges(wr.sg_list, wr.num_sge) }?;
        let mut copy = [0; MAX_INLINE];
        let data = if is_inline {
            // SAFETY: with this flag the entries name memory of the program itself.
            Data::Inline(unsafe { gather(&sges[..count], &mut copy) }?)
        } else {
            Data::Sges(&sges[..count])
        };
        self.qp.with(|qp| {
            let wr = SendWr {
                wr_id: wr.wr_id,
                op: self.operation(qp, wr)?,
                data,
                flags,
            };
            qp.post_send(&[wr]).map_err(ToErrno::errno)
        })
    }

    fn receive(&self, wr: &ibv_recv_wr) -> Result<(), Errno> {
        // SAFETY: the caller of `post_recv` gives the list.
        let (sges, count) = unsafe { list::sges(wr.sg_list, wr.num_sge) }?;
        let wr = RecvWr::new(wr.wr_id, &sges[..count]);
        self.qp
            .with(|qp| qp.post_recv(&[wr]).map_err(ToErrno::errno))
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
unsafe fn gather<'a>(sges: &[Sge], to: &'a mut [u8; MAX_INLINE]) -> Result<&'a [u8], Errno> {
    let mut len = 0;
    for sge in sges.iter().filter(|sge| sge.length() > 0) {
        let from = std::ptr::with_exposed_provenance(sge.addr() as usize);
        let bytes = sge.length() as usize;
        let room = to.get_mut(len..len + bytes).ok_or(Errno::INVAL)?;
        // SAFETY: memory of the caller.
        room.copy_from_slice(unsafe { slice::from_raw_parts(from, bytes) });
        len += bytes;
    }
    Ok(&to[..len])
}

/// Posts a list of send requests.
pub(crate) unsafe extern "C" fn post_send(
    qp: *mut ibv_qp,
    first: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> c_int {
    let handle = get::<QpHandle>(qp);
    // SAFETY: the caller gives a list of requests and a place for the one that is refused.
    unsafe {
        list::post(first, bad, |wr: &ibv_send_wr| {
            handle.as_ref().map_err(|e| *e)?.send(wr)
        })
    }
}

/// Posts a list of receive requests.
pub(crate) unsafe extern "C" fn post_recv(
    qp: *mut ibv_qp,
    first: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    let handle = get::<QpHandle>(qp);
    // SAFETY: as of `post_send`.
    unsafe {
        list::post(first, bad, |wr: &ibv_recv_wr| {
            handle.as_ref().map_err(|e| *e)?.receive(wr)
        })
    }
}
