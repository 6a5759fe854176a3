//! Responder: handling of a request, in the order of IB1 9.7.4.
//!
//! What a request does is in `execute`, how it is answered in `reply`.

use std::collections::VecDeque;

use ferroce_proto::abi::cq::{Cqe, opcode as cqe_opcode, status};
use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::qpc::{RqCtx, qp_type, state};
use ferroce_proto::wire::psn::Region;
use ferroce_proto::wire::{Mtu, NakCode, Operation, Psn, RethRepr, Syndrome};

use super::access::Denied;
use super::completion::Lost;
use super::qp::QueuePair;
use super::reply::Response;
use super::rx::Received;
use super::stats::Stat;
use super::wqe::RecvRequest;
use super::{Env, stats};

/// The receive queue, the message being received, and the answers due.
#[derive(Clone, Default)]
pub(super) struct Rq {
    pub(super) ctx: RqCtx,
    /// The context image was written since the queue pair left RESET.
    pub(super) configured: bool,
    pub(super) state: u8,
    /// Producer index in WQEs, as rung by the host.
    pub(super) producer: u16,
    /// Receive WQEs consumed.
    pub(super) consumer: u16,
    pub(super) expected: Psn,
    /// A request was accepted.
    established: bool,
    /// PSN of the latest READ or atomic executed.
    pub(super) asked: Option<Psn>,
    /// Messages completed, 24 bits.
    pub(super) msn: u32,
    /// A NAK for `expected` is out; what is out of sequence draws no further one.
    nak_sent: bool,
    /// The message whose last packet did not arrive yet.
    pub(super) inbound: Option<Inbound>,
    /// LAST_WQE_REACHED was reported since the queue pair went into error.
    pub(super) last_reported: bool,
    /// Receive WQE of a UC message that was dropped; the next message takes it.
    pub(super) unused: Option<RecvRequest>,
    pub(super) responses: VecDeque<Response>,
    /// Results of the last atomics, for duplicates.
    pub(super) atomics: VecDeque<(Psn, u64)>,
}

/// A SEND or WRITE between its first and its last packet.
#[derive(Clone)]
pub(super) struct Inbound {
    pub(super) operation: Operation,
    /// RETH of a WRITE.
    pub(super) reth: Option<RethRepr>,
    /// Receive WQE of a SEND, and of the last packet of a WRITE with immediate.
    pub(super) recv: Option<RecvRequest>,
    /// Payload bytes placed.
    pub(super) received: u32,
    /// It cannot be placed, and is of UC: the rest is dropped, and its receive WQE completes with this status.
    pub(super) failed: Option<u8>,
}

/// Why a request is not executed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No receive WQE.
    NotReady,
    /// Invalid request; with the status of the receive WQE that it concerns.
    Invalid(Option<u8>),
    /// Key, protection domain, rights or bounds.
    Access,
    /// The responder cannot; with the status of the receive WQE that it concerns.
    Operational(Option<u8>),
}

impl From<Denied> for Refusal {
    fn from(_: Denied) -> Self {
        Self::Access
    }
}

impl From<Lost> for Refusal {
    fn from(_: Lost) -> Self {
        Self::Operational(None)
    }
}

impl Rq {
    /// Starts afresh, expecting `psn`; the context and the host's producer index stay.
    pub(super) fn reset(&mut self, psn: Psn) {
        *self = Self {
            ctx: self.ctx,
            configured: self.configured,
            state: self.state,
            producer: self.producer,
            expected: psn,
            ..Self::default()
        };
    }

    /// Receive WQEs posted and not consumed.
    pub(super) fn posted(&self) -> u16 {
        self.producer.wrapping_sub(self.consumer)
    }

    pub(super) fn mtu(&self) -> Mtu {
        Mtu::from_code(self.ctx.mtu).expect("checked by MODIFY_QP")
    }
}

impl QueuePair {
    /// A request arrived.
    pub(super) fn request(&mut self, env: &mut Env, packet: &Received) {
        match self.rq.ctx.qp_type {
            qp_type::RC => self.reliable(env, packet),
            qp_type::UC => self.unreliable(env, packet),
            _ => {
                if let Err(refusal) = self.datagram(env, packet) {
                    self.refuse_silently(env, &refusal);
                }
            }
        }
    }

    fn reliable(&mut self, env: &mut Env, packet: &Received) {
        match packet.bth.psn.region(self.rq.expected) {
            Region::Expected => self.rq.nak_sent = false,
            Region::Duplicate => {
                env.stats.count(stats::DUPLICATE_REQUEST);
                return self.duplicate(env, packet);
            }
            Region::Invalid => {
                env.stats.count(stats::OUT_OF_SEQUENCE);
                if !self.rq.nak_sent {
                    self.rq.nak_sent = true;
                    self.respond(self.rq.expected, Syndrome::Nak(NakCode::PsnSequence));
                }
                return;
            }
        }
        match self.execute(env, packet) {
            Ok(psns) => {
                self.rq.expected = self.rq.expected.add(psns);
                self.establish(env);
                if packet.bth.ack_req {
                    self.acknowledge(packet);
                }
            }
            Err(Refusal::NotReady) => {
                env.stats.count(stats::RNR_NAK_SENT);
                self.rq.nak_sent = true;
                let timer = self.rq.ctx.min_rnr_timer;
                self.respond(packet.bth.psn, Syndrome::RnrNak { timer });
            }
            Err(refusal) => {
                let Consequence {
                    nak,
                    event,
                    stat,
                    status,
                } = refusal.consequence();
                env.stats.count(stat);
                self.respond(packet.bth.psn, Syndrome::Nak(nak));
                self.fail_receive(env, event, status);
            }
        }
    }

    /// UC: a gap or a violation drops the rest of the message, silently (IB1 9.8.2).
    fn unreliable(&mut self, env: &mut Env, packet: &Received) {
        if packet.bth.psn != self.rq.expected || packet.bth.opcode.is_start() {
            if packet.bth.psn != self.rq.expected {
                env.stats.count(stats::OUT_OF_SEQUENCE);
            }
            self.drop_inbound();
        }
        self.rq.expected = packet.bth.psn.next();
        if self.rq.inbound.is_none() && !packet.bth.opcode.is_start() {
            return;
        }
        match self.execute(env, packet) {
            Ok(_) => self.establish(env),
            Err(refusal) => self.refuse_silently(env, &refusal),
        }
    }

    /// The first request accepted in RTR shows that the peer is ready to send (IB1 11.6.3.1).
    fn establish(&mut self, env: &mut Env) {
        let is_first = !std::mem::replace(&mut self.rq.established, true);
        if is_first && self.rq.state == state::RTR {
            self.report(env, event::COMM_EST, status::SUCCESS);
        }
    }

    /// What was refused is dropped, and no NAK tells of it.
    fn refuse_silently(&mut self, env: &mut Env, refusal: &Refusal) {
        match refusal {
            Refusal::NotReady => {}
            Refusal::Invalid(None) | Refusal::Access => {
                env.stats.count(refusal.consequence().stat);
            }
            // An error of the responder's own: the queue pair cannot go on.
            Refusal::Invalid(_) | Refusal::Operational(_) => {
                let Consequence {
                    event,
                    stat,
                    status,
                    ..
                } = refusal.consequence();
                env.stats.count(stat);
                return self.fail_receive(env, event, status);
            }
        }
        self.drop_inbound();
    }

    fn drop_inbound(&mut self) {
        let recv = self.rq.inbound.take().and_then(|message| message.recv);
        self.rq.unused = recv.or(self.rq.unused.take());
    }

    /// The receive WQE in use completes with `status`, if it is the cause; both queues flush.
    fn fail_receive(&mut self, env: &mut Env, event: u8, status: Option<u8>) {
        if let Some(status) = status {
            let recv = self.rq.inbound.take().and_then(|message| message.recv);
            if let Some(RecvRequest { index, .. }) = recv {
                let cqe = Cqe {
                    opcode: cqe_opcode::RECV,
                    status,
                    wqe_index: index,
                    ..Cqe::default()
                };
                let _ = self.complete_recv(env, cqe);
            }
        }
        self.fail(env, event, status.unwrap_or(status::GENERAL_ERR));
    }

    /// The state of the responder was set by a command.
    pub(super) fn enter_rq_state(&mut self, env: &mut Env, state: u8) {
        let before = std::mem::replace(&mut self.rq.state, state);
        self.rq.configured &= state != state::RESET;
        self.rq.last_reported &= state == state::ERR;
        let goes_on = matches!(state, state::RTR | state::RTS | state::SQD | state::SQE);
        // What is due before its own NAK still leaves.
        if !goes_on && (state, before) != (state::ERR, state::ERR) {
            self.rq.responses.clear();
        }
        self.flush(env);
    }
}

/// What follows from a refusal.
struct Consequence {
    nak: NakCode,
    event: u8,
    stat: Stat,
    status: Option<u8>,
}

impl Refusal {
    fn consequence(&self) -> Consequence {
        let (nak, event, stat, status) = match *self {
            Self::Invalid(status) => (
                NakCode::InvalidRequest,
                event::QP_REQ_ERR,
                stats::INVALID_REQUEST_ERRORS,
                status,
            ),
            Self::Access => (
                NakCode::RemoteAccess,
                event::QP_ACCESS_ERR,
                stats::ACCESS_ERRORS,
                None,
            ),
            Self::NotReady => unreachable!("RNR is no error"),
            Self::Operational(status) => (
                NakCode::RemoteOperational,
                event::QP_FATAL,
                stats::OPERATIONAL_ERRORS,
                status,
            ),
        };
        Consequence {
            nak,
            event,
            stat,
            status,
        }
    }
}
