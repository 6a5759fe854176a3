//! Requester: cuts a message into packets.

use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::wire::{
    AtomicEthRepr, Class, DethRepr, Extensions, Opcode, Operation, Position, Psn, RethRepr, Suffix,
};

use super::Env;
use super::access::gather;
use super::qp::QueuePair;
use super::requester::Message;
use super::tx::Outgoing;
use super::wqe::Payload;

/// Place of packet `number` in a message of `packets`.
const fn position(number: u32, packets: u32) -> Position {
    match (number == 0, number + 1 == packets) {
        (true, true) => Position::Only,
        (true, false) => Position::First,
        (false, false) => Position::Middle,
        (false, true) => Position::Last,
    }
}

impl QueuePair {
    /// The packet of PSN `psn` of a message, and the PSNs it takes.
    pub(super) fn segment(
        &self,
        env: &mut Env,
        message: &Message,
        psn: Psn,
    ) -> Result<(Outgoing, u32), u8> {
        let Message {
            request,
            first,
            packets,
            ..
        } = message;
        let number = psn.since(*first) as u32;
        let head = &request.head;
        // Bytes of the message in packets before this one, and from this one on.
        let done = number << self.sq.mtu().log2();
        let left = head.length - done;
        let mut packet = Outgoing {
            opcode: Opcode::RcReadRequest,
            psn,
            solicited: false,
            ack_req: false,
            ext: Extensions::default(),
            payload: Vec::new(),
            address: None,
        };
        match request.operation {
            Operation::ReadRequest => {
                // A READ that goes on from the middle asks for what is missing.
                let va = head.remote_addr.wrapping_add(done.into());
                packet.ext.reth = Some(RethRepr {
                    va,
                    rkey: head.rkey,
                    dma_len: left,
                });
                return Ok((packet, packets - number));
            }
            Operation::CmpSwap | Operation::FetchAdd => {
                packet.ext.atomic = Some(AtomicEthRepr {
                    va: head.remote_addr,
                    rkey: head.rkey,
                    swap_add: request.operands.swap_add,
                    compare: request.operands.compare,
                });
                packet.opcode =
                    Opcode::compose(Class::Rc, request.operation, Position::Only, Suffix::None)
                        .expect("atomics are of RC");
                return Ok((packet, 1));
            }
            _ => {}
        }
        let position = position(number, *packets);
        let is_end = matches!(position, Position::Last | Position::Only);
        let suffix = if is_end { request.suffix } else { Suffix::None };
        let class = match self.sq.ctx.qp_type {
            qp_type::RC => Class::Rc,
            qp_type::UC => Class::Uc,
            _ => Class::Ud,
        };
        packet.opcode = Opcode::compose(class, request.operation, position, suffix)
            .expect("validated with the WQE");
        if class == Class::Ud {
            packet.ext.deth = Some(DethRepr {
                qkey: request.address.qkey,
                src_qp: self.qpn,
            });
            packet.address = Some(request.address);
        }
        match suffix {
            Suffix::None => {}
            Suffix::Imm => packet.ext.imm = Some(head.imm),
            Suffix::Inv => packet.ext.ieth = Some(head.imm),
        }
        if packet.opcode.has_reth() {
            let (va, rkey, dma_len) = (head.remote_addr, head.rkey, head.length);
            packet.ext.reth = Some(RethRepr { va, rkey, dma_len });
        }
        packet.solicited = head.solicited
            && is_end
            && (request.operation == Operation::Send || suffix == Suffix::Imm);
        let len = left.min(self.sq.mtu().bytes() as u32) as usize;
        match &request.payload {
            Payload::Inline(data) => packet.payload = data[done as usize..][..len].to_vec(),
            Payload::List(list) => {
                packet.payload = vec![0; len];
                gather(
                    &mut env.dma,
                    &env.regions,
                    (self.sq.ctx.pd, self.qpn),
                    list,
                    done,
                    &mut packet.payload,
                )?;
            }
        }
        Ok((packet, 1))
    }
}
