//! Responder: acknowledgements, READ and atomic responses, duplicates.

use std::ptr;

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::mr::Right;
use ferroce_proto::wire::reth::MAX_DMA_LEN;
use ferroce_proto::wire::{
    AethRepr, AtomicAckEthRepr, Extensions, Mtu, NakCode, Opcode, Operation, Position, Psn,
    RethRepr, Syndrome,
};

use super::pacing::Reaction;
use super::qp::QueuePair;
use super::rx::Received;
use super::tx::Outgoing;
use super::{Env, stats};

/// Results kept for duplicate atomics: the most that may be outstanding.
const ATOMICS_KEPT: usize = 16;

/// Responses due beyond which a duplicate READ is not answered; the requester asks again.
const MAX_RESPONSES: usize = 64;

/// A response that is due.
#[derive(Clone)]
pub(super) enum Response {
    /// An acknowledgement, positive or negative.
    Ack {
        psn: Psn,
        aeth: AethRepr,
    },
    Read(ReadReply),
    Atomic(AtomicReply),
}

/// The answer to an atomic.
#[derive(Clone)]
pub(super) struct AtomicReply {
    psn: Psn,
    original: u64,
    msn: u32,
    /// It answers a duplicate.
    repeated: bool,
}

/// What is left of a READ to answer.
#[derive(Clone)]
pub(super) struct ReadReply {
    /// PSN of the next response packet.
    psn: Psn,
    /// What it and those after it carry.
    reth: RethRepr,
    /// No response packet was sent yet.
    is_first: bool,
    msn: u32,
    /// It answers a duplicate.
    repeated: bool,
}

impl ReadReply {
    pub(super) fn new(psn: Psn, reth: RethRepr, msn: u32) -> Self {
        Self {
            psn,
            reth,
            is_first: true,
            msn,
            repeated: false,
        }
    }

    /// The PSN behind its last response packet.
    fn end(&self, mtu: Mtu) -> Psn {
        self.psn.add(mtu.packets(self.reth.dma_len))
    }

    fn will_answer(&self, psn: Psn, mtu: Mtu) -> bool {
        psn.is_within(self.psn, mtu.packets(self.reth.dma_len))
    }
}

impl QueuePair {
    /// There is a response to send.
    pub(super) fn wants_response(&self) -> bool {
        !self.rq.responses.is_empty()
    }

    /// The next response answers a READ or an atomic: it keeps to the rate of the queue pair.
    pub(super) fn response_has_data(&self) -> bool {
        let next = self.rq.responses.front();
        next.is_some_and(|next| !matches!(next, Response::Ack { .. }))
    }

    /// The cycle in which the next request or response may leave, see [`Pacing::start`](super::pacing::Pacing::start).
    pub(super) fn next_start(&mut self, now: u64, responses: bool, reaction: &Reaction) -> u64 {
        if responses && !self.response_has_data() {
            return now;
        }
        self.sq.pacing.start(now, responses, reaction)
    }

    /// Everything up to a packet that asks for it is done. READs and atomics have their own response.
    pub(super) fn acknowledge(&mut self, packet: &Received) {
        if matches!(
            packet.bth.opcode.operation(),
            Operation::Send | Operation::Write
        ) {
            self.ack(packet.bth.psn);
        }
    }

    /// An acknowledgement still waiting for the wire is taken over by this one, unless it names a later PSN.
    fn ack(&mut self, psn: Psn) {
        if let Some(Response::Ack { psn: waiting, aeth }) = self.rq.responses.back()
            && matches!(aeth.syndrome, Syndrome::Ack { .. })
        {
            if waiting.since(psn) > 0 {
                return;
            }
            self.rq.responses.pop_back();
        }
        self.respond(psn, Syndrome::ACK);
    }

    /// PSN of the ACK of a duplicate SEND or WRITE: the latest executed, but its own if a READ or atomic was executed
    /// behind it, which only a response of its own may acknowledge (docs/decisions/duplicates.md).
    fn covered(&self, duplicate: Psn) -> Psn {
        match self.rq.asked {
            Some(asked) if asked.since(duplicate) > 0 => duplicate,
            _ => self.rq.expected.prev(),
        }
    }

    /// Answers `psn` with a syndrome and the current MSN.
    pub(super) fn respond(&mut self, psn: Psn, syndrome: Syndrome) {
        let aeth = AethRepr {
            syndrome,
            msn: self.rq.msn,
        };
        self.rq.responses.push_back(Response::Ack { psn, aeth });
    }

    pub(super) fn reply_read(&mut self, reply: ReadReply) {
        self.rq.responses.push_back(Response::Read(reply));
    }

    pub(super) fn reply_atomic(&mut self, psn: Psn, original: u64) {
        if self.rq.atomics.len() == ATOMICS_KEPT {
            self.rq.atomics.pop_front();
        }
        self.rq.atomics.push_back((psn, original));
        let reply = AtomicReply {
            psn,
            original,
            msn: self.rq.msn,
            repeated: false,
        };
        self.rq.responses.push_back(Response::Atomic(reply));
    }

    /// The READs and atomics due are as many as the responder takes.
    pub(super) fn rd_atomic_full(&self) -> bool {
        let due = self.rq.responses.iter().filter(|response| match response {
            Response::Ack { .. } => false,
            Response::Read(read) => !read.repeated,
            Response::Atomic(atomic) => !atomic.repeated,
        });
        due.count() >= usize::from(self.rq.ctx.max_dest_rd_atomic)
    }

    /// A request executed before (IB1 9.7.5.1.5): SEND and WRITE are acknowledged again, a READ is
    /// answered again from memory, an atomic from its saved result.
    pub(super) fn duplicate(&mut self, env: &Env, packet: &Received) {
        let psn = packet.bth.psn;
        match packet.bth.opcode.operation() {
            Operation::Send | Operation::Write => self.ack(self.covered(psn)),
            Operation::ReadRequest => self.duplicate_read(env, packet),
            _ => {
                let saved = self.rq.atomics.iter().rev().find(|saved| saved.0 == psn);
                let Some(&(_, original)) = saved else { return };
                let due = |r: &Response| matches!(r, Response::Atomic(reply) if reply.psn == psn);
                if !self.rq.responses.iter().any(due) {
                    let reply = AtomicReply {
                        psn,
                        original,
                        msn: self.rq.msn,
                        repeated: true,
                    };
                    self.rq.responses.push_back(Response::Atomic(reply));
                }
            }
        }
    }

    fn reads_due(&self) -> impl Iterator<Item = &ReadReply> {
        self.rq
            .responses
            .iter()
            .filter_map(|response| match response {
                Response::Read(read) => Some(read),
                _ => None,
            })
    }

    /// READs that wait to be answered again since the requester went back last.
    fn latest_duplicates(&self) -> Vec<&ReadReply> {
        let mut latest: Vec<_> = self.reads_due().filter(|read| read.repeated).collect();
        let goes_back = |two: &[&ReadReply]| two[1].psn.since(two[0].psn) <= 0;
        if let Some(before) = latest.windows(2).rposition(goes_back) {
            latest.drain(..=before);
        }
        latest
    }

    fn duplicate_read(&mut self, env: &Env, packet: &Received) {
        let (psn, mtu) = (packet.bth.psn, self.rq.mtu());
        let reth = packet.ext.reth.expect("a READ request has a RETH");
        let executed = self.rq.expected.since(psn) as u32;
        // What leaves before the latest run of duplicates is of no use: the requester went back to the first of them.
        let mut due = self.latest_duplicates();
        if due.is_empty() {
            due = self.reads_due().collect();
        }
        let is_due = due.iter().any(|read| read.will_answer(psn, mtu));
        let allowed = self.rq.ctx.remote_read
            && reth.dma_len <= MAX_DMA_LEN
            && env
                .regions
                .check(
                    reth.rkey,
                    self.rq.ctx.pd,
                    self.qpn,
                    reth.va,
                    reth.dma_len,
                    Right::RemoteRead,
                )
                .is_ok();
        if allowed
            && mtu.packets(reth.dma_len) <= executed
            && self.rq.responses.len() < MAX_RESPONSES
            && !is_due
        {
            let reply = ReadReply::new(psn, reth, self.rq.msn);
            self.reply_read(ReadReply {
                repeated: true,
                ..reply
            });
        }
    }

    /// READs that are not answered any further leave: a repeated one whose region has gone, of which the requester gets no NAK
    /// (IB1 9.9.3, class D), and one whose rest the requester asked for again since: it went back, and the later one answers
    /// (IB1 9.7.5.1.4; `qib_rc_rcv_error` of the InfiniPath driver does so).
    fn drop_unanswered(&mut self, env: &Env) {
        while let Some(Response::Read(read)) = self.rq.responses.front()
            && (self.is_asked_again(read) || read.repeated && !self.may_read(env, &read.reth))
        {
            self.rq.responses.pop_front();
        }
    }

    /// The latest run of duplicates has what the oldest READ is to answer next.
    fn is_asked_again(&self, oldest: &ReadReply) -> bool {
        let latest = self.latest_duplicates();
        let (Some(first), Some(last)) = (latest.first(), latest.last()) else {
            return false;
        };
        !ptr::eq(*first, oldest)
            && oldest.psn.since(first.psn) >= 0
            && last.end(self.rq.mtu()).since(oldest.psn) > 0
    }

    /// The next packet of a READ may be read.
    fn may_read(&self, env: &Env, reth: &RethRepr) -> bool {
        let len = reth.dma_len.min(self.rq.mtu().bytes() as u32);
        let (pd, right) = (self.rq.ctx.pd, Right::RemoteRead);
        let regions = &env.regions;
        let checked = regions.check(reth.rkey, pd, self.qpn, reth.va, len, right);
        checked.is_ok()
    }

    /// The next response packet.
    pub(super) fn next_response(&mut self, env: &mut Env) -> Option<Outgoing> {
        let mut ext = Extensions::default();
        self.drop_unanswered(env);
        match self.rq.responses.pop_front()? {
            Response::Ack { psn, aeth } => {
                ext.aeth = Some(aeth);
                Some(Outgoing::response(Opcode::RcAck, psn, ext))
            }
            Response::Atomic(AtomicReply {
                psn, original, msn, ..
            }) => {
                ext.aeth = Some(AethRepr {
                    syndrome: Syndrome::ACK,
                    msn,
                });
                ext.atomic_ack = Some(AtomicAckEthRepr { original });
                Some(Outgoing::response(Opcode::RcAtomicAck, psn, ext))
            }
            Response::Read(read) => Some(self.read_response(env, read)),
        }
    }

    /// A response that cannot be given ends the queue pair; its NAK.
    fn end(&mut self, env: &mut Env, event: u8, psn: Psn, msn: u32, nak: NakCode) -> Outgoing {
        self.rq.responses.clear();
        self.fail(env, event, status::GENERAL_ERR);
        let aeth = AethRepr {
            syndrome: Syndrome::Nak(nak),
            msn,
        };
        let ext = Extensions {
            aeth: Some(aeth),
            ..Extensions::default()
        };
        Outgoing::response(Opcode::RcAck, psn, ext)
    }

    fn read_response(&mut self, env: &mut Env, read: ReadReply) -> Outgoing {
        let ReadReply {
            psn,
            reth,
            is_first,
            msn,
            ..
        } = read;
        let len = reth.dma_len.min(self.rq.mtu().bytes() as u32);
        // The region may have gone since the request.
        if !self.may_read(env, &reth) {
            env.stats.count(stats::ACCESS_ERRORS);
            return self.end(env, event::QP_ACCESS_ERR, psn, msn, NakCode::RemoteAccess);
        }
        let mut payload = vec![0; len as usize];
        if !env.dma.read(reth.va, &mut payload) {
            env.stats.count(stats::OPERATIONAL_ERRORS);
            return self.end(env, event::QP_FATAL, psn, msn, NakCode::RemoteOperational);
        }
        let left = reth.dma_len - len;
        let position = match (is_first, left == 0) {
            (true, true) => Position::Only,
            (true, false) => Position::First,
            (false, false) => Position::Middle,
            (false, true) => Position::Last,
        };
        let opcode = match position {
            Position::First => Opcode::RcReadResponseFirst,
            Position::Middle => Opcode::RcReadResponseMiddle,
            Position::Last => Opcode::RcReadResponseLast,
            Position::Only => Opcode::RcReadResponseOnly,
        };
        if left > 0 {
            let reth = RethRepr {
                va: reth.va.wrapping_add(len.into()),
                dma_len: left,
                ..reth
            };
            let rest = ReadReply {
                psn: psn.next(),
                reth,
                is_first: false,
                ..read
            };
            self.rq.responses.push_front(Response::Read(rest));
        }
        let aeth = AethRepr {
            syndrome: Syndrome::ACK,
            msn,
        };
        let ext = Extensions {
            aeth: opcode.has_aeth().then_some(aeth),
            ..Extensions::default()
        };
        Outgoing {
            payload,
            ..Outgoing::response(opcode, psn, ext)
        }
    }
}
