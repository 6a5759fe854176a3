//! A queue pair that only receives, and whose completion queue is too small: it fails when it loses a completion.

use ferroce_proto::abi::cmd::{CmdHead, opcode};
use ferroce_proto::abi::qpc::{qp_type, state};
use ferroce_proto::wire::{Opcode, Psn};
use ferroce_sim::packet;
use ferroce_sim::testhost::QpOptions;

use super::life::head;
use super::traffic::headers;
use super::{Test, stranger};

/// Its number, and that of its completion queue.
pub(super) const QPN: u32 = 98;
/// Completions that there is room for, as a logarithm.
const LOG: u8 = 1;

impl Test {
    pub(super) fn overrun(&mut self) {
        let peer = stranger(self.rng.u32(..1 << 24));
        let cqn = self.host.create_cq_as(QPN as u16, LOG);
        let options = QpOptions {
            qp_type: qp_type::UC,
            recv_cq: cqn,
            ..QpOptions::default()
        };
        self.open_apart(QPN, options, &peer);
        let no_sends = CmdHead {
            qp_sq_state: true,
            sq_reset: true,
            sq_state: state::RESET,
            ..head(opcode::MODIFY_QP, QPN)
        };
        self.command(no_sends, &[]);
        let room = 1 << LOG;
        let messages = room + self.rng.u32(..3);
        for _ in 0..messages {
            self.host.post_recv(QPN, &[]);
        }
        // without a receive UC drops a message, and the doorbells take their time
        self.run(1000);
        for message in 0..messages {
            let psn = Psn::new(peer.psn).add(message);
            let headers = headers(&self.host, &self.gids, QPN, &peer, Opcode::UcSendOnly, psn);
            self.host.nic.receive(&packet::frame(&headers, &[]));
        }
        self.run(10_000);
        let found = self.query(QPN).rq_state;
        let expected = if messages > room {
            state::ERR
        } else {
            state::RTS
        };
        assert_eq!(found, expected, "{messages} messages, room for {room}");
        self.end_apart(QPN, cqn);
    }
}
