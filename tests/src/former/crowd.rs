//! Queue pairs that fail together, each by a message that it refuses, and are reset at once: their events stand in a queue when
//! the first of them ends.

use ferroce_proto::abi::qpc::state;
use ferroce_proto::wire::{Opcode, Psn};
use ferroce_sim::packet;
use ferroce_sim::testhost::{Peer, QpOptions};

use super::life::modify;
use super::traffic::headers;
use super::{Test, stranger};

/// Their numbers.
const CROWD: std::ops::Range<u32> = 100..164;

impl Test {
    /// A crowd opens, fails and ends; some of it may be a life that fails last.
    pub(super) fn fail_together(&mut self, index: usize) {
        let peer = stranger(self.rng.u32(..1 << 24));
        for qpn in CROWD {
            let options = QpOptions {
                timeout: 0,
                ..QpOptions::default()
            };
            self.host.create_qp_as(qpn, options);
            let opening = self.host.opening(qpn, &peer);
            let images = self.host.images(qpn, &peer);
            self.command(opening, &images);
            self.crowd.insert(qpn);
        }
        for qpn in CROWD {
            self.refuse(qpn, &peer, peer.psn);
        }
        let life = &mut self.incarnations[index];
        if life.is_rc() {
            life.fails = true;
            let (qpn, peer, next) = (life.qpn, life.peer, life.next);
            self.refuse(qpn, &peer, next);
        }
        let wait = self.rng.u64(..1600);
        self.run(wait);
        let mut ends: Vec<u32> = CROWD.rev().collect();
        if self.rng.bool() {
            self.rng.shuffle(&mut ends);
        }
        for qpn in ends {
            self.command(modify(qpn, state::RESET, true), &[]);
            self.take_events();
            self.crowd.remove(&qpn);
            self.host.was_reset(qpn);
        }
    }

    /// The last packet of a message that never began.
    fn refuse(&mut self, qpn: u32, peer: &Peer, psn: u32) {
        let psn = Psn::new(psn);
        let headers = headers(&self.host, &self.gids, qpn, peer, Opcode::RcSendLast, psn);
        self.host.nic.receive(&packet::frame(&headers, &[]));
    }
}
