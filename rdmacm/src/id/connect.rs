//! Connections: asking, listening, accepting, and the end.

use std::sync::Arc;

use ferroce_cabi::handle::{Object, lock};

use super::{CmId, Details, Event, Inner, LISTENERS, Phase};
use crate::abi::*;
use crate::errno::{Errno, log};
use crate::port::{Port, gid};
use ferroce_cm::{Family, IP_BYTES, IpHeader, Listener, PortSpace, Rep, Req, SidrReq, reason};

/// Most requests whose events a program may leave (Linux: `max_backlog` of `rdma_ucm`).
const MOST_UNREAD: i32 = 1024;

/// What a program asks of a connection.
pub(crate) struct Asked {
    pub(crate) private: Vec<u8>,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    pub(crate) flow_control: bool,
    pub(crate) retry: u8,
    pub(crate) rnr_retry: u8,
    pub(crate) srq: bool,
    pub(crate) qpn: u32,
}

impl Default for Asked {
    /// What a program gets that asks for nothing: as much as there is of READs and retries.
    fn default() -> Self {
        Self {
            private: Vec::new(),
            responder_resources: u8::MAX,
            initiator_depth: u8::MAX,
            // As rdma-core's library; the card does not use end-to-end credits.
            flow_control: false,
            retry: 7,
            rnr_retry: 7,
            srq: false,
            qpn: 0,
        }
    }
}

/// Data of a program in a field of `N` bytes, behind `at`; `EINVAL` if there is more.
fn private<const N: usize>(at: usize, data: &[u8]) -> Result<[u8; N], Errno> {
    let mut field = [0; N];
    let place = field.get_mut(at..at + data.len()).ok_or(Errno::INVAL)?;
    place.copy_from_slice(data);
    Ok(field)
}

impl Inner {
    fn ends(&self, id: &CmId) -> Option<IpHeader> {
        let local = self.local?;
        Some(IpHeader {
            port: local.port(),
            from: local.ip(),
            to: id.peer_address()?.ip(),
        })
    }
}

impl CmId {
    fn peer_address(&self) -> Option<std::net::SocketAddr> {
        // SAFETY: a structure of this, in which an address has room of any family.
        unsafe {
            let address = &raw const (*self.shown()).route.addr.dst_storage;
            super::socket_address(address.cast()).ok()
        }
    }

    /// The queue pair that the message names to the peer, and whether it has a shared receive queue.
    fn number(&self, asked: &Asked) -> (u32, bool) {
        match self.qp() {
            // SAFETY: a queue pair of this identifier, which the program keeps while it connects.
            Some(qp) => unsafe { ((*qp).qp_num, !(*qp).srq.is_null()) },
            None => (asked.qpn, asked.srq),
        }
    }

    /// Waits for requests from now on. So many may be there whose events the program has not taken; 1024 as in Linux if it
    /// names no bound.
    pub(crate) fn listen(self: &Arc<Self>, backlog: i32) -> Result<(), Errno> {
        let port = super::live_port()?;
        if self.lock().phase == Phase::Idle {
            self.bind((std::net::Ipv4Addr::UNSPECIFIED, 0).into())?;
        }
        let mut inner = self.lock();
        let Some(local) = inner.local.filter(|_| inner.phase == Phase::Bound) else {
            return Err(Errno::INVAL);
        };
        self.hold_alone(&mut inner)?;
        let is_any = local.ip().is_unspecified();
        let family = match (local.is_ipv4(), inner.is_v6_only) {
            (true, _) => Family::V4,
            (_, Some(true)) => Family::V6,
            _ => Family::Both,
        };
        let listener = Listener {
            key: self.key,
            space: self.space,
            port: local.port(),
            address: (!is_any).then_some(local.ip()),
            family,
        };
        inner.phase = Phase::Listening;
        inner.backlog = match backlog {
            1..=MOST_UNREAD => backlog as usize,
            _ => MOST_UNREAD as usize,
        };
        lock(&LISTENERS).insert(self.key, Arc::downgrade(self));
        port.with(|manager, _| manager.listen(listener));
        drop(inner);
        log(&format!("listens at port {}", local.port()));
        Ok(())
    }

    /// Asks the peer for a connection, or for its queue pair of datagrams.
    pub(crate) fn connect(self: &Arc<Self>, asked: &Asked) -> Result<(), Errno> {
        let port = super::live_port()?;
        let (qpn, srq) = self.number(asked);
        let mut inner = self.lock();
        let (Phase::Routed, Some(peer)) = (inner.phase, inner.peer) else {
            return Err(Errno::INVAL);
        };
        let ends = inner.ends(self).ok_or(Errno::INVAL)?;
        let to = self.peer_address().ok_or(Errno::INVAL)?;
        let service = self.space.service(to.port());
        if self.space == PortSpace::Udp {
            let mut private = private::<216>(IP_BYTES, &asked.private)?;
            ends.emit(&mut private);
            let req = SidrReq {
                request: 0,
                service,
                private,
            };
            inner.comm = Some(self.start(port, |manager, now| manager.find(now, peer, req)));
        } else {
            let most = |value: u8| value.min(port.max_rd_atomic);
            inner.responder_resources = most(asked.responder_resources);
            inner.initiator_depth = most(asked.initiator_depth);
            inner.retry = asked.retry.min(7);
            let mut private = private::<92>(IP_BYTES, &asked.private)?;
            ends.emit(&mut private);
            let req = Req {
                service,
                qpn,
                responder_resources: inner.responder_resources,
                initiator_depth: inner.initiator_depth,
                flow_control: asked.flow_control,
                psn: inner.psn,
                retry: inner.retry,
                mtu: port.path_mtu,
                rnr_retry: asked.rnr_retry.min(7),
                srq,
                local_gid: gid(ends.from),
                remote_gid: peer.gid,
                traffic_class: inner.traffic_class,
                ack_timeout: inner.ack_timeout.unwrap_or(super::qp::ACK_TIMEOUT),
                private,
                ..Req::default()
            };
            inner.comm = Some(self.start(port, |manager, now| manager.connect(now, peer, req)));
        }
        inner.phase = Phase::Connecting;
        Ok(())
    }

    /// Accepts a request; what the program does not name is as it was asked for.
    pub(crate) fn accept(self: &Arc<Self>, asked: Option<&Asked>) -> Result<(), Errno> {
        let port = super::live_port()?;
        let default = Asked::default();
        let asked = asked.unwrap_or(&default);
        let (qpn, srq) = self.number(asked);
        let mut inner = self.lock();
        let (Phase::Asked, Some(comm)) = (inner.phase, inner.comm) else {
            return Err(Errno::INVAL);
        };
        if self.space == PortSpace::Udp {
            let service = inner.service;
            let private = private::<136>(0, &asked.private)?;
            let found = Some((qpn, RDMA_UDP_QKEY as u32));
            port.change(|m, now| m.answer(now, comm, service, found, private))?;
            inner.phase = Phase::Connected;
            return Ok(());
        }
        let (responder, initiator, rnr_retry) = {
            let req = inner.req.as_ref().ok_or(Errno::INVAL)?;
            (req.initiator_depth, req.responder_resources, req.rnr_retry)
        };
        let agreed = |asked: u8, other: u8| match asked {
            u8::MAX => other.min(port.max_rd_atomic),
            asked => asked.min(port.max_rd_atomic),
        };
        inner.responder_resources = agreed(asked.responder_resources, responder);
        inner.initiator_depth = agreed(asked.initiator_depth, initiator);
        inner.retry = inner.req.as_ref().map_or(7, |req| req.retry);
        inner.rnr_retry = rnr_retry;
        let rep = Rep {
            qpn,
            psn: inner.psn,
            responder_resources: inner.responder_resources,
            initiator_depth: inner.initiator_depth,
            flow_control: asked.flow_control,
            rnr_retry: asked.rnr_retry.min(7),
            srq,
            private: private(0, &asked.private)?,
            ..Rep::default()
        };
        drop(inner);
        // What the peer sends when it has the answer is received.
        self.ready()?;
        let mut inner = self.lock();
        port.change(|manager, now| manager.accept(now, comm, rep))?;
        inner.phase = Phase::Connecting;
        Ok(())
    }

    /// Refuses a request.
    pub(crate) fn reject(&self, data: &[u8]) -> Result<(), Errno> {
        let port = super::port()?;
        let mut inner = self.lock();
        let comm = inner.comm.ok_or(Errno::INVAL)?;
        if self.space == PortSpace::Udp {
            let service = inner.service;
            let private = private::<136>(0, data)?;
            port.change(|m, now| m.answer(now, comm, service, None, private))?;
        } else {
            let private = private::<148>(0, data)?;
            port.change(|manager, _| manager.reject(comm, reason::CONSUMER, private))?;
        }
        inner.phase = match inner.phase {
            Phase::Asked => Phase::Refused,
            _ => Phase::Failed,
        };
        Ok(())
    }

    /// The peer has answered and the queue pair is ready: the connection is there.
    pub(crate) fn establish(&self) -> Result<(), Errno> {
        let port = super::port()?;
        let mut inner = self.lock();
        let comm = inner.comm.ok_or(Errno::INVAL)?;
        port.change(|manager, _| manager.establish(comm))?;
        inner.phase = Phase::Connected;
        Ok(())
    }

    /// The queue pair received something before the peer said that it is ready.
    pub(crate) fn communicates(&self) -> Result<(), Errno> {
        let comm = self.lock().comm.ok_or(Errno::INVAL)?;
        super::port()?.change(|manager, _| manager.communicates(comm))
    }

    /// Ends the connection.
    pub(crate) fn disconnect(&self) -> Result<(), Errno> {
        let port = super::port()?;
        let (comm, phase, is_sync) = {
            let inner = self.lock();
            (inner.comm.ok_or(Errno::INVAL)?, inner.phase, inner.is_sync)
        };
        self.stop()?;
        match port.change(|manager, now| manager.disconnect(now, comm)) {
            // As in Linux, nothing is left to end. One that waits gets an event only if the peer did so long ago.
            Err(_) if !is_sync || phase == Phase::Disconnected => Ok(()),
            result => result,
        }
    }

    /// Looks at an event that the program gets now: a queue pair follows what the peer says.
    pub(crate) fn follow(&self, event: &Event) {
        match event.kind() {
            RDMA_CM_EVENT_CONNECT_RESPONSE if self.qp().is_some() => {
                match self.ready().and_then(|()| self.establish()) {
                    Ok(()) => event.change_to(RDMA_CM_EVENT_ESTABLISHED, 0),
                    Err(errno) => {
                        let _ = self.stop();
                        self.give_up(super::port().ok());
                        // what the peer said meanwhile is of a connection that the program never had
                        let is_own =
                            |later: &Arc<Event>| std::ptr::eq(Arc::as_ptr(&later.owner), self);
                        drop(self.channel().events.take_out(is_own));
                        event.change_to(RDMA_CM_EVENT_CONNECT_ERROR, -errno.raw_os_error());
                    }
                }
            }
            // What it was to do will not be done; it may have gone by itself.
            RDMA_CM_EVENT_REJECTED => drop(self.stop()),
            _ => {}
        }
    }

    /// There will be no connection, and the peer gets a message. [`destroy`](Self::destroy) ends the rest.
    pub(super) fn give_up(&self, port: Option<&Port>) {
        let mut inner = self.lock();
        inner.phase = Phase::Failed;
        if let (Some(comm), Some(port)) = (inner.comm, port) {
            // The peer may have said so before.
            let _ = port.change(|manager, _| manager.reject(comm, reason::CONSUMER, [0; 148]));
        }
    }

    /// The side that was asked: an identifier of its own for the connection.
    pub(super) fn of_request(
        listener: &Arc<Self>,
        port: &Port,
        comm: ferroce_cm::Id,
        peer: ferroce_cm::Address,
        ends: IpHeader,
        fill: impl FnOnce(&mut Inner),
    ) -> Result<Arc<Self>, Errno> {
        // SAFETY: a structure of this.
        let (context, qp_type) = unsafe {
            let shown = listener.shown();
            ((*shown).context, (*shown).qp_type)
        };
        let channel = listener.channel();
        let at = listener.lock().local.map_or(0, |local| local.port());
        let id = Self::create(Some(channel), context, listener.space, qp_type)?;
        let mut inner = id.lock();
        inner.phase = Phase::Asked;
        inner.comm = Some(comm);
        inner.peer = Some(peer);
        id.show_device(port);
        id.show_local(&mut inner, (ends.to, at).into());
        id.show_peer((ends.from, ends.port).into());
        id.show_gids(gid(ends.to), peer.gid);
        fill(&mut inner);
        if inner.req.is_some() {
            id.show_path(port, &mut inner, gid(ends.to), peer);
        }
        drop(inner);
        Ok(id)
    }
}

/// What a request says, as its receiver sees it: what one end does the other bears.
pub(super) fn details_of_req(req: &Req) -> Details {
    let conn = rdma_conn_param {
        private_data: std::ptr::null(),
        private_data_len: 0,
        responder_resources: req.initiator_depth,
        initiator_depth: req.responder_resources,
        flow_control: req.flow_control.into(),
        retry_count: req.retry,
        rnr_retry_count: req.rnr_retry,
        srq: req.srq.into(),
        qp_num: req.qpn,
    };
    Details {
        private: req.private[IP_BYTES..].to_vec(),
        conn: Some(conn),
        ..Details::default()
    }
}

/// What an answer says.
pub(super) fn details_of_rep(rep: &Rep) -> Details {
    let conn = rdma_conn_param {
        private_data: std::ptr::null(),
        private_data_len: 0,
        responder_resources: rep.initiator_depth,
        initiator_depth: rep.responder_resources,
        flow_control: rep.flow_control.into(),
        retry_count: 0,
        rnr_retry_count: rep.rnr_retry,
        srq: rep.srq.into(),
        qp_num: rep.qpn,
    };
    Details {
        private: rep.private.to_vec(),
        conn: Some(conn),
        ..Details::default()
    }
}
