//! Requester: starts messages, sends their packets, retires them.
//!
//! Packets are cut in `segment`, what comes back is in `response`, retries and timers in `retry`.

use std::collections::VecDeque;

use ferroce_proto::abi::cq::{Cqe, status};
use ferroce_proto::abi::eq::{Eqe, event};
use ferroce_proto::abi::qpc::{SqCtx, qp_type, state};
use ferroce_proto::wire::{Mtu, Operation, Psn, psn};

use super::qp::QueuePair;
use super::round_trip::RoundTrip;
use super::tx::Outgoing;
use super::wqe::{self, BadWqe, SendRequest};
use super::{Env, stats};

/// Packets after which an acknowledgement is asked for within a message, at the latest.
const ACK_INTERVAL: u32 = 32;

/// The send queue and what of it is on the wire.
///
/// PSNs: everything before `una` is acknowledged, `next` is sent next, everything before `max` was
/// made at least once, everything before `left` has left the card. `next` is behind `max` while packets are sent again.
#[derive(Clone, Default)]
pub(super) struct Sq {
    pub(super) ctx: SqCtx,
    /// The context image was written since the queue pair left RESET.
    pub(super) configured: bool,
    pub(super) state: u8,
    /// Producer index in slots, as rung by the host.
    pub(super) producer: u16,
    /// First slot of the next WQE to start.
    pub(super) exec: u16,
    pub(super) next: Psn,
    pub(super) una: Psn,
    pub(super) max: Psn,
    pub(super) left: Psn,
    /// Behind the latest packet that asked for an answer and has left.
    pub(super) asked: Psn,
    /// Packets that are made and have not left.
    pub(super) queued: u32,
    /// Messages started and not retired, oldest first.
    pub(super) messages: VecDeque<Message>,
    /// Packets sent since the last that asked for an acknowledgement.
    since_ack_req: u32,
    /// A local error that waits for everything before it to be acknowledged.
    pub(super) stall: Option<Stall>,
    pub(super) retry: super::retry::Retry,
    pub(super) trip: RoundTrip,
    pub(super) pacing: super::pacing::Pacing,
    /// SQ_DRAINED was reported in this SQD.
    drained: bool,
}

/// A message on the wire.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// Producer index of the first slot of its WQE.
    pub(super) index: u16,
    pub(super) request: SendRequest,
    pub(super) first: Psn,
    /// PSNs it takes; of a READ those of its responses.
    pub(super) packets: u32,
}

/// The packet that a local error keeps from being sent.
#[derive(Clone)]
pub(super) struct Stall {
    psn: Psn,
    pub(super) index: u16,
    pub(super) error: BadWqe,
}

impl Message {
    /// The PSN behind its last.
    pub(super) fn end(&self) -> Psn {
        self.first.add(self.packets)
    }

    pub(super) fn contains(&self, psn: Psn) -> bool {
        psn.is_within(self.first, self.packets)
    }

    pub(super) fn cqe_opcode(&self) -> u8 {
        wqe::cqe_opcode(&self.request.head)
    }
}

impl Sq {
    /// Starts afresh with `psn`; the context and the host's producer index stay.
    pub(super) fn reset(&mut self, psn: Psn) {
        *self = Self {
            ctx: self.ctx,
            configured: self.configured,
            state: self.state,
            producer: self.producer,
            pacing: std::mem::take(&mut self.pacing),
            next: psn,
            una: psn,
            max: psn,
            left: psn,
            asked: psn,
            trip: RoundTrip::from(psn),
            ..Self::default()
        };
        self.reload();
    }

    /// Slots posted and not started.
    pub(super) fn posted(&self) -> u16 {
        self.producer.wrapping_sub(self.exec)
    }

    /// Nothing more is sent or waited for.
    pub(super) fn stop(&mut self) {
        self.stall = None;
        self.retry.stop();
    }

    pub(super) fn mtu(&self) -> Mtu {
        Mtu::from_code(self.ctx.mtu).expect("checked by MODIFY_QP")
    }

    /// The PSN behind the last message started.
    fn end(&self) -> Psn {
        self.messages.back().map_or(self.next, Message::end)
    }

    fn may_send(&self) -> bool {
        matches!(self.state, state::RTS | state::SQD)
            && !self.retry.is_waiting()
            && self
                .stall
                .as_ref()
                .is_none_or(|stall| stall.psn != self.next)
    }

    /// As many PSNs are outstanding as the window has. What is to be sent again does not count.
    fn is_full(&self) -> bool {
        let outstanding = self.next.since(self.una);
        let host = (self.ctx.window != 0).then(|| self.ctx.window.into());
        let window = self.pacing.window().into_iter().chain(host).min();
        self.ctx.qp_type == qp_type::RC && window.is_some_and(|most| outstanding >= most as i32)
    }

    fn may_start(&self) -> bool {
        self.state == state::RTS && self.posted() > 0 && self.messages.len() < 1 << self.ctx.ot_log
    }
}

impl QueuePair {
    /// There may be a request packet to send.
    pub(super) fn wants_request(&self) -> bool {
        self.sq.may_send() && (self.sq.next != self.sq.end() || self.sq.may_start())
    }

    /// The next request packet. `None` until something changes when fence, limits or an error forbid it.
    pub(super) fn next_request(&mut self, env: &mut Env) -> Option<Outgoing> {
        if !self.wants_request() {
            return None;
        }
        // Messages without PSN make room for the next.
        while self.sq.next == self.sq.end() {
            if !self.sq.may_start() || !self.start(env) {
                return None;
            }
        }
        // Less than half of the number circle is ever outstanding (IB1 9.7.2).
        if self.sq.next.since(self.sq.una) >= psn::HALF as i32 - 1 {
            return None;
        }
        if self.sq.is_full() {
            return None;
        }
        let next = self.sq.next;
        let place = self.sq.messages.iter().position(|m| m.contains(next))?;
        let message = &self.sq.messages[place];
        let (mut packet, taken) = match self.segment(env, message, next) {
            Ok(segment) => segment,
            Err(status) => {
                let opcode = message.cqe_opcode();
                self.sq.stall = Some(Stall {
                    psn: next,
                    index: message.index,
                    error: BadWqe { status, opcode },
                });
                self.settle(env);
                return None;
            }
        };
        if next.since(self.sq.max) < 0 {
            env.stats.count(stats::RETRANSMISSIONS);
        }
        self.sq.next = next.add(taken);
        if self.sq.next.since(self.sq.max) > 0 {
            self.sq.max = self.sq.next;
        }
        let ends = self.sq.next == self.sq.messages[place].end();
        if self.sq.ctx.qp_type == qp_type::RC {
            self.sq.since_ack_req += 1;
            packet.ack_req = ends || self.sq.is_full() || self.sq.since_ack_req == ACK_INTERVAL;
            if packet.ack_req {
                self.sq.since_ack_req = 0;
            }
        }
        self.sq.queued += 1;
        Some(packet)
    }

    /// Starts the next WQE; `false` if it may not start now or not at all.
    fn start(&mut self, env: &mut Env) -> bool {
        let sq = &mut self.sq;
        let index = sq.exec;
        let (slots, request) = wqe::fetch_send(env, &sq.ctx, index, sq.posted());
        let request =
            request.and_then(|request| wqe::permitted(&env.regions, sq.ctx.pd, self.qpn, request));
        let request = match request {
            Ok(request) => request,
            Err(error) => {
                sq.exec = index.wrapping_add(slots);
                sq.stall = Some(Stall {
                    psn: sq.next,
                    index,
                    error,
                });
                self.settle(env);
                return false;
            }
        };
        let answered = sq
            .messages
            .iter()
            .filter(|m| m.request.is_answered())
            .count();
        if (request.head.fence && answered > 0)
            || (request.is_answered() && answered >= usize::from(sq.ctx.max_rd_atomic))
            // a request that is flushed has no effect
            || (request.is_local() && !sq.messages.is_empty())
        {
            return false;
        }
        if let Err(error) = wqe::execute(&mut env.regions, (sq.ctx.pd, self.qpn), &request) {
            sq.exec = index.wrapping_add(slots);
            self.fail_send(env, index, error, 0);
            return false;
        }
        let packets = match request.is_local() {
            true => 0,
            false => sq.mtu().packets(request.head.length),
        };
        let outstanding = sq.next.since(sq.una) as u32;
        if request.operation == Operation::ReadRequest && outstanding + packets >= psn::HALF {
            return false;
        }
        sq.messages.push_back(Message {
            index,
            request,
            first: sq.next,
            packets,
        });
        sq.exec = index.wrapping_add(slots);
        if packets == 0 {
            self.retire(env);
        }
        true
    }

    /// Everything before `to` is acknowledged: retires messages, reloads the retry counters.
    pub(super) fn advance(&mut self, env: &mut Env, to: Psn) {
        if to.since(self.sq.una) <= 0 {
            return;
        }
        self.sq.una = to;
        self.sq.trip.passed(to);
        if to.since(self.sq.next) > 0 {
            self.sq.next = to;
        }
        if self
            .sq
            .stall
            .as_ref()
            .is_some_and(|stall| to.since(stall.psn) > 0)
        {
            self.sq.stall = None;
        }
        self.sq.reload();
        if self.retire(env) {
            self.restart_timer(env.now);
            self.settle(env);
        }
    }

    /// Completes the messages of which everything is acknowledged; `false` if a completion is lost.
    fn retire(&mut self, env: &mut Env) -> bool {
        let una = self.sq.una;
        while let Some(message) = self.sq.messages.front().filter(|m| una.since(m.end()) >= 0) {
            let message = message.clone();
            self.sq.messages.pop_front();
            if message.request.head.signaled && self.complete_sent(env, &message).is_err() {
                self.rq.responses.clear();
                self.fail(env, event::QP_FATAL, status::GENERAL_ERR);
                return false;
            }
        }
        true
    }

    fn complete_sent(
        &self,
        env: &mut Env,
        message: &Message,
    ) -> Result<(), super::completion::Lost> {
        let byte_len = if message.request.is_answered() {
            message.request.head.length
        } else {
            0
        };
        let (opcode, wqe_index) = (message.cqe_opcode(), message.index);
        self.complete_send(
            env,
            Cqe {
                opcode,
                wqe_index,
                byte_len,
                ..Cqe::default()
            },
        )
    }

    /// Reports a local error when everything before it is acknowledged, and a drained send queue.
    pub(super) fn settle(&mut self, env: &mut Env) {
        let front = self.sq.messages.front();
        if let Some(stall) = &self.sq.stall {
            if front.is_none_or(|m| m.contains(stall.psn)) {
                let (index, error) = (stall.index, stall.error);
                self.sq.stall = None;
                self.sq.messages.pop_front();
                self.fail_send(env, index, error, 0);
            }
        } else if self.sq.state == state::SQD && front.is_none() && !self.sq.drained {
            self.sq.drained = true;
            if let Some(ctx) = env.cqs[usize::from(self.sq.ctx.cqn)].ctx {
                let eqe = Eqe {
                    event: event::SQ_DRAINED,
                    object: self.qpn,
                    ..Eqe::default()
                };
                env.event(ctx.eqn, eqe);
            }
        }
    }

    /// The state of the requester was set by a command.
    pub(super) fn enter_sq_state(&mut self, env: &mut Env, state: u8) {
        self.sq.state = state;
        self.sq.drained = false;
        self.sq.configured &= state != state::RESET;
        if matches!(state, state::RESET | state::INIT | state::RTR) {
            self.sq.retry.stop();
        }
        self.settle(env);
        self.flush(env);
    }

    /// A send WQE failed: its CQE, then the error state of its transport.
    pub(super) fn fail_send(&mut self, env: &mut Env, index: u16, error: BadWqe, syndrome: u8) {
        let BadWqe { status, opcode } = error;
        let cqe = Cqe {
            status,
            opcode,
            wqe_index: index,
            vendor_err: syndrome,
            ..Cqe::default()
        };
        let _ = self.complete_send(env, cqe);
        if self.sq.ctx.qp_type == qp_type::RC {
            // A queue pair in error sends nothing (IB1 10.3.1); only the NAK that tells of a responder's error still leaves.
            self.rq.responses.clear();
            self.fail(env, event::QP_FATAL, status);
        } else {
            self.fail_sq(env, status);
        }
    }

    /// The oldest message failed.
    pub(super) fn fail_oldest(&mut self, env: &mut Env, status: u8, syndrome: u8) {
        if let Some(message) = self.sq.messages.pop_front() {
            self.sq.stall.take_if(|stall| stall.index == message.index);
            let error = BadWqe {
                status,
                opcode: message.cqe_opcode(),
            };
            self.fail_send(env, message.index, error, syndrome);
        }
    }
}
