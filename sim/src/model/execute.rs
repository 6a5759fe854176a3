//! Responder: checks and executes a request whose PSN is the one expected.

use ferroce_proto::abi::cq::{Cqe, NO_NUMBER, opcode as cqe_opcode, status};
use ferroce_proto::abi::mr::Right;
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::abi::wqe::MAX_MSG;
use ferroce_proto::wire::reth::MAX_DMA_LEN;
use ferroce_proto::wire::{Operation, Position, RethRepr};

use super::access::scatter;
use super::qp::QueuePair;
use super::reply::ReadReply;
use super::responder::{Inbound, Refusal};
use super::rx::Received;
use super::wqe::{ATOMIC_BYTES, RecvRequest, RecvRing, fetch_recv, serves};
use super::{Env, stats};

impl QueuePair {
    /// Executes a request and answers how many PSNs it takes. A refused request changes nothing but
    /// the receive WQE it was refused for.
    pub(super) fn execute(&mut self, env: &mut Env, packet: &Received) -> Result<u32, Refusal> {
        self.check_sequence(env, packet)?;
        match packet.bth.opcode.operation() {
            Operation::Send => {
                self.check_size(packet)?;
                self.send(env, packet)
            }
            Operation::Write => {
                self.check_size(packet)?;
                self.write(env, packet)
            }
            Operation::ReadRequest => self.read(env, packet),
            _ => self.atomic(env, packet),
        }
    }

    /// Opcode against the message under way and against what the queue pair permits.
    fn check_sequence(&self, env: &Env, packet: &Received) -> Result<(), Refusal> {
        let operation = packet.bth.opcode.operation();
        let permitted = match operation {
            Operation::Send => true,
            Operation::Write => self.rq.ctx.remote_write,
            Operation::ReadRequest => self.rq.ctx.remote_read,
            _ => self.rq.ctx.remote_atomic,
        };
        let in_order = match &self.rq.inbound {
            None => packet.bth.opcode.is_start(),
            Some(message) => !packet.bth.opcode.is_start() && message.operation == operation,
        };
        let is_served = serves(env, operation, packet.bth.opcode.suffix());
        if permitted && is_served && in_order {
            Ok(())
        } else {
            Err(Refusal::Invalid(None))
        }
    }

    /// Length of a packet against the path MTU, and of a WRITE against its RETH.
    fn check_size(&self, packet: &Received) -> Result<(), Refusal> {
        let (len, mtu) = (packet.payload.len(), self.rq.mtu().bytes());
        let mut good = match packet.bth.opcode.position() {
            Position::First | Position::Middle => len == mtu,
            Position::Last => len >= 1 && len <= mtu,
            Position::Only => len <= mtu,
        };
        let inbound = self.rq.inbound.as_ref();
        let received = inbound.map_or(0, |message| message.received) + len as u32;
        let reth = inbound.map_or(packet.ext.reth, |message| message.reth);
        good &= match reth {
            None => received <= MAX_MSG,
            Some(RethRepr { dma_len, .. }) if packet.bth.opcode.is_end() => received == dma_len,
            Some(RethRepr { dma_len, .. }) => received < dma_len && dma_len <= MAX_DMA_LEN,
        };
        if good {
            Ok(())
        } else {
            Err(Refusal::Invalid(None))
        }
    }

    fn send(&mut self, env: &mut Env, packet: &Received) -> Result<u32, Refusal> {
        if packet.bth.opcode.is_start() {
            let recv = Some(self.fetch_recv(env)?);
            self.rq.inbound = Some(Inbound {
                operation: Operation::Send,
                reth: None,
                recv,
                received: 0,
                failed: None,
            });
            env.stats.count(stats::RX_SEND_REQUESTS);
        }
        let message = self.rq.inbound.as_mut().expect("checked by check_sequence");
        let recv = message.recv.as_ref().expect("a SEND has a receive WQE");
        let len = packet.payload.len() as u32;
        if message.failed.is_some() || u64::from(message.received + len) > recv.length {
            if self.rq.ctx.qp_type == qp_type::RC {
                return Err(Refusal::Invalid(Some(status::LOC_LEN_ERR)));
            }
            message.received += len;
            if message.failed.replace(status::LOC_LEN_ERR).is_none() {
                env.stats.count(stats::INVALID_REQUEST_ERRORS);
            }
            if packet.bth.opcode.is_end() {
                self.end_failed(env, cqe_opcode::RECV, status::LOC_LEN_ERR)?;
            }
            return Ok(1);
        }
        let pd = self.rq.ctx.pd;
        scatter(
            &mut env.dma,
            &env.regions,
            (recv.pd, self.qpn),
            &recv.list,
            message.received,
            packet.payload,
        )
        .map_err(|status| Refusal::Operational(Some(status)))?;
        message.received += len;
        if packet.bth.opcode.is_end() {
            if let Some(key) = packet.ext.ieth {
                env.regions.invalidate(key, pd, self.qpn)?;
            }
            self.finish(env, packet, cqe_opcode::RECV)?;
        }
        Ok(1)
    }

    /// A message of UC or UD that could not be placed is over: its receive WQE completes with `status`, and the queue
    /// pair goes on (IB1 9.9.3, class E; docs/decisions/short-buffers.md).
    pub(super) fn end_failed(
        &mut self,
        env: &mut Env,
        opcode: u8,
        status: u8,
    ) -> Result<(), Refusal> {
        let Some(recv) = self.rq.inbound.take().and_then(|message| message.recv) else {
            return Ok(());
        };
        let cqe = Cqe {
            opcode,
            status,
            wqe_index: recv.index,
            ..Cqe::default()
        };
        Ok(self.complete_recv(env, cqe)?)
    }

    fn write(&mut self, env: &mut Env, packet: &Received) -> Result<u32, Refusal> {
        let is_start = packet.bth.opcode.is_start();
        let reth = self
            .rq
            .inbound
            .as_ref()
            .map_or(packet.ext.reth, |message| message.reth);
        let RethRepr { va, rkey, dma_len } = reth.expect("a WRITE starts with a RETH");
        let done = self
            .rq
            .inbound
            .as_ref()
            .map_or(0, |message| message.received);
        let (addr, len) = (va.wrapping_add(done.into()), packet.payload.len() as u32);
        if is_start {
            env.regions.check(
                rkey,
                self.rq.ctx.pd,
                self.qpn,
                va,
                dma_len,
                Right::RemoteWrite,
            )?;
        }
        // The region may have gone since the first packet.
        let placed = env.regions.check(
            rkey,
            self.rq.ctx.pd,
            self.qpn,
            addr,
            len,
            Right::RemoteWrite,
        );
        let failed = self.rq.inbound.as_ref().and_then(|message| message.failed);
        if self.rq.ctx.qp_type == qp_type::UC && !is_start && (failed.is_some() || placed.is_err())
        {
            return self.drop_write(env, packet);
        }
        placed?;
        let recv = match packet.ext.imm {
            Some(_) => Some(self.unread_recv(env)?),
            None => None,
        };
        if is_start {
            env.stats.count(stats::RX_WRITE_REQUESTS);
            self.rq.inbound = Some(Inbound {
                operation: Operation::Write,
                reth,
                recv: None,
                received: 0,
                failed: None,
            });
        }
        let message = self.rq.inbound.as_mut().expect("checked by check_sequence");
        message.received += len;
        message.recv = recv;
        if !env.dma.write(addr, packet.payload) {
            // Memory that the host takes back under a region of its own is its own fault.
            let status = message.recv.is_some().then_some(status::GENERAL_ERR);
            return Err(Refusal::Operational(status));
        }
        if packet.bth.opcode.is_end() {
            self.finish(env, packet, cqe_opcode::RECV_WRITE_IMM)?;
        }
        Ok(1)
    }

    /// A packet of a UC WRITE whose region went away: it is dropped, and counted once a message. The receive WQE that its
    /// immediate data takes completes in error.
    fn drop_write(&mut self, env: &mut Env, packet: &Received) -> Result<u32, Refusal> {
        let recv = match packet.ext.imm {
            Some(_) => Some(self.unread_recv(env)?),
            None => None,
        };
        let message = self.rq.inbound.as_mut().expect("it began");
        message.recv = recv;
        message.received += packet.payload.len() as u32;
        if message.failed.replace(status::LOC_ACCESS_ERR).is_none() {
            env.stats.count(stats::ACCESS_ERRORS);
        }
        if packet.bth.opcode.is_end() {
            self.end_failed(env, cqe_opcode::RECV_WRITE_IMM, status::LOC_ACCESS_ERR)?;
        }
        Ok(1)
    }

    fn read(&mut self, env: &mut Env, packet: &Received) -> Result<u32, Refusal> {
        let reth = packet.ext.reth.expect("a READ request has a RETH");
        if reth.dma_len > MAX_DMA_LEN || self.rd_atomic_full() {
            return Err(Refusal::Invalid(None));
        }
        env.regions.check(
            reth.rkey,
            self.rq.ctx.pd,
            self.qpn,
            reth.va,
            reth.dma_len,
            Right::RemoteRead,
        )?;
        env.stats.count(stats::RX_READ_REQUESTS);
        self.count_message();
        self.rq.asked = Some(packet.bth.psn);
        self.reply_read(ReadReply::new(packet.bth.psn, reth, self.rq.msn));
        Ok(self.rq.mtu().packets(reth.dma_len))
    }

    fn atomic(&mut self, env: &mut Env, packet: &Received) -> Result<u32, Refusal> {
        let atomic = packet.ext.atomic.expect("an atomic has an AtomicETH");
        if !atomic.va.is_multiple_of(u64::from(ATOMIC_BYTES)) || self.rd_atomic_full() {
            return Err(Refusal::Invalid(None));
        }
        let pd = self.rq.ctx.pd;
        env.regions.check(
            atomic.rkey,
            pd,
            self.qpn,
            atomic.va,
            ATOMIC_BYTES,
            Right::RemoteAtomic,
        )?;
        let mut original = [0; ATOMIC_BYTES as usize];
        if !env.dma.read(atomic.va, &mut original) {
            return Err(Refusal::Operational(None));
        }
        let original = u64::from_le_bytes(original);
        let new = match packet.bth.opcode.operation() {
            Operation::FetchAdd => original.wrapping_add(atomic.swap_add),
            _ if original == atomic.compare => atomic.swap_add,
            _ => original,
        };
        if !env.dma.write(atomic.va, &new.to_le_bytes()) {
            return Err(Refusal::Operational(None));
        }
        env.stats.count(stats::RX_ATOMIC_REQUESTS);
        self.count_message();
        self.rq.asked = Some(packet.bth.psn);
        self.reply_atomic(packet.bth.psn, original);
        Ok(1)
    }

    /// The queue of the next receive WQE, and its ordinal there, of a shared queue its number. It is taken.
    fn take_recv(&mut self, env: &mut Env) -> Result<(RecvRing, u16), Refusal> {
        if self.rq.ctx.srq_valid {
            let (ctx, number) = env.take_shared(self.rq.ctx.srqn).ok_or(Refusal::NotReady)?;
            if number == NO_NUMBER {
                return Err(self.unusable(number, status::LOC_QP_OP_ERR));
            }
            return Ok((RecvRing::from(&ctx), number));
        }
        if self.rq.posted() == 0 {
            return Err(Refusal::NotReady);
        }
        let index = self.rq.consumer;
        self.rq.consumer = index.wrapping_add(1);
        Ok((RecvRing::from(&self.rq.ctx), index))
    }

    /// The next receive WQE for immediate data alone: its list is not looked at.
    fn unread_recv(&mut self, env: &mut Env) -> Result<RecvRequest, Refusal> {
        if let Some(recv) = self.rq.unused.take() {
            return Ok(recv);
        }
        let (_, index) = self.take_recv(env)?;
        Ok(RecvRequest::unread(index))
    }

    /// A receive WQE that is no good is kept as the message's, to be completed in error.
    fn unusable(&mut self, index: u16, status: u8) -> Refusal {
        self.rq.inbound = Some(Inbound {
            operation: Operation::Send,
            reth: None,
            recv: Some(RecvRequest::unread(index)),
            received: 0,
            failed: None,
        });
        Refusal::Operational(Some(status))
    }

    /// The next receive WQE, read.
    pub(super) fn fetch_recv(&mut self, env: &mut Env) -> Result<RecvRequest, Refusal> {
        if let Some(recv) = self.rq.unused.take() {
            return Ok(recv);
        }
        let (ring, index) = self.take_recv(env)?;
        fetch_recv(&mut env.dma, &ring, index).map_err(|status| self.unusable(index, status))
    }

    /// The message is complete.
    fn finish(&mut self, env: &mut Env, packet: &Received, opcode: u8) -> Result<(), Refusal> {
        let message = self.rq.inbound.take().expect("a message is under way");
        if let Some(recv) = message.recv {
            let cqe = Cqe {
                opcode,
                wqe_index: recv.index,
                byte_len: message.received,
                imm: packet.ext.imm.or(packet.ext.ieth).unwrap_or(0),
                with_imm: packet.ext.imm.is_some(),
                with_inv: packet.ext.ieth.is_some(),
                solicited: packet.bth.solicited,
                ..Cqe::default()
            };
            self.complete_recv(env, cqe)?;
        }
        self.count_message();
        Ok(())
    }

    fn count_message(&mut self) {
        self.rq.msn = ferroce_proto::wire::psn::MASK & self.rq.msn.wrapping_add(1);
    }
}
