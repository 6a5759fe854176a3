//! Receive: parsing, and the checks against the queue pair whose failure drops a packet silently.

use ferroce_proto::abi::qpc::{RqCtx, state};
use ferroce_proto::wire::bth::pkey_matches;
use ferroce_proto::wire::{BthRepr, Error, Extensions, Headers, Operation, Packet};

use super::qp::QueuePair;
use super::stats::Stat;
use super::tx::{gid, mac};
use super::{Env, Model, stats};

/// A packet that passed all checks that drop.
pub(super) struct Received<'a> {
    pub(super) bth: BthRepr,
    pub(super) ext: Extensions,
    pub(super) payload: &'a [u8],
}

impl Model {
    /// A frame has arrived.
    pub(super) fn receive_frame(&mut self, frame: &[u8]) {
        self.env.stats.count(stats::RX_FRAMES);
        self.env.stats.add(stats::RX_BYTES, frame.len() as u64);
        if let Err(reason) = self.deliver(frame) {
            self.env.stats.count(reason);
        }
    }

    /// Hands a frame to its queue pair, or gives the counter of the reason to drop it.
    fn deliver(&mut self, frame: &[u8]) -> Result<(), Stat> {
        let Packet { headers, payload } = Packet::parse(frame).map_err(|error| reason(&error))?;
        if !self.env.config.promiscuous && headers.eth.dst != mac(self.env.config.mac) {
            return Err(stats::RX_NOT_ROCE);
        }
        self.env.stats.count(stats::RX_ROCE_PACKETS);
        let Headers { bth, ext, .. } = headers;
        if bth.opcode.operation() == Operation::Cnp {
            // Rates are not controlled.
            return Ok(());
        }
        let qpn = bth.dest_qp;
        // A RoCEv2 port has no queue pair 0 (A17 CA17-33).
        let qp = self
            .qps
            .get_mut(qpn as usize)
            .filter(|qp| qpn != 0 && qp.rq.configured);
        let qp = qp.ok_or(stats::RX_UNKNOWN_QP)?;
        check(qp, &self.env, &headers)?;
        let received = Received {
            bth,
            ext,
            payload: &frame[payload],
        };
        if bth.opcode.is_request() {
            qp.request(&mut self.env, &received);
        } else {
            qp.response(&mut self.env, &received);
        }
        self.schedule(qpn, false);
        Ok(())
    }
}

/// Why a frame that does not parse is dropped.
fn reason(error: &Error) -> Stat {
    match error {
        Error::EtherType(_) | Error::Protocol(_) | Error::Port(_) => stats::RX_NOT_ROCE,
        Error::Icrc { .. } => stats::RX_ICRC_ERRORS,
        _ => stats::RX_MALFORMED,
    }
}

/// State, transport, partition and addresses (IB1 9.6.1, A17.9).
fn check(qp: &QueuePair, env: &Env, headers: &Headers) -> Result<(), Stat> {
    let Headers { ip, bth, .. } = headers;
    let RqCtx {
        qp_type,
        pkey,
        remote_gid,
        sgid_index,
        ..
    } = qp.rq.ctx;
    let open = if bth.opcode.is_request() {
        matches!(
            qp.rq.state,
            state::RTR | state::RTS | state::SQD | state::SQE
        )
    } else {
        matches!(qp.sq.state, state::RTS | state::SQD)
    };
    if !open {
        return Err(stats::RX_QP_STATE);
    }
    if bth.opcode.class() as u8 != qp_type {
        return Err(stats::RX_WRONG_TRANSPORT);
    }
    if !pkey_matches(bth.pkey, pkey) {
        return Err(stats::RX_PKEY_VIOLATIONS);
    }
    let local = env.gids[usize::from(sgid_index)];
    if !local.valid || ip.dst_gid() != gid(local.gid) || ip.src_gid() != gid(remote_gid) {
        return Err(stats::RX_WRONG_ADDRESS);
    }
    Ok(())
}
