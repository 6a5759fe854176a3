//! Queue pairs that fail together, each by a message that it refuses, and of which some are reset at once: their events stand in a
//! queue when the first of them ends.

use ferroce_proto::abi::cmd::{QpState, opcode};
use ferroce_proto::abi::qpc::{RqCtx, state};
use ferroce_proto::wire::{Opcode, Psn};
use ferroce_sim::packet;
use ferroce_sim::testhost::{Peer, QpOptions};

use super::life::{head, modify};
use super::overrun::QPN;
use super::traffic::headers;
use super::{PATIENCE, Test, stranger};

/// How many end at once. The others stay in error until they start again with the next crowd.
const ENDS: usize = 8;

/// Their numbers: those that no life has.
fn crowd() -> impl DoubleEndedIterator<Item = u32> {
    (8..QPN).chain(100..250)
}

impl Test {
    /// A crowd opens, fails and ends; some of it may be a life that fails last.
    pub(super) fn fail_together(&mut self, index: usize) {
        let peer = stranger(self.rng.u32(..1 << 24));
        (self.pace, self.takes) = (0, 0);
        for qpn in crowd() {
            let options = QpOptions {
                timeout: 0,
                ..QpOptions::default()
            };
            self.host.create_qp_as(qpn, options);
            let opening = self.host.opening(qpn, &peer);
            let [sq, av, rq] = self.host.images(qpn, &peer);
            // Two events each: with a shared receive queue it reports its last WQE, too.
            let rq = RqCtx {
                srq_valid: true,
                srqn: self.srqn,
                ..RqCtx::parse(&rq)
            };
            self.command(opening, &[sq, av, rq.emit()]);
            self.crowd.insert(qpn);
        }
        let refusals = self.host.stat("invalid_request_errors") + crowd().count() as u64;
        for qpn in crowd() {
            self.refuse(qpn, &peer, peer.psn);
        }
        let life = &mut self.incarnations[index];
        if life.is_rc() {
            life.fails = true;
            let (qpn, peer, next) = (life.qpn, life.peer, life.next);
            self.refuse(qpn, &peer, next);
        }
        let end = self.host.nic.now() + PATIENCE;
        while self.host.stat("invalid_request_errors") < refusals {
            assert!(self.host.nic.now() < end, "not all of a crowd fail");
            self.run(1);
        }
        let wait = [0, self.rng.u64(..400)][self.rng.usize(..2)];
        self.run(wait);
        let mut ends: Vec<u32> = crowd().rev().collect();
        if self.rng.bool() {
            self.rng.shuffle(&mut ends);
        }
        for qpn in ends.into_iter().take(ENDS) {
            self.reset_apart(qpn);
        }
    }

    /// A queue pair that is no life, with images as the host makes them.
    pub(super) fn open_apart(&mut self, qpn: u32, options: QpOptions, peer: &Peer) {
        self.host.create_qp_as(qpn, options);
        let opening = self.host.opening(qpn, peer);
        let images = self.host.images(qpn, peer);
        self.command(opening, &images);
        self.crowd.insert(qpn);
    }

    /// Its RESET: what it reports was there before the answer.
    fn reset_apart(&mut self, qpn: u32) {
        self.command(modify(qpn, state::RESET, true), &[]);
        self.take_events();
        self.crowd.remove(&qpn);
        self.host.was_reset(qpn);
    }

    /// Its end, and that of its completion queue.
    pub(super) fn end_apart(&mut self, qpn: u32, cqn: u16) {
        self.reset_apart(qpn);
        self.command(head(opcode::DESTROY_CQ, cqn.into()), &[]);
        self.host.cq_was_destroyed(cqn);
    }

    /// The states of a queue pair.
    pub(super) fn query(&mut self, qpn: u32) -> QpState {
        let answer = self.command(head(opcode::QUERY_QP, qpn), &[]);
        QpState::parse(&answer.value.to_le_bytes())
    }

    /// The last packet of a message that never began.
    fn refuse(&mut self, qpn: u32, peer: &Peer, psn: u32) {
        let psn = Psn::new(psn);
        let headers = headers(&self.host, &self.gids, qpn, peer, Opcode::RcSendLast, psn);
        self.host.nic.receive(&packet::frame(&headers, &[]));
    }
}
