//! What the connection manager tells becomes events.

use std::sync::Arc;

use ferroce_cabi::handle::{Object, lock};

use super::connect::{said_of_rep, said_of_req};
use super::event::{Event, Said};
use super::{CONNECTED, CmId, Phase};
use crate::abi::*;
use crate::cm::{Address, Id, Told};
use crate::errno::{Errno, log};
use crate::mad::IP_BYTES;
use crate::port::{PORT, Port, gid, path};

/// Hands on what became of the connection `comm`.
pub(crate) fn tell(port: &Port, comm: Id, told: Told) {
    let (key, ends) = match &told {
        Told::Asked(key, _, ends) | Told::AskedForDatagrams(key, _, ends) => (*key, *ends),
        _ => {
            let known = lock(&CONNECTED)
                .get(&comm)
                .and_then(std::sync::Weak::upgrade);
            if let Some(id) = known {
                tell_id(&id, told);
            }
            return;
        }
    };
    let mut listeners = CmId::registry().all(|id| id.key() == key).into_iter();
    let asked = listeners.next().ok_or(Errno::INVAL).and_then(|listener| {
        let peer = Address {
            sgid_index: super::local(port, ends.to)?,
            gid: gid(ends.from),
        };
        let mut said = Said::default();
        let id = CmId::of_request(&listener, port, comm, peer, ends, |inner| match told {
            Told::Asked(_, req, _) => {
                said = said_of_req(&req);
                // What a program that names nothing gets.
                inner.responder_resources = req.initiator_depth.min(port.max_rd_atomic);
                inner.initiator_depth = req.responder_resources.min(port.max_rd_atomic);
                inner.retry = req.retry;
                inner.rnr_retry = req.rnr_retry;
                inner.traffic_class = req.traffic_class;
                inner.req = Some(req);
            }
            Told::AskedForDatagrams(_, req, _) => {
                said.private = req.private[IP_BYTES..].to_vec();
                inner.service = req.service;
            }
            _ => {}
        })?;
        lock(&CONNECTED).insert(comm, Arc::downgrade(&id));
        Event::tell(&id, Some(&listener), RDMA_CM_EVENT_CONNECT_REQUEST, said);
        Ok(())
    });
    if let Err(errno) = asked {
        log(&format!("a request is refused: {errno}"));
        port.with(|manager, now| manager.abandon(now, comm));
    }
}

/// Tells an identifier what became of its connection.
fn tell_id(id: &Arc<CmId>, told: Told) {
    let mut inner = id.lock();
    // Destroyed meanwhile.
    if inner.comm.is_none() {
        return;
    }
    let status = |status| Said {
        status,
        ..Said::default()
    };
    let (phase, kind, said) = match told {
        Told::Answered(rep) => {
            let said = said_of_rep(&rep);
            // The other end may do less than this one asked for.
            inner.responder_resources = inner.responder_resources.min(rep.initiator_depth);
            inner.initiator_depth = inner.initiator_depth.min(rep.responder_resources);
            inner.rnr_retry = rep.rnr_retry;
            inner.rep = Some(rep);
            (Phase::Connecting, RDMA_CM_EVENT_CONNECT_RESPONSE, said)
        }
        Told::Established => (Phase::Connected, RDMA_CM_EVENT_ESTABLISHED, Said::default()),
        Told::Found(rep) => {
            let Some(peer) = inner.peer else { return };
            let mut ah_attr = path(peer);
            ah_attr.port_num = PORT;
            let ud = rdma_ud_param {
                private_data: std::ptr::null(),
                private_data_len: 0,
                ah_attr,
                qp_num: rep.qpn,
                qkey: rep.qkey,
            };
            let said = Said {
                private: rep.private.to_vec(),
                ud: Some(ud),
                ..Said::default()
            };
            (Phase::Connected, RDMA_CM_EVENT_ESTABLISHED, said)
        }
        Told::Rejected(reason, private) => {
            let said = Said {
                private: private.to_vec(),
                ..status(reason.into())
            };
            (Phase::Failed, RDMA_CM_EVENT_REJECTED, said)
        }
        Told::Unreachable => (
            Phase::Failed,
            RDMA_CM_EVENT_UNREACHABLE,
            status(-libc::ETIMEDOUT),
        ),
        Told::Disconnected { in_time } => {
            let said = status(if in_time { 0 } else { -libc::ETIMEDOUT });
            (Phase::Disconnected, RDMA_CM_EVENT_DISCONNECTED, said)
        }
        Told::TimeWaitOver => (
            Phase::Disconnected,
            RDMA_CM_EVENT_TIMEWAIT_EXIT,
            Said::default(),
        ),
        Told::Asked(..) | Told::AskedForDatagrams(..) => return,
    };
    inner.phase = phase;
    drop(inner);
    Event::tell(id, None, kind, said);
}

/// Tells all identifiers that the device is gone.
pub(crate) fn device_is_gone() {
    for id in CmId::registry().all(|_| true) {
        Event::tell(&id, None, RDMA_CM_EVENT_DEVICE_REMOVAL, Said::default());
    }
}
