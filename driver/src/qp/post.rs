//! Posting of work requests: no lock, no system call, no allocation.

mod each;
mod half;

use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::wqe;
use ferroce_proto::wire::Mtu;

pub use each::{Receives, Sends};
pub use half::{RecvHalf, SendHalf};

use super::Qp;
use crate::Backend;
use crate::barrier;
use crate::encode::{self, Extent};
use crate::post_error::{PostCause, PostError, check_list};
use crate::queue::Place;
use crate::state::{QpState, QpType};
use crate::wr::{Data, RecvWr, SendFlags, SendOp, SendWr};

impl<B: Backend> Qp<B> {
    /// Posts send requests in order and rings the doorbell once. All are posted or none.
    ///
    /// The data of a request that is not inline is read, or written, by the card until the request completes.
    ///
    /// # Errors
    /// [`PostError`] names the first request that cannot be posted and why; nothing has changed then.
    pub fn post_send(&mut self, wrs: &[SendWr<'_>]) -> Result<(), PostError> {
        self.send_all(wrs)
    }

    /// [`post_send`](Self::post_send) by the one that posts sends.
    #[inline]
    fn send_all(&self, wrs: &[SendWr<'_>]) -> Result<(), PostError> {
        if wrs.is_empty() {
            return Ok(());
        }
        self.check_sends().map_err(|cause| cause.at(0))?;
        let producer = self.write_send(wrs)?;
        self.publish_send(producer);
        Ok(())
    }

    /// Whether send requests could be posted now.
    ///
    /// # Errors
    /// As of [`post_send`](Self::post_send).
    pub fn check_send(&mut self, wrs: &[SendWr<'_>]) -> Result<(), PostError> {
        self.check_sends().map_err(|cause| cause.at(0))?;
        self.write_send(wrs).map(drop)
    }

    /// The queue pair takes send requests in its state.
    #[inline]
    fn check_sends(&self) -> Result<(), PostCause> {
        let (state, needed) = (self.state, QpState::Rts);
        if matches!(state, QpState::Reset | QpState::Init | QpState::Rtr) {
            return Err(PostCause::State { state, needed });
        }
        Ok(())
    }

    /// Writes send requests into slots that the card does not know of yet; the place behind them.
    #[inline]
    fn write_send(&self, wrs: &[SendWr<'_>]) -> Result<Place, PostError> {
        let sq = &self.queues.sq;
        let (mut producer, done) = (sq.producer(), sq.consumer());
        // Nothing of this exists for the card before the doorbell.
        for (index, wr) in wrs.iter().enumerate() {
            let written = self.write_one(wr, producer, done);
            producer = written.map_err(|cause| cause.at(index))?;
        }
        Ok(producer)
    }

    /// Writes a send request at `at`, if there is room when those before `done` completed; the place behind it.
    #[inline]
    fn write_one(&self, wr: &SendWr<'_>, at: Place, done: Place) -> Result<Place, PostCause> {
        let sq = &self.queues.sq;
        let extent = self.check(wr)?;
        let needed = extent.slots(wr.data);
        let free = sq.room(at, done);
        if needed > free {
            let queue = "send";
            return Err(PostCause::Full {
                queue,
                free,
                needed,
            });
        }
        sq.note(at, wr.wr_id, needed);
        let signaled = self.signal_all || wr.flags.contains(SendFlags::SIGNALED);
        encode::send(wr, signaled, extent, needed, |place| {
            let place = sq.place(at.slots.wrapping_add(place as u32));
            self.rings.slot(place * wqe::SLOT_BYTES)
        });
        Ok(at.after(needed))
    }

    /// Posts receive requests in order and rings the doorbell once. All are posted or none.
    ///
    /// # Errors
    /// [`PostError`] names the first request that cannot be posted and why; nothing has changed then.
    pub fn post_recv(&mut self, wrs: &[RecvWr<'_>]) -> Result<(), PostError> {
        self.recv_all(wrs)
    }

    /// [`post_recv`](Self::post_recv) by the one that posts receives.
    #[inline]
    fn recv_all(&self, wrs: &[RecvWr<'_>]) -> Result<(), PostError> {
        if wrs.is_empty() {
            return Ok(());
        }
        self.check_receives().map_err(|cause| cause.at(0))?;
        let rq = &self.queues.rq;
        let (mut producer, done) = (rq.producer(), rq.consumer());
        for (index, wr) in wrs.iter().enumerate() {
            let written = self.write_recv(wr, producer, done);
            producer = written.map_err(|cause| cause.at(index))?;
        }
        self.publish_recv(producer);
        Ok(())
    }

    /// Writes a receive request at `at`, if that is free when those before `done` completed; the place behind it.
    #[inline]
    fn write_recv(&self, wr: &RecvWr<'_>, at: Place, done: Place) -> Result<Place, PostCause> {
        let rq = &self.queues.rq;
        let extent = check_list(wr.sges, self.max_recv_sge)?;
        let free = rq.room(at, done);
        if free == 0 {
            let (queue, needed) = ("receive", 1);
            return Err(PostCause::Full {
                queue,
                free,
                needed,
            });
        }
        rq.note(at, wr.wr_id, 1);
        let first = rq.place(at.slots) << self.rq_stride;
        encode::recv(wr, extent, |place| {
            let at = self.rq_offset + (first + place) * wqe::SLOT_BYTES;
            self.rings.slot(at)
        });
        Ok(at.after(1))
    }

    #[inline]
    fn publish_send(&self, producer: Place) {
        self.queues.sq.publish(producer);
        self.ring(doorbell::sq(self.number), producer.slots);
    }

    fn publish_recv(&self, producer: Place) {
        self.queues.rq.publish(producer);
        self.ring(doorbell::rq(self.number), producer.slots);
    }

    /// The queue pair takes receive requests.
    fn check_receives(&self) -> Result<(), PostCause> {
        if self.state == QpState::Reset {
            let (state, needed) = (self.state, QpState::Init);
            return Err(PostCause::State { state, needed });
        }
        if self.srq.is_some() {
            let cause = PostCause::Malformed(
                "the queue pair receives from a shared receive queue: post to that",
            );
            return Err(cause);
        }
        Ok(())
    }

    /// Tells the card of a producer index, after everything that it stands for.
    #[inline]
    pub(super) fn ring(&self, offset: u64, producer: u32) {
        barrier::before_register();
        self.rings.host().write32(offset, producer);
    }

    /// What a send request comes to, if the queue pair can do it.
    #[inline]
    fn check(&self, wr: &SendWr<'_>) -> Result<Extent, PostCause> {
        let extent = match wr.data {
            Data::Sges(sges) => check_list(sges, self.max_send_sge)?,
            Data::Inline(bytes) if bytes.len() > self.max_inline_data => {
                let (found, limit) = (bytes.len(), self.max_inline_data);
                return Err(PostCause::Inline { found, limit });
            }
            Data::Inline(_) => Extent::of(wr.data),
        };
        if self.qp_type != QpType::Rc || !wr.op.is_plain() {
            self.check_op(wr, extent)?;
        }
        Ok(extent)
    }

    /// Checks of what not every queue pair can do. A call, so that plain requests do not carry it.
    #[inline(never)]
    fn check_op(&self, wr: &SendWr<'_>, extent: Extent) -> Result<(), PostCause> {
        let unsupported = |missing| PostCause::Unsupported {
            qp_type: self.qp_type,
            operation: wr.op.name(),
            missing,
        };
        if wr.op.is_datagram() != (self.qp_type == QpType::Ud) {
            return Err(unsupported(if wr.op.is_datagram() {
                "build a queue pair for datagrams (ud) for it"
            } else {
                "it sends datagrams only"
            }));
        }
        if self.qp_type == QpType::Ud {
            let limit = self.path_mtu.map_or(0, Mtu::bytes) as u32;
            let found = extent.bytes;
            if found > limit.into() {
                return Err(PostCause::Length { found, limit });
            }
        }
        if wr.op.is_local() && (extent.bytes, wr.data) != (0, Data::Sges(&[])) {
            return Err(PostCause::Malformed(
                "binds and invalidations have no payload: give an empty list",
            ));
        }
        if self.qp_type != QpType::Rc && (wr.op.fetches() || matches!(wr.op, SendOp::SendInv(_))) {
            return Err(unsupported("build a reliable connection for it"));
        }
        if !self.features.contains(wr.op.feature()) {
            return Err(unsupported(
                "the card was built without it, see the features in query_device()",
            ));
        }
        if !wr.op.fetches() {
            return Ok(());
        }
        if self.max_rd_atomic == 0 {
            return Err(unsupported(
                "its max_rd_atomic is 0, connect it with 1 or more",
            ));
        }
        if let Data::Inline(_) = wr.data {
            return Err(PostCause::Malformed(
                "READs and atomics put data into memory: give a list instead of inline data",
            ));
        }
        if wr.op.is_atomic() {
            if (extent.entries, extent.bytes) != (1, 8) {
                return Err(PostCause::Malformed(
                    "an atomic puts the old value into memory: give a list of one entry of 8 bytes",
                ));
            }
            if !wr.op.fields().1.addr.is_multiple_of(8) {
                return Err(PostCause::Malformed(
                    "an atomic works on 8 aligned bytes: give a remote address that is a multiple of 8",
                ));
            }
        }
        Ok(())
    }
}
