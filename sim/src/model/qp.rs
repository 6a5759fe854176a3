//! A queue pair: its state, completions, errors and flush.

use ferroce_proto::abi::cmd::QpState;
use ferroce_proto::abi::cq::{Cqe, opcode as cqe_opcode, status};
use ferroce_proto::abi::eq::{Eqe, event};
use ferroce_proto::abi::qpc::{AvCtx, state};

use super::Env;
use super::completion::Lost;
use super::requester::Sq;
use super::responder::Rq;
use super::wqe;

/// A queue pair.
#[derive(Clone, Default)]
pub(super) struct QueuePair {
    /// Local number.
    pub(super) qpn: u32,
    /// Address vector.
    pub(super) av: AvCtx,
    /// Requester.
    pub(super) sq: Sq,
    /// Responder.
    pub(super) rq: Rq,
}

impl QueuePair {
    pub(super) fn new(qpn: u32) -> Self {
        Self {
            qpn,
            ..Self::default()
        }
    }

    /// Answer of QUERY_QP.
    pub(super) fn query(&self) -> QpState {
        QpState {
            sq_state: self.sq.state,
            rq_state: self.rq.state,
            sq_psn: self.sq.next.value(),
            una_psn: self.sq.una.value(),
            rq_psn: self.rq.expected.value(),
            msn: self.rq.msn,
            rq_index: self.rq.consumer,
            ..QpState::default()
        }
    }

    /// Writes a CQE of the send queue.
    pub(super) fn complete_send(&self, env: &mut Env, cqe: Cqe) -> Result<(), Lost> {
        env.complete(
            self.sq.ctx.cqn,
            Cqe {
                qpn: self.qpn,
                ..cqe
            },
        )
    }

    /// Writes a CQE of the receive queue.
    pub(super) fn complete_recv(&self, env: &mut Env, cqe: Cqe) -> Result<(), Lost> {
        env.complete(
            self.rq.ctx.cqn,
            Cqe {
                qpn: self.qpn,
                recv: true,
                ..cqe
            },
        )
    }

    /// Both queues go into error and flush; `cause` is the completion status that brought it about.
    pub(super) fn fail(&mut self, env: &mut Env, event: u8, cause: u8) {
        self.sq.state = state::ERR;
        self.rq.state = state::ERR;
        self.report(env, event, cause);
        self.flush(env);
    }

    /// The send queue of an unreliable transport goes into error and flushes (SQE).
    pub(super) fn fail_sq(&mut self, env: &mut Env, cause: u8) {
        self.sq.state = state::SQE;
        self.report(env, event::QP_FATAL, cause);
        self.flush(env);
    }

    /// Tells the event queue of the send queue's completion queue.
    pub(super) fn report(&self, env: &mut Env, event: u8, detail: u8) {
        if let Some(ctx) = env.cqs[usize::from(self.sq.ctx.cqn)].ctx {
            env.event(
                ctx.eqn,
                Eqe {
                    event,
                    detail,
                    object: self.qpn,
                    ..Eqe::default()
                },
            );
        }
    }

    /// Completes everything in the queues that are in error with WR_FLUSH_ERR, also what is not
    /// signaled. CQEs that find their queue full are lost.
    pub(super) fn flush(&mut self, env: &mut Env) {
        if self.sq.configured && matches!(self.sq.state, state::SQE | state::ERR) {
            self.flush_sq(env);
        }
        if self.rq.configured && self.rq.state == state::ERR {
            self.flush_rq(env);
        }
    }

    fn flush_sq(&mut self, env: &mut Env) {
        let flushed = Cqe {
            status: status::WR_FLUSH_ERR,
            ..Cqe::default()
        };
        let messages = std::mem::take(&mut self.sq.messages);
        let started = messages
            .iter()
            .map(|message| (message.index, message.cqe_opcode()));
        // A bad WQE behind them was taken, and sent nothing.
        let bad = self.sq.stall.take();
        let bad = bad.filter(|bad| messages.iter().all(|message| message.index != bad.index));
        let bad = bad.map(|bad| (bad.index, bad.error.opcode));
        for (wqe_index, opcode) in started.chain(bad) {
            let cqe = Cqe {
                opcode,
                wqe_index,
                ..flushed
            };
            let _ = self.complete_send(env, cqe);
        }
        while self.sq.posted() > 0 {
            let (head, slots) = wqe::slots(env, &self.sq.ctx, self.sq.exec, self.sq.posted());
            let opcode = wqe::cqe_opcode(&head);
            let _ = self.complete_send(
                env,
                Cqe {
                    opcode,
                    wqe_index: self.sq.exec,
                    ..flushed
                },
            );
            self.sq.exec = self.sq.exec.wrapping_add(slots);
        }
        self.sq.stop();
    }

    fn flush_rq(&mut self, env: &mut Env) {
        let flushed = Cqe {
            opcode: cqe_opcode::RECV,
            status: status::WR_FLUSH_ERR,
            ..Cqe::default()
        };
        let inbound = self.rq.inbound.take().and_then(|message| message.recv);
        for recv in inbound.into_iter().chain(self.rq.unused.take()) {
            let _ = self.complete_recv(
                env,
                Cqe {
                    wqe_index: recv.index,
                    ..flushed
                },
            );
        }
        while self.rq.posted() > 0 && !self.rq.ctx.srq_valid {
            let _ = self.complete_recv(
                env,
                Cqe {
                    wqe_index: self.rq.consumer,
                    ..flushed
                },
            );
            self.rq.consumer = self.rq.consumer.wrapping_add(1);
        }
        // no message of it takes a WQE of the shared receive queue from now on (IB1 11.6.3.1)
        if self.rq.ctx.srq_valid && !self.rq.last_reported {
            self.rq.last_reported = true;
            self.report(env, event::LAST_WQE_REACHED, status::SUCCESS);
        }
    }
}
