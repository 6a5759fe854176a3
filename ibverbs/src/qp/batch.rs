//! Requests that are described call by call, and posted together.

use std::ffi::c_uint;
use std::ops::Range;

use ferroce_driver::{Data, Destination, SendFlags, SendOp, SendWr, Sge};

use super::QpHandle;
use super::post::{self, MAX_INLINE};
use crate::errno::{Errno, ToErrno};
use crate::mw::Bind;

/// What a request works on: places in the memory of the batch.
enum Content {
    Sges(Range<usize>),
    Inline(Range<usize>),
}

/// A request.
struct Request {
    wr_id: u64,
    flags: SendFlags,
    op: SendOp,
    /// A bind in place of `op`.
    bind: Option<Bind>,
    content: Content,
}

/// Requests from `wr_start` on. After an error `wr_complete` returns it and posts nothing.
#[derive(Default)]
pub(super) struct Batch {
    requests: Vec<Request>,
    sges: Vec<Sge>,
    bytes: Vec<u8>,
    failed: Option<Errno>,
}

impl Batch {
    /// Forgets all requests.
    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.sges.clear();
        self.bytes.clear();
        self.failed = None;
    }

    /// The first of several errors is kept.
    pub(super) fn fail(&mut self, errno: Errno) {
        self.failed.get_or_insert(errno);
    }

    /// A further request; what follows describes it.
    pub(super) fn begin(&mut self, wr_id: u64, flags: c_uint, op: SendOp) -> Result<(), Errno> {
        let flags = post::flags(flags)?;
        let content = Content::Sges(0..0);
        self.requests.push(Request {
            wr_id,
            flags,
            op,
            bind: None,
            content,
        });
        Ok(())
    }

    /// A further request, a bind.
    pub(super) fn begin_bind(
        &mut self,
        wr_id: u64,
        flags: c_uint,
        bind: Bind,
    ) -> Result<(), Errno> {
        // It takes as much room as an invalidation, and is what it is when it is posted.
        self.begin(wr_id, flags, SendOp::LocalInv(0))?;
        self.last()?.bind = Some(bind);
        Ok(())
    }

    fn last(&mut self) -> Result<&mut Request, Errno> {
        self.requests.last_mut().ok_or(Errno::INVAL)
    }

    /// The datagram goes there.
    pub(super) fn address(&mut self, to: Destination) -> Result<(), Errno> {
        let last = self.last()?;
        last.op = match last.op {
            SendOp::Send => SendOp::Datagram(to),
            SendOp::SendImm(imm) => SendOp::DatagramImm(to, imm),
            _ => return Err(Errno::INVAL),
        };
        Ok(())
    }

    /// It works on pieces of memory.
    pub(super) fn list(&mut self, sges: &[Sge]) -> Result<(), Errno> {
        let start = self.sges.len();
        let end = start + sges.len();
        self.last()?.content = Content::Sges(start..end);
        self.sges.extend_from_slice(sges);
        Ok(())
    }

    /// It works on a copy of these bytes, one piece after the other.
    pub(super) fn inline<'a>(
        &mut self,
        pieces: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), Errno> {
        self.last()?;
        let start = self.bytes.len();
        for piece in pieces {
            if self.bytes.len() - start + piece.len() > MAX_INLINE {
                return Err(Errno::INVAL);
            }
            self.bytes.extend_from_slice(piece);
        }
        let end = self.bytes.len();
        self.last()?.content = Content::Inline(start..end);
        Ok(())
    }

    /// Posts all requests, or none.
    pub(super) fn post(&mut self, qp: &QpHandle) -> Result<(), Errno> {
        if let Some(errno) = self.failed {
            return Err(errno);
        }
        qp.qp.with(|qp| match &self.requests[..] {
            // Not worth a list.
            [one] if one.bind.is_none() => qp.post_send(&[self.wr(one)]).map_err(ToErrno::errno),
            all => {
                let wrs: Vec<_> = all.iter().map(|request| self.wr(request)).collect();
                if all.iter().all(|request| request.bind.is_none()) {
                    return qp.post_send(&wrs).map_err(ToErrno::errno);
                }
                qp.check_send(&wrs).map_err(ToErrno::errno)?;
                let mut sends = qp.sends();
                for (request, wr) in all.iter().zip(&wrs) {
                    match &request.bind {
                        None => sends.add(wr).map_err(ToErrno::errno)?,
                        Some(bind) => {
                            let named = (request.wr_id, request.flags);
                            sends.with(|qp| bind.post(qp, named))?;
                        }
                    }
                }
                Ok(())
            }
        })
    }

    fn wr(&self, request: &Request) -> SendWr<'_> {
        SendWr {
            wr_id: request.wr_id,
            op: request.op,
            data: match &request.content {
                Content::Sges(places) => Data::Sges(&self.sges[places.clone()]),
                Content::Inline(places) => Data::Inline(&self.bytes[places.clone()]),
            },
            flags: request.flags,
        }
    }
}
