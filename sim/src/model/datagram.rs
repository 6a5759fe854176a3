//! Responder of UD: a datagram is a message of one packet, and its sender hears nothing of it (IB1 9.8.3).

use ferroce_proto::abi::cq::{Cqe, opcode as cqe_opcode, status};
use ferroce_proto::wire::Operation;

use super::access::scatter;
use super::qp::QueuePair;
use super::responder::{Inbound, Refusal};
use super::rx::Received;
use super::{Env, stats};

impl QueuePair {
    /// A datagram. The first 40 bytes of the buffer take the IP header (A17.4.5.1).
    pub(super) fn datagram(&mut self, env: &mut Env, packet: &Received) -> Result<(), Refusal> {
        if packet.payload.len() > self.rq.mtu().bytes() {
            return Err(Refusal::Invalid(None));
        }
        let recv = self.fetch_recv(env)?;
        let (list, length, pd, index) = (recv.list.clone(), recv.length, recv.pd, recv.index);
        self.rq.inbound = Some(Inbound {
            operation: Operation::Send,
            reth: None,
            recv: Some(recv),
            received: 0,
            failed: None,
        });
        env.stats.count(stats::RX_SEND_REQUESTS);
        let mut byte_len = 0;
        for part in [&packet.grh[..], packet.payload] {
            let offset = byte_len;
            byte_len += part.len() as u32;
            if u64::from(byte_len) > length {
                env.stats.count(stats::INVALID_REQUEST_ERRORS);
                return self.end_failed(env, cqe_opcode::RECV, status::LOC_LEN_ERR);
            }
            scatter(
                &mut env.dma,
                &env.regions,
                (pd, self.qpn),
                &list,
                offset,
                part,
            )
            .map_err(|status| Refusal::Operational(Some(status)))?;
        }
        self.rq.inbound = None;
        let deth = packet.ext.deth.expect("a datagram has a DETH");
        let cqe = Cqe {
            opcode: cqe_opcode::RECV,
            wqe_index: index,
            byte_len,
            imm: packet.ext.imm.unwrap_or(0),
            with_imm: packet.ext.imm.is_some(),
            solicited: packet.bth.solicited,
            src_qpn: deth.src_qp,
            pkey: packet.bth.pkey,
            grh: true,
            ..Cqe::default()
        };
        Ok(self.complete_recv(env, cqe)?)
    }
}
