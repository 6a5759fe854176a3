//! What the connection manager tells becomes events.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use ferroce_cabi::handle::{Object, lock};

use super::connect::{details_of_rep, details_of_req};
use super::event::{Details, Event};
use super::{CONNECTED, CmId, LISTENERS, Phase};
use crate::abi::*;
use crate::errno::{Errno, log};
use crate::port::{PORT, Port, gid, path};
use ferroce_cm::{Address, CmEvent, IP_BYTES, Id};

/// Hands on what became of the connection `comm`.
pub(super) fn deliver(port: &Port, comm: Id, event: CmEvent) {
    let (key, ends) = match &event {
        CmEvent::ReqReceived(key, _, ends) | CmEvent::SidrReqReceived(key, _, ends) => {
            (*key, *ends)
        }
        _ => {
            let known = lock(&CONNECTED).get(&comm).and_then(Weak::upgrade);
            if let Some(id) = known {
                deliver_to(&id, event);
            }
            return;
        }
    };
    let listener = lock(&LISTENERS).get(&key).and_then(Weak::upgrade);
    let asked = listener.ok_or(Errno::INVAL).and_then(|listener| {
        let peer = Address {
            sgid_index: super::local(port, ends.to)?,
            gid: gid(ends.from),
        };
        let mut details = Details::default();
        let id = CmId::of_request(&listener, port, comm, peer, ends, |inner| match event {
            CmEvent::ReqReceived(_, req, _) => {
                details = details_of_req(&req);
                // What a program that names nothing gets.
                inner.responder_resources = req.initiator_depth.min(port.max_rd_atomic);
                inner.initiator_depth = req.responder_resources.min(port.max_rd_atomic);
                inner.retry = req.retry;
                inner.rnr_retry = req.rnr_retry;
                inner.traffic_class = req.traffic_class;
                inner.req = Some(req);
            }
            CmEvent::SidrReqReceived(_, req, _) => {
                details.private = req.private[IP_BYTES..].to_vec();
                inner.service = req.service;
            }
            _ => {}
        })?;
        lock(&CONNECTED).insert(comm, Arc::downgrade(&id));
        report_request(&listener, &id, details).inspect_err(|_| id.destroy(Some(port)))
    });
    if let Err(errno) = asked {
        log(&format!("a request is refused: {errno}"));
        port.with(|manager, now| manager.abandon(now, comm));
    }
}

/// Tells a listener of a request. One more than the program may leave is refused, as in Linux.
pub(super) fn report_request(
    listener: &Arc<CmId>,
    id: &Arc<CmId>,
    details: Details,
) -> Result<(), Errno> {
    let inner = listener.lock();
    if inner.phase != Phase::Listening {
        return Err(Errno::INVAL);
    }
    if listener.unread.load(Ordering::Relaxed) >= inner.backlog {
        return Err(Errno::NOMEM);
    }
    let kind = RDMA_CM_EVENT_CONNECT_REQUEST;
    inner.report(Event::new(id, Some(listener), kind, details));
    Ok(())
}

/// Tells an identifier what became of its connection.
pub(super) fn deliver_to(id: &Arc<CmId>, event: CmEvent) {
    let mut inner = id.lock();
    match inner.phase {
        // Given up or destroyed meanwhile.
        Phase::Refused | Phase::Failed | Phase::Destroyed => return,
        // As in Linux, the program gets no event of what it has not accepted: accepting it fails.
        Phase::Asked => {
            inner.phase = Phase::Refused;
            return;
        }
        _ => {}
    }
    let status = |status| Details {
        status,
        ..Details::default()
    };
    let (phase, kind, details) = match event {
        CmEvent::RepReceived(rep) => {
            let details = details_of_rep(&rep);
            // The other end may do less than this one asked for.
            inner.responder_resources = inner.responder_resources.min(rep.initiator_depth);
            inner.initiator_depth = inner.initiator_depth.min(rep.responder_resources);
            inner.rnr_retry = rep.rnr_retry;
            inner.rep = Some(rep);
            (Phase::Connecting, RDMA_CM_EVENT_CONNECT_RESPONSE, details)
        }
        CmEvent::Established => (
            Phase::Connected,
            RDMA_CM_EVENT_ESTABLISHED,
            Details::default(),
        ),
        CmEvent::SidrRepReceived(rep) => {
            let Some(peer) = inner.peer else { return };
            let mut ah_attr = path(peer);
            ah_attr.port_num = PORT;
            ah_attr.grh.traffic_class = inner.traffic_class;
            let ud = rdma_ud_param {
                private_data: std::ptr::null(),
                private_data_len: 0,
                ah_attr,
                qp_num: rep.qpn,
                qkey: rep.qkey,
            };
            let details = Details {
                private: rep.private.to_vec(),
                ud: Some(ud),
                ..Details::default()
            };
            (Phase::Connected, RDMA_CM_EVENT_ESTABLISHED, details)
        }
        CmEvent::Rejected(reason, private) => {
            let details = Details {
                private: private.to_vec(),
                ..status(reason.into())
            };
            (Phase::Failed, RDMA_CM_EVENT_REJECTED, details)
        }
        // So rdma_get_cm_event(3) has it.
        CmEvent::SidrRefused(code, private) => {
            let details = Details {
                private: private.to_vec(),
                ..status(code.into())
            };
            (Phase::Failed, RDMA_CM_EVENT_UNREACHABLE, details)
        }
        CmEvent::Unreachable => (
            Phase::Failed,
            RDMA_CM_EVENT_UNREACHABLE,
            status(-libc::ETIMEDOUT),
        ),
        CmEvent::Disconnected { in_time } => {
            let details = status(if in_time { 0 } else { -libc::ETIMEDOUT });
            (Phase::Disconnected, RDMA_CM_EVENT_DISCONNECTED, details)
        }
        CmEvent::TimeWaitOver => (
            Phase::Disconnected,
            RDMA_CM_EVENT_TIMEWAIT_EXIT,
            Details::default(),
        ),
        CmEvent::ReqReceived(..) | CmEvent::SidrReqReceived(..) => return,
    };
    inner.phase = phase;
    inner.report(Event::new(id, None, kind, details));
}

/// Tells all identifiers that the device is gone.
pub(super) fn device_is_gone() {
    CmId::registry()
        .all(|_| true)
        .iter()
        .for_each(report_removal);
}

/// Reports to an identifier that the device is gone; the program gets no event of a request that it has not accepted.
pub(super) fn report_removal(id: &Arc<CmId>) {
    let inner = id.lock();
    if !matches!(
        inner.phase,
        Phase::Asked | Phase::Refused | Phase::Destroyed
    ) {
        let (kind, details) = (RDMA_CM_EVENT_DEVICE_REMOVAL, Details::default());
        inner.report(Event::new(id, None, kind, details));
    }
}
