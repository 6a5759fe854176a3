//! Queue pairs of identifiers, and their attributes from what both ends agreed on.

use std::ffi::c_int;
use std::ptr;

use ferroce_cabi::abi::*;
use ferroce_cabi::handle::Object;

use super::{CmId, Inner};
use crate::abi::*;
use crate::errno::Errno;
use crate::port::verbs::*;
use crate::port::{PORT, path, pointer, success};
use ferroce_cm::PortSpace;

/// Code of the ACK timeout without what a device needs: 0.54 s, as Linux has it for RoCE.
pub(super) const ACK_TIMEOUT: u8 = 17;
/// Code of the time that a sender waits when there is no receive request, 655 ms (rdma_accept(3)).
const MIN_RNR_TIMER: u8 = 0;

/// What this library made for the queue pair of an identifier.
#[derive(Default)]
pub(super) struct Own {
    /// Completion queues with their channels.
    cqs: Vec<(usize, usize)>,
}

/// The code of the sum of two times (IB1 12.7.34): that of the longer one, and one more if both count.
fn sum(a: u8, b: u8) -> u8 {
    let (long, short) = (a.max(b), a.min(b));
    (long + u8::from(short > 0 && short + 1 >= long)).min(31)
}

impl Inner {
    /// Attributes of the queue pair for its way to `state`, and their mask; `EINVAL` if the ends did not agree yet.
    fn attributes(&self, space: PortSpace, state: c_int) -> Result<(ibv_qp_attr, c_int), Errno> {
        let mut attr = ibv_qp_attr::zero();
        attr.qp_state = state;
        let is_connected = space == PortSpace::Tcp;
        let mask = match state {
            IBV_QPS_INIT => {
                attr.port_num = PORT;
                attr.qkey = RDMA_UDP_QKEY as u32;
                let rights = match self.responder_resources {
                    0 => IBV_ACCESS_REMOTE_WRITE,
                    _ => {
                        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
                    }
                };
                attr.qp_access_flags = rights as u32;
                let last = if is_connected {
                    IBV_QP_ACCESS_FLAGS
                } else {
                    IBV_QP_QKEY
                };
                IBV_QP_PKEY_INDEX | IBV_QP_PORT | last
            }
            IBV_QPS_RTR if is_connected => {
                let peer = self.peer.ok_or(Errno::INVAL)?;
                attr.ah_attr = path(peer);
                attr.ah_attr.grh.traffic_class = self.traffic_class;
                let (mtu, qpn, _) = self.remote().ok_or(Errno::INVAL)?;
                attr.path_mtu = mtu;
                attr.dest_qp_num = qpn;
                attr.rq_psn = self.psn;
                attr.max_dest_rd_atomic = self.responder_resources;
                attr.min_rnr_timer = MIN_RNR_TIMER;
                let of_rc = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
                IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | of_rc
            }
            IBV_QPS_RTR => 0,
            IBV_QPS_RTS if is_connected => {
                // Each end says where the other is to begin.
                attr.sq_psn = self.remote().ok_or(Errno::INVAL)?.2;
                attr.timeout = self.timeout();
                attr.retry_cnt = self.retry;
                attr.rnr_retry = self.rnr_retry;
                attr.max_rd_atomic = self.initiator_depth;
                let of_rc = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
                IBV_QP_SQ_PSN | of_rc | IBV_QP_MAX_QP_RD_ATOMIC
            }
            IBV_QPS_RTS => IBV_QP_SQ_PSN,
            _ => return Err(Errno::INVAL),
        };
        Ok((attr, mask | IBV_QP_STATE))
    }

    /// Path MTU, queue pair of the peer, and the PSN that it expects first.
    fn remote(&self) -> Option<(c_int, u32, u32)> {
        if let Some(req) = &self.req {
            return Some((req.mtu.into(), req.qpn, req.psn));
        }
        let rep = self.rep.as_ref()?;
        let port = super::port().ok()?;
        Some((port.path_mtu.into(), rep.qpn, rep.psn))
    }

    fn timeout(&self) -> u8 {
        // As in Linux, what the program says holds at its own end.
        if let Some(code) = self.ack_timeout {
            return code;
        }
        match (&self.req, &self.rep) {
            (Some(req), _) => req.ack_timeout,
            (_, Some(rep)) => sum(ACK_TIMEOUT, rep.ack_delay),
            _ => ACK_TIMEOUT,
        }
    }
}

impl CmId {
    /// See `rdma_init_qp_attr`.
    pub(crate) fn attributes(&self, state: c_int) -> Result<(ibv_qp_attr, c_int), Errno> {
        self.lock().attributes(self.space, state)
    }

    pub(crate) fn qp(&self) -> Option<*mut ibv_qp> {
        // SAFETY: a structure of this.
        let qp = unsafe { (*self.shown()).qp };
        (!qp.is_null()).then_some(qp)
    }

    fn modify(&self, qp: *mut ibv_qp, states: &[c_int]) -> Result<(), Errno> {
        for &state in states {
            let (mut attr, mask) = self.attributes(state)?;
            // SAFETY: a handle, which libibverbs looks up, and attributes.
            success(unsafe { ibv_modify_qp(qp, &raw mut attr, mask) })?;
        }
        Ok(())
    }

    /// Brings its queue pair, if it has one, to where it receives and sends.
    pub(super) fn ready(&self) -> Result<(), Errno> {
        let Some(qp) = self.qp() else { return Ok(()) };
        // Rights depend on what the ends agreed on.
        self.modify(qp, &[IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS])
    }

    /// Ends what its queue pair does.
    pub(crate) fn stop(&self) -> Result<(), Errno> {
        let Some(qp) = self.qp() else { return Ok(()) };
        let mut attr = ibv_qp_attr::zero();
        attr.qp_state = IBV_QPS_ERR;
        // SAFETY: a handle, which libibverbs looks up, and attributes.
        success(unsafe { ibv_modify_qp(qp, &raw mut attr, IBV_QP_STATE) })
    }

    /// The context it is bound to.
    fn context(&self) -> Result<*mut ibv_context, Errno> {
        // SAFETY: a structure of this.
        let context = unsafe { (*self.shown()).verbs };
        match context.is_null() {
            true => Err(Errno::INVAL),
            false => Ok(context),
        }
    }

    /// Makes its queue pair, with what `make` makes of the attributes. Completion queues that are missing are made too.
    pub(crate) fn create_qp(
        &self,
        init: &mut ibv_qp_init_attr,
        make: impl FnOnce(&mut ibv_qp_init_attr) -> Result<*mut ibv_qp, Errno>,
    ) -> Result<(), Errno> {
        let context = self.context()?;
        let is_connected = matches!(init.qp_type, IBV_QPT_RC | IBV_QPT_UC);
        if self.qp().is_some() || is_connected != (self.space == PortSpace::Tcp) {
            return Err(Errno::INVAL);
        }
        if init.qp_type == IBV_QPT_UC {
            return Err(Errno::OPNOTSUPP);
        }
        let result = self.complete(context, init).and_then(|()| make(init));
        let made = result.and_then(|qp| {
            let states: &[c_int] = match is_connected {
                true => &[IBV_QPS_INIT],
                false => &[IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS],
            };
            self.modify(qp, states).map(|()| qp).inspect_err(|_| {
                // SAFETY: a queue pair that no other code has.
                unsafe { ibv_destroy_qp(qp) };
            })
        });
        match made {
            Ok(qp) => {
                // SAFETY: a structure of this.
                unsafe {
                    (*self.shown()).qp = qp;
                    (*self.shown()).qp_type = init.qp_type;
                    (*self.shown()).pd = (*qp).pd;
                }
                Ok(())
            }
            Err(errno) => {
                self.destroy_cqs();
                Err(errno)
            }
        }
    }

    /// Makes the completion queues that are not named.
    fn complete(
        &self,
        context: *mut ibv_context,
        init: &mut ibv_qp_init_attr,
    ) -> Result<(), Errno> {
        let make = |entries: u32| {
            // SAFETY: a context, and handles that this function got.
            unsafe {
                let channel = pointer(ibv_create_comp_channel(context))?;
                let entries = c_int::try_from(entries.max(1)).map_err(|_| Errno::INVAL)?;
                let cq = ibv_create_cq(context, entries, self.shown().cast(), channel, 0);
                let cq = pointer(cq).inspect_err(|_| {
                    ibv_destroy_comp_channel(channel);
                })?;
                self.lock().own.cqs.push((cq.addr(), channel.addr()));
                Ok::<_, Errno>((cq, channel))
            }
        };
        if init.recv_cq.is_null() {
            let (cq, channel) = make(init.cap.max_recv_wr)?;
            init.recv_cq = cq;
            // SAFETY: a structure of this.
            unsafe {
                (*self.shown()).recv_cq = cq;
                (*self.shown()).recv_cq_channel = channel;
            }
        }
        if init.send_cq.is_null() {
            let (cq, channel) = make(init.cap.max_send_wr)?;
            init.send_cq = cq;
            // SAFETY: a structure of this.
            unsafe {
                (*self.shown()).send_cq = cq;
                (*self.shown()).send_cq_channel = channel;
            }
        }
        Ok(())
    }

    fn destroy_cqs(&self) {
        let cqs = std::mem::take(&mut self.lock().own.cqs);
        for (cq, channel) in cqs {
            // SAFETY: handles that this made, and that libibverbs looks up.
            unsafe {
                ibv_destroy_cq(ptr::without_provenance_mut(cq));
                ibv_destroy_comp_channel(ptr::without_provenance_mut(channel));
            }
        }
        // SAFETY: a structure of this.
        unsafe {
            let shown = self.shown();
            (*shown).recv_cq = ptr::null_mut();
            (*shown).recv_cq_channel = ptr::null_mut();
            (*shown).send_cq = ptr::null_mut();
            (*shown).send_cq_channel = ptr::null_mut();
        }
    }

    /// Destroys its queue pair, and what was made for it.
    pub(crate) fn destroy_qp(&self) {
        let Some(qp) = self.qp() else { return };
        // SAFETY: a handle, which libibverbs looks up.
        unsafe {
            ibv_destroy_qp(qp);
            (*self.shown()).qp = ptr::null_mut();
        }
        self.destroy_cqs();
    }
}

/// Makes a queue pair in `pd`, or without one in that of the library.
pub(crate) fn create(pd: *mut ibv_pd, init: &mut ibv_qp_init_attr) -> Result<*mut ibv_qp, Errno> {
    let pd = match pd.is_null() {
        true => super::port()?.pd,
        false => pd,
    };
    // SAFETY: a handle, which libibverbs looks up, and attributes.
    pointer(unsafe { ibv_create_qp(pd, init) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroce_cm::{Rep, Req};

    /// As the kernel's `rdma_init_qp_attr`: the option is of this end alone.
    #[test]
    fn the_timeout_of_the_program_is_taken_as_it_is() {
        let id = CmId::create(None, ptr::null_mut(), PortSpace::Tcp, IBV_QPT_RC).unwrap();
        let mut inner = id.lock();
        inner.rep = Some(Box::new(Rep {
            ack_delay: 20,
            ..Rep::default()
        }));
        assert_eq!(inner.timeout(), 20);
        inner.ack_timeout = Some(9);
        assert_eq!(inner.timeout(), 9);
        inner.rep = None;
        inner.req = Some(Box::new(Req {
            ack_timeout: 18,
            ..Req::default()
        }));
        assert_eq!(inner.timeout(), 9);
        inner.ack_timeout = None;
        assert_eq!(inner.timeout(), 18);
    }

    #[test]
    fn times_are_summed_by_codes() {
        assert_eq!(sum(17, 0), 17);
        assert_eq!(sum(17, 15), 17);
        assert_eq!(sum(17, 16), 18);
        assert_eq!(sum(17, 17), 18);
        assert_eq!(sum(17, 20), 20);
        assert_eq!(sum(31, 31), 31);
    }
}
