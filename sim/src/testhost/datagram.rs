//! Address handles and shared receive queues of a [`Host`].

use ferroce_proto::abi::cmd::{CmdHead, opcode, status};
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::qpc::{AvCtx, SrqCtx};
use ferroce_proto::abi::wqe::{RecvWqe, SLOT_BYTES, Sge};

use super::queue::recv_wqe;
use super::{Host, Peer};

/// Bytes of an entry of the ring of numbers.
const NUMBER_BYTES: usize = size_of::<u16>();

/// A shared receive queue.
pub(super) struct Srq {
    ctx: SrqCtx,
    producer: u16,
}

impl Host {
    /// An address handle that leads to `peer`.
    pub fn handle(&self, peer: &Peer) -> AvCtx {
        AvCtx {
            pd: self.pd,
            ..peer.path()
        }
    }

    /// Address handle `ah` leads to `peer`; its path may be changed by `path`.
    pub fn write_ah(&mut self, ah: u32, peer: &Peer, path: impl FnOnce(&mut AvCtx)) {
        let mut av = self.handle(peer);
        path(&mut av);
        self.expect(opcode::WRITE_AH, ah, &av.emit());
    }

    /// A shared receive queue of 2^`log_size` WQEs of 2^`stride` slots that reports when fewer than `limit` are left.
    pub fn create_srq(&mut self, log_size: u8, stride: u8, limit: u16) -> u16 {
        self.create_srq_on(0, log_size, stride, limit)
    }

    /// As [`create_srq`](Self::create_srq); it reports to event queue `eqn`.
    pub fn create_srq_on(&mut self, eqn: u8, log_size: u8, stride: u8, limit: u16) -> u16 {
        let srqn = self.srqs.len() as u16;
        let ctx = SrqCtx {
            base: self.alloc_ring(SLOT_BYTES << stride << log_size),
            numbers: self.alloc_ring(NUMBER_BYTES << log_size),
            log_size,
            stride,
            eqn,
            limit,
            pd: self.pd,
            ..SrqCtx::default()
        };
        self.expect(opcode::CREATE_SRQ, srqn.into(), &ctx.emit());
        self.srqs.push(Srq { ctx, producer: 0 });
        srqn
    }

    /// Sets the limit of a shared receive queue.
    pub fn arm_srq(&mut self, srqn: u16, limit: u16) {
        let ctx = SrqCtx {
            limit,
            ..SrqCtx::default()
        };
        self.expect(opcode::ARM_SRQ, srqn.into(), &ctx.emit());
    }

    /// Forgets a shared receive queue.
    pub fn destroy_srq(&mut self, srqn: u16) {
        let head = CmdHead {
            opcode: opcode::DESTROY_SRQ,
            index: srqn.into(),
            ..CmdHead::default()
        };
        assert_eq!(self.command(head, &[]).status, status::OK);
    }

    /// Posts a receive WQE to a shared receive queue and rings: the one that was posted longest ago. Answers its number.
    pub fn post_srq(&mut self, srqn: u16, list: &[Sge]) -> u16 {
        let srq = &self.srqs[usize::from(srqn)];
        let number = srq.producer & ((1 << srq.ctx.log_size) - 1);
        self.post_srq_as(srqn, number, list);
        number
    }

    /// As [`post_srq`](Self::post_srq); it is WQE `number`.
    pub fn post_srq_as(&mut self, srqn: u16, number: u16, list: &[Sge]) {
        let ctx = self.srqs[usize::from(srqn)].ctx;
        let place = u64::from(number) & ((1 << ctx.log_size) - 1);
        let at = ctx.base + place * (SLOT_BYTES << ctx.stride) as u64;
        let head = RecvWqe {
            num_sge: list.len() as u8,
            length: list.iter().map(|sge| sge.length).sum(),
            ..RecvWqe::default()
        };
        self.write(at, &recv_wqe(head, list));
        self.post_number(srqn, number);
    }

    /// Writes a number into the ring of a shared receive queue and rings.
    pub fn post_number(&mut self, srqn: u16, number: u16) {
        let srq = &mut self.srqs[usize::from(srqn)];
        let entry = usize::from(srq.producer) & ((1 << srq.ctx.log_size) - 1);
        let at = srq.ctx.numbers + (entry * NUMBER_BYTES) as u64;
        srq.producer = srq.producer.wrapping_add(1);
        let producer = srq.producer;
        self.write(at, &number.to_le_bytes());
        self.nic
            .write32(doorbell::srq(srqn.into()), producer.into());
    }
}
